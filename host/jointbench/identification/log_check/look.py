"""A look at a log with one of its columns' signs, order or units undone: how much of each torque is explained then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.log_check.explained import Causes, unexplained
from jointbench.robot import Robot
from jointbench.signals import Motion

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
        """How much better undoing it makes the explanation: the sum over joints of log(left before / left after)."""
        if mix_up.of != "torque":
            return float(np.sum(np.log(self.left / self.without(mix_up).left)))
        undone = mix_up.undo(self.torque)  # the motion stays, and so do its causes
        left = [unexplained(undone[:, j], self.causes, j, self.scale) for j in mix_up.joints]
        return float(np.sum(np.log(self.left[list(mix_up.joints)] / left)))

    def mix_ups(self) -> Iterator[MixUp]:
        """All that are tried."""
        pairs = [(i, j) for i in self.joints for j in self.joints if i < j]
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
    """Whether a motion keeps the robot's limits, nearly."""
    low, high = robot.position_limits.T
    margin = _LIMIT_MARGIN * (high - low)
    inside = np.all((motion.q > low - margin) & (motion.q < high + margin))
    return bool(inside and np.all(np.abs(motion.dq) < _SPEED_MARGIN * robot.velocity_limits))
