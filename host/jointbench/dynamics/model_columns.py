"""The whole torque model, linear in its parameters: links, drives and compensations side by side."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.compensation_columns import compensation_columns, compensation_parameter_names
from jointbench.dynamics.drive_columns import (
    Sign,
    drive_columns,
    drive_parameter_names,
    known_drive_parameters,
)
from jointbench.dynamics.regressor import regressor
from jointbench.robot import PARAMETER_NAMES, Robot


def model_columns(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    sign_velocity: ArrayLike | None = None,
    *,
    sign: Sign = np.sign,
) -> tuple[Array, tuple[str, ...]]:
    """Regressor of links, drives and compensations, [W | D | C], and the names of its columns.

    Args:
        robot: the robot; rows of its passive joints are zero.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).
        sign_velocity, sign: as in `drive_columns`.

    Returns:
        [W | D | C], shape (n_samples * n_joints, 10 * n_links + n_drive_parameters + n_compensation_parameters), rows
        as in `regressor`; and names such as "j1.m", "j1.mcx", …, "j6.Izz", "j1.rotor_inertia", …, "wrist.coulomb",
        "elbow_spring.stiffness".

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.
        BadCompensation: as of `compensation_columns`.
    """
    links = regressor(robot, q, dq, ddq)
    drives, _ = drive_columns(robot, dq, ddq, sign_velocity, sign=sign)
    if not robot.compensations:
        return np.hstack([links, drives]), model_parameter_names(robot)
    compensations, _ = compensation_columns(robot, q, dq, ddq)
    return np.hstack([links, drives, compensations]), model_parameter_names(robot)


def model_parameter_names(robot: Robot, *, drives: bool = True) -> tuple[str, ...]:
    """Names of the columns of `model_columns`; those of the links alone where `drives` is False."""
    links = tuple(f"{joint.name}.{parameter}" for joint in robot.joints for parameter in PARAMETER_NAMES)
    return links + drive_parameter_names(robot) + compensation_parameter_names(robot) if drives else links


def known_beside_links(robot: Robot) -> Array:
    """Values of the parameters behind the links' as far as the robot's drives give them, nan where not known.

    Returns:
        Values [SI], shape (n_drive_parameters + n_compensation_parameters,).
    """
    unknown = np.full(len(compensation_parameter_names(robot)), np.nan)
    return np.concatenate([known_drive_parameters(robot), unknown])
