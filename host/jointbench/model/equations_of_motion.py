"""The equations of motion by Lagrange's and by Kane's method: independent of the Newton-Euler recursion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.model.kinematics import BaseMotion, Jacobians, coordinate_matrix
from jointbench.model.motion_arrays import motion_arrays, parameter_vector
from jointbench.model.robot import Robot

_CHUNK_BYTES = 64e6  # of the largest intermediate array


@dataclass(frozen=True, eq=False)
class EquationsOfMotion:
    """M, C and g over samples.

    Attributes:
        mass_matrix: M [kg·m², kg for prismatic joints], shape (n_samples, n_joints, n_joints).
        coriolis_matrix: C by Christoffel's symbols, so that dM/dt - 2 C is skew, shape as M.
        gravity_torques: g [N·m or N], shape (n_samples, n_joints).
    """

    mass_matrix: Array
    coriolis_matrix: Array
    gravity_torques: Array

    def torques(self, dq: Array, ddq: Array) -> Array:
        """M ddq + C dq + g [N·m or N], shape (n_samples, n_joints)."""
        accelerated = np.einsum("kij,kj->ki", self.mass_matrix, ddq)
        return accelerated + np.einsum("kij,kj->ki", self.coriolis_matrix, dq) + self.gravity_torques


def equations_of_motion(robot: Robot, q: ArrayLike, dq: ArrayLike, standard_parameters: ArrayLike) -> EquationsOfMotion:
    """Mass matrix, Coriolis matrix and gravity torques of the links, without friction and rotor inertia.

    M = Σ JᵀIJ over the links; C_ij = ½ Σ_m (∂M_ij/∂q_m + ∂M_im/∂q_j - ∂M_jm/∂q_i) dq_m; g = -Σ Jᵀ (weight).

    Args:
        robot: the kinematic tree.
        q, dq: joint position [rad] and velocity [rad/s] (m, m/s), shape (n_samples, n_joints).
        standard_parameters: ten per link in link order, shape (10 * n_links,).

    Returns:
        M, C and g.

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Siciliano et al., Robotics: Modelling, Planning and Control, 2009, sec. 7.1; the Jacobians' derivatives are
    written out by which joint carries which.
    """
    q, dq = motion_arrays(robot, q=q, dq=dq)
    links = parameter_vector(robot, standard_parameters).reshape(-1, 10)
    folded = coordinate_matrix(robot)
    chunk = max(1, int(_CHUNK_BYTES / (8 * 6 * robot.n_links**2)))
    parts = [_equations(robot, q[k : k + chunk], dq[k : k + chunk] @ folded.T, links) for k in range(0, len(q), chunk)]
    if not parts:
        nothing = np.zeros((0, robot.n_joints, robot.n_joints))
        return EquationsOfMotion(nothing, nothing, np.zeros((0, robot.n_joints)))
    mass, coriolis, gravity = (np.concatenate(each) for each in zip(*parts, strict=True))
    return EquationsOfMotion(folded.T @ mass @ folded, folded.T @ coriolis @ folded, gravity @ folded)


def _equations(robot: Robot, q: Array, dq: Array, links: Array) -> tuple[Array, Array, Array]:
    """M, C and g of all joints, whether they follow others or not."""
    jacobians, n = Jacobians.of(robot, q), robot.n_links
    mass, slope, gravity = np.zeros((len(q), n, n)), np.zeros((len(q), n, n, n)), np.zeros((len(q), n))
    for i, link in enumerate(links):
        inertia = _spatial_inertia(jacobians.rotations[:, i], link)
        linear = jacobians.linear(i, jacobians.origins[:, i])
        twist = np.concatenate([jacobians.angular(i), linear], axis=2)  # (samples, joints, 6)
        twist_slope = np.concatenate([jacobians.angular_derivative(i), jacobians.linear_derivative(i, linear)], axis=3)
        momentum = twist @ inertia
        mass += momentum @ twist.transpose(0, 2, 1)
        gravity -= momentum[:, :, 3:] @ np.array(robot.gravity)  # of a base that accelerates as the weight pulls
        moved = np.einsum("kjmx,kix->kjim", twist_slope, momentum)
        slope += moved + moved.transpose(0, 2, 1, 3) + _turned(jacobians, i, inertia, twist)
    christoffel = 0.5 * (slope + slope.transpose(0, 1, 3, 2) - slope.transpose(0, 3, 1, 2))
    return mass, np.einsum("kijm,km->kij", christoffel, dq), gravity


def _turned(jacobians: Jacobians, link: int, inertia: Array, twist: Array) -> Array:
    """Derivative of M by the link's own rotation, [k, j, i, m]: the inertia turns with it."""
    # With the inertia held, each twist turns the other way: X(z) = diag(z×, z×), dI = X I - I X.
    axes = jacobians.angular(link)  # zero where joint m does not turn the link
    against = np.concatenate(
        [np.cross(twist[:, :, None, :3], axes[:, None]), np.cross(twist[:, :, None, 3:], axes[:, None])], axis=3
    )
    one = np.einsum("kjmx,kxy,kiy->kjim", against, inertia, twist)
    return one + one.transpose(0, 2, 1, 3)


def _spatial_inertia(rotation: Array, link: Array) -> Array:
    """[[I, mc×], [-mc×, m E]] about the link frame's origin in the axes of the base, shape (n_samples, 6, 6)."""
    about_origin = link[[[4, 5, 6], [5, 7, 8], [6, 8, 9]]]
    x, y, z = (rotation @ link[1:4]).T
    zero = np.zeros_like(x)
    moment = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    inertia = np.zeros((len(rotation), 6, 6))
    inertia[:, :3, :3] = rotation @ about_origin @ rotation.transpose(0, 2, 1)
    inertia[:, :3, 3:], inertia[:, 3:, :3] = moment, -moment
    inertia[:, 3:, 3:] = link[0] * np.eye(3)
    return inertia


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
