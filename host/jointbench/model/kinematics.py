"""Kinematics: poses of the links, their Jacobians with derivatives, and their motion in the base frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array, Vector3
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays


def forward_kinematics(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """Orientation and origin of every link frame in the base frame.

    Args:
        robot: the kinematic tree.
        q: joint position [rad; m for prismatic joints], shape (n_samples, n_joints).

    Returns:
        rotations, shape (n_samples, n_links, 3, 3), whose columns are the frames' axes in the base frame, and
        origins [m], shape (n_samples, n_links, 3).

    Raises:
        ShapeError: q does not match the robot.

    Source: Craig, Introduction to Robotics, 1986, ch. 3; rotation about any axis by Rodrigues' formula.
    """
    (q,) = motion_arrays(robot, q=q)
    rotations = np.empty((q.shape[0], robot.n_links, 3, 3))
    origins = np.empty((q.shape[0], robot.n_links, 3))
    positions = robot.all_positions(q)
    for i, joint in enumerate(robot.joints):
        fixed_rotation, fixed_origin = joint.placement
        local_rotation = np.broadcast_to(fixed_rotation, (q.shape[0], 3, 3))
        local_origin = np.broadcast_to(fixed_origin, (q.shape[0], 3))
        if joint.kind == "revolute":
            local_rotation = local_rotation @ rotations_about(joint.axis, positions[:, i])
        else:
            local_origin = local_origin + positions[:, i, None] * (fixed_rotation @ joint.axis)
        if joint.parent < 0:
            rotations[:, i], origins[:, i] = local_rotation, local_origin
        else:
            carrier = rotations[:, joint.parent]
            rotations[:, i] = carrier @ local_rotation
            origins[:, i] = origins[:, joint.parent] + np.einsum("kab,kb->ka", carrier, local_origin)
    return rotations, origins


def rotations_about(axis: Vector3, angle: Array) -> Array:
    """Rotation matrices about an axis of length 1 by angles [rad], shape (n_samples, 3, 3).

    R = a aᵀ + cos(angle) (E - a aᵀ) + sin(angle) [a]×
    """
    x, y, z = axis
    parallel = np.outer(axis, axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    cosine, sine = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    return parallel + cosine * (np.eye(3) - parallel) + sine * cross


@dataclass(frozen=True, eq=False)
class Jacobians:
    """Frames of all links over samples and their velocities per joint velocity; all vectors in the base frame.

    Attributes:
        rotations, origins: of the links' frames, shape (n_samples, n_links, 3, 3) and (n_samples, n_links, 3).
        axes: of the joints, shape (n_samples, n_links, 3).
        revolute: mask of the joints that turn, shape (n_links,).
        moves: mask where joint j moves link i, shape (n_links, n_links).
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
        lever_velocity = np.cross(self.axes, point[:, None] - self.origins)
        return np.where(self.revolute[:, None], lever_velocity, self.axes) * self.moves[link][:, None]

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
            linear: its result.
        """
        on_link = self.moves[link][:, None] & self.moves[link][None, :]
        carried = on_link & self.moves & self.revolute[None, :]  # m carries j, or is it
        carrying = on_link & self.moves.T & ~np.eye(len(self.moves), dtype=np.bool_) & self.revolute[:, None]
        carrier_terms = np.cross(self.axes[:, None], linear[:, :, None]) * carried[..., None]
        return carrier_terms + np.cross(self.axes[:, :, None], linear[:, None]) * carrying[..., None]


def coordinate_matrix(robot: Robot) -> Array:
    """F of joint velocities = F @ velocities of the independent joints, shape (n_links, n_joints)."""
    index, factor, _ = robot.coordinates
    matrix = np.zeros((robot.n_links, robot.n_joints))
    matrix[np.arange(robot.n_links), index] = factor
    return matrix


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """The motion of the links' frames over samples, vectors in the base frame, shape (n_samples, n_links, 3).

    Attributes:
        jacobians: of the links.
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
        jacobians, coordinates = Jacobians.of(robot, q), coordinate_matrix(robot)
        link_rates, link_rate_changes = dq @ coordinates.T, ddq @ coordinates.T
        omega, alpha, velocity, acceleration = (np.zeros_like(jacobians.axes) for _ in range(4))
        for i, joint in enumerate(robot.joints):
            if joint.parent >= 0:
                carrier, arm = joint.parent, jacobians.origins[:, i] - jacobians.origins[:, joint.parent]
                omega[:, i], alpha[:, i] = omega[:, carrier], alpha[:, carrier]
                carried = np.cross(omega[:, i], arm)
                velocity[:, i] = velocity[:, carrier] + carried
                acceleration[:, i] = acceleration[:, carrier] + np.cross(alpha[:, i], arm)
                acceleration[:, i] += np.cross(omega[:, i], carried)
            joint_velocity, joint_acceleration = (
                jacobians.axes[:, i] * rates[:, i, None] for rates in (link_rates, link_rate_changes)
            )
            if joint.kind == "revolute":
                alpha[:, i] += joint_acceleration + np.cross(omega[:, i], joint_velocity)
                omega[:, i] += joint_velocity
            else:
                acceleration[:, i] += joint_acceleration + 2.0 * np.cross(omega[:, i], joint_velocity)
                velocity[:, i] += joint_velocity
        return BaseMotion(jacobians, omega, alpha, velocity, acceleration)

    def in_link(self, link: int, vectors: Array) -> Array:
        """Vectors of the base frame (n_samples, ..., 3) in a link's frame."""
        return np.einsum("kba,k...b->k...a", self.jacobians.rotations[:, link], vectors)
