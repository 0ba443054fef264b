"""Kinetic and potential energy, from the base frame: independent of the recursions in the links' frames."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.base_motion import BaseMotion
from jointbench.dynamics.body_columns import energy_columns
from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.dynamics.shapes import motion_arrays, parameter_vector
from jointbench.robot import Robot


def energy(robot: Robot, q: ArrayLike, dq: ArrayLike, standard_parameters: ArrayLike) -> tuple[Array, Array]:
    """Kinetic and potential energy of the links, without rotors.

    T = Σ ½ m v·v + v·(omega × mc) + ½ omega·I omega,  U = -Σ g·(m p + mc), all vectors in the base frame.

    Args:
        robot: the kinematic tree.
        q, dq: joint position [rad] and velocity [rad/s] (m, m/s), shape (n_samples, n_joints).
        standard_parameters: ten per link in link order, shape (10 * n_links,).

    Returns:
        T and U [J], shape (n_samples,) each; U is zero with all mass at the base frame's origin.

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.
    """
    q, dq = motion_arrays(robot, q=q, dq=dq)
    links = parameter_vector(robot, standard_parameters).reshape(-1, 10)
    rotations, origins = forward_kinematics(robot, q)
    angular = np.zeros_like(origins)
    linear = np.zeros_like(origins)
    index, factor, _ = robot.coordinates
    velocities = dq[:, index] * factor
    for i, joint in enumerate(robot.joints):
        if joint.parent >= 0:
            angular[:, i] = angular[:, joint.parent]
            lever = origins[:, i] - origins[:, joint.parent]
            linear[:, i] = linear[:, joint.parent] + np.cross(angular[:, joint.parent], lever)
        along = (rotations[:, i] @ joint.axis) * velocities[:, i, None]
        if joint.kind == "revolute":
            angular[:, i] += along
        else:
            linear[:, i] += along
    mass = links[:, 0]
    first_moment = np.einsum("kiab,ib->kia", rotations, links[:, 1:4])
    spin = np.einsum("kiba,kib->kia", rotations, angular)
    inertia = links[:, [[4, 5, 6], [5, 7, 8], [6, 8, 9]]]
    kinetic = (
        0.5 * np.einsum("i,kia,kia->k", mass, linear, linear)
        + np.einsum("kia,kia->k", linear, np.cross(angular, first_moment))
        + 0.5 * np.einsum("kia,iab,kib->k", spin, inertia, spin)
    )
    heights = np.einsum("i,kia->ka", mass, origins) + first_moment.sum(axis=1)
    return kinetic, -heights @ np.array(robot.gravity)


def energy_regressor(robot: Robot, q: ArrayLike, dq: ArrayLike) -> tuple[Array, Array]:
    """Regressors of the kinetic and the potential energy of the links: T = K(q, dq) @ pi, U = V(q) @ pi.

    Args:
        robot: the kinematic tree.
        q, dq: joint position [rad] and velocity [rad/s] (m, m/s), shape (n_samples, n_joints).

    Returns:
        K and V, shape (n_samples, 10 * n_links) each; U is zero with all mass at the base frame's origin.

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Gautier & Khalil, ICRA 1988 (the energy model).
    """
    q, dq = motion_arrays(robot, q=q, dq=dq)
    motion = BaseMotion.of(robot, q, dq, np.zeros_like(dq))
    kinetic, potential = np.zeros((2, len(q), robot.n_links, 10))
    for i in range(robot.n_links):
        kinetic[:, i] = energy_columns(motion.in_link(i, motion.omega[:, i]), motion.in_link(i, motion.velocity[:, i]))
        potential[:, i, 0] = -motion.jacobians.origins[:, i] @ np.array(robot.gravity)
        potential[:, i, 1:4] = -np.array(robot.gravity) @ motion.jacobians.rotations[:, i]
    return kinetic.reshape(len(q), -1), potential.reshape(len(q), -1)
