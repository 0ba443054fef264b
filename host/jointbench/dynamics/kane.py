"""Inverse dynamics by Kane's method: forces and moments projected on partial velocities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.base_motion import BaseMotion
from jointbench.dynamics.jacobians import coordinate_matrix
from jointbench.dynamics.shapes import motion_arrays, parameter_vector
from jointbench.robot import Robot


def kane_dynamics(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, standard_parameters: ArrayLike) -> Array:
    """Joint torques that a motion needs, without friction and rotor inertia, from generalised inertia forces.

    With the partial velocities v_r = ∂v/∂dq_r of each centre of mass and the partial angular velocities omega_r of
    each link: tau_r = Σ v_r · m (a - g) + omega_r · (I alpha + omega × I omega), with I about the centre of mass.

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        standard_parameters: ten per link in link order, shape (10 * n_links,); a link without mass has no centre of
            mass, and its first moment must be zero.

    Returns:
        tau [N·m, N for prismatic joints], shape (n_samples, n_joints).

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Kane & Levinson, Dynamics: Theory and Applications, 1985, ch. 4 and 6.
    """
    q, dq, ddq = motion_arrays(robot, q=q, dq=dq, ddq=ddq)
    links = parameter_vector(robot, standard_parameters).reshape(-1, 10)
    motion = BaseMotion.of(robot, q, dq, ddq)
    frames, torques = motion.jacobians, np.zeros((len(q), robot.n_links))
    for i, link in enumerate(links):
        mass = link[0]
        center = link[1:4] / mass if mass else np.zeros(3)
        about_origin = link[[[4, 5, 6], [5, 7, 8], [6, 8, 9]]]
        about_center = about_origin - mass * (center @ center * np.eye(3) - np.outer(center, center))
        rotation, omega, alpha = frames.rotations[:, i], motion.omega[:, i], motion.alpha[:, i]
        inertia = rotation @ about_center @ rotation.transpose(0, 2, 1)
        spun = np.einsum("kab,kb->ka", inertia, omega)
        moment = np.einsum("kab,kb->ka", inertia, alpha) + np.cross(omega, spun)

        arm = np.einsum("kab,b->ka", rotation, center)
        acceleration = motion.acceleration[:, i] + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        force = mass * (acceleration - np.array(robot.gravity))

        partial_omega, partial_velocity = frames.angular(i), frames.linear(i, frames.origins[:, i] + arm)
        torques += np.einsum("kja,ka->kj", partial_omega, moment) + np.einsum("kja,ka->kj", partial_velocity, force)
    return torques @ coordinate_matrix(robot)
