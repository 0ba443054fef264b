"""Signals of drives in a recording: the motion, the motors' torque, and the torque that comes out of the gears."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.identification.recorded_signals import RecordedSignals, recorded_signals
from jointbench.identification.settings import FitSettings
from jointbench.model import Robot
from jointbench.recording import Run
from jointbench.signals import BoardFilter, LowPass, bandwidth, moving_mask, rest_threshold, smooth_motion, valid_spans

MOTION_CUTOFF_HZ = 40.0
"""Of positions: between 20 and 80 Hz the friction of a harmonic-drive arm is told alike (docs/friction.md)."""

_MOTION_HARMONICS = 10.0
_SIDES: tuple[Literal["motor"], Literal["link"]] = ("motor", "link")
_LEAST_CUTOFF_HZ = 5.0
"""Below the 20 Hz of other fits: the second derivative of a torque sensor's noise grows with the cut-off's 5/2."""


@dataclass(frozen=True, eq=False)
class GearTorque:
    """Torque from the gears onto the links and its derivatives by time, shape (n, n_joints) each, or (n,) of a joint.

    Attributes:
        value: [N·m], positive where it pushes the link forwards.
        rate: [N·m/s].
        acceleration: [N·m/s²].
    """

    value: Array
    rate: Array
    acceleration: Array

    @classmethod
    def sampled(cls, torque: ArrayLike, sample_period: float) -> GearTorque:
        """Torque [N·m], sampled evenly every `sample_period` [s] without gaps, and its central differences."""
        value = np.asarray(torque, dtype=np.float64)
        if len(value) < 3:
            raise ShapeError(f"torque has {len(value)} samples; its second derivative needs 3 at least")
        acceleration = np.empty_like(value)
        acceleration[1:-1] = (value[2:] - 2.0 * value[1:-1] + value[:-2]) / sample_period**2
        acceleration[0], acceleration[-1] = acceleration[1], acceleration[-2]
        return cls(value, np.gradient(value, sample_period, axis=0), acceleration)

    def of(self, joint: int) -> GearTorque:
        """That of one joint."""
        return GearTorque(self.value[:, joint], self.rate[:, joint], self.acceleration[:, joint])


@dataclass(frozen=True)
class RowFilter:
    """Filter from samples to rows: the motors' torque went through it, and so do the columns beside it.

    Friction turns its sign within a millisecond, and is no linear function of the motion: its columns are computed at
    every sample, and only then filtered.

    Attributes:
        low_pass: zero-phase, whose stride thins the samples to rows.
        board_filters: before it, one a joint; empty where they are not known.
        stretches: without gaps, of the samples.
    """

    low_pass: LowPass
    board_filters: tuple[BoardFilter, ...]
    stretches: tuple[slice, ...]

    def rows(self, values: Array) -> Array:
        """Filter each joint's values and thin them.

        Args:
            values: at the samples, shape (n, n_joints, ...).

        Returns:
            At the rows, shape (n_rows, n_joints, ...).
        """
        return np.stack([self.joint_rows(values[:, j], j) for j in range(values.shape[1])], axis=1)

    def joint_rows(self, values: Array, joint: int) -> Array:
        """Rows of one joint from its values, shape (n, ...) to (n_rows, ...)."""
        parts: list[Array] = []
        for part in self.stretches:
            late = self.board_filters[joint].apply(values[part]) if self.board_filters else values[part]
            parts.append(self.low_pass.apply(late)[:: self.low_pass.stride])
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """A recording in which the drives can be judged: the motion at every sample, the motors' torque at rows.

    Attributes:
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²]; m, m/s, m/s² of sliding joints;
            shape (n, n_joints).
        motor_torque: of the motors at the joints, Mᵀ (torque constant x current) [N·m or N], by the robot's constants,
            filtered, shape (n_rows, n_joints).
        used: rows away from gaps and ends, shape (n_rows, n_joints).
        sample_period: from sample to sample [s].
        gear_torque: by the torque sensors, shapes (n, n_joints); None where there are none.
        twist: how far the motors are ahead of the links by their encoders, zeros included [rad], shape (n, n_joints);
            None where only one side has encoders.
        moving: of the used rows those away from rest; None: all of them.
        filter: what columns go through on their way from samples to rows; None: every sample is a row.
        by_motor: whether q is that of the motors' encoders.
    """

    q: Array
    dq: Array
    ddq: Array
    motor_torque: Array
    used: NDArray[np.bool_]
    sample_period: float
    gear_torque: GearTorque | None = None
    twist: Array | None = None
    moving: NDArray[np.bool_] | None = None
    filter: RowFilter | None = None
    by_motor: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays whose shapes disagree.

        Raises:
            ShapeError: names the array, its shape and the one it must have.
        """
        samples = {name: getattr(self, name) for name in ("q", "dq", "ddq", "twist")}
        if self.gear_torque is not None:
            samples |= {
                f"gear_torque.{field.name}": getattr(self.gear_torque, field.name)
                for field in dataclasses.fields(GearTorque)
            }
        rows = {name: getattr(self, name) for name in ("motor_torque", "used", "moving")}
        shape = self.q.shape if self.filter is None else self.motor_torque.shape
        like = "q" if self.filter is None else "motor_torque"
        for group, wanted, whose in ((samples, self.q.shape, "q"), (rows, shape, like)):
            for name, values in group.items():
                if values is not None and values.shape != wanted:
                    raise ShapeError(f"{name} has shape {values.shape}; it must be that of {whose}, {wanted}")

    def rows(self, values: Array) -> Array:
        """Take values at the samples to the rows, filtered as the motors' torque is.

        Args:
            values: shape (n, n_joints, ...).

        Returns:
            Shape (n_rows, n_joints, ...).
        """
        return values if self.filter is None else self.filter.rows(values)

    def joint_rows(self, values: Array, joint: int) -> Array:
        """Rows of one joint from its values, shape (n, ...) to (n_rows, ...)."""
        return values if self.filter is None else self.filter.joint_rows(values, joint)

    @property
    def moving_rows(self) -> NDArray[np.bool_]:
        """Rows away from rest, gaps and ends, shape (n_rows, n_joints)."""
        return self.used if self.moving is None else self.moving


def drive_signals(
    run: Run,
    robot: Robot,
    settings: FitSettings | None = None,
    *,
    motion_cutoff_Hz: float | None = MOTION_CUTOFF_HZ,
) -> DriveSignals:
    """Take from a run what its drives did.

    The motion is smoothed little, so that a column of friction turns its sign when the joint does; torque, and every
    column that it is compared with, goes through the board's filter and one zero-phase low-pass.

    Args:
        run: the recording; of a played excitation its periods are averaged where `settings` say so.
        robot: its robot.
        settings: as of a fit; the torque sensors are taken where there are some. None: `FitSettings()`. The cut-off is
            the torque's: None is 10 times the frequency below which 99 % of the motion lies, but 5 Hz at least; a delay
            of None is 0. Velocities are always those of filtered positions.
        motion_cutoff_Hz: of the low-pass of positions, 40 Hz; a fifth of the sample rate where that is less. None: the
            motion is smoothed as the torque is, and columns are not filtered, which friction's steps do not survive:
            how the field's usual model is computed, for comparison.

    Raises:
        FitError: the run lacks the motors' torque, the position asked for, or has no stretch long enough; or the delay
            is to be estimated.
        SignalError: the cut-off does not suit the sample rate.
    """
    settings = settings or FitSettings()
    delay = _known_delay(settings, robot)
    signals = recorded_signals(run, robot, dataclasses.replace(settings, torque="motor"))
    valid, sensed = signals.valid, None
    if run.samples.joint_torque is not None:
        sensor = recorded_signals(run, robot, dataclasses.replace(settings, torque="joint"))
        valid, sensed = valid & sensor.valid, sensor.torque
    twist = None
    if run.samples.link_position is not None:
        motor, link = (
            recorded_signals(run, robot, dataclasses.replace(settings, position=side)).position for side in _SIDES
        )
        twist = motor - link
    step = signals.sample_period
    low_pass = LowPass(_cutoff(signals, settings), step, settings.filter_order)
    least = 2 * low_pass.settling + low_pass.stride + 2
    parts = list(valid_spans(valid, least))
    if not parts:
        raise FitError(
            f"run {run.path} has no stretch of {least} samples without a gap, which a low-pass at "
            f"{low_pass.cutoff_Hz:.3g} Hz needs; record longer, or raise cutoff_Hz"
        )
    if motion_cutoff_Hz is None:
        smooth = low_pass
    else:
        smooth = LowPass(max(min(motion_cutoff_Hz, 0.2 / step), low_pass.cutoff_Hz), step, settings.filter_order)
    recorded = _Recorded(signals, sensed, twist, low_pass, smooth, delay, filtered=motion_cutoff_Hz is not None)
    return _joined([recorded.stretch(part) for part in parts], robot, settings, recorded)


@dataclass(frozen=True, eq=False)
class _Recorded:
    """A run's signals, and the filters that make samples and rows of them."""

    signals: RecordedSignals
    sensed: Array | None
    twist: Array | None
    low_pass: LowPass
    smooth: LowPass
    delay: Array
    filtered: bool

    def stretch(self, part: slice) -> DriveSignals:
        """One gapless stretch, rows that feel its edges not used."""
        step = self.low_pass.sample_period
        filters = self.signals.board_filters
        # Positions are sampled in an instant; what the boards filtered is later than they are.
        late = np.array([board.delay for board in filters]) if filters else np.zeros(len(self.delay))
        motion = smooth_motion(self._position(part, self.signals.position), self.smooth)
        twist = None if self.twist is None else self.smooth.apply(self._position(part, self.twist))
        gear = None
        if self.sensed is not None:
            # Columns are delayed as the boards do it: the sensors' torque is first taken back to when it was.
            value = _earlier(self.smooth.apply(self.sensed[part]), self.delay / step)
            gear = GearTorque.sampled(_earlier(value, -late / step) if self.filtered else value, step)
        torque = _earlier(self.low_pass.apply(self.signals.torque[part]), self.delay / step)
        thin = slice(None, None, self.low_pass.stride)
        used = np.zeros(motion.q.shape, dtype=np.bool_)
        edge = self.low_pass.settling + int(np.ceil(np.max(np.abs(self.delay)) / step))
        used[edge : len(used) - edge] = True
        row_filter = RowFilter(self.low_pass, filters, (slice(0, part.stop - part.start),))
        return DriveSignals(
            motion.q, motion.dq, motion.ddq, torque[thin], used[thin], step, gear, twist, filter=row_filter
        )

    def _position(self, part: slice, values: Array) -> Array:
        """Positions of a stretch, late as the torque is where columns are not filtered."""
        if self.filtered or not self.signals.board_filters:
            return values[part]
        boards = self.signals.board_filters
        return np.stack([board.apply(values[part, j]) for j, board in enumerate(boards)], axis=1)


def _joined(parts: list[DriveSignals], robot: Robot, settings: FitSettings, recorded: _Recorded) -> DriveSignals:
    """Stretches one after the other; of the rows, which are near rest."""
    low_pass = recorded.low_pass
    given = settings.velocity_threshold
    threshold = rest_threshold(np.vstack([part.dq for part in parts])) if given is None else np.array(given)
    guard_s = 0.5 / low_pass.cutoff_Hz if settings.rest_guard is None else settings.rest_guard
    guard = round(guard_s / low_pass.sample_period)
    thin = slice(None, None, low_pass.stride)
    away = np.vstack([moving_mask(part.dq, threshold, guard)[thin] for part in parts])
    used = np.vstack([part.used for part in parts]) & robot.modelled
    ends = [0, *accumulate(len(part.q) for part in parts)]

    def samples(pieces: Iterable[Array]) -> Array:
        return np.vstack([piece if recorded.filtered else piece[thin] for piece in pieces])

    gears = [part.gear_torque for part in parts if part.gear_torque is not None]
    twists = [part.twist for part in parts if part.twist is not None]
    boards = recorded.signals.board_filters
    return DriveSignals(
        q=samples(part.q for part in parts),
        dq=samples(part.dq for part in parts),
        ddq=samples(part.ddq for part in parts),
        motor_torque=np.vstack([part.motor_torque for part in parts]),
        used=used,
        sample_period=low_pass.sample_period * (1 if recorded.filtered else low_pass.stride),
        gear_torque=GearTorque(
            samples(gear.value for gear in gears),
            samples(gear.rate for gear in gears),
            samples(gear.acceleration for gear in gears),
        )
        if gears
        else None,
        twist=samples(twists) if twists else None,
        moving=used & away,
        filter=RowFilter(low_pass, boards, tuple(map(slice, ends[:-1], ends[1:]))) if recorded.filtered else None,
        by_motor=settings.position == "motor",
    )


def _known_delay(settings: FitSettings, robot: Robot) -> Array:
    """Return the delay of the recorded motion behind the torques, per joint [s]."""
    given = settings.delay
    if isinstance(given, str):
        raise FitError(
            f"delay = {given!r} is not estimated here; fit the usual model to the run, and give the delay it finds [s]"
        )
    seconds = np.zeros(robot.n_joints) if given is None else np.atleast_1d(np.asarray(given, dtype=np.float64))
    if seconds.size not in (1, robot.n_joints):
        raise FitError(f"delay has {seconds.size} values; give one, or one for each of {robot.n_joints} joints")
    return np.broadcast_to(seconds, (robot.n_joints,))


def _earlier(values: Array, samples: Array) -> Array:
    """Values of each joint so many samples before each row, along the cubic spline; those beyond the ends repeat."""
    if not samples.any():
        return values
    rows = np.arange(len(values), dtype=np.float64)
    spline = scipy.interpolate.CubicSpline(rows, values)
    moved = [spline(np.clip(rows - late, 0.0, rows[-1]))[:, joint] for joint, late in enumerate(samples)]
    return np.stack(moved, axis=1)


def _cutoff(signals: RecordedSignals, settings: FitSettings) -> float:
    if settings.cutoff_Hz is not None:
        return settings.cutoff_Hz
    longest = max(valid_spans(signals.valid), key=lambda part: part.stop - part.start)
    highest = 0.2 / signals.sample_period
    if longest.stop - longest.start < 3:
        return min(_LEAST_CUTOFF_HZ, highest)
    wanted = _MOTION_HARMONICS * bandwidth(signals.position[longest], signals.sample_period)
    return min(max(wanted, _LEAST_CUTOFF_HZ), highest)
