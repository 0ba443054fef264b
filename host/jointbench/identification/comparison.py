"""Comparison of two models of a robot: which parameters differ, by how much torque, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.judgement import GOOD_RELATIVE_ERROR
from jointbench.identification.model import Model
from jointbench.identification.model_file import as_model
from jointbench.identification.torque_difference import (
    AllParameters,
    JointTest,
    MotionTorque,
    TorqueDifference,
    holm,
    joint_test,
    single_tests,
    states_within_limits,
    torque_differences,
)
from jointbench.signals import Motion

LEVEL = 0.01
"""How often equal models are called different."""

_POWER = 0.9
_ALIKE = 1e-6
"""Difference of two groupings' coefficients that is rounding of the robots' lengths."""

Answer = Literal["same", "different", "cannot tell"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Model b against model a.

    Attributes:
        names: of the base parameters, by what leads them, and of those of friction laws.
        values: of a and of b [SI], shape (2, n).
        sigmas: of a and of b, infinite where not told, shape (2, n).
        sigma: of the difference, infinite where one of them does not tell it, shape (n,).
        p_values: how likely equal parameters are that far apart, corrected for their number, nan where not told by
            both, shape (n,).
        test: of all that both tell at once.
        torques: difference of torque by joint, over the motion: all of it, and that of links, drives and friction.
        joint_names: of the joints.
        one_sided: joints on which a parameter acts that only one model tells, shape (n_joints,).
        same_data: whether both were fitted to a recording they share.
        level: how often equal models are called different.
        margin: share of a joint's torque that a difference may reach and still count as none.

    >>> before, after = (jb.fit(jb.open_run(path)) for path in ("runs/arm", "runs/after"))
    >>> worn = jb.compare(before, after)
    >>> worn.differs, worn.different
    (True, ('j1.coulomb',))
    >>> f"{worn.difference[worn.names.index('j1.coulomb')]:+.1f} N·m"
    '+2.0 N·m'
    """

    names: tuple[str, ...]
    values: Array
    sigmas: Array
    sigma: Array
    p_values: Array
    test: JointTest
    torques: Mapping[str, TorqueDifference]
    joint_names: tuple[str, ...]
    one_sided: NDArray[np.bool_]
    same_data: bool
    level: float
    margin: float

    def __repr__(self) -> str:
        """Return one line: the answer, and the figures it rests on."""
        return f"<Comparison: {self.answer}; {self.reason}>"

    @property
    def difference(self) -> Array:
        """Difference of b from a [SI], shape (n,)."""
        return self.values[1] - self.values[0]

    @property
    def in_sigma(self) -> Array:
        """The difference by its σ, 0 where not told by both, shape (n,)."""
        return self.difference / self.sigma

    @property
    def detectable(self) -> Array:
        """The difference that would be found nine times in ten, were it the only one tested, shape (n,)."""
        return (special.ndtri(_POWER) - special.ndtri(0.5 * self.level)) * self.sigma

    @cached_property
    def different(self) -> tuple[str, ...]:
        """Parameters that differ, the surest first."""
        if not self.differs:
            return ()
        order = np.argsort(self.p_values)
        return tuple(self.names[k] for k in order if self.p_values[k] <= self.level)

    @property
    def p_value(self) -> float:
        """p-value of all parameters at once; of the surest one where the σ rest on too few rows for that."""
        if np.isfinite(self.test.p_value) or not np.isfinite(self.p_values).any():
            return self.test.p_value
        return float(np.nanmin(self.p_values))

    @property
    def differs(self) -> bool:
        """True if the models differ by more than chance."""
        return self.p_value <= self.level

    @property
    def at_most(self) -> Array:
        """Largest difference of torques as a share of each joint's torque, with 95 % probability, shape (n_joints,)."""
        torque = self.torques["all"]
        unknown = np.full(len(self.joint_names), np.inf)
        share = np.divide(torque.at_most, torque.torque, out=unknown, where=torque.torque > 0.0)
        share[torque.at_most == 0.0] = 0.0  # passive joints
        return np.where(self.one_sided, np.inf, share)

    @property
    def answer(self) -> Answer:
        """Same: within the margin for sure. Cannot tell: no difference is seen, and a large one would not be."""
        if self.differs:
            return "different"
        return "same" if np.isfinite(self.p_value) and bool(np.all(self.at_most <= self.margin)) else "cannot tell"

    @property
    def reason(self) -> str:
        """The answer's figures in a sentence."""
        return reason(self)


def compare(
    a: Model | str | Path,
    b: Model | str | Path,
    *,
    motion: Motion | None = None,
    level: float = LEVEL,
    margin: float = GOOD_RELATIVE_ERROR,
) -> Comparison:
    """Compare two models of one robot, or of two of a kind, by their parameters and covariances.

    T² = (b - a)ᵀ S⁻¹ (b - a) with S = S_a + S_b, all parameters at once first; which of them differ is named by Holm's
    procedure. Of models that share a recording the errors are correlated in an unknown way: then 2 (S_a + S_b), which
    the covariance of a difference never exceeds, so that nothing is called different by mistake. Covariances are
    without calibration, which two recordings of one arm share; two arms may differ by their calibration alone.

    Args:
        a, b: the models, or their files.
        motion: on which torques are compared; None: random states within the robot's limits.
        level: how often equal models may be called different.
        margin: share of a joint's torque up to which a difference does not matter.

    Returns:
        The comparison; look at its `answer`.

    Raises:
        FileError: a file that is named cannot be read.
        FitError: the robots' joints, their parameters or lengths differ; or no motion is given, and the robot has no
            limits to stay within; or level or margin is impossible.

    >>> arm, other = (jb.fit(jb.open_run(path)) for path in ("runs/arm", "runs/other"))  # one arm, two motions
    >>> jb.compare(arm, other).answer
    'same'
    """
    if not 0.0 < level < 1.0 or not margin > 0.0:
        raise FitError(f"level = {level:g} must be between 0 and 1, and margin = {margin:g} above 0")
    a, b = as_model(a), as_model(b)
    check_comparable(a, b)
    same_data = bool(_recordings(a) & _recordings(b))
    factor = 2.0 if same_data else 1.0
    sides = (AllParameters.of(a), AllParameters.of(b))
    values, sigmas = np.array([side.values for side in sides]), np.array([side.sigma for side in sides])
    finite = np.isfinite(sigmas)
    both = np.flatnonzero(finite.all(axis=0))
    parts = tuple(factor * side.covariance[np.ix_(both, both)] for side in sides)
    rows = (effective_rows(a), effective_rows(b))
    difference = np.where(finite.all(axis=0), values[1] - values[0], 0.0)
    variances = tuple(factor * sigma**2 for sigma in sigmas)
    torque = MotionTorque(a, states_within_limits(a.robot) if motion is None else motion)
    by_one = finite[0] != finite[1]
    return Comparison(
        names=sides[0].names,
        values=values,
        sigmas=sigmas,
        sigma=np.sqrt(variances[0] + variances[1]),
        p_values=holm(single_tests(difference, variances, rows)),
        test=joint_test(difference[both], parts, rows),
        torques=torque_differences(torque, sides[0], both, difference[both], parts[0] + parts[1]),
        joint_names=a.robot.joint_names,
        one_sided=np.asarray(torque.columns(values[0])[:, :, by_one].any(axis=(0, 2))),
        same_data=same_data,
        level=level,
        margin=margin,
    )


def check_comparable(a: Model, b: Model) -> None:
    """Refuse models whose parameters do not stand for the same.

    Raises:
        FitError: names the first difference.
    """
    one_file, one_law = "fit both with the same robot file", "fit both with the same laws"
    for what, first, second, advice in (
        ("the joints", a.robot.joint_names, b.robot.joint_names, one_file),
        ("the parameters", a.base.full_names, b.base.full_names, one_file),
        ("the base parameters", a.names, b.names, one_file),
        ("the joints' friction laws", _laws(a), _laws(b), one_law),
    ):
        if first != second:
            more, others = (_only(first, second), _only(second, first))
            raise FitError(
                f"models of robots {a.robot.name!r} and {b.robot.name!r} cannot be compared: {what} differ (only the "
                f"first has {more}; only the second {others}); {advice}"
            )
    apart = np.abs(a.base.grouping - b.base.grouping)
    if apart.max() > _ALIKE:
        row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
        raise FitError(
            f"models of robots {a.robot.name!r} and {b.robot.name!r} cannot be compared: {a.names[row]} holds "
            f"{a.base.grouping[row, column]:.6g} of {a.base.full_names[column]} in the first and "
            f"{b.base.grouping[row, column]:.6g} in the second, so their lengths differ; fit both with the same robot "
            f"file"
        )


def _laws(model: Model) -> tuple[str, ...]:
    """Return the argument that `fit` is asked for these laws with, such as "j2=stribeck"."""
    laws = {} if model.friction is None else model.friction.laws.laws
    return tuple(f"{joint}={law.name}" for joint, law in laws.items())


def _only(first: tuple[str, ...], second: tuple[str, ...]) -> str:
    return ", ".join(name for name in first if name not in second) or "nothing more"


def effective_rows(model: Model) -> float:
    """Return the number of independent rows that the model's covariance is worth.

    1.5 n / (L + 1) for n rows and Bartlett's window of L lags, n at most.

    Source: Priestley, Spectral Analysis and Time Series, 1981, table 6.1: the window's equivalent degrees of freedom.
    """
    n = float(max(model.rows, default=0))
    return max(1.0, min(n, 1.5 * n / (model.lags + 1.0)))


def _recordings(model: Model) -> set[str]:
    """Hashes of what it was fitted to."""
    listed: list[Mapping[str, Any]] = list(model.provenance.get("runs", [])) or [model.provenance]
    return {str(run["sha256"]) for run in listed if "sha256" in run}


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
