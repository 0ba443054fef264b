"""Positions by themselves: inside the limits, at possible speeds, moving, and never stuck."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.log_check.finding import Finding
from jointbench.identification.log_check.log_signals import LogSignals
from jointbench.signals import valid_spans

_MARGIN = 0.05
"""Share of a joint's range by which zeros and limits of a real robot may differ from its file's."""

_OUTSIDE = (0.01, 0.1)
"""Share of samples outside the limits from which on a log is suspicious, and wrong."""

_SPEEDING = (1.5, 5.0)
"""Speed, as a multiple of the file's limit: controllers keep theirs, files round; a wrong unit makes 57 of it."""

_STILL = 0.002
"""Share of its range within which a joint stands still: 0.7 degrees of a turn. Less motion tells a fit nothing."""

_FEWEST_STUCK, _STUCK_STEPS, _STUCK_S = 3, 2.0, (0.01, 0.1)
"""A position is stuck where it stays the same for so many rows and then jumps by so many of its usual steps; for so
long a log is suspicious, and wrong."""

_LIKELY = 0.05
"""Share of its range that a joint must use in degrees to be suspected of them: a few radians are few degrees, too."""

_TURN = 2.0 * np.pi


def check_limits(signals: LogSignals) -> list[Finding]:
    """Positions against the robot's limits; outside them, what would bring them in."""
    robot, position = signals.robot, signals.position
    low, high = robot.position_limits.T
    margin = _MARGIN * (high - low)
    found: dict[tuple[str, str, float], list[tuple[float, str, str]]] = {}
    for j, joint in enumerate(robot.independent_joints):
        q = position[:, j]
        outside = float(np.mean((q < low[j] - margin[j]) | (q > high[j] + margin[j])))
        if outside < _OUTSIDE[0]:
            continue
        unit = "rad" if joint.kind == "revolute" else "m"
        seen = f"{q.min():.4g} to {q.max():.4g} {unit}, allowed {low[j]:.4g} to {high[j]:.4g}"
        reason, advice, certain = _outside(q, low[j] - margin[j], high[j] + margin[j], joint.kind == "revolute")
        # A joint that turns without end has no limits; its file gives none, and half a turn to both sides is assumed.
        assumed = joint.kind == "revolute" and low[j] == -np.pi and high[j] == np.pi and not certain
        wrong_from = np.inf if assumed else _OUTSIDE[1]
        found.setdefault((reason, advice, wrong_from), []).append((outside, joint.name, seen))
    if found:
        return [
            Finding(
                "limits",
                tuple(name for _, name, _ in each),
                max(each)[0],
                _OUTSIDE[0],
                wrong_from,
                f"{max(each)[0]:.0%} of {max(each)[1]}'s positions are outside its limits ({max(each)[2]}){reason}",
                advice,
            )
            for (reason, advice, wrong_from), each in found.items()
        ]
    used = (position.max(axis=0) - position.min(axis=0)) / (high - low)
    what = f"positions are inside the robot's limits; joints use {used.min():.0%} to {used.max():.0%} of their range"
    return [Finding("limits", robot.joint_names, 0.0, *_OUTSIDE, what, "")]


def _outside(q: Array, low: float, high: float, revolute: bool) -> tuple[str, str, bool]:
    """What explains positions outside the limits, what to do, and whether that is certain."""
    if revolute:
        radians = np.deg2rad(q)
        turns = round(float(np.median(q) - (low + high) / 2.0) / _TURN)
        if turns and _inside(q - turns * _TURN, low, high) and np.ptp(q) <= high - low:
            return (
                f": {turns:+d} whole turn{'s' if abs(turns) > 1 else ''} off",
                f"add {-turns * _TURN:.6f} rad, {-turns * 360} deg, to this joint's offset in [position], in its unit",
                True,
            )
        if _inside(radians, low, high) and np.ptp(radians) > _LIKELY * (high - low):
            return ": degrees taken for radians?", 'write unit = "deg" in [position]', True
    return (
        "",
        "check unit, side (motor or joint) and offset in [position], and the limits in the robot's file",
        False,
    )


def _inside(q: Array, low: float, high: float) -> bool:
    return bool(np.mean((q >= low) & (q <= high)) > 1.0 - _OUTSIDE[0])


def check_speed(signals: LogSignals) -> list[Finding]:
    """Speeds of the smoothed positions against the robot's limits."""
    robot = signals.robot
    share = np.max(np.abs(signals.motion.dq), axis=0) / robot.velocity_limits
    worst = float(share.max())
    fast = tuple(name for name, value in zip(robot.joint_names, share, strict=True) if value >= _SPEEDING[0])
    what = f"up to {worst:.2g} times the robot's velocity limit"
    advice = "check the unit of [position] (degrees?) and of [time], or sample_rate_Hz"
    return [Finding("speed", fast, worst, *_SPEEDING, what, advice)]


def check_still(signals: LogSignals) -> list[Finding]:
    """Joints that do not move: nothing of their own can be identified."""
    robot, position = signals.robot, signals.position
    low, high = robot.position_limits.T
    travel = np.ptp(position, axis=0)
    found: list[Finding] = []
    for j, name in enumerate(robot.joint_names):
        share = float(travel[j] / (high[j] - low[j]))
        if share > _STILL:
            continue
        # The figure is what is missing, so that larger is worse; a position that never changes was not measured.
        seen = "its position never changes" if travel[j] == 0.0 else f"it moves by {share:.2%} of its range only"
        advice = "check that the column is the right one; if the joint stood still, nothing of its own is identified"
        found.append(Finding("still joint", (name,), 1.0 - share, 1.0 - _STILL, 1.0, seen, advice))
    if found:
        return found
    least = int(np.argmin(travel / (high - low)))
    share = float(travel[least] / (high[least] - low[least]))
    what = f"every joint moves; {robot.joint_names[least]} the least, over {share:.1%} of its range"
    return [Finding("motion", robot.joint_names, 1.0 - share, 1.0 - _STILL, 1.0, what, "")]


def check_stuck(signals: LogSignals) -> list[Finding]:
    """Positions that stay the same while the joint moves: samples that the log repeats."""
    h, longest, where = signals.sample_period, 0.0, list[str]()
    for j, name in enumerate(signals.robot.joint_names):
        stretch = h * _longest_stuck(signals, j)
        if stretch >= _STUCK_S[0]:
            where.append(name)
        longest = max(longest, stretch)
    what = f"positions stay the same for up to {1e3 * longest:.3g} ms and jump then"
    if not longest:
        return [Finding("repeats", (), longest, *_STUCK_S, "no position stays the same and jumps then", "")]
    advice = "mark such rows with invalid_rows, or log no faster than the controller samples"
    return [Finding("stuck samples", tuple(where), longest, *_STUCK_S, what, advice)]


def _longest_stuck(signals: LogSignals, joint: int) -> int:
    """Rows of the longest stretch of equal positions that ends with a jump to where the joint has got to meanwhile."""
    longest = _FEWEST_STUCK - 1
    q = signals.position[:, joint]
    fast = signals.fast[1:, joint]
    least_jump = _STUCK_STEPS * float(np.median(np.abs(np.diff(q))[fast])) if fast.any() else np.inf
    for piece in signals.pieces:
        part = q[piece]
        for same in valid_spans(np.diff(part) == 0.0, min_length=longest + 1):
            rows, end = same.stop - same.start, same.stop
            if end + 1 + rows >= len(part):
                continue
            jump = abs(float(part[end + 1] - part[end]))
            goes_on = abs(float(part[end + 1 + rows] - part[end + 1]))
            if jump > least_jump and jump > goes_on / 2.0:
                longest = rows
    return longest if longest >= _FEWEST_STUCK else 0
