"""Signals of an imported log, what explains its torques, and findings of the checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.recorded_signals import filled, is_still, spacing
from jointbench.model import Robot, compensation_columns, inverse_dynamics
from jointbench.recording import Run, Samples
from jointbench.signals import LowPass, Motion, rest_threshold, smooth_motion, valid_spans

Word = Literal["fine", "suspicious", "wrong"]


@dataclass(frozen=True)
class LogFinding:
    """A figure that judges itself.

    Attributes:
        name: of what was looked at.
        joints: that it concerns.
        value: the figure; the larger, the worse.
        suspicious_from, wrong_from: the figure from which on it is so; inf where it never is.
        what: was found, a sentence with figures.
        advice: what to do where it is not fine.
    """

    name: str
    joints: tuple[str, ...]
    value: float
    suspicious_from: float
    wrong_from: float
    what: str
    advice: str

    @property
    def word(self) -> Word:
        """Level of the figure; one that is not a number is suspicious."""
        if self.value >= self.wrong_from:
            return "wrong"
        return "suspicious" if math.isnan(self.value) or self.value >= self.suspicious_from else "fine"

    def __str__(self) -> str:
        joints = f" {', '.join(self.joints)}" if self.joints and self.word != "fine" else ""
        return f"{self.word}: {self.name}{joints}: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; a figure that is not finite is None, and limits that are never reached are left out."""
        limits = {"suspicious_from": self.suspicious_from, "wrong_from": self.wrong_from}
        return {
            "name": self.name,
            "joints": list(self.joints),
            "word": self.word,
            "value": self.value if math.isfinite(self.value) else None,
            "what": self.what,
            "advice": self.advice if self.word != "fine" else "",
        } | {name: limit for name, limit in limits.items() if math.isfinite(limit)}


_LEAST, _MOST = 0.2, 5.0
"""Factor by which a file's inertias may be off, as a whole for each joint."""

_FLOOR = 0.02
"""Share of a torque's variation that no file explains: below it, models are equally good."""


@dataclass(frozen=True, eq=False)
class Causes:
    """Causes of each joint's torque that follow from motion, up to factors that are not negative.

    Attributes:
        rigid: by the inertias of the robot's file [N·m or N], shape (n, n_joints), or None where it has none.
        resisting: rotor inertia, viscous and dry friction, up to a factor each, shape (3, n, n_joints).
        free: what may have any sign: the robot's compensations, and where the file has no inertias, the gravity of a
            single link, shape (n_free, n, n_joints).
    """

    rigid: Array | None
    resisting: Array
    free: Array

    @classmethod
    def of_motion(cls, robot: Robot, motion: Motion) -> Causes:
        """Those of a motion."""
        q, dq, ddq = motion.q, motion.dq, motion.ddq
        slow = np.maximum(rest_threshold(dq), 1e-12)
        parameters = robot.standard_parameters
        known = parameters is not None and bool(np.any(parameters))
        rigid = inverse_dynamics(robot, q, dq, ddq, parameters) if known and parameters is not None else None
        columns, names = compensation_columns(robot, q, dq, ddq)
        free = np.moveaxis(columns.reshape(*q.shape, len(names)), 2, 0)
        if rigid is None:
            free = np.concatenate([[np.sin(q), np.cos(q)], free])
        return cls(rigid, np.stack([ddq, dq, np.tanh(dq / slow)]), free)

    def free_at(self, joint: int) -> list[Array]:
        """Those of a joint that vary, shape (n,) each."""
        return [torque for torque in self.free[:, :, joint] if np.ptp(torque) > 0.0]


def unexplained(torque: Array, causes: Causes, joint: int, scale: float = 1.0) -> float:
    """Share of a torque's variation that a joint's motion does not explain, 1 where it explains nothing.

    min over x of |torque - offset - x0 rigid - x1 ddq - x2 dq - x3 sign(dq)|² / |torque - offset|², with x1 to x3 not
    negative, for friction resists and rotors have mass, and x0 within a factor of 5 of `scale`; less what is free.

    Args:
        torque: [N·m or N], shape (n,).
        causes: of a motion, for all joints.
        joint: whose motion.
        scale: of the torque, against that of the file.

    Returns:
        The share, 0.02 at least: what is left below that tells no model from another.
    """
    rigid = None if causes.rigid is None else causes.rigid[:, joint]
    columns = causes.free_at(joint)
    free = len(columns)
    columns += [causes.resisting[k, :, joint] for k in range(3)]
    if rigid is not None:
        columns.append(rigid)
    columns.append(torque)
    centred = np.column_stack(columns)
    centred -= centred.mean(axis=0)
    whole = float(centred[:, -1] @ centred[:, -1])
    if whole == 0.0:
        return 1.0
    if rigid is None:
        return max(_least_squares(centred, free) / whole, _FLOOR)
    centred[:, -1] -= _LEAST * scale * centred[:, -2]
    factors: list[float] = []
    left = _least_squares(centred, free, factors)
    if factors and factors[-1] > (_MOST - _LEAST) * scale:
        centred[:, -1] -= (_MOST - _LEAST) * scale * centred[:, -2]
        left = _least_squares(np.delete(centred, -2, axis=1), free)
    return max(min(left / whole, 1.0), _FLOOR)


def _least_squares(columns: Array, free: int, factors: list[float] | None = None) -> float:
    """Squares left of the last column by the others, whose factors are not negative but for the first, free ones."""
    size = np.sqrt(np.sum(columns**2, axis=0))
    r = cast(Array, np.linalg.qr(columns / np.where(size > 0.0, size, 1.0), mode="r"))
    # Free columns come first: what they leave of the others is the lower right part of the triangle.
    part, wanted = r[free:, free:-1], r[free:, -1]
    found, left = scipy.optimize.nnls(part, wanted)
    if factors is not None:
        factors += (found * size[-1] / np.where(size[free:-1] > 0.0, size[free:-1], np.inf)).tolist()
    return float(left**2 * size[-1] ** 2)


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

    @cached_property
    def moving(self) -> NDArray[np.bool_]:
        """Mask of the joints that move, by their smoothed positions, shape (n_joints,)."""
        return ~is_still(self.robot, np.ptp(self.motion.q, axis=0))

    @property
    def cutoff(self) -> float:
        """Cut-off behind which motion and torques are smooth [Hz]."""
        return min(_CUTOFF_HZ, 0.2 / self.sample_period)

    @classmethod
    def of_run(cls, run: Run) -> LogSignals:
        """Take them from a run.

        Raises:
            FitError: it has other joints than its robot, or no stretch without a gap is long enough to smooth.
        """
        samples, robot = as_sent(run.samples), run.robot
        h = samples.sample_period
        if samples.joint_names != robot.joint_names:
            raise FitError(
                f"the run has joints {', '.join(samples.joint_names)}, and robot {robot.name!r} has "
                f"{', '.join(robot.joint_names)}; the log cannot be checked"
            )
        low_pass = LowPass(min(_CUTOFF_HZ, 0.2 / h), h)
        found = _pieces(np.asarray(samples.valid.all(axis=1)), 3 * low_pass.settling)
        if not found:
            raise FitError(
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


def as_sent(samples: Samples) -> Samples:
    """Return the rows that positions were sent in where boards sent them each few ticks, other signals at these rows.

    The same samples where each row has a position.
    """
    position = samples.motor_position
    all_joints = np.ones(position.shape[1], dtype=np.bool_)
    every = spacing(position, all_joints)
    if every == 1:
        return samples
    first = int(np.argmax(np.isfinite(position).all(axis=1))) % every
    torque = samples.motor_torque
    if torque is not None and spacing(torque, all_joints) > 1 and not np.isfinite(torque[first::every]).any():
        torque = filled(torque, spacing(torque, all_joints), all_joints)  # sent at other ticks
    whole = dataclasses.replace(samples, motor_torque=torque)
    arrays = {
        name: value[first::every]
        for name, value in vars(whole).items()
        if isinstance(value, np.ndarray) and len(value) == len(position)
    }
    known = np.isfinite(arrays["motor_position"])
    return dataclasses.replace(
        whole, **arrays | {"valid": arrays["valid"] & known}, sample_period=every * samples.sample_period
    )


def _pieces(valid: NDArray[np.bool_], least: int) -> list[slice]:
    """Stretches without a gap, of a long log parts of them that are evenly spread."""
    spans = list(valid_spans(valid, min_length=least))
    if sum(piece.stop - piece.start for piece in spans) <= _MOST_ROWS:
        return spans
    parts = [
        slice(start, min(start + _PIECE, piece.stop))
        for piece in spans
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


DEGREES, RADIANS = "degrees for radians", "radians for degrees"

_MOST_PAIRED = 12
"""Joints up to which exchanges of positions are tried pair by pair."""

_LIMIT_MARGIN, _SPEED_MARGIN = 0.1, 1.5
"""Share of its range beyond a joint's limits, and multiple of its speed, that a real motion may still reach."""


@dataclass(frozen=True)
class MixUp:
    """A fault of the columns, which undone changes signs, order or unit of them.

    Attributes:
        kind: "swapped sign", "exchanged", "degrees for radians" or "radians for degrees".
        of: "position", "torque" or "both".
        joints: concerned, by index.
    """

    kind: str
    of: str
    joints: tuple[int, ...]

    def undo(self, values: Array) -> Array:
        """Values of all joints as they would be without it."""
        undone = values.copy()
        picked = list(self.joints)
        if self.kind == "swapped sign":
            undone[:, picked] *= -1.0
        elif self.kind == "exchanged":
            undone[:, picked] = values[:, picked[::-1]]
        else:
            undone[:, picked] *= np.pi / 180.0 if self.kind == DEGREES else 180.0 / np.pi
        return undone


@dataclass(frozen=True, eq=False)
class Look:
    """Motion and torque that may be mixed up, and how much of each torque is unexplained.

    Attributes:
        robot: that was recorded.
        motion, torque: as they are assumed to be.
        causes: of the motion.
        joints: to look at: those that move and have a torque that is modelled and varies.
        scale: of the torque against that of the file.
        left: share of the joints' torques that is unexplained, shape (n_joints,).
    """

    robot: Robot
    motion: Motion
    torque: Array
    causes: Causes
    joints: tuple[int, ...]
    scale: float
    left: Array

    @classmethod
    def at(cls, robot: Robot, motion: Motion, torque: Array, joints: tuple[int, ...], scale: float) -> Look:
        """Look at motion and torque as they are."""
        causes = Causes.of_motion(robot, motion)
        left = np.ones(robot.n_joints)
        for j in joints:
            left[j] = unexplained(torque[:, j], causes, j, scale)
        return cls(robot, motion, torque, causes, joints, scale, left)

    def without(self, mix_up: MixUp) -> Look:
        """Look again with a mix-up undone."""
        motion, torque = self.motion, self.torque
        if mix_up.of != "torque":
            motion = Motion(*(mix_up.undo(values) for values in motion_arrays(motion)))
        if mix_up.of != "position":
            torque = mix_up.undo(torque)
        return Look.at(self.robot, motion, torque, self.joints, self.scale)

    def gain(self, mix_up: MixUp) -> float:
        """Gain in explanation by undoing it: the sum over joints of log(residual before / residual after)."""
        if mix_up.of != "torque":
            return float(np.sum(np.log(self.left / self.without(mix_up).left)))
        undone = mix_up.undo(self.torque)  # the motion stays, and so do its causes
        left = [unexplained(undone[:, j], self.causes, j, self.scale) for j in mix_up.joints]
        return float(np.sum(np.log(self.left[list(mix_up.joints)] / left)))

    def mix_ups(self) -> Iterator[MixUp]:
        """All that are tried: columns of joints that turn are not exchanged with those of joints that slide."""
        kinds = [joint.kind for joint in self.robot.independent_joints]
        pairs = [(i, j) for i in self.joints for j in self.joints if i < j and kinds[i] == kinds[j]]
        yield from (MixUp("swapped sign", "torque", (j,)) for j in self.joints)
        yield from (MixUp("exchanged", "torque", pair) for pair in pairs)
        if self.causes.rigid is None:
            return
        yield from (MixUp("swapped sign", "position", (j,)) for j in self.joints)
        for pair in pairs if len(self.joints) <= _MOST_PAIRED else []:
            yield MixUp("exchanged", "position", pair)
            yield MixUp("exchanged", "both", pair)
        turning = tuple(j for j, joint in enumerate(self.robot.independent_joints) if joint.kind == "revolute")
        if not _is_possible(self.robot, self.motion):
            yield MixUp(DEGREES, "position", turning)
        radians = MixUp(RADIANS, "position", turning)
        if _is_possible(self.robot, Motion(*(radians.undo(values) for values in motion_arrays(self.motion)))):
            yield radians


def motion_arrays(motion: Motion) -> tuple[Array, Array, Array]:
    """Its q, dq, ddq."""
    return motion.q, motion.dq, motion.ddq


def _is_possible(robot: Robot, motion: Motion) -> bool:
    """Return whether a motion keeps the robot's limits, nearly."""
    low, high = robot.position_limits.T
    margin = _LIMIT_MARGIN * (high - low)
    inside = np.all((motion.q > low - margin) & (motion.q < high + margin))
    return bool(inside and np.all(np.abs(motion.dq) < _SPEED_MARGIN * robot.velocity_limits))
