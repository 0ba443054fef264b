"""What the checks of a log look at: positions, velocities and torques, as recorded and smoothed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import LogCheckError
from jointbench.recording.run import Run
from jointbench.robot import Robot
from jointbench.signals import LowPass, Motion, rest_threshold, smooth_motion, valid_spans

_CUTOFF_HZ = 20.0
"""Motions of robots lie below it, and most noise above."""

_MOST_ROWS, _PIECE = 400_000, 20_000
"""Of longer logs, pieces evenly spread over them are looked at."""


@dataclass(frozen=True, eq=False)
class Torque:
    """One kind of joint torque: all of it as recorded, and smoothed beside the motion.

    Attributes:
        name: what to call it.
        from_motors: whether friction of motors and gears is in it, and motors may have saturated.
        recorded: as it was measured, of motors on their own side of the gear: current [A] or torque [N·m or N], shape
            (n, n_joints).
        smooth_recorded: the same, smoothed, fewer rows, shape (m, n_joints).
        smooth: at the joints [N·m or N], shape (m, n_joints).
    """

    name: str
    from_motors: bool
    recorded: Array
    smooth_recorded: Array
    smooth: Array


@dataclass(frozen=True, eq=False)
class LogSignals:
    """A log without its gaps.

    Attributes:
        robot: that was recorded.
        sample_period: [s].
        pieces: unbroken stretches of the recorded rows.
        position: as recorded [rad or m], shape (n, n_joints).
        fast: recorded rows where a joint moves faster than when near rest, shape (n, n_joints).
        motion: smoothed, fewer rows, shape (m, n_joints) each.
        stride: recorded rows from one smoothed row to the next.
        velocity: as the log tells it, smoothed alike [rad/s or m/s], shape (m, n_joints), or None.
        torques: of the motors, of sensors, or both.
    """

    robot: Robot
    sample_period: float
    pieces: tuple[slice, ...]
    position: Array
    fast: NDArray[np.bool_]
    motion: Motion
    stride: int
    velocity: Array | None
    torques: tuple[Torque, ...]

    @classmethod
    def of_run(cls, run: Run) -> LogSignals:
        """Take them from a run.

        Raises:
            LogCheckError: it has other joints than its robot, or no stretch without a gap is long enough to smooth.
        """
        samples, robot, h = run.samples, run.robot, run.samples.sample_period
        if samples.joint_names != robot.joint_names:
            raise LogCheckError(
                f"the run has joints {', '.join(samples.joint_names)}, and robot {robot.name!r} has "
                f"{', '.join(robot.joint_names)}; the log cannot be checked"
            )
        low_pass = LowPass(min(_CUTOFF_HZ, 0.2 / h), h)
        found = _pieces(np.asarray(samples.valid.all(axis=1)), 3 * low_pass.settling)
        if not found:
            raise LogCheckError(
                f"no stretch of {3 * low_pass.settling} rows without a gap, which smoothing at "
                f"{low_pass.cutoff_Hz:g} Hz needs; the log cannot be checked"
            )
        rows = np.concatenate([np.arange(piece.start, piece.stop) for piece in found])
        edges = np.cumsum([0] + [piece.stop - piece.start for piece in found]).tolist()
        pieces = tuple(slice(start, stop) for start, stop in pairwise(edges))
        position = samples.motor_position[rows]
        kept = [slice(p.start + low_pass.settling, p.stop - low_pass.settling, low_pass.stride) for p in pieces]

        def smooth(values: Array) -> Array:
            out = np.empty_like(values)
            for piece in pieces:
                out[piece] = low_pass.apply(values[piece])
            return out

        def few(values: Array) -> Array:
            return np.concatenate([values[part] for part in kept])

        motions = [smooth_motion(position[piece], low_pass) for piece in pieces]
        whole = Motion(*(np.concatenate([getattr(m, name) for m in motions]) for name in ("q", "dq", "ddq")))
        torques: list[Torque] = []
        if samples.motor_torque is not None:
            at_joints = samples.motor_torque[rows]
            current = samples.motor_current
            recorded = _at_motors(robot, at_joints) if current is None else current[rows]
            torques.append(Torque("motor torque", True, recorded, few(smooth(recorded)), few(smooth(at_joints))))
        if samples.joint_torque is not None:
            sensor = samples.joint_torque[rows]
            few_of_it = few(smooth(sensor))
            torques.append(Torque("torque sensor", False, sensor, few_of_it, few_of_it))
        velocity = samples.joint_velocity
        return cls(
            robot=robot,
            sample_period=h,
            pieces=pieces,
            position=position,
            fast=np.abs(whole.dq) > rest_threshold(whole.dq),
            motion=Motion(few(whole.q), few(whole.dq), few(whole.ddq)),
            stride=low_pass.stride,
            velocity=None if velocity is None else few(smooth(velocity[rows])),
            torques=tuple(torques),
        )


def _pieces(valid: NDArray[np.bool_], least: int) -> list[slice]:
    """Stretches without a gap, of a long log parts of them that are evenly spread."""
    found = list(valid_spans(valid, min_length=least))
    if sum(piece.stop - piece.start for piece in found) <= _MOST_ROWS:
        return found
    parts = [
        slice(start, min(start + _PIECE, piece.stop))
        for piece in found
        for start in range(piece.start, piece.stop, _PIECE)
        if min(start + _PIECE, piece.stop) - start >= least
    ]
    chosen = np.unique(np.linspace(0, len(parts) - 1, _MOST_ROWS // _PIECE).astype(int))
    return [parts[k] for k in chosen]


def _at_motors(robot: Robot, torque: Array) -> Array:
    """Torque of the motors themselves, where joints share them."""
    if not robot.couplings or robot.drive_train.n_motors > robot.n_joints:
        return torque
    return torque @ np.linalg.inv(robot.transmission_matrix)
