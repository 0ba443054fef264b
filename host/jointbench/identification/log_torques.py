"""Checks of torques: their scale beside the inertias of the robot, their sign, and columns in wrong places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.log_signals import (
    DEGREES,
    RADIANS,
    LogFinding,
    LogSignals,
    Look,
    MixUp,
    Torque,
    motion_arrays,
)
from jointbench.signals import Motion

_SCALE = (float(np.log(3.0)), float(np.log(30.0)))
"""Logarithm of the factor between torque and file from which on it is suspicious, and wrong: files are off by up to 2,
a forgotten torque constant makes 10 of it, a unit 1000."""

_TELLING = 0.3
"""Share of what friction leaves of a torque that the file's inertias must explain to tell its scale."""


def torque_scale(look: Look) -> float:
    """Return the ratio of measured torque to the file's, as the median of joints where its inertias matter.

    1 where they matter in none: then nothing tells.
    """
    causes, found = look.causes, list[float]()
    assert causes.rigid is not None
    for j in look.joints:
        beside = (*causes.free_at(j), *causes.resisting[:, :, j])
        columns = np.column_stack([*beside, causes.rigid[:, j], look.torque[:, j]])
        columns -= columns.mean(axis=0)
        r = cast(Array, np.linalg.qr(columns, mode="r"))
        own, shared, left = float(r[-2, -2]), float(r[-2, -1]), float(r[-1, -1])
        if shared**2 > _TELLING * (shared**2 + left**2) and own != 0.0:
            found.append(abs(shared / own))
    return float(np.median(found)) if found else 1.0


def check_scale(look: Look, name: str) -> LogFinding:
    """Judge the scale of the torque of this name."""
    scale = torque_scale(look)
    what = f"the {name} is {scale:.3g} times what the inertias of the robot's file make of the motion"
    advice = "check the unit of [torque], its gain (torque constant, gear ratio), and the masses in the robot's file"
    names = tuple(look.robot.joint_names[j] for j in look.joints)
    return LogFinding("torque scale", names, float(abs(np.log(scale))), *_SCALE, what, advice)


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


def check_saturation(signals: LogSignals) -> list[LogFinding]:
    """Signals that pile up at their largest value, as where a current limit or a converter clips them."""
    findings: list[LogFinding] = []
    moving = signals.fast.any(axis=1)  # a robot at rest may well hold its largest torque
    for torque in signals.torques if moving.any() else ():
        for j in np.flatnonzero(signals.robot.modelled).tolist():  # a passive joint's torque means nothing
            name = signals.robot.joint_names[j]
            share, at = _piled_up(torque.recorded[moving, j])
            if share >= _SATURATED[0]:
                what = f"{share:.1%} of {name}'s {torque.name} stands at its extreme, {at:.4g}: it is clipped"
                advice = "mark those rows with invalid_rows, or record a motion that needs less"
                findings.append(LogFinding("saturated", (name,), share, *_SATURATED, what, advice))
    if findings:
        return findings
    return [LogFinding("saturation", signals.robot.joint_names, 0.0, *_SATURATED, "no signal is clipped", "")]


def _piled_up(values: Array) -> tuple[float, float]:
    """Share of the values that pile up at the largest or smallest one, and that value."""
    values = values[np.isfinite(values)]
    best, span = (0.0, 0.0), float(np.ptp(values)) if len(values) else 0.0
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


def check_information(signals: LogSignals) -> list[LogFinding]:
    """Torques that are constant, or vary no more than their noise: a fit can learn nothing from them."""
    findings: list[LogFinding] = []
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
            findings.append(LogFinding("no information", dead, np.inf, *limits, what, advice))
        for name, ratio in zip(names, ratios, strict=True):
            if 0.0 < ratio < _NOISY[0]:
                what = f"the {torque.name} varies by {ratio:.2g} times what its noise alone would make"
                findings.append(LogFinding("no information", (name,), 1.0 / ratio, *limits, what, advice))
    if findings:
        return findings
    what = f"every torque varies above its noise, {least[1]}'s the least: {least[0]:.3g} times"
    return [LogFinding("information", names, 1.0 / least[0], *limits, what, "")]


def _over_noise(signals: LogSignals, torque: Torque, joint: int) -> float:
    """Deviation of the smooth torque over what white noise as in the recorded one would leave of it."""
    values = torque.recorded[:, joint]
    if float(values.std()) <= 1e-9 * float(np.abs(values).max()):
        return 0.0
    # Third differences of white noise are √20 times its deviation; a motion below the cut-off leaves little in them.
    differences = np.concatenate([np.diff(values[piece], n=3) for piece in signals.pieces])
    noise = float(np.sqrt(np.mean(differences**2) / 20.0 / signals.stride))  # smoothing keeps that share of its power
    return float(torque.smooth_recorded[:, joint].std()) / max(noise, 1e-300)


_GAIN = (0.2, 0.5)
"""Logarithm of the factor by which what is unexplained shrinks, over all joints, once a mix-up is undone, from which on
a log is suspicious, and wrong. Recordings that are right lose by every change: 0.3 and more wherever motion tells."""

_GAIN_WITHOUT_FILE = (1.0, np.inf)
"""The same where the file has no inertias: friction alone tells less."""

_GOOD = 0.5
"""Share of a joint's torque that may be left unexplained after a mix-up is undone, for certainty."""

_ALIKE = 0.8
"""Another mix-up that gains this share of the best one's may be the true one just as well."""

_UNEXPLAINED = 0.7
"""Share of a torque that stays unexplained from which on file and log do not belong together."""

_FAR = 5.0
"""Factor beyond which the search is also made with the torques scaled."""

_MOST_ROWS = 2000
"""Smoothed rows that are looked at."""


def check_mixed_up(signals: LogSignals, left_out: list[str]) -> list[LogFinding]:
    """Say which signs and columns are mixed up, undoing one after the other, and how much is explained then."""
    findings: list[LogFinding] = []
    thin = slice(None, None, -(-len(signals.motion.q) // _MOST_ROWS))
    motion = Motion(*(values[thin] for values in motion_arrays(signals.motion)))
    for torque in signals.torques:
        values = torque.smooth[thin]
        alive = signals.moving & (np.ptp(values, axis=0) > 0.0) & signals.robot.modelled
        if not alive.any():
            continue
        look = Look.at(signals.robot, motion, values, tuple(np.flatnonzero(alive).tolist()), 1.0)
        if look.causes.rigid is None:
            left_out.append(
                f"gravity and inertia against {torque.name}: the robot's file gives its links no mass; only friction "
                f"tells signs and order"
            )
            findings += _findings(_undone(look), torque) if torque.from_motors else []
            continue
        searches = [_undone(look)]
        scale = torque_scale(look)
        if not 1.0 / _FAR < scale < _FAR:
            searches.append(_undone(Look.at(look.robot, motion, values, look.joints, scale)))
        search = min(searches, key=lambda each: each.misfit)
        findings.append(check_scale(search.looks[-1], torque.name))
        findings += _findings(search, torque)
    return findings


@dataclass(frozen=True, eq=False)
class Search:
    """Mix-ups undone one after the other, until none gains enough.

    Attributes:
        looks: at the log as it is, and after each one undone.
        mix_ups: undone, the one that gains most first.
        gains: of each, and of the best one that was not undone.
        doubts: what else may be mixed up instead of each: "position", "torque" or "both".
    """

    looks: tuple[Look, ...]
    mix_ups: tuple[MixUp, ...]
    gains: tuple[float, ...]
    doubts: tuple[tuple[str, ...], ...]

    @property
    def misfit(self) -> float:
        """Return the unexplained rest, and the cost of every fault that is taken for one."""
        faults = len(self.mix_ups) + (self.looks[0].scale != 1.0)
        return float(np.sum(np.log(self.looks[-1].left))) + _GAIN[1] * faults


def _undone(look: Look) -> Search:
    """Undo the mix-up that gains most, and again."""
    least = (_GAIN if look.causes.rigid is not None else _GAIN_WITHOUT_FILE)[0]
    search = Search((look,), (), (), ())
    for _ in range(len(look.joints) + 1):
        look = search.looks[-1]
        gains = {mix_up: look.gain(mix_up) for mix_up in look.mix_ups()}
        mix_up = max(gains, key=lambda each: gains[each])
        best = gains[mix_up]
        search = replace(search, gains=(*search.gains, best))
        if best < least:
            break
        alike = tuple(
            each.of
            for each, gain in gains.items()
            if (each.kind, each.joints) == (mix_up.kind, mix_up.joints) and each != mix_up and gain >= _ALIKE * best
        )
        looks, mix_ups = (*search.looks, look.without(mix_up)), (*search.mix_ups, mix_up)
        search = replace(search, looks=looks, mix_ups=mix_ups, doubts=(*search.doubts, alike))
    return search


def _findings(search: Search, torque: Torque) -> list[LogFinding]:
    """Return findings on what was mixed up, and which torques stay unexplained."""
    name = torque.name
    first, last = search.looks[0], search.looks[-1]
    names, with_file = first.robot.joint_names, first.causes.rigid is not None
    limits = _GAIN if with_file else _GAIN_WITHOUT_FILE
    found = [
        _mixed_up_finding(
            search.looks[k], search.looks[k + 1], mix_up, search.doubts[k], search.gains[k], torque, limits
        )
        for k, mix_up in enumerate(search.mix_ups)
    ]
    if not found:
        left = first.left[list(first.joints)]
        what = f"no other sign or order of columns explains the {name} better"
        if with_file:
            what += f"; motion and the robot's file explain {1.0 - left.max():.0%} to {1.0 - left.min():.0%} of it"
        found.append(LogFinding("signs and order", names, search.gains[-1], *limits, what, ""))
    for j in last.joints if with_file else ():
        if last.left[j] >= _UNEXPLAINED:
            what = f"motion and the robot's file explain {1.0 - last.left[j]:.0%} of {names[j]}'s {name}"
            advice = "check the robot's file (masses, gravity, axes), the column, and the payload"
            found.append(
                LogFinding("unexplained", (names[j],), float(last.left[j]), _UNEXPLAINED, np.inf, what, advice)
            )
    return found


def _mixed_up_finding(
    before: Look, after: Look, mix_up: MixUp, others: tuple[str, ...], gain: float, torque: Torque,
    limits: tuple[float, float],
) -> LogFinding:  # fmt: skip
    """Say what is mixed up, what else it may be, and how much better the torques are explained without it."""
    names, name = [before.robot.joint_names[j] for j in mix_up.joints], torque.name
    ratios = before.left / after.left
    gaining = int(np.argmax(ratios))
    better = (
        f"{1.0 - after.left[gaining]:.0%} instead of {1.0 - before.left[gaining]:.0%} of "
        f"{before.robot.joint_names[gaining]}'s {name}"
    )
    words = {"both": "position and torque together", "torque": name}
    which = words.get(mix_up.of, mix_up.of)
    table = "position" if mix_up.of == "position" else "torque" if torque.from_motors else "joint_torque"
    doubt = f" (or in {' or '.join(words.get(other, other) for other in others)}: this motion does not tell)" * bool(
        others
    )
    what, advice = {
        "swapped sign": (f"the sign is swapped in {which}{doubt}", f"write gain = -1 for it in [{table}]"),
        "exchanged": (f"the columns are exchanged in {which}{doubt}", "exchange the columns in the mapping"),
        DEGREES: ("positions are in degrees, and were taken for radians", 'write unit = "deg" in [position]'),
        RADIANS: ("positions are in radians, and were taken for degrees", 'write unit = "rad" in [position]'),
    }[mix_up.kind]
    wrong_from = limits[1] if after.left[list(mix_up.joints)].max() <= _GOOD else np.inf
    what += f"; undone, motion and the robot's file explain {better}"
    return LogFinding(mix_up.kind, tuple(names), gain, limits[0], wrong_from, what, advice)
