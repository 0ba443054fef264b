"""Stances of recordings: what of a run stands on one foot, whether its weight is the robot's, how balance was kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, chunks, read_rows
from jointbench.errors import FitError, RobotError, ShapeError, StuckFootSensor, WrongTotalMass
from jointbench.identification.zero_moment_point.contact import Contact, judge_contact
from jointbench.identification.zero_moment_point.measured_point import SensorSheet, support_foot
from jointbench.identification.zero_moment_point.reduced_parameters import theoretical_point
from jointbench.identification.zero_moment_point.stance import FILTER_TIME, SAMPLE_PERIOD, Stance, joined, stance_of
from jointbench.model import CORNERS, Foot, floating_standard_parameters
from jointbench.recording import Run, Samples
from jointbench.signals import FirstOrderLag, LowPass, smooth_motion, valid_spans

_SIGMAS = 3.0

_MOVED = 5.0
"""Standard deviations of a zero that it moves by in the middle of a recording, for it to have moved by itself."""

_LEAST_TIME = 5.0
"""Before and after such a step [s]: over that the accelerations of a mass spread otherwise are next to nothing."""

_AROUND = 12
"""Rows before and after it that tell which corner it was: where the motion is next to a cubic."""


def check_steady_sensors(stance: Stance) -> None:
    """Refuse a stance in the middle of which the weight steps: a corner's reading moved without the force on it.

    Raises:
        StuckFootSensor: names the corner, the step, and when it came.
    """
    excess, n = stance.vertical_force - stance.weight, stance.n_samples
    least = round(_LEAST_TIME / stance.sample_period)
    if n < 2 * least:
        return
    before = np.arange(least, n - least + 1)
    columns = np.column_stack([excess, stance.force_nuisance_columns])
    sums = np.cumsum(columns, axis=0)[before - 1]
    steps = (columns.sum(axis=0) - sums) / (n - before)[:, None] - sums / before[:, None]
    at = int(np.argmax(np.abs(steps[:, 0]) * np.sqrt(before * (n - before))))
    # Gains explain a step as far as the corners' shares of the weight changed with it.
    gains = float(np.linalg.norm(steps[at, 1:] * stance.data_sheet))
    zero = float(stance.data_sheet[stance.nuisance_names.index(f"{stance.foot}.{CORNERS[0].replace(' ', '_')}.zero")])
    if abs(steps[at, 0]) <= _SIGMAS * gains + _MOVED * zero:
        return
    row = int(before[at])
    around = slice(max(row - _AROUND, 0), row + _AROUND)
    powers = np.vander(np.arange(len(excess[around])), 4, increasing=True)
    follows = np.linalg.lstsq(np.column_stack([powers, excess[around]]), stance.forces[around], rcond=None)[0][-1]
    corner = int(np.argmax(follows))
    raise StuckFootSensor(
        f"{stance.foot}: its sensor {CORNERS[corner]} moved by itself at about {stance.time[row]:.2f} s: from then on "
        f"the corners carry {steps[at, 0]:+.1f} N more than before, and a steady zero is known to {zero:.1f} N; "
        f"repair or replace it, and record again"
    )


def check_total_mass(stance: Stance, total_mass: float) -> None:
    """Refuse a mass whose weight is not that on the foot, by more than sensors and cables may be wrong.

    Raises:
        WrongTotalMass: by more than three standard deviations.
    """
    excess = float(np.mean(stance.vertical_force - stance.weight))
    sigma = float(np.linalg.norm(stance.force_nuisance_columns.mean(axis=0) * stance.data_sheet))
    if abs(excess) > _SIGMAS * sigma:
        gravity = float(np.linalg.norm(stance.robot.gravity))
        raise WrongTotalMass(
            f"total_mass = {total_mass:.3f} kg is wrong: {stance.foot} carries {total_mass + excess / gravity:.3f} ± "
            f"{sigma / gravity:.3f} kg, and may differ by {_SIGMAS:g} σ = {_SIGMAS * sigma / gravity:.3f} kg; weigh "
            f"the robot with its cables held, and let the sensors find their zeros with the foot in the air"
        )


_WIDER = 5.0
"""The positions' low-pass lets so much more pass: else theory, computed of what passed, would lack what forces have."""

_HIGHEST_SHARE = 0.2
"""Of the sample rate: differences of positions are derivatives up to there."""

_LEAST_ROWS = 100
"""Five seconds: with less, even eight parameters and the sensors' errors are guesses."""


@dataclass(frozen=True)
class StanceSettings:
    """Settings by which a recording becomes a stance.

    Attributes:
        filter_time: time constant of the inertial filter over forces and theory [s].
        sample_period: from row to row at most [s].
        cutoff_Hz: of the zero-phase low-pass over forces and theory; that over positions is five times as wide. Motion
            on one foot is slower; beyond it the foot rocks and gears vibrate, and no theory of a base at rest holds.
        sheet: what is known of force sensors and cables beforehand.
    """

    filter_time: float = FILTER_TIME
    sample_period: float = SAMPLE_PERIOD
    cutoff_Hz: float = 2.0
    sheet: SensorSheet = field(default_factory=SensorSheet)


@dataclass(frozen=True, eq=False)
class _Readings:
    """Readings of a robot on a foot, at the samples where all of it was measured."""

    time: Array
    position: Array
    forces: Array
    others: dict[str, Array]
    play_tick: NDArray[np.int64]
    played: NDArray[np.bool_]
    sample_period: float


def contact_of_run(run: Run, total_mass: float, foot: str = "r_foot") -> Contact:
    """Judge how a recorded robot stood on a foot, from the first sample that it moved in to the last one recorded.

    Args:
        run: the recording.
        total_mass: of the robot as weighed [kg].
        foot: name of the support foot.

    Raises:
        RobotError: the robot has no foot of this name.
        FitError: the foot is not its base, was not recorded, or nothing else was; no robot has this mass.
    """
    _check_mass(total_mass)
    return _contact(run, total_mass, foot, _readings(run, foot))


def stance_of_run(run: Run, total_mass: float, foot: str = "r_foot", settings: StanceSettings | None = None) -> Stance:
    """Take a stance from a recording, or say by name why it is none.

    Positions are those of the link encoders where there are some. Forces and theory go through one zero-phase low-pass,
    then through the inertial filter; so neither makes a bias.

    Args:
        run: the recording; of a played motion the samples while it played.
        total_mass: of the robot as weighed [kg].
        foot: name of the support foot.
        settings: None: `StanceSettings()`.

    Raises:
        StuckFootSensor: a corner's reading does not follow the force on it.
        FootOffGround: the foot does not carry the robot, or another one helps.
        RobotFell: it tipped over the foot's edge.
        WrongTotalMass: the foot carries another weight than this mass has.
        FitError: too few samples, no foot that is measured, or lost samples; its other kinds are those above.
        RobotError: the robot's base does not move; or the robot has no foot of this name.
    """
    settings = settings or StanceSettings()
    _check_mass(total_mass)
    readings = _readings(run, foot)
    contact = _contact(run, total_mass, foot, readings)
    stance = _stance(run, readings, contact, total_mass, foot, settings)
    check_steady_sensors(stance)
    check_total_mass(stance, total_mass)
    return stance


def planned_stance_of_run(
    run: Run, total_mass: float, foot: str = "r_foot", settings: StanceSettings | None = None
) -> Stance:
    """Return the stance that the plan of a run asked for, at the rows of `stance_of_run` and through its filters.

    Joint positions are the plan's; the forces are those that were measured.

    Args:
        run, total_mass, foot, settings: as of `stance_of_run`.

    Raises:
        FitError: the run was played by no plan; or as of `stance_of_run`.
        RobotError: as of `stance_of_run`.
    """
    if run.excitation is None:
        raise FitError(f"run {run.path} was recorded without a plan; give one that `jointbench run --plan` recorded")
    _check_mass(total_mass)
    readings = _readings(run, foot)
    contact = _contact(run, total_mass, foot, readings)
    playing = readings.play_tick >= 0
    time = readings.play_tick[playing] * run.samples.sample_period % run.excitation.period
    position = readings.position.copy()
    position[playing] = run.excitation.evaluate(time)[0]
    planned = replace(readings, position=position, played=playing)
    return _stance(run, planned, contact, total_mass, foot, settings or StanceSettings())


def _stance(
    run: Run, readings: _Readings, contact: Contact, total_mass: float, foot: str, settings: StanceSettings
) -> Stance:
    """Rows of readings in parts without a gap; refused where the foot did not stand or too few are left."""
    contact.check()  # first, as a robot that fell leaves an incomplete recording
    if run.ledger is not None and not run.ledger.is_valid:
        raise FitError(f"run {run.path} is not valid: {run.ledger.verdict}; record again")
    parts = _parts(readings, contact.good)
    h = readings.sample_period
    low_pass = LowPass(settings.cutoff_Hz, h)
    of_positions = LowPass(min(_WIDER * low_pass.cutoff_Hz, _HIGHEST_SHARE / h), h)
    least = 2 * low_pass.settling + FirstOrderLag(settings.filter_time, h).settling
    stances: list[Stance] = []
    for part in parts:
        if part.stop - part.start <= least:
            continue
        motion = smooth_motion(readings.position[part], of_positions)
        stances.append(
            stance_of(
                run.robot, foot, readings.time[part], motion.q, motion.dq, motion.ddq, readings.forces[part],
                total_mass, filter_time=settings.filter_time, sample_period=settings.sample_period,
                sheet=settings.sheet, low_pass=low_pass,
            )
        )  # fmt: skip
    rows = sum(stance.n_samples for stance in stances)
    if rows < _LEAST_ROWS:
        raise FitError(
            f"run {run.path} gives {rows} samples of a robot standing on {foot}; {_LEAST_ROWS} are needed, one each "
            f"{settings.sample_period:g} s in parts without a gap. {contact}; record longer"
        )
    return joined(stances)


def _check_mass(total_mass: float) -> None:
    if not (np.isfinite(total_mass) and total_mass > 0.0):
        raise WrongTotalMass(f"total_mass = {total_mass:g} kg must be above 0; weigh the robot")


def _readings(run: Run, foot: str) -> _Readings:
    samples = run.samples
    support_foot(run.robot, foot)
    if samples.foot_force is None or foot not in samples.foot_names:
        known = ", ".join(samples.foot_names) or "none"
        raise FitError(
            f"run {run.path} has no forces of foot {foot!r} (feet recorded: {known}); add its board to the bench file, "
            f"and record again"
        )
    if samples.joint_names != run.robot.joint_names:
        raise FitError(
            f"run {run.path} has joints {', '.join(samples.joint_names)}, but robot {run.robot.name!r} has "
            f"{', '.join(run.robot.joint_names)}"
        )
    rows = _measured_rows(samples, samples.foot_names.index(foot))
    if len(rows) < 2:
        raise FitError(f"run {run.path} has no samples of all joints and of {foot} at once; record again")
    play_tick = read_rows(samples.play_tick, rows)
    first = int(np.argmax(play_tick >= 0))
    rows, play_tick = rows[first:], play_tick[first:]
    played = play_tick >= 0
    forces = read_rows(samples.foot_force, rows)
    return _Readings(
        time=read_rows(samples.time, rows),
        position=read_rows(_position(samples), rows),
        forces=forces[:, samples.foot_names.index(foot)],
        others={name: np.nan_to_num(forces[:, i]) for i, name in enumerate(samples.foot_names) if name != foot},
        play_tick=play_tick,
        played=played if played.any() else np.ones_like(played),
        sample_period=samples.sample_period * int(np.median(np.diff(rows))),
    )


def _position(samples: Samples) -> Array:
    return samples.motor_position if samples.link_position is None else samples.link_position


def _measured_rows(samples: Samples, foot: int) -> NDArray[np.intp]:
    """Rows of which all joints' positions and the foot's corners are known."""
    assert samples.foot_force is not None
    stretches: list[NDArray[np.intp]] = []
    for part in chunks(samples.n_samples):
        known = read_rows(samples.valid, part).all(axis=1)
        known &= np.isfinite(read_rows(_position(samples), part)).all(axis=1)
        known &= np.isfinite(read_rows(samples.foot_force, part)[:, foot]).all(axis=1)
        stretches.append(part.start + np.flatnonzero(known))
    return np.concatenate(stretches)


def _contact(run: Run, total_mass: float, foot: str, readings: _Readings) -> Contact:
    return judge_contact(
        run.robot.foot(foot),
        readings.time,
        readings.forces,
        total_mass * float(np.linalg.norm(run.robot.gravity)),
        others=readings.others,
        position=readings.position,
    )


def _parts(readings: _Readings, good: NDArray[np.bool_]) -> list[slice]:
    """Played samples of a foot that stands well, in parts without a gap."""
    used = readings.played & good
    late = np.flatnonzero(np.diff(readings.time) > 1.5 * readings.sample_period) + 1
    parts: list[slice] = []
    for span in valid_spans(used):
        edges = [span.start, *late[(late > span.start) & (late < span.stop)].tolist(), span.stop]
        parts += [slice(start, stop) for start, stop in pairwise(edges)]
    return parts


@dataclass(frozen=True)
class BalanceTracking:
    """Measured beside planned zero-moment point of a played motion.

    Attributes:
        error: mean distance of the measured point from the planned one [m].
        largest: largest distance [m].
        offset: distance of their means [m], which `--zmp-offset` could have told.
        planned_distance: of the planned point from the sole's edge at its nearest [m].
        distance: of the measured point from the sole's edge at its nearest [m]; negative outside.
    """

    error: float
    largest: float
    offset: float
    planned_distance: float
    distance: float

    @staticmethod
    def of(sole: Foot, planned: Array, measured: Array) -> BalanceTracking:
        """Compare zero-moment points.

        Args:
            sole: that the robot stands on.
            planned, measured: in the base frame [m], shape (n, 2) each.

        Raises:
            ShapeError: the shapes differ, or are none of points.
        """
        if planned.shape != measured.shape or planned.ndim != 2 or planned.shape[1] != 2 or not len(planned):
            raise ShapeError(
                f"planned and measured have shapes {planned.shape} and {measured.shape}; both must be (n, 2)"
            )
        off = measured - planned
        distance = np.linalg.norm(off, axis=1)
        nearest = (float(sole.distance_to_edge(points - sole.origin[:2]).min()) for points in (planned, measured))
        return BalanceTracking(
            float(distance.mean()), float(distance.max()), float(np.linalg.norm(off.mean(axis=0))), *nearest
        )

    def __str__(self) -> str:
        """Say it in millimetres."""
        return (
            f"the measured zero-moment point is {1e3 * self.error:.1f} mm off the planned one on average, "
            f"{1e3 * self.largest:.1f} mm at most ({1e3 * self.offset:.1f} mm are constant), and stays "
            f"{1e3 * self.distance:.0f} mm from the sole's edge, {1e3 * self.planned_distance:.0f} mm as planned"
        )


def planned_point(run: Run, total_mass: float, foot: str = "r_foot") -> Array:
    """Return the planned zero-moment point of a run's motion on one foot, behind the filters of its stance.

    The point is predicted with the masses that the plan was made with, those of an estimate or of the robot's file.

    Args:
        run: of a motion of the family `single_support`.
        total_mass: as weighed [kg].
        foot: name of the support foot.

    Returns:
        Points in the base frame at the rows of `stance_of_run` [m], shape (n, 2).

    Raises:
        FitError: the run has no plan of a motion on this foot, or is no stance.
        RobotError: the robot's file does not tell all inertias, and the plan neither.
    """
    support = None if run.excitation is None else run.excitation.support
    if support is None or support.foot != foot:
        raise FitError(
            f"run {run.path} has no plan of a motion on foot {foot!r}; give one that plays a plan of "
            f"`jointbench plan --family single_support`"
        )
    given = support.standard_parameters
    parameters = floating_standard_parameters(run.robot) if given is None else np.array(given)
    if parameters is None:
        raise RobotError(f"the file of robot {run.robot.name!r} does not tell all inertias; plan with an estimate")
    sole = run.robot.foot(foot)
    points = theoretical_point(planned_stance_of_run(run, total_mass, foot), parameters)
    return points + np.array(support.zmp_offset) @ sole.axes[:2, :2].T
