"""The largest motor torques of a motion as it goes on, joint by joint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.link.identity import Facts
from jointbench.robot import Robot
from jointwire import Frame, stack_samples


class Peaks:
    """Collects the DATA of a bench's boards, and says what was largest in it.

    A joint with a motor of its own needs that one's samples alone; of joints that share motors the samples of the same
    tick of the trajectory belong together.
    """

    def __init__(self, robot: Robot, facts: Sequence[Facts]) -> None:
        """`facts`: of each joint's board."""
        self._names = robot.joint_names
        self._facts = facts
        self._constants = [drive.torque_constant for drive in robot.drives]
        self._matrix = robot.transmission_matrix
        self._blocks: dict[int, list[Frame]] = {}

    def add(self, index: int, frame: Frame) -> None:
        """Take a DATA frame of a joint's board."""
        self._blocks.setdefault(index, []).append(frame)

    def take(self) -> dict[str, float]:
        """Largest magnitude of the torque at each joint since the last time, by joint [N·m or N]."""
        heard = {index: self._torque(index, frames) for index, frames in self._blocks.items()}
        heard = {index: torque for index, torque in heard.items() if len(torque[1])}
        self._blocks.clear()
        peaks: dict[str, float] = {}
        for joint, name in enumerate(self._names):
            motors = np.flatnonzero(self._matrix[:, joint])
            if all(motor in heard for motor in motors):
                torque = self._at_joint(joint, {int(motor): heard[int(motor)] for motor in motors})
                peaks |= {name: float(np.abs(torque).max())} if len(torque) else {}
        return peaks

    def _at_joint(self, joint: int, motors: dict[int, tuple[NDArray[np.int64], Array]]) -> Array:
        if len(motors) == 1:
            ((motor, (_, torque)),) = motors.items()
            return self._matrix[motor, joint] * torque
        common = reduce(np.intersect1d, (ticks[ticks >= 0] for ticks, _ in motors.values()))
        total = np.zeros(len(common))
        for motor, (ticks, torque) in motors.items():
            at = np.intersect1d(ticks, common, return_indices=True)[1]
            total += self._matrix[motor, joint] * torque[at]
        return total

    def _torque(self, index: int, frames: Sequence[Frame]) -> tuple[NDArray[np.int64], Array]:
        """Ticks of the trajectory, -1 while nothing plays, and the motor's torque at them [N·m]."""
        facts = self._facts[index]
        currents = stack_samples(frames).get("motor_current")
        if currents is None or not facts.has_motor:
            return np.empty(0, dtype=np.int64), np.empty(0)
        every = 1 << facts.registers["stream.every_motor_current"]
        ticks = np.concatenate([_due(frame, every) for frame in frames])
        scale, zero = facts.si("current.scale"), facts.registers["current.zero"]
        return ticks, np.asarray((currents - float(zero)) * (scale * self._constants[index]), dtype=np.float64)


def _due(frame: Frame, every: int) -> NDArray[np.int64]:
    within = np.arange(frame.body.count)
    within = within[(frame.body.first_tick + within) % every == 0]
    return within + frame.body.play_tick if frame.body.play_tick >= 0 else np.full(len(within), -1)
