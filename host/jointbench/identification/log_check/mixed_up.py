"""Columns mixed up: which swapped sign, exchange or unit would make the torques those of this motion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointbench.identification.log_check.finding import Finding
from jointbench.identification.log_check.log_signals import LogSignals, Torque
from jointbench.identification.log_check.look import DEGREES, RADIANS, Look, MixUp, motion_arrays
from jointbench.identification.log_check.torque_scale import check_scale, torque_scale
from jointbench.signals import Motion

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


def check_mixed_up(signals: LogSignals, left_out: list[str]) -> list[Finding]:
    """Say which signs and columns are mixed up, undoing one after the other, and how much is explained then."""
    found: list[Finding] = []
    thin = slice(None, None, -(-len(signals.motion.q) // _MOST_ROWS))
    motion = Motion(*(values[thin] for values in motion_arrays(signals.motion)))
    for torque in signals.torques:
        values = torque.smooth[thin]
        alive = (np.ptp(motion.q, axis=0) > 0.0) & (np.ptp(values, axis=0) > 0.0) & signals.robot.modelled
        if not alive.any():
            continue
        look = Look.at(signals.robot, motion, values, tuple(np.flatnonzero(alive).tolist()), 1.0)
        if look.causes.rigid is None:
            left_out.append(
                f"gravity and inertia against {torque.name}: the robot's file gives its links no mass; only friction "
                f"tells signs and order"
            )
            found += _findings(_undone(look), torque) if torque.from_motors else []
            continue
        searches = [_undone(look)]
        scale = torque_scale(look)
        if not 1.0 / _FAR < scale < _FAR:
            searches.append(_undone(Look.at(look.robot, motion, values, look.joints, scale)))
        search = min(searches, key=lambda each: each.misfit)
        found.append(check_scale(search.looks[-1], torque.name))
        found += _findings(search, torque)
    return found


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
        """What is left unexplained, and what every fault that is taken for one costs."""
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


def _findings(search: Search, torque: Torque) -> list[Finding]:
    """What was mixed up, and which torques stay unexplained."""
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
        found.append(Finding("signs and order", names, search.gains[-1], *limits, what, ""))
    for j in last.joints if with_file else ():
        if last.left[j] >= _UNEXPLAINED:
            what = f"motion and the robot's file explain {1.0 - last.left[j]:.0%} of {names[j]}'s {name}"
            advice = "check the robot's file (masses, gravity, axes), the column, and the payload"
            found.append(Finding("unexplained", (names[j],), float(last.left[j]), _UNEXPLAINED, np.inf, what, advice))
    return found


def _mixed_up_finding(
    before: Look, after: Look, mix_up: MixUp, others: tuple[str, ...], gain: float, torque: Torque,
    limits: tuple[float, float],
) -> Finding:  # fmt: skip
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
    doubt = f" (or in {' or '.join(words.get(each, each) for each in others)}: this motion does not tell)" * bool(
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
    return Finding(mix_up.kind, tuple(names), gain, limits[0], wrong_from, what, advice)
