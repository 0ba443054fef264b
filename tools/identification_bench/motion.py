"""A long motion of an arm, its torques, and the rows of them."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, base_parameters, model_columns
from jointbench.dynamics.drive_columns import drive_parameter_names
from jointbench.identification.rows import MotionRows
from jointbench.memory_mapping import chunks
from jointbench.robot import Robot, load_robot

MANY_ROBOT, LONG_ROBOT = "tx40", "cobot6"
"""Of the library's six-axis arms the one with at least 60 base parameters of links and drives, and one with boards."""

SAMPLES = 100_000
PERIOD_S = 1e-3
_FREQUENCIES_HZ = np.array([0.05, 0.13, 0.21, 0.34, 0.55])
"""None a multiple of another: the motion does not come again within hours."""

_NOISE = 0.3
_CHUNK = 1000
"""Samples that are made together: of more, the making would be what takes the most memory."""


class Swings:
    """Each joint swings with five frequencies about its home."""

    def __init__(self, robot: Robot, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._home = np.array(robot.home)
        self._amplitudes = rng.normal(scale=0.25, size=(robot.n_joints, len(_FREQUENCIES_HZ)))
        self._phases = rng.uniform(0.0, 2.0 * np.pi, self._amplitudes.shape)

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at these times [s], shape (n, n_joints) each."""
        rate = 2.0 * np.pi * _FREQUENCIES_HZ
        angle = rate * time[:, None, None] + self._phases
        sine, cosine = self._amplitudes * np.sin(angle), self._amplitudes * np.cos(angle)
        return self._home + sine.sum(axis=2), (rate * cosine).sum(axis=2), -(rate**2 * sine).sum(axis=2)


def true_parameters(robot: Robot, seed: int) -> Array:
    """Full parameters of links and drives: the robot's own where its file has inertias, else made up."""
    rng = np.random.default_rng(seed)
    links, drives = robot.standard_parameters, rng.uniform(0.2, 2.0, len(drive_parameter_names(robot)))
    return np.concatenate([rng.normal(size=10 * robot.n_links) if links is None else links, drives])


def torque_of(robot: Robot, swings: Swings, parameters: Array, time: Array) -> Array:
    """Torque at these times without noise [N·m], shape (n, n_joints)."""
    columns, _ = model_columns(robot, *swings.at(time))
    return (columns @ parameters).reshape(len(time), -1)


def many_rows(seed: int, samples: int = SAMPLES) -> tuple[MotionRows, Array]:
    """Rows of a motion that is known, each joint with a noise of its own, and the parameters behind them."""
    robot = load_robot(MANY_ROBOT)
    base: BaseParameters = base_parameters(robot)
    swings, parameters = Swings(robot, seed), true_parameters(robot, seed)
    rng = np.random.default_rng(seed)
    q, dq, ddq, torque = np.empty((4, samples, robot.n_joints))
    for part in chunks(samples, _CHUNK):
        time = PERIOD_S * np.arange(part.start, part.stop, dtype=np.float64)
        q[part], dq[part], ddq[part] = swings.at(time)
        noise = rng.normal(scale=_NOISE, size=q[part].shape) / np.arange(1, robot.n_joints + 1)
        torque[part] = torque_of(robot, swings, parameters, time) + noise
    return MotionRows(base, q, dq, ddq, torque), base.group(parameters)
