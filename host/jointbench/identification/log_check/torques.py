"""Torques by themselves: saturated, dead, or nothing but noise."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.log_check.finding import Finding
from jointbench.identification.log_check.log_signals import LogSignals, Torque

_TOP, _BELOW = 0.005, 0.03
"""A signal's largest values: within half a percent of the very largest, and the band below it down to 3 %; or the very
largest count of a converter, and the three below it."""

_PILED_UP = 3.0
"""Times as many values at the very top as in the band below it: the extreme of a sine has 0.7 times as many."""

_SATURATED = (0.002, 0.02)
"""Share of samples at such a top from which on a log is suspicious, and wrong."""

_SAME = 1e-9
"""Difference, as a share of a signal's span, that is rounding."""

_FEWEST = 10
"""Values at the top that chance may put there."""

_NOISY = (2.0, 1.2)
"""Deviation of the smooth torque over what its noise alone leaves of it, below which it is suspicious, and wrong."""


def check_saturation(signals: LogSignals) -> list[Finding]:
    """Signals that pile up at their largest value, as where a current limit or a converter clips them."""
    found: list[Finding] = []
    moving = signals.fast.any(axis=1)  # a robot at rest may well hold its largest torque
    for torque in signals.torques if moving.any() else ():
        for j in np.flatnonzero(signals.robot.modelled).tolist():  # a passive joint's torque means nothing
            name = signals.robot.joint_names[j]
            share, at = _piled_up(torque.recorded[moving, j])
            if share >= _SATURATED[0]:
                what = f"{share:.1%} of {name}'s {torque.name} stands at its extreme, {at:.4g}: it is clipped"
                advice = "mark those rows with invalid_rows, or record a motion that needs less"
                found.append(Finding("saturated", (name,), share, *_SATURATED, what, advice))
    if found:
        return found
    return [Finding("saturation", signals.robot.joint_names, 0.0, *_SATURATED, "no signal is clipped", "")]


def _piled_up(values: Array) -> tuple[float, float]:
    """Share of the values that pile up at the largest or smallest one, and that value."""
    best, span = (0.0, 0.0), float(np.ptp(values))
    if span == 0.0:
        return best
    resolution = span * float(np.median(np.diff(np.unique(np.round(values / span / _SAME))))) * _SAME
    for sign in (1.0, -1.0):
        signed = np.sort(sign * values)[::-1]
        top = float(signed[0])
        width = top - float(np.median(signed))
        for near, far in ((_TOP * width, _BELOW * width), (resolution / 2.0, 3.5 * resolution)):
            at, below = (int(np.searchsorted(-signed, -(top - depth), "right")) for depth in (near, far))
            if at >= _FEWEST and at > _PILED_UP * (below - at):
                best = max(best, (at / len(values), sign * top))
    return best


def check_information(signals: LogSignals) -> list[Finding]:
    """Torques that are constant, or vary no more than their noise: a fit can learn nothing from them."""
    found: list[Finding] = []
    joints = np.flatnonzero(signals.robot.modelled).tolist()
    names, limits = tuple(signals.robot.joint_names[j] for j in joints), (1.0 / _NOISY[0], 1.0 / _NOISY[1])
    advice = "check that the column is the right one and the sensor works; nothing can be identified from it"
    least = (np.inf, "")
    for torque in signals.torques:
        ratios = [_over_noise(signals, torque, j) for j in joints]
        least = min(least, *zip(ratios, names, strict=True))
        dead = tuple(name for name, ratio in zip(names, ratios, strict=True) if ratio == 0.0)
        if dead:
            what = f"the {torque.name} never changes: nothing was measured"
            found.append(Finding("no information", dead, np.inf, *limits, what, advice))
        for name, ratio in zip(names, ratios, strict=True):
            if 0.0 < ratio < _NOISY[0]:
                what = f"the {torque.name} varies by {ratio:.2g} times what its noise alone would make"
                found.append(Finding("no information", (name,), 1.0 / ratio, *limits, what, advice))
    if found:
        return found
    what = f"every torque varies above its noise, {least[1]}'s the least: {least[0]:.3g} times"
    return [Finding("information", names, 1.0 / least[0], *limits, what, "")]


def _over_noise(signals: LogSignals, torque: Torque, joint: int) -> float:
    """Deviation of the smooth torque over what white noise as in the recorded one would leave of it."""
    values = torque.recorded[:, joint]
    if float(values.std()) <= 1e-9 * float(np.abs(values).max()):
        return 0.0
    # Third differences of white noise are √20 times its deviation; a motion below the cut-off leaves little in them.
    differences = np.concatenate([np.diff(values[piece], n=3) for piece in signals.pieces])
    noise = float(np.sqrt(np.mean(differences**2) / 20.0 / signals.stride))  # smoothing keeps that share of its power
    return float(torque.smooth_recorded[:, joint].std()) / max(noise, 1e-300)
