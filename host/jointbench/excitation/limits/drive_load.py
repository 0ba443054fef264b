"""What the drives need of the joint torque, as far as it is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import drive_columns, drive_parameter_names
from jointbench.errors import ShapeError
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class DriveLoad:
    """tau = inertia @ ddq + viscous @ dq + offset, and ± coulomb at most.

    Attributes:
        inertia, viscous: shape (n_joints, n_joints).
        coulomb: largest magnitude, shape (n_joints,).
        offset: shape (n_joints,).
    """

    inertia: Array
    viscous: Array
    coulomb: Array
    offset: Array

    def smooth(self, dq: Array, ddq: Array) -> Array:
        """All of it but Coulomb's friction [N·m or N], shape (n_samples, n_joints)."""
        return ddq @ self.inertia.T + dq @ self.viscous.T + self.offset

    @staticmethod
    def known(robot: Robot) -> DriveLoad:
        """What the robot itself says: the rotors' inertias and the friction that its drives give."""
        train = robot.drive_train
        return DriveLoad(train.known_inertia, train.known_viscous, train.known_coulomb, np.zeros(robot.n_joints))

    @staticmethod
    def fitted(robot: Robot, parameters: Array) -> DriveLoad:
        """What parameters of an earlier fit say, in the order of `drive_parameter_names`.

        Raises:
            ShapeError: there are more or fewer of them.
        """
        names = drive_parameter_names(robot)
        parameters = np.asarray(parameters, dtype=np.float64)
        if parameters.shape != (len(names),):
            raise ShapeError(
                f"drive_parameters has shape {parameters.shape}; robot {robot.name!r} has {len(names)} of them: "
                f"{', '.join(names)}"
            )
        n = robot.n_joints
        one, still = np.eye(n), np.zeros((n, n))

        def torque(dq: Array, ddq: Array) -> Array:
            return (drive_columns(robot, dq, ddq, sign=np.zeros_like)[0] @ parameters).reshape(n, n)

        offset = torque(still, still)[0]
        rubbing = np.array([name.endswith(".coulomb") for name in names]) * np.abs(parameters)
        columns, _ = drive_columns(robot, one[:1], still[:1], sign=np.ones_like)
        return DriveLoad(
            inertia=(torque(still, one) - offset).T,
            viscous=(torque(one, still) - offset).T,
            coulomb=np.abs(columns) @ rubbing,
            offset=offset,
        )
