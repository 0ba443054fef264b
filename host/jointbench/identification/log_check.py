"""Check of a log: which of its columns, signs and units cannot be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.log_sampling import SAMPLING, check_sampling, value_step
from jointbench.identification.log_signals import LogFinding, LogSignals, Word
from jointbench.identification.log_torques import check_information, check_mixed_up, check_saturation
from jointbench.identification.logged_velocity import VelocityRelation, velocity_relation
from jointbench.identification.verdict import Part
from jointbench.model import Robot
from jointbench.recording import Run
from jointbench.signals import valid_spans

_MARGIN = 0.05
"""Share of a joint's range by which zeros and limits of a real robot may differ from its file's."""

_OUTSIDE = (0.01, 0.1)
"""Share of samples outside the limits from which on a log is suspicious, and wrong."""

_SPEEDING = (1.5, 5.0)
"""Speed, as a multiple of the file's limit: controllers keep theirs, files round; a wrong unit makes 57 of it."""

_FEWEST_STUCK, _STUCK_STEPS, _STUCK_S = 3, 2.0, (0.01, 0.1)
"""A position is stuck where it stays the same for so many rows and then jumps by so many of its usual steps; for so
long a log is suspicious, and wrong."""

_ENCODER_STEPS = 2.5
"""Steps of an encoder from which on a change of position is a jump: slow motion goes by one, noise by two."""

_LIKELY = 0.05
"""Share of its range that a joint must use in degrees to be suspected of them: a few radians are few degrees, too."""

_TURN = 2.0 * np.pi


def check_limits(signals: LogSignals) -> list[LogFinding]:
    """Positions against the robot's limits; outside them, what would bring them in."""
    robot, position = signals.robot, signals.position
    low, high = robot.position_limits.T
    margin = _MARGIN * (high - low)
    grouped: dict[tuple[str, str, float], list[tuple[float, str, str]]] = {}
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
        grouped.setdefault((reason, advice, wrong_from), []).append((outside, joint.name, seen))
    if grouped:
        return [
            LogFinding(
                "limits",
                tuple(name for _, name, _ in each),
                max(each)[0],
                _OUTSIDE[0],
                wrong_from,
                f"{max(each)[0]:.0%} of {max(each)[1]}'s positions are outside its limits ({max(each)[2]}){reason}",
                advice,
            )
            for (reason, advice, wrong_from), each in grouped.items()
        ]
    used = (position.max(axis=0) - position.min(axis=0)) / (high - low)
    what = f"positions are inside the robot's limits; joints use {used.min():.0%} to {used.max():.0%} of their range"
    return [LogFinding("limits", robot.joint_names, 0.0, *_OUTSIDE, what, "")]


def _outside(q: Array, low: float, high: float, revolute: bool) -> tuple[str, str, bool]:
    """Return the cause of positions outside the limits, what to do, and whether that is certain."""
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


def check_speed(signals: LogSignals) -> list[LogFinding]:
    """Speeds of the smoothed positions against the robot's limits."""
    robot = signals.robot
    share = np.max(np.abs(signals.motion.dq), axis=0) / robot.velocity_limits
    worst = float(share.max())
    fast = tuple(name for name, value in zip(robot.joint_names, share, strict=True) if value >= _SPEEDING[0])
    what = f"up to {worst:.2g} times the robot's velocity limit"
    advice = "check the unit of [position] (degrees?) and of [time], or sample_rate_Hz"
    return [LogFinding("speed", fast, worst, *_SPEEDING, what, advice)]


def check_still(signals: LogSignals) -> list[LogFinding]:
    """Joints at rest: their own rows take no part in a fit, and nothing else is said against them."""
    robot, position = signals.robot, signals.position
    low, high = robot.position_limits.T
    travel = np.ptp(position, axis=0)
    shares = travel / (high - low)
    findings: list[LogFinding] = []
    for j in np.flatnonzero(~signals.moving).tolist():
        # The figure is what is missing, so that larger is worse.
        seen = "its position never changes" if travel[j] == 0.0 else f"it moves by {shares[j]:.2%} of its range only"
        advice = "if the joint stood still, its own rows take no part in a fit; if not, check that the column is right"
        figure = 1.0 - float(shares[j])
        findings.append(LogFinding("still joint", (robot.joint_names[j],), figure, figure, np.inf, seen, advice))
    if findings:
        return findings
    least = int(np.argmin(shares))
    what = f"every joint moves; {robot.joint_names[least]} the least, over {shares[least]:.1%} of its range"
    return [LogFinding("motion", robot.joint_names, 1.0 - float(shares[least]), np.inf, np.inf, what, "")]


def check_stuck(signals: LogSignals) -> list[LogFinding]:
    """Positions that stay the same while the joint moves: samples that the log repeats."""
    h, longest, where = signals.sample_period, 0.0, list[str]()
    for j, name in enumerate(signals.robot.joint_names):
        stretch = h * _longest_stuck(signals, j)
        if stretch >= _STUCK_S[0]:
            where.append(name)
        longest = max(longest, stretch)
    what = f"positions stay the same for up to {1e3 * longest:.3g} ms and jump then"
    if not longest:
        return [LogFinding("repeats", (), longest, *_STUCK_S, "no position stays the same and jumps then", "")]
    advice = "mark such rows with invalid_rows, or log no faster than the controller samples"
    return [LogFinding("stuck samples", tuple(where), longest, *_STUCK_S, what, advice)]


def _longest_stuck(signals: LogSignals, joint: int) -> int:
    """Rows of the longest stretch of equal positions that ends with a jump to where the joint has got to meanwhile."""
    longest = _FEWEST_STUCK - 1
    q = signals.position[:, joint]
    fast = signals.fast[1:, joint]
    least_jump = _STUCK_STEPS * float(np.median(np.abs(np.diff(q))[fast])) if fast.any() else np.inf
    step = value_step(q)
    if np.isfinite(step):  # a coarse encoder's next count is no jump
        least_jump = max(least_jump, _ENCODER_STEPS * step)
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


_DISAGREEING = (0.1, 0.5)
"""Deviation of the factor from 1, and of the rest from nothing: slips of time of some milliseconds make percents."""

_LATE_S = (0.03, 0.1)
"""Lag from which on a velocity is suspicious, and wrong: filters of encoders take some milliseconds, and a real log
with lost rows has shown 14."""

_NEAR = 0.1
"""How near a factor must be to the one of a wrong unit or sign."""

_DEGREES = 180.0 / np.pi


def check_velocities(signals: LogSignals, left_out: list[str]) -> list[LogFinding]:
    """Say where a velocity is not what the positions do, and what would make it so."""
    if signals.velocity is None:
        left_out.append("velocities: the log has none; positions are held against limits and torques only")
        return []
    names, motion, logged = signals.robot.joint_names, signals.motion, signals.velocity
    moving = np.flatnonzero(signals.moving).tolist()
    if not moving:
        left_out.append("velocities: no joint moves")
        return []
    kinds = [joint.kind for joint in signals.robot.independent_joints]
    findings: list[LogFinding] = []
    worst, latest, step = 0.0, 0.0, signals.stride * signals.sample_period
    for j in moving:
        own = {i: velocity_relation(motion.dq[:, i], logged[:, j], step) for i in moving if kinds[i] == kinds[j]}
        relation = own[j]
        worst, latest = max(worst, relation.difference), max(latest, abs(relation.lag))
        if relation.difference >= _DISAGREEING[0]:
            what, advice, joints = _reason(names, own, j)
            findings.append(LogFinding("velocity", joints, relation.difference, *_DISAGREEING, what, advice))
        elif abs(relation.lag) >= _LATE_S[0]:
            what = f"the velocity is {1e3 * abs(relation.lag):.0f} ms {'late' if relation.lag > 0.0 else 'early'}"
            advice = "check when position and velocity are sampled, and what filters them"
            findings.append(LogFinding("velocity", (names[j],), abs(relation.lag), *_LATE_S, what, advice))
    if findings:
        return findings
    what = f"logged velocities are the positions' differences within {worst:.1%}"
    what += f", up to {1e3 * latest:.0f} ms early or late" if latest else ""
    return [LogFinding("velocity", names, worst, *_DISAGREEING, what, "")]


def _reason(names: tuple[str, ...], own: dict[int, VelocityRelation], j: int) -> tuple[str, str, tuple[str, ...]]:
    """Return what a velocity is instead, what to do about it, and the joints concerned."""
    others = {i: relation for i, relation in own.items() if i != j}
    nearest = min(others, key=lambda i: others[i].difference, default=j)
    factor, rest = own[j].factor, own[j].rest
    if own[nearest].difference < min(_DISAGREEING[0], rest):
        what = f"the velocity is that of {names[nearest]}'s position: columns of velocity or position are exchanged"
        return what, "correct the order of the columns", (names[j], names[nearest])
    if rest >= _DISAGREEING[1]:
        what = f"the velocity does not follow the position: {min(rest, 1.0):.0%} of it is something else"
        return what, "check that both columns are of this joint, and when they are sampled", (names[j],)
    of = f"{factor:.3g} times the positions' differences"
    what, advice = f"the velocity is {of}", "check the units, and sample_rate_Hz or [time]"
    if abs(factor + 1.0) < _NEAR:
        what, advice = f"the velocity has the opposite sign ({of})", "write gain = -1 for it, or for the position"
    elif abs(factor / _DEGREES - 1.0) < _NEAR:
        what = f"the velocity is in degrees, or the position in radians was taken for degrees ({of})"
        advice = "correct the unit of [velocity] or [position]"
    elif abs(factor * _DEGREES - 1.0) < _NEAR:
        what = f"the position is in degrees taken for radians, or the velocity in radians was taken for degrees ({of})"
        advice = "correct the unit of [position] or [velocity]"
    return what, advice, (names[j],)


_COUNTS = "compare drive.ratio and the encoders' counts in the boards' config.json with the data sheets"
_AT_THE_BOARDS = {
    "limits": _COUNTS,
    "speed": _COUNTS,
    "swapped sign": "check the wiring of encoder and current sensor, and the sign of drive.ratio: `jointbench check "
    "BENCH --seconds 10` compares the encoders while the joint is turned by hand",
    "exchanged": "check which cable goes to which board, and the joints that the bench file gives them",
    "still joint": "if the joint did move, look at its encoder's cable and supply; if not, nothing of its own is "
    "identified",
    "stuck samples": "look at the encoder's cable and supply",
    "velocity": _COUNTS,
    "torque scale": "check torque constant and ratio in the robot's file, current.scale of the board, and the masses",
    "unexplained": "check the robot's file (masses, gravity, axes), the board's current sensor, and the payload",
}
"""What to do about a finding where boards recorded, and there is no mapping to correct, by its name."""


@dataclass(frozen=True)
class LogCheck:
    """Findings of a check of a log; they judge themselves.

    Attributes:
        findings: one or more for each thing that was looked at.
        left_out: what could not be looked at, and why.
    """

    findings: tuple[LogFinding, ...]
    left_out: tuple[str, ...]

    @property
    def word(self) -> Word:
        """The worst word of all findings."""
        words = {finding.word for finding in self.findings}
        return "wrong" if "wrong" in words else "suspicious" if "suspicious" in words else "fine"

    @property
    def verdict(self) -> str:
        """One sentence."""
        counts = Counter(finding.word for finding in self.findings)
        parts = ", ".join(f"{counts[word]} {word}" for word in ("wrong", "suspicious", "fine") if counts[word])
        return f"the log looks {self.word}: {parts}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on all that is not fine."""
        return tuple(f"{finding}; {finding.advice}" for finding in self.findings if finding.word != "fine")

    @property
    def part(self) -> Part:
        """The log's part of the verdict on a model: a log that looks wrong refuses it.

        A dead torque alone does not: a fit leaves its rows out, and refuses the joint unless another run tells it. Nor
        do faults of sampling: the cut-off is chosen for their noise, and the error on time left out contains it.
        """
        counted = replace(self, findings=tuple(found for found in self.findings if found.name not in SAMPLING))
        grave = [
            finding for finding in counted.findings if finding.word == "wrong" and finding.name != "no information"
        ]
        bad = grave or [finding for finding in counted.findings if finding.word != "fine"]
        if bad:
            more = f"; and {len(bad) - 1} more" if len(bad) > 1 else ""
            return Part("log check", "refused" if grave else "suspicious", f"{bad[0]}{more}", bad[0].advice)
        left_out = f"; not looked at: {'; '.join(self.left_out)}" if self.left_out else ""
        return Part("log check", "identified", f"{counted.verdict}{left_out}" if self.findings else left_out[2:])

    def lines(self) -> Iterator[str]:
        """Return lines for people: the verdict, each finding with what to do, and what was left out."""
        yield self.verdict
        for finding in self.findings:
            yield f"  {finding}"
            if finding.word != "fine":
                yield f"    {finding.advice}"
        for reason in self.left_out:
            yield f"  not looked at: {reason}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "word": self.word,
            "findings": [finding.to_dict() for finding in self.findings],
            "left_out": list(self.left_out),
        }


def check_log(run: Run) -> LogCheck:
    """Look for what is often wrong with logs: units, signs, order of columns, dead or saturated signals.

    Positions are held against the robot's limits, logged velocities against differences of the positions, and torques
    against what the robot file's own inertias, and friction that slows down, make of the motion.

    Args:
        run: imported or recorded.

    Returns:
        The findings. A log that looks fine may still be wrong: what motion cannot tell, nobody here can.
    """
    try:
        signals = LogSignals.of_run(run)
    except FitError as error:
        return LogCheck((), (str(error),))
    left_out: list[str] = []
    findings = [
        *check_limits(signals),
        *check_speed(signals),
        *check_still(signals),
        *check_stuck(signals),
        *check_velocities(signals, left_out),
        *check_sampling(signals, _stamps_jitter(run)),
        *check_saturation(signals),
        *check_information(signals),
        *check_mixed_up(signals, left_out),
    ]
    if "board" in run.provenance:
        findings = [replace(finding, advice=_AT_THE_BOARDS.get(finding.name, finding.advice)) for finding in findings]
    return LogCheck(tuple(findings), tuple(left_out))


def run_parts(runs: Sequence[Run], robot: Robot, sides: Sequence[str]) -> tuple[Part, ...]:
    """Return what recordings add to the verdict on a model: whether they are whole, and whether they look right.

    Args:
        runs: of which the worst counts.
        robot: that the model is of; it may be another than the runs name.
        sides: whose torque is modelled in each, "motor" or "joint": nothing else counts against the model.
    """
    whole = [_recording(run) for run in runs]
    logs = [check_log(_of_side(replace(run, robot=robot), side)).part for run, side in zip(runs, sides, strict=True)]
    return max(whole, key=lambda part: part.rank), max(logs, key=lambda part: part.rank)


def _of_side(run: Run, side: str) -> Run:
    """The same without the torque of the other side."""
    other = {"joint_torque": None} if side == "motor" else {"motor_torque": None, "motor_current": None}
    return replace(run, samples=replace(run.samples, **other))


def _recording(run: Run) -> Part:
    if run.ledger is None:
        return Part("recording", "identified", "imported: nothing says what was lost before")
    if run.is_valid:
        return Part("recording", "identified", run.ledger.verdict)
    return Part("recording", "refused", f"run {run.path} is {run.ledger.verdict}", "record it again")


def _stamps_jitter(run: Run) -> float | None:
    """Root mean square of what steps between a log's time stamps differ from the period [s], None where not known."""
    jitter = run.provenance.get("resampled", run.provenance.get("times", {})).get("jitter_s")
    return None if jitter is None else float(jitter)
