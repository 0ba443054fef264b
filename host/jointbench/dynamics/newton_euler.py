"""Inverse dynamics by the Newton-Euler recursion."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.dynamics.motion import link_motions
from jointbench.dynamics.shapes import motion_arrays, parameter_vector
from jointbench.dynamics.vectors import cross, rotate
from jointbench.robot import Array, Robot


def inverse_dynamics(
    robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, standard_parameters: ArrayLike
) -> Array:
    """Joint torques that a motion needs, without friction and rotor inertia.

    tau = M(q) ddq + C(q, dq) dq + g(q), by forces and moments summed from the tips to the base.

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        standard_parameters: ten per link in link order, shape (10 * n_links,), as `robot.standard_parameters`.

    Returns:
        tau [N·m, N for prismatic joints], shape (n_samples, n_joints).

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980, moments taken about the link frame.
    """
    q, dq, ddq = motion_arrays(robot, q=q, dq=dq, ddq=ddq)
    links = parameter_vector(robot, standard_parameters).reshape(-1, 10)
    motions = list(link_motions(robot, q, dq, ddq))
    forces: list[Array] = []
    moments: list[Array] = []
    for motion, link in zip(motions, links, strict=True):
        mass, first_moment, inertia = link[0], link[1:4, None], _symmetric(link[4:])
        omega, alpha, felt = motion.velocity, motion.acceleration, motion.origin_acceleration
        forces.append(mass * felt + cross(alpha, first_moment) + cross(omega, cross(omega, first_moment)))
        moments.append(cross(first_moment, felt) + rotate(inertia, alpha) + cross(omega, rotate(inertia, omega)))
    torques = np.empty_like(q)
    for i in reversed(range(robot.n_joints)):
        joint, motion = robot.joints[i], motions[i]
        torques[:, i] = moments[i][2] if joint.kind == "revolute" else forces[i][2]
        if joint.parent >= 0:
            force = motion.into_parent(forces[i])
            forces[joint.parent] += force
            moments[joint.parent] += motion.into_parent(moments[i]) + cross(motion.origin, force)
    return torques


def gravity_torques(robot: Robot, q: ArrayLike, standard_parameters: ArrayLike) -> Array:
    """Joint torques that hold the robot still at q [rad or m], shapes as in `inverse_dynamics`.

    Raises:
        ShapeError: the arrays do not match the robot.
    """
    (q,) = motion_arrays(robot, q=q)
    return inverse_dynamics(robot, q, np.zeros_like(q), np.zeros_like(q), standard_parameters)


def _symmetric(upper: Array) -> Array:
    """The (3, 3) matrix of Ixx, Ixy, Ixz, Iyy, Iyz, Izz."""
    xx, xy, xz, yy, yz, zz = upper
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
