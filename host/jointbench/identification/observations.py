"""From recorded signals to the rows of a least-squares problem, filtered alike on both sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.dynamics import BaseParameters, model_columns
from jointbench.errors import FitError
from jointbench.identification.delay import Delay, TorqueStretch, delayed_torque, estimate_delay, given_delay
from jointbench.identification.recorded_signals import RecordedSignals, recorded_signals
from jointbench.identification.rows import Block
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.robot import Array, Robot
from jointbench.signals import LowPass, Motion, bandwidth, moving, rest_threshold, smooth_motion, spans

_MOTION_HARMONICS = 10.0
_LEAST_CUTOFF_HZ = 20.0
_CHUNK = 4096
"""Samples per call of the regressor: bounds the memory for columns that are not kept."""


@dataclass(frozen=True)
class Observations:
    """Torque rows and their regressor on an even grid of times, gaps included.

    torque[k, j] ≈ regressor[k, j] @ base parameters, where complete[k].

    Attributes:
        time: [s], shape (n,).
        regressor: filtered as the torque was, on the board and on the host, shape (n, n_joints, rank).
        torque: filtered [N·m or N], zero of passive joints, shape (n, n_joints).
        motion: filtered position and derivatives, shape (n, n_joints) each.
        complete: rows away from gaps and ends, shape (n,).
        moving: rows of modelled joints away from rest, shape (n, n_joints); False where not complete.
        noise: standard deviation of the torque's mean between periods before filtering, or nan, shape (n_joints,).
        settings: with everything that was left open decided.
        delay: between torque and motion, taken out of the torque here.
        outliers: samples that the average over periods left out, by each joint's position, then each one's torque,
            shape (2 n_joints,).
    """

    time: Array
    regressor: Array
    torque: Array
    motion: Motion
    complete: NDArray[np.bool_]
    moving: NDArray[np.bool_]
    noise: Array
    settings: FitSettings
    delay: Delay
    outliers: NDArray[np.intp]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.regressor.shape[1]

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.regressor.shape[2]

    def blocks(self) -> Iterator[Block]:
        """All rows, as an estimator takes them."""
        yield Block(0, self.regressor, self.torque, self.moving, self.complete)


def observe(run: Run, robot: Robot, base: BaseParameters, settings: FitSettings) -> Observations:
    """Turn a run into observations of the robot's base parameters.

    The same zero-phase low-pass goes over torque and over each column of the regressor ("parallel filtering"), and
    the columns also go through what the board did to the current; so no filter biases the parameters. Then two samples
    per period of the cut-off are kept. Where motion was recorded later than torque, each row has the torque of its own
    motion, taken between the samples before it.

    Args:
        run: the recording.
        robot: its robot.
        base: base parameters with drives.
        settings: what is None in it is decided from the recording.

    Raises:
        FitError: the run cannot give what the settings ask for.
        SignalError: the cut-off does not suit the sample rate.
    """
    signals = recorded_signals(run, robot, settings)
    cutoff = _default_cutoff(signals) if settings.cutoff_Hz is None else settings.cutoff_Hz
    low_pass = LowPass(cutoff, signals.sample_period, settings.filter_order)
    parts = list(spans(signals.valid, least=2 * low_pass.settling + low_pass.stride + 2))
    if not parts:
        longest = max(part.stop - part.start for part in spans(signals.valid))
        raise FitError(
            f"run {run.path}: its longest stretch without a gap has {longest} samples, and a low-pass at "
            f"{cutoff:.3g} Hz needs more than {2 * low_pass.settling + low_pass.stride + 1}; "
            f"record longer, or raise cutoff_Hz"
        )
    motions = [_motion(signals, part, low_pass) for part in parts]
    settings = dataclasses.replace(
        settings,
        cutoff_Hz=cutoff,
        velocity_threshold=_thresholds(robot, settings, motions),
        rest_guard=0.5 / cutoff if settings.rest_guard is None else settings.rest_guard,
    )
    grid = np.arange(0, len(signals.time), low_pass.stride)
    n, joints = len(grid), robot.n_joints
    known = _known_delay(robot, settings, signals)
    out = Observations(
        time=signals.time[grid],
        regressor=np.zeros((n, joints, base.rank)),
        torque=np.zeros((n, joints)),
        motion=Motion(*np.zeros((3, n, joints))),
        complete=np.zeros(n, dtype=np.bool_),
        moving=np.zeros((n, joints), dtype=np.bool_),
        noise=signals.noise,
        settings=settings,
        delay=known or given_delay(np.zeros(joints), "none yet"),
        outliers=signals.outliers,
    )
    rate = None if known else np.zeros_like(out.regressor)
    stretches: list[TorqueStretch] = []
    for part, motion in zip(parts, motions, strict=True):
        rows = np.flatnonzero((grid >= part.start + low_pass.settling) & (grid < part.stop - low_pass.settling))
        _fill(out, rate, rows, grid[rows] - part.start, signals, part, motion, low_pass, robot, base)
        torque = low_pass.apply(np.where(robot.modelled, signals.torque[part], 0.0))
        stretches.append(TorqueStretch(rows, grid[rows] - part.start, torque, low_pass.settling))
    if rate is not None:
        out = dataclasses.replace(out, delay=_estimated_delay(run, out, rate, stretches, low_pass))
    return _without_delay(out, stretches, signals.sample_period)


def _motion(signals: RecordedSignals, part: slice, low_pass: LowPass) -> Motion:
    """Motion of a stretch: from the series through all of it, where there is one, or from filtered positions."""
    if signals.series is None:
        return smooth_motion(signals.position[part], low_pass)
    known = signals.series.motion
    return Motion(known.q[part], known.dq[part], known.ddq[part])


def _known_delay(robot: Robot, settings: FitSettings, signals: RecordedSignals) -> Delay | None:
    """The delay that the settings or the boards' filters tell; None where it must be estimated."""
    given = settings.delay
    if given is None and signals.board_filters:
        return given_delay(np.zeros(robot.n_joints), "the boards' filters are known, and part of the regressor")
    if given is None or isinstance(given, str):
        return None
    if isinstance(given, tuple) and len(given) != robot.n_joints:
        raise FitError(
            f"delay has {len(given)} values; robot {robot.name!r} needs one for all joints, or one for each of its "
            f"{robot.n_joints}"
        )
    return given_delay(np.broadcast_to(np.asarray(given, dtype=np.float64), (robot.n_joints,)).copy(), "as set")


def _estimated_delay(
    run: Run, out: Observations, rate: Array, stretches: list[TorqueStretch], low_pass: LowPass
) -> Delay:
    """Estimate the delay from the rows that know their torque within the filter's memory before and after."""
    shape, h, memory = out.torque.shape, low_pass.sample_period, float(low_pass.settling)
    used = out.moving.copy()
    for stretch in stretches:
        used[stretch.rows] &= (stretch.reaches(np.array([memory])) & stretch.reaches(np.array([-memory])))[:, None]
    delay = estimate_delay(
        out.regressor, rate, lambda seconds: delayed_torque(stretches, shape, seconds / h), used,
        limit=memory * h, step=h, each=out.settings.delay == "estimate_per_joint",
    )
    if out.settings.delay is None:
        return delay.if_clear()
    if delay.source == "not told":
        raise FitError(f"run {run.path}: {delay.reason}; give delay in seconds, or record livelier motion")
    return delay


def _without_delay(out: Observations, stretches: list[TorqueStretch], sample_period: float) -> Observations:
    """The observations with each motion's own torque; rows whose torque lies beyond an end are complete no more."""
    samples = out.delay.seconds / sample_period
    complete = np.zeros_like(out.complete)
    for stretch in stretches:
        complete[stretch.rows] = stretch.reaches(samples)
    common = bool(np.all(out.delay.seconds == out.delay.seconds[0]))
    decided = float(out.delay.seconds[0]) if common else tuple(float(each) for each in out.delay.seconds)
    return dataclasses.replace(
        out,
        torque=delayed_torque(stretches, (len(out.time), len(samples)), samples),
        complete=complete,
        moving=out.moving & complete[:, None],
        settings=dataclasses.replace(out.settings, delay=decided),
    )


def _fill(
    out: Observations, rate: Array | None, rows: NDArray[np.intp], picked: NDArray[np.intp], signals: RecordedSignals,
    part: slice, motion: Motion, low_pass: LowPass, robot: Robot, base: BaseParameters,
) -> None:
    """Fill the rows of one gapless stretch; `picked` are their samples within it."""
    assert out.settings.velocity_threshold is not None
    assert out.settings.rest_guard is not None
    guard = round(out.settings.rest_guard / signals.sample_period)
    out.complete[rows] = True
    out.moving[rows] = moving(motion.dq, np.array(out.settings.velocity_threshold), guard)[picked] & robot.modelled
    for name in ("q", "dq", "ddq"):
        getattr(out.motion, name)[rows] = getattr(motion, name)[picked]
    columns = _base_columns(robot, base, motion)
    for joint in range(robot.n_joints):
        present = np.flatnonzero(columns[:, joint].any(axis=0))
        values = columns[:, joint, present]
        if signals.board_filters:
            values = signals.board_filters[joint].apply(values)
        filtered = low_pass.apply(values)
        out.regressor[rows[:, None], joint, present] = filtered[picked]
        if rate is not None:
            rate[rows[:, None], joint, present] = (filtered[picked + 1] - filtered[picked - 1]) / (
                2.0 * signals.sample_period
            )


def _base_columns(robot: Robot, base: BaseParameters, motion: Motion) -> Array:
    """Regressor of the base parameters, shape (n, n_joints, rank)."""
    n = len(motion.q)
    columns = np.empty((n, robot.n_joints, base.rank))
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        full, _ = model_columns(robot, motion.q[part], motion.dq[part], motion.ddq[part])
        columns[part] = base.project(full).reshape(-1, robot.n_joints, base.rank)
    return columns


def _default_cutoff(signals: RecordedSignals) -> float:
    longest = max(spans(signals.valid), key=lambda part: part.stop - part.start)
    highest = 0.2 / signals.sample_period
    if longest.stop - longest.start < 3:
        return min(_LEAST_CUTOFF_HZ, highest)
    wanted = _MOTION_HARMONICS * bandwidth(signals.position[longest], signals.sample_period)
    return min(max(wanted, _LEAST_CUTOFF_HZ), highest)


def _thresholds(robot: Robot, settings: FitSettings, motions: list[Motion]) -> tuple[float, ...]:
    given = settings.velocity_threshold
    if given is None:
        return tuple(float(value) for value in rest_threshold(np.vstack([motion.dq for motion in motions])))
    if len(given) != robot.n_joints:
        raise FitError(
            f"velocity_threshold has {len(given)} values; robot {robot.name!r} needs one for each of its "
            f"{robot.n_joints} joints"
        )
    return given
