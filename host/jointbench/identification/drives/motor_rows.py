"""Recordings seen from the motors: each one's current, and what links, drives and a payload ask of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, model_columns, regressor
from jointbench.dynamics.shapes import motion_arrays
from jointbench.identification.drives.drive_signals import DriveSignals
from jointbench.robot import Robot


class MotorRows(NamedTuple):
    """current [A] = (columns @ pi + known) / k; arrays of shape (n, n_motors), `columns` (n, n_motors, rank).

    Attributes:
        current: by the robot's own torque constants [A].
        columns: torque at the motor per base parameter of links and drives [SI].
        known: torque at the motor that the payload asks for [N·m].
        velocity: of the motor [rad/s].
        used: rows in which all joints that the motor turns are away from rest.
    """

    current: Array
    columns: Array
    known: Array
    velocity: Array
    used: NDArray[np.bool_]

    def torque(self, parameters: Array) -> Array:
        """What is asked of the motors [N·m], shape (n, n_motors)."""
        return self.columns @ parameters + self.known


def motor_rows(robot: Robot, base: BaseParameters, signals: DriveSignals, payload: Array) -> MotorRows:
    """Rows of one recording.

    Args:
        robot: without payload, as many motors as joints.
        base: its base parameters with drives.
        signals: the recording; its `motor_torque` is taken back to currents.
        payload: standard parameters that are known to be there in addition, shape (10 * n_links,).

    Raises:
        ShapeError: the arrays do not match the robot.
    """
    train = robot.drive_train
    motion = motion_arrays(robot, q=signals.q, dq=signals.dq, ddq=signals.ddq)
    full, _ = model_columns(robot, *motion)
    columns = signals.rows(base.project(full).reshape(*motion[0].shape, base.rank))
    known = train.motor_torque(signals.rows((regressor(robot, *motion) @ payload).reshape(motion[0].shape)))
    nominal = np.array([drive.torque_constant for drive in train.drives])
    torque = train.motor_torque(signals.motor_torque)
    current = np.divide(torque, nominal, out=np.zeros_like(torque), where=nominal != 0.0)
    still = (~(signals.moving_rows & robot.modelled)).astype(np.float64) @ (train.matrix != 0.0).T > 0.0
    return MotorRows(
        current=current,
        columns=np.einsum("njp,ji->nip", columns, train.inverse),
        known=known,
        velocity=train.motor_motion(signals.rows(motion[1])),
        used=~still & (nominal != 0.0),
    )
