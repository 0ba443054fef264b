"""How each link moves, in the base frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics.jacobians import Jacobians, coordinate_matrix
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """The motion of the links' frames over samples, vectors in the base frame, shape (n_samples, n_links, 3).

    Attributes:
        jacobians: where they are, and what each joint does to them.
        omega, alpha: angular velocity [rad/s] and acceleration [rad/s²].
        velocity, acceleration: of the origins [m/s, m/s²].
    """

    jacobians: Jacobians
    omega: Array
    alpha: Array
    velocity: Array
    acceleration: Array

    @staticmethod
    def of(robot: Robot, q: Array, dq: Array, ddq: Array) -> BaseMotion:
        """The motion at checked positions, velocities and accelerations, shape (n_samples, n_joints)."""
        jacobians, folded = Jacobians.of(robot, q), coordinate_matrix(robot)
        speeds, speedups = dq @ folded.T, ddq @ folded.T
        omega, alpha, velocity, acceleration = (np.zeros_like(jacobians.axes) for _ in range(4))
        for i, joint in enumerate(robot.joints):
            if joint.parent >= 0:
                carrier, arm = joint.parent, jacobians.origins[:, i] - jacobians.origins[:, joint.parent]
                omega[:, i], alpha[:, i] = omega[:, carrier], alpha[:, carrier]
                carried = np.cross(omega[:, i], arm)
                velocity[:, i] = velocity[:, carrier] + carried
                acceleration[:, i] = acceleration[:, carrier] + np.cross(alpha[:, i], arm)
                acceleration[:, i] += np.cross(omega[:, i], carried)
            along, ahead = (jacobians.axes[:, i] * each[:, i, None] for each in (speeds, speedups))
            if joint.kind == "revolute":
                alpha[:, i] += ahead + np.cross(omega[:, i], along)
                omega[:, i] += along
            else:
                acceleration[:, i] += ahead + 2.0 * np.cross(omega[:, i], along)
                velocity[:, i] += along
        return BaseMotion(jacobians, omega, alpha, velocity, acceleration)

    def in_link(self, link: int, vectors: Array) -> Array:
        """Vectors of the base frame (n_samples, ..., 3) in a link's frame."""
        return np.einsum("kba,k...b->k...a", self.jacobians.rotations[:, link], vectors)
