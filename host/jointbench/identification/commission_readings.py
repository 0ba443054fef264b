"""Readings of a commissioned joint's pushes, wave and strokes, and the faults that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError, RunError
from jointbench.identification.friction import fit_friction, friction_law, friction_of_run
from jointbench.recording import Run

Fault = Literal[
    "moves without current",
    "no current",
    "reversed current sensor",
    "swapped cables",
    "dead motor encoder",
    "jammed joint",
    "reversed encoder",
    "missing link encoder",
    "slipping coupling",
]
ADVICE: dict[Fault, str] = {
    "moves without current": "its load turns it: bring the joint where gravity does not, or hold it by its brake",
    "no current": "look at the drive's supply, its enable line and the motor's cable",
    "reversed current sensor": "swap the current sensor's two leads, or the sign of its facts",
    "swapped cables": "look which motor and which encoder are at which board, and put each where it belongs",
    "dead motor encoder": "look at its supply and at its lines A and B",
    "jammed joint": "look for a brake that stays closed, an end stop, a transport lock, or a motor phase cut off",
    "reversed encoder": "swap the lines A and B of the motor encoder, or two phases of the motor",
    "missing link encoder": "look at its supply and its bus, or take the channel out of the board's channels",
    "slipping coupling": "tighten the coupling between motor and gear; look at its key or set screw",
}
"""What to do about each fault."""

_QUIET = 0.256  # [s] of a push at its begin, without current
_GROWTH = 2.56  # [s] in which its current grows to the most
_FIRST_SHARE, MOST_SHARE = 0.004, 0.3  # of the motor's current limit
_DRIVE_LAG = 1e-3  # [s] by which the current of a drive follows late, as far as nobody says
_MOVED = np.radians(0.15)  # a joint that turned less stood still
_BROKEN_AWAY = np.radians([1.0, 2.0])  # speeds [rad/s] between which a joint has broken away
_SMOOTH = 0.016  # [s] over which speed and current are averaged at that moment
_LEAST_SENSE, _LEAST_LINK = 0.2, 0.02  # of the current asked for, and of the way that the motor went
_SLIPPED = 0.025  # of the way: the most by which a gear's link may leave a straight line over its motor
WAVE, WAVE_PERIOD = np.radians(2.5), 1.6  # way there and back to either side [rad], and how long one takes [s]
_SOFTEST_TWIST = 0.01  # [rad] of a gear at the joint's torque limit, where its stiffness is not known
_WIDE, _TENTHS = 0.5, 10  # least way [rad] of a motion that shows a gear, and parts of its time
GEAR_SIGMA = np.array([2e-5, 0.01])
"""Relative standard errors of ratio and stiffness by damping in the gear and the torque sensor's scale."""
CURRENT_SCALE_SIGMA = 0.01
"""Relative standard error of a current sensor's scale, which nothing here measures: of friction as torque."""


@dataclass(frozen=True)
class Value:
    """A measured value of a joint beside what the robot's file says.

    Attributes:
        name: in words.
        value, sigma: with its standard error; None where it could not be measured.
        unit: of both.
        in_file: what the file says, None where it says nothing.
        key: of the file's table [joints.drive], "" where it has none.
        why_not: reason why it was not measured.
    """

    name: str
    value: float | None = None
    sigma: float = 0.0
    unit: str = ""
    in_file: float | None = None
    key: str = ""
    why_not: str = ""

    @property
    def deviation(self) -> float | None:
        """|measured - file's| / σ; None where one of the two is missing."""
        if self.value is None or self.in_file is None:
            return None
        if self.value == self.in_file:
            return 0.0
        return abs(self.value - self.in_file) / self.sigma if self.sigma else np.inf

    @property
    def verdict(self) -> str:
        """Verdict on it: it agrees with the file within 3 σ, differs from it, or the file says nothing."""
        if self.value is None:
            return f"not measured: {self.why_not}"
        if self.deviation is None:
            return "measured, the file has none"
        return "agrees" if self.deviation <= 3.0 else f"differs by {self.deviation:.3g} σ"


@dataclass(frozen=True)
class Push:
    """Reading of one push by a growing current; angles are the joint's, by the ratio of the robot's file.

    Attributes:
        direction: of the current, 1 or -1.
        sense: measured current over the current asked for, and its standard error.
        moved, link_moved: of the joint by motor encoder and by link encoder [rad]; the latter None without one.
        before: what it moved before there was a current [rad].
        other: the joint that moved most beside it, and how far [rad].
        break_away: magnitude of the current at which it broke away, and its standard error [A]; None where it did not.
        link_per_motor: slope of the link over the motor, its standard error, and the largest distance of the link from
            that line over the way; None without link encoder or without motion.
        link_counts: change of the link encoder at all [counts].
    """

    direction: int
    sense: tuple[float, float]
    moved: float
    link_moved: float | None
    before: float
    other: tuple[str, float]
    break_away: tuple[float, float] | None
    link_per_motor: tuple[float, float, float] | None
    link_counts: int


def push_currents(limit: float, direction: int, step: float) -> Array:
    """Motor current at the knots of a push [A]: none for a while, then growing by the same share in each step.

    Args:
        limit: of the motor's current [A].
        direction: 1 or -1.
        step: from knot to knot [s].

    Returns:
        Currents, shape (n_knots,).
    """
    time = np.arange(round((_QUIET + _GROWTH) / step) + 1) * step
    grown = _FIRST_SHARE * (MOST_SHARE / _FIRST_SHARE) ** np.clip((time - _QUIET) / _GROWTH, 0.0, 1.0)
    return direction * limit * np.where(time < _QUIET - 1e-9, 0.0, grown)


def read_push(run: Run) -> Push:
    """Read what a push shows.

    Args:
        run: that `commission` recorded.

    Raises:
        RunError: it is another run, or lost the samples of the joint.
    """
    about = run.provenance.get("commission", {})
    if about.get("step") != "push":
        raise RunError(f"run {run.path} is no push of a commissioning")
    samples, joint = run.samples, run.robot.joint_index(about["joint"])
    direction = int(about["direction"])
    armed = np.flatnonzero(np.isfinite(samples.motor_position[:, joint]))  # its board samples only while it drives
    waited = samples.motor_position[armed, joint][samples.play_tick[armed] < 0]
    fell = _farthest(waited - waited[0]) if len(waited) else 0.0
    if abs(fell) > _MOVED:
        return Push(direction, (0.0, np.inf), fell, None, fell, _other(run, joint, armed), None, None, 0)
    rows = armed[samples.play_tick[armed] >= 0]
    if len(rows) <= round(_QUIET / samples.sample_period) or samples.motor_current is None:
        raise RunError(f"run {run.path} has no samples of {about['joint']} while it was pushed; record it again")
    time = samples.play_tick[rows] * samples.sample_period
    knots = np.asarray(about["currents_A"])
    lag = samples.sample_period  # a command acts from its tick on, and is sampled at the next one, behind the filter
    lag += samples.board_filters[joint].delay if samples.board_filters else 0.0
    asked = np.interp(time - lag, np.arange(len(knots)) * about["knot_s"], knots)
    quiet = time < _QUIET - 0.5 * samples.sample_period
    current = samples.motor_current[rows, joint]
    current = current - np.nanmean(current[quiet])
    motor = _from_rest(samples.motor_position[rows, joint], quiet)
    link = None if samples.link_position is None else _from_rest(samples.link_position[rows, joint], quiet)
    has_link = link is not None and bool(np.isfinite(link).all())
    return Push(
        direction=direction,
        sense=_sense(asked[~quiet], current[~quiet]),
        moved=_farthest(motor),
        link_moved=_farthest(link) if link is not None and has_link else None,
        before=_farthest(motor[quiet]),
        other=_other(run, joint, rows),
        break_away=_break_away(motor, current, samples.sample_period, direction),
        link_per_motor=_link_per_motor(motor, link) if link is not None and has_link else None,
        link_counts=round(float(np.ptp(link)) / (2.0 * np.pi) * about["link_counts"]) if link is not None else 0,
    )


def _from_rest(position: Array, quiet: NDArray[np.bool_]) -> Array:
    return position - float(np.nanmean(position[quiet][: max(int(quiet.sum()) // 2, 1)]))


def _farthest(way: Array) -> float:
    return float(way[np.argmax(np.abs(way))])


def _slope(x: Array, y: Array) -> tuple[float, float]:
    """Slope of y = slope x through zero and its standard error, of rows ten of which err alike."""
    square = float(x @ x)
    if not square > 0.0:
        return 0.0, np.inf
    slope = float(x @ y) / square
    return slope, float(np.std(y - slope * x) * np.sqrt(10.0 / square))


def _sense(asked: Array, current: Array) -> tuple[float, float]:
    """Measured over asked current, and its standard error: of its noise, and of the drive's own lag."""
    sense, sigma = _slope(asked - asked.mean(), current - current.mean())
    return sense, float(np.hypot(sigma, sense * _DRIVE_LAG * np.log(MOST_SHARE / _FIRST_SHARE) / _GROWTH))


def _other(run: Run, joint: int, rows: NDArray[np.intp]) -> tuple[str, float]:
    """The joint that moved most beside one, by either encoder, and how far [rad]."""
    farthest = ("", 0.0)
    both = (run.samples.motor_position, run.samples.link_position)
    for position in [each for each in both if each is not None]:
        for index, name in enumerate(run.samples.joint_names):
            way = position[rows, index][np.isfinite(position[rows, index])]
            if index != joint and len(way) and abs(moved := _farthest(way - way[0])) > abs(farthest[1]):
                farthest = (name, moved)
    return farthest


def _break_away(motor: Array, current: Array, period: float, direction: int) -> tuple[float, float] | None:
    """Current at which the joint broke away, and its standard error [A]: between two speeds that it then passed."""
    half = max(round(0.5 * _SMOOTH / period), 1)
    speed = np.abs(motor[2 * half :] - motor[: -2 * half]) / (2 * half * period)
    mean = np.convolve(current, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")
    passed = [np.flatnonzero(speed >= limit) for limit in _BROKEN_AWAY]
    if not len(passed[1]):
        return None
    first, second = (direction * float(mean[rows[0]]) for rows in passed)
    noise = float(np.std(current[: half * 10]))
    return 0.5 * (first + second), float(np.hypot(second - first, noise))


def _link_per_motor(motor: Array, link: Array) -> tuple[float, float, float] | None:
    """Slope of the link over the motor, its standard error, and the largest distance from that line over the way."""
    way = abs(_farthest(motor))
    rows = np.abs(motor) > 0.15 * way
    if way < _MOVED or rows.sum() < 20:
        return None
    x, y = motor[rows] - motor[rows].mean(), link[rows] - link[rows].mean()
    slope, sigma = _slope(x, y)
    return slope, sigma, float(np.abs(y - slope * x).max() / np.ptp(x))


def judge_push(push: Push, link_encoder: bool) -> tuple[Fault | None, str]:
    """Name what is wrong with a joint by one push.

    Args:
        push: as `read_push` gives it.
        link_encoder: whether robot file or board say that there is one.

    Returns:
        The fault, None for nothing, and what it was seen by.
    """
    sense, other, way = push.sense[0], push.other, f"the motor encoder says {np.degrees(push.moved):+.2f}°"
    if abs(push.before) > _MOVED:
        return "moves without current", f"it moved by {np.degrees(push.before):+.2f}° as soon as its motor was armed"
    if abs(push.moved) < _MOVED < abs(other[1]):
        return "swapped cables", f"its current moved {other[0]} by {np.degrees(other[1]):+.2f}°, itself not"
    if abs(sense) < _LEAST_SENSE:
        return "no current", f"{sense:.0%} of the current asked for flows"
    if sense < 0.0:
        return "reversed current sensor", f"{sense:.0%} of the current asked for is measured"
    if abs(push.moved) < _MOVED:
        if push.link_moved is not None and abs(push.link_moved) > _MOVED:
            return "dead motor encoder", f"{way}, the link encoder {np.degrees(push.link_moved):+.2f}°"
        return "jammed joint", f"{way}, with {MOST_SHARE:.0%} of the current limit"
    if push.moved * push.direction < 0.0:
        return "reversed encoder", f"{way} with a current of the other sign"
    if not link_encoder:
        return None, ""
    if push.link_moved is None or push.link_counts <= 1:
        return "missing link encoder", f"{way}, the link encoder stands still"
    if push.link_per_motor and (push.link_per_motor[2] > _SLIPPED or abs(push.link_per_motor[0]) < _LEAST_LINK):
        return "slipping coupling", (
            f"{way}, the link followed by {np.degrees(push.link_moved):+.2f}° and left the straight line by "
            f"{push.link_per_motor[2]:.0%} of the way"
        )
    return None, ""


def read_ratio(run: Run) -> tuple[float, float] | None:
    """Gear ratio by a wave of the joint, and its standard error; None without link encoder.

    motor angle = ratio x link angle + offset, one offset for each way there and each way back: what the gear twists by
    friction stays the same within one. Gravity twists it in proportion to the way. By how much it may, is in the
    standard error: from the current that the load asked for and the gear's stiffness, or the softest usual one.

    Args:
        run: that `commission` recorded.
    """
    samples, joint = run.samples, run.robot.joint_index(run.provenance["commission"]["joint"])
    drive = run.robot.drives[joint]
    if samples.link_position is None or samples.motor_current is None:
        return None
    q, link, current = (
        column[:, joint] for column in (samples.motor_position, samples.link_position, samples.motor_current)
    )
    rows = np.flatnonzero((samples.play_tick >= 0) & np.isfinite(q) & np.isfinite(link) & np.isfinite(current))
    stroke = (samples.play_tick[rows] * samples.sample_period // (0.5 * WAVE_PERIOD)).astype(np.int64)
    phase = samples.play_tick[rows] * samples.sample_period % (0.5 * WAVE_PERIOD) / (0.5 * WAVE_PERIOD)
    xs: list[Array] = []
    ys: list[Array] = []
    loads: list[tuple[Array, Array]] = []
    for number in range(4):
        part = rows[(stroke == number) & (phase > 0.2) & (phase < 0.8)]
        if len(part) < 20:
            return None
        xs.append(link[part] - link[part].mean())
        ys.append(drive.ratio * (q[part] - q[part].mean()))
        loads.append((link[part] - link[part].mean(), current[part] - current[part].mean()))
    x, y = np.concatenate(xs), np.concatenate(ys)
    if float(np.abs(x).max()) < 0.1 * WAVE:
        return None
    ratio, sigma = _slope(x, y)
    per_way = _slope(np.concatenate([each for each, _ in loads]), np.concatenate([each for _, each in loads]))[0]
    limit = run.robot.independent_joints[joint].torque_limit
    stiffness = drive.stiffness or (limit / _SOFTEST_TWIST if drive.flexible else np.inf)
    twist = abs(per_way * ratio * drive.torque_constant) / stiffness
    return ratio, float(np.hypot(sigma, ratio * twist))


def read_gear(run: Run, joint: str) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Gear ratio and stiffness of a joint by a wide motion, each with its standard error.

    motor angle = ratio · (link angle + torque / stiffness) + offset, by least squares over all samples of the motion;
    standard errors by leaving out a tenth of its time in turn, and `GEAR_SIGMA` for what that law leaves out.

    Args:
        run: of a motion of the whole arm.
        joint: its name.

    Returns:
        Both with their standard errors, the stiffness [N·m/rad]; None for a joint that has no gear with a motor of its
        own, no encoders on both sides or no torque sensor, or that hardly moved.
    """
    samples, column, robot = run.samples, run.robot.joint_index(joint), run.robot
    drive = robot.drives[column]
    is_coupled = any(joint in coupling.joints for coupling in robot.couplings)
    if samples.link_position is None or samples.joint_torque is None or drive.kind != "harmonic" or is_coupled:
        return None
    q, link, torque = (of[:, column] for of in (samples.motor_position, samples.link_position, samples.joint_torque))
    rows = (samples.play_tick >= 0) & np.isfinite(q) & np.isfinite(link) & np.isfinite(torque)
    if rows.sum() < 100 * _TENTHS or np.ptp(link[rows]) < _WIDE:
        return None
    motor = drive.ratio * q[rows]
    columns = np.column_stack([link[rows], torque[rows], np.ones(int(rows.sum()))])

    def solved(part: NDArray[np.bool_]) -> Array:
        ratio, ratio_over_stiffness, _ = np.linalg.lstsq(columns[part], motor[part], rcond=None)[0]
        return np.array([ratio, ratio / ratio_over_stiffness])

    tenth = np.arange(len(motor)) * _TENTHS // len(motor)
    without = np.array([solved(tenth != k) for k in range(_TENTHS)])
    ratio, stiffness = solved(np.ones(len(motor), dtype=np.bool_)).tolist()
    spread = np.sqrt((_TENTHS - 1) * without.var(axis=0))
    ratio_sigma, stiffness_sigma = np.hypot(spread, GEAR_SIGMA * np.abs([ratio, stiffness])).tolist()
    return (ratio, ratio_sigma), (stiffness, stiffness_sigma)


def read_friction(run: Run, ratio: float) -> dict[str, tuple[float, float]]:
    """Coulomb and viscous friction of the joint by strokes at several speeds, each with its standard error.

    Args:
        run: that `commission` recorded.
        ratio: motor turns per joint turn; where it is not that of the robot's file, friction is corrected by it.

    Raises:
        FitError: the run does not show friction.
    """
    name = run.provenance["commission"]["joint"]
    friction = friction_of_run(run, way="sweep")
    if name not in friction.joints:
        raise FitError(f"run {run.path} shows no friction of {name}: {friction.left_out.get(name, 'it did not move')}")
    data = friction.joints[name]
    share = abs(ratio / run.robot.drives[run.robot.joint_index(name)].ratio)
    data = replace(data, velocity=data.velocity / share, torque=data.torque * share, load=None, temperature=None)
    fitted = fit_friction(data, friction_law("coulomb_viscous", data))
    return {
        each.name: (float(value), float(np.hypot(sigma, CURRENT_SCALE_SIGMA * value)))
        for each, value, sigma in zip(fitted.law.parameters, fitted.parameters, fitted.sigma, strict=True)
    }


def push_values(pushes: Sequence[Push], ratio: float, link_encoder: bool) -> list[Value]:
    """Values of a joint by its pushes in both directions: signs, break-away current, load, and a first ratio."""
    values = [Value("motor encoder's sign", 1.0, 0.0, "", 1.0)]
    sense = np.array([push.sense for push in pushes])
    values.append(Value("measured/asked current", float(sense[:, 0].mean()), float(np.hypot(*sense[:, 1]) / 2.0)))
    currents = [push.break_away for push in pushes]
    if len(pushes) == 2 and currents[0] and currents[1]:
        (up, up_sigma), (down, down_sigma) = currents[0], currents[1]
        sigma = 0.5 * float(np.hypot(up_sigma, down_sigma))
        values.append(Value("break-away current", 0.5 * (up + down), sigma, "A"))
        values.append(Value("current of the load", 0.5 * (up - down), sigma, "A"))
    else:
        values.append(Value("break-away current", unit="A", why_not="it moved before it was fast enough to tell"))
    slopes = [push.link_per_motor for push in pushes if push.link_per_motor]
    if link_encoder and slopes:
        slope = float(np.mean([each[0] for each in slopes]))
        spread = max(abs(each[0] - slope) for each in slopes) + max(each[1] for each in slopes)
        values.append(Value("ratio by push", ratio / slope, abs(ratio) * spread / slope**2, "", ratio))
    return values
