"""How the links' frames move in the base frame, joint by joint: Jacobians and their derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class Jacobians:
    """Frames of all links over samples, and what each joint does to them; all vectors in the base frame.

    Attributes:
        rotations, origins: of the links' frames, shape (n_samples, n_links, 3, 3) and (n_samples, n_links, 3).
        axes: of the joints, shape (n_samples, n_links, 3).
        revolute: which joints turn, shape (n_links,).
        moves: whether joint j moves link i, shape (n_links, n_links).
    """

    rotations: Array
    origins: Array
    axes: Array
    revolute: NDArray[np.bool_]
    moves: NDArray[np.bool_]

    @staticmethod
    def of(robot: Robot, q: Array) -> Jacobians:
        """Jacobians at checked positions [rad or m], shape (n_samples, n_joints)."""
        rotations, origins = forward_kinematics(robot, q)
        axes = np.einsum("kiab,ib->kia", rotations, [joint.axis for joint in robot.joints])
        moves = np.eye(robot.n_links, dtype=np.bool_)
        for i, joint in enumerate(robot.joints):
            if joint.parent >= 0:
                moves[i] |= moves[joint.parent]
        revolute = np.array([joint.kind == "revolute" for joint in robot.joints])
        return Jacobians(rotations, origins, axes, revolute, moves)

    def angular(self, link: int) -> Array:
        """Angular velocity of a link per joint velocity, shape (n_samples, n_links, 3)."""
        return self.axes * (self.revolute & self.moves[link])[:, None]

    def linear(self, link: int, point: Array) -> Array:
        """Velocity of a point of a link per joint velocity, shape (n_samples, n_links, 3).

        z_j × (point - origin_j) of a joint that turns, z_j of one that slides.

        Args:
            link: that the point belongs to.
            point: in the base frame [m], shape (n_samples, 3).
        """
        turned = np.cross(self.axes, point[:, None] - self.origins)
        return np.where(self.revolute[:, None], turned, self.axes) * self.moves[link][:, None]

    def angular_derivative(self, link: int) -> Array:
        """Derivative of `angular` by the joint positions, [k, j, m]: of joint j by position m, (…, 3).

        z_m × z_j where joint m carries joint j.
        """
        carried = self.moves & self.moves[link][:, None] & self.revolute[:, None] & self.revolute[None, :]
        return np.cross(self.axes[:, None], self.axes[:, :, None]) * carried[..., None]

    def linear_derivative(self, link: int, linear: Array) -> Array:
        """Derivative of `linear` by the joint positions, [k, j, m], (…, 3).

        z_m × J_j where joint m carries joint j (and turns), z_j × J_m where j carries m (and turns).

        Args:
            link: as for `linear`.
            linear: what that gave.
        """
        on_link = self.moves[link][:, None] & self.moves[link][None, :]
        below = on_link & self.moves & self.revolute[None, :]  # m carries j, or is it
        above = on_link & self.moves.T & ~np.eye(len(self.moves), dtype=np.bool_) & self.revolute[:, None]
        by_carrier = np.cross(self.axes[:, None], linear[:, :, None]) * below[..., None]
        return by_carrier + np.cross(self.axes[:, :, None], linear[:, None]) * above[..., None]


def coordinate_matrix(robot: Robot) -> Array:
    """F of joint velocities = F @ velocities of the independent joints, shape (n_links, n_joints)."""
    index, factor, _ = robot.coordinates
    matrix = np.zeros((robot.n_links, robot.n_joints))
    matrix[np.arange(robot.n_links), index] = factor
    return matrix
