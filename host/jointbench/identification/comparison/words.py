"""A comparison's answer in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jointbench.identification.comparison.comparison import Comparison

_NAMED = 3


def reason(comparison: Comparison) -> str:
    """The figures that an answer rests on."""
    test = comparison.test
    if not np.isfinite(comparison.p_value):
        return "there is no parameter that both models tell; record motion that excites the same joints"
    overall = f"χ² {test.chi_square:.4g} for {test.freedom} parameters, p = {comparison.p_value:.2g}"
    if comparison.answer == "different":
        return f"{overall}; {_which(comparison)}; {_torque(comparison)}"
    worst = int(np.argmax(comparison.at_most))
    name, share = comparison.joint_names[worst], float(comparison.at_most[worst])
    if comparison.answer == "same":
        return f"{overall}; torques differ by at most {share:.1%} ({name}), with 95 % probability"
    if not np.isfinite(share):
        blind = [joint for joint, one in zip(comparison.joint_names, comparison.one_sided, strict=True) if one]
        return f"{overall}, but of {', '.join(blind) or name} only one of the models tells all; record both alike"
    return (
        f"{overall}, but the torque of {name} may differ by {share:.0%} and it would not show (up to "
        f"{comparison.margin:.0%} would not matter); record longer or livelier motion"
    )


def _which(comparison: Comparison) -> str:
    if not comparison.different:
        return "no parameter by itself, but they do together"
    shown = [_change(comparison, comparison.names.index(name)) for name in comparison.different[:_NAMED]]
    more = len(comparison.different) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _change(comparison: Comparison, k: int) -> str:
    old, change = float(comparison.values[0, k]), float(comparison.difference[k])
    relative = f"{change / abs(old):+.1%}" if old else f"{change:+.3g}"
    return f"{comparison.names[k]} {relative} ({abs(comparison.in_sigma[k]):.1f} σ)"


def _torque(comparison: Comparison) -> str:
    torque = comparison.torques["all"]
    share = np.divide(torque.rms, torque.torque, out=np.zeros_like(torque.rms), where=torque.torque > 0.0)
    worst = int(np.argmax(share))
    return (
        f"the torque of {comparison.joint_names[worst]} by {torque.rms[worst]:.3g} ± {torque.sigma[worst]:.1g}, "
        f"{share[worst]:.1%} of it"
    )
