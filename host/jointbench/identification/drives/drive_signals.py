"""What a drive does in a recording: the motion, the motors' torque, and the torque that comes out of the gears."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from jointbench.errors import FitError, ShapeError
from jointbench.identification.observations.recorded_signals import RecordedSignals, recorded_signals
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.robot import Array, Robot
from jointbench.signals import LowPass, bandwidth, moving, rest_threshold, smooth_motion, spans

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


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Rows of a recording in which the drives can be judged; arrays have the shape (n, n_joints).

    Attributes:
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²]; m, m/s, m/s² of sliding joints.
        motor_torque: of the motors at the joints, Mᵀ (torque constant x current) [N·m or N], by the robot's constants.
        used: rows away from rest and gaps.
        sample_period: from row to row [s].
        gear_torque: by the torque sensors, None where there are none.
        twist: how far the motors are ahead of the links by their encoders, zeros included [rad], None where only one
            side has encoders.
    """

    q: Array
    dq: Array
    ddq: Array
    motor_torque: Array
    used: NDArray[np.bool_]
    sample_period: float
    gear_torque: GearTorque | None = None
    twist: Array | None = None

    def __post_init__(self) -> None:
        """Refuse arrays whose shapes disagree.

        Raises:
            ShapeError: names the array, its shape and the one it must have.
        """
        arrays = {name: getattr(self, name) for name in ("q", "dq", "ddq", "motor_torque", "used")}
        if self.gear_torque is not None:
            arrays |= {
                f"gear_torque.{field.name}": getattr(self.gear_torque, field.name)
                for field in dataclasses.fields(GearTorque)
            }
        if self.twist is not None:
            arrays["twist"] = self.twist
        for name, values in arrays.items():
            if values.shape != self.q.shape:
                raise ShapeError(f"{name} has shape {values.shape}; it must be that of q, {self.q.shape}")


def drive_signals(run: Run, robot: Robot, settings: FitSettings | None = None) -> DriveSignals:
    """Take from a run what its drives did.

    Positions go through the board's filter of current and torque, so that all are late alike, and then all through one
    zero-phase low-pass. Friction's steps do not commute with filters; rows near them are not used.

    Args:
        run: the recording; of a played excitation its periods are averaged where `settings` say so.
        robot: its robot.
        settings: as of a fit; the torque sensors are taken where there are some. None: `FitSettings()`. A cut-off of
            None is 10 times the frequency below which 99 % of the motion lies, but 5 Hz at least; a delay of None is 0.
            Velocities are always those of filtered positions.

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
    low_pass = LowPass(_cutoff(signals, settings), signals.sample_period, settings.filter_order)
    least = 2 * low_pass.settling + low_pass.stride + 2
    parts = [_stretch(signals, sensed, twist, part, low_pass, delay) for part in spans(valid, least)]
    if not parts:
        raise FitError(
            f"run {run.path} has no stretch of {least} samples without a gap, which a low-pass at "
            f"{low_pass.cutoff_Hz:.3g} Hz needs; record longer, or raise cutoff_Hz"
        )
    return _joined(parts, robot, settings, low_pass)


def _stretch(
    signals: RecordedSignals, sensed: Array | None, twist: Array | None, part: slice, low_pass: LowPass, delay: Array
) -> DriveSignals:
    """One gapless stretch at full rate, rows that feel its edges not used."""

    def torque(values: Array) -> Array:
        return _earlier(low_pass.apply(values[part]), delay / low_pass.sample_period)

    def late(values: Array) -> Array:
        if not signals.board_filters:
            return values[part]
        return np.stack([board.apply(values[part, j]) for j, board in enumerate(signals.board_filters)], axis=1)

    motion = smooth_motion(late(signals.position), low_pass)
    used = np.zeros(motion.q.shape, dtype=np.bool_)
    edge = low_pass.settling + int(np.ceil(np.max(np.abs(delay)) / low_pass.sample_period))
    used[edge : len(used) - edge] = True
    gear = None if sensed is None else GearTorque.sampled(torque(sensed), low_pass.sample_period)
    twisted = None if twist is None else low_pass.apply(late(twist))
    return DriveSignals(
        motion.q, motion.dq, motion.ddq, torque(signals.torque), used, low_pass.sample_period, gear, twisted
    )


def _joined(parts: list[DriveSignals], robot: Robot, settings: FitSettings, low_pass: LowPass) -> DriveSignals:
    """Stretches one after the other, thinned to two samples per period of the cut-off, without what is near rest."""
    given = settings.velocity_threshold
    threshold = rest_threshold(np.vstack([part.dq for part in parts])) if given is None else np.array(given)
    guard = 0.5 / low_pass.cutoff_Hz if settings.rest_guard is None else settings.rest_guard
    rows = round(guard / low_pass.sample_period)
    used = [part.used & moving(part.dq, threshold, rows) & robot.modelled for part in parts]

    def thinned(pieces: list[Array]) -> Array:
        return np.vstack([piece[:: low_pass.stride] for piece in pieces])

    gears = [part.gear_torque for part in parts if part.gear_torque is not None]
    twists = [part.twist for part in parts if part.twist is not None]
    return DriveSignals(
        q=thinned([part.q for part in parts]),
        dq=thinned([part.dq for part in parts]),
        ddq=thinned([part.ddq for part in parts]),
        motor_torque=thinned([part.motor_torque for part in parts]),
        used=np.vstack([piece[:: low_pass.stride] for piece in used]),
        sample_period=low_pass.stride * low_pass.sample_period,
        gear_torque=GearTorque(
            thinned([gear.value for gear in gears]),
            thinned([gear.rate for gear in gears]),
            thinned([gear.acceleration for gear in gears]),
        )
        if gears
        else None,
        twist=thinned(twists) if twists else None,
    )


def _known_delay(settings: FitSettings, robot: Robot) -> Array:
    """How much later than the torques the motion was recorded, per joint [s]."""
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
    spline = CubicSpline(rows, values)
    moved = [spline(np.clip(rows - late, 0.0, rows[-1]))[:, joint] for joint, late in enumerate(samples)]
    return np.stack(moved, axis=1)


def _cutoff(signals: RecordedSignals, settings: FitSettings) -> float:
    if settings.cutoff_Hz is not None:
        return settings.cutoff_Hz
    longest = max(spans(signals.valid), key=lambda part: part.stop - part.start)
    highest = 0.2 / signals.sample_period
    if longest.stop - longest.start < 3:
        return min(_LEAST_CUTOFF_HZ, highest)
    wanted = _MOTION_HARMONICS * bandwidth(signals.position[longest], signals.sample_period)
    return min(max(wanted, _LEAST_CUTOFF_HZ), highest)
