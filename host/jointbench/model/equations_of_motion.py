"""Energy, momentum and equations of motion of the links from the base frame, not by the Newton-Euler recursion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.model.kinematics import BaseMotion, Jacobians, coordinate_matrix, forward_kinematics
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays, parameter_vector

_CHUNK_BYTES = 64e6  # of the largest intermediate array


def force_columns(z: Array, v: Array, omega: Array, alpha: Array, specific_force: Array) -> Array:
    """Columns of z · (mc × a + I alpha + omega × I omega) + v · (m a + alpha × mc + omega × (omega × mc)), (…, 10).

    Args:
        z, v: the unit motion.
        omega, alpha: angular velocity [rad/s] and acceleration [rad/s²].
        specific_force: acceleration of the frame's origin minus gravity [m/s²].
    """
    centrifugal = omega * _dot(v, omega) - v * _dot(omega, omega)
    first = np.cross(v, alpha) + centrifugal + np.cross(specific_force, z)
    return _columns(_dot(v, specific_force), first, _inertia(z, alpha) + _inertia(np.cross(z, omega), omega))


def momentum_columns(z: Array, v: Array, omega: Array, velocity: Array) -> Array:
    """Columns of z · (mc × velocity + I omega) + v · (m velocity + omega × mc), shape (…, 10)."""
    return _columns(_dot(v, velocity), np.cross(velocity, z) + np.cross(v, omega), _inertia(z, omega))


def energy_columns(omega: Array, velocity: Array) -> Array:
    """Columns of the kinetic energy ½ m v·v + v · (omega × mc) + ½ omega · I omega, shape (…, 10)."""
    return _columns(0.5 * _dot(velocity, velocity), np.cross(velocity, omega), 0.5 * _inertia(omega, omega))


def _columns(mass: Array, first_moment: Array, inertia: Array) -> Array:
    shape = np.broadcast_shapes(mass.shape[:-1], first_moment.shape[:-1], inertia.shape[:-1])
    blocks = (mass, first_moment, inertia)
    return np.concatenate([np.broadcast_to(block, (*shape, block.shape[-1])) for block in blocks], axis=-1)


def _inertia(a_vectors: Array, b_vectors: Array) -> Array:
    """Columns of left · I right for Ixx, Ixy, Ixz, Iyy, Iyz, Izz."""
    (a, b, c), (x, y, z) = (np.moveaxis(vectors, -1, 0) for vectors in (a_vectors, b_vectors))
    return np.stack([a * x, a * y + b * x, a * z + c * x, b * y, b * z + c * y, c * z], axis=-1)


def _dot(a: Array, b: Array) -> Array:
    return np.sum(a * b, axis=-1, keepdims=True)


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
        joint_velocity = (rotations[:, i] @ joint.axis) * velocities[:, i, None]
        if joint.kind == "revolute":
            angular[:, i] += joint_velocity
        else:
            linear[:, i] += joint_velocity
    mass = links[:, 0]
    first_moment = np.einsum("kiab,ib->kia", rotations, links[:, 1:4])
    link_omega = np.einsum("kiba,kib->kia", rotations, angular)
    inertia = links[:, [[4, 5, 6], [5, 7, 8], [6, 8, 9]]]
    kinetic = (
        0.5 * np.einsum("i,kia,kia->k", mass, linear, linear)
        + np.einsum("kia,kia->k", linear, np.cross(angular, first_moment))
        + 0.5 * np.einsum("kia,iab,kib->k", link_omega, inertia, link_omega)
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


def momentum_regressor(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Array:
    """Regressor P of the generalised momentum of the links, stacked over samples: M(q) dq = P(q, dq) @ pi.

    With it torques are identified without accelerations: d(P pi)/dt - (what C and g do) = tau.

    Args:
        robot: the kinematic tree; rows of passive joints are zero, and so are columns of neglected links.
        q, dq: joint position [rad] and velocity [rad/s] (m, m/s), shape (n_samples, n_joints).

    Returns:
        P, shape (n_samples * n_joints, 10 * n_links), row k*n_joints + j is joint j at sample k.

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Slotine & Li, Applied Nonlinear Control, 1991, sec. 9.2 (filtered and momentum forms).
    """
    q, dq = motion_arrays(robot, q=q, dq=dq)
    motion = BaseMotion.of(robot, q, dq, np.zeros_like(dq))
    coordinates, rows = coordinate_matrix(robot) * robot.modelled, np.zeros((len(q), robot.n_links, robot.n_links, 10))
    for i in np.flatnonzero(robot.modelled_links).tolist():
        z = motion.jacobians.angular(i)
        v = motion.jacobians.linear(i, motion.jacobians.origins[:, i])
        omega, velocity = motion.omega[:, i, None], motion.velocity[:, i, None]
        rows[:, :, i] = momentum_columns(*(motion.in_link(i, vectors) for vectors in (z, v, omega, velocity)))
    return np.einsum("lj,klic->kjic", coordinates, rows).reshape(len(q) * robot.n_joints, 10 * robot.n_links)


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
    coordinates = coordinate_matrix(robot)
    chunk = max(1, int(_CHUNK_BYTES / (8 * 6 * robot.n_links**2)))
    chunks = [
        _equations(robot, q[k : k + chunk], dq[k : k + chunk] @ coordinates.T, links) for k in range(0, len(q), chunk)
    ]
    if not chunks:
        empty = np.zeros((0, robot.n_joints, robot.n_joints))
        return EquationsOfMotion(empty, empty, np.zeros((0, robot.n_joints)))
    mass, coriolis, gravity = (np.concatenate(matrices) for matrices in zip(*chunks, strict=True))
    return EquationsOfMotion(
        coordinates.T @ mass @ coordinates, coordinates.T @ coriolis @ coordinates, gravity @ coordinates
    )


def _equations(robot: Robot, q: Array, dq: Array, links: Array) -> tuple[Array, Array, Array]:
    """M, C and g of all joints, whether they follow others or not."""
    jacobians, n = Jacobians.of(robot, q), robot.n_links
    mass, mass_derivative, gravity = np.zeros((len(q), n, n)), np.zeros((len(q), n, n, n)), np.zeros((len(q), n))
    for i, link in enumerate(links):
        inertia = _spatial_inertia(jacobians.rotations[:, i], link)
        linear = jacobians.linear(i, jacobians.origins[:, i])
        twist = np.concatenate([jacobians.angular(i), linear], axis=2)  # (samples, joints, 6)
        twist_derivative = np.concatenate(
            [jacobians.angular_derivative(i), jacobians.linear_derivative(i, linear)], axis=3
        )
        momentum = twist @ inertia
        mass += momentum @ twist.transpose(0, 2, 1)
        gravity -= momentum[:, :, 3:] @ np.array(robot.gravity)  # of a base that accelerates as the weight pulls
        product_derivative = np.einsum("kjmx,kix->kjim", twist_derivative, momentum)
        mass_derivative += (
            product_derivative
            + product_derivative.transpose(0, 2, 1, 3)
            + _rotation_derivative(jacobians, i, inertia, twist)
        )
    christoffel = 0.5 * (
        mass_derivative + mass_derivative.transpose(0, 1, 3, 2) - mass_derivative.transpose(0, 3, 1, 2)
    )
    return mass, np.einsum("kijm,km->kij", christoffel, dq), gravity


def _rotation_derivative(jacobians: Jacobians, link: int, inertia: Array, twist: Array) -> Array:
    """Derivative of M by the link's own rotation, [k, j, i, m]: the inertia turns with it."""
    # With the inertia held, each twist turns the other way: X(z) = diag(z×, z×), dI = X I - I X.
    axes = jacobians.angular(link)  # zero where joint m does not turn the link
    counter_rotation = np.concatenate(
        [np.cross(twist[:, :, None, :3], axes[:, None]), np.cross(twist[:, :, None, 3:], axes[:, None])], axis=3
    )
    half = np.einsum("kjmx,kxy,kiy->kjim", counter_rotation, inertia, twist)
    return half + half.transpose(0, 2, 1, 3)


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
        angular_momentum = np.einsum("kab,kb->ka", inertia, omega)
        moment = np.einsum("kab,kb->ka", inertia, alpha) + np.cross(omega, angular_momentum)

        arm = np.einsum("kab,b->ka", rotation, center)
        acceleration = motion.acceleration[:, i] + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        force = mass * (acceleration - np.array(robot.gravity))

        partial_omega, partial_velocity = frames.angular(i), frames.linear(i, frames.origins[:, i] + arm)
        torques += np.einsum("kja,ka->kj", partial_omega, moment) + np.einsum("kja,ka->kj", partial_velocity, force)
    return torques @ coordinate_matrix(robot)
