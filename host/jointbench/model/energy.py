"""Energy and momentum, linear in the inertial parameters, from the base frame and not from the links' recursions."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.model.kinematics import BaseMotion, coordinate_matrix, forward_kinematics
from jointbench.model.motion_arrays import motion_arrays, parameter_vector
from jointbench.model.robot import Robot


def force_columns(z: Array, v: Array, omega: Array, alpha: Array, felt: Array) -> Array:
    """Columns of z · (mc × a + I alpha + omega × I omega) + v · (m a + alpha × mc + omega × (omega × mc)), (…, 10).

    Args:
        z, v: the unit motion.
        omega, alpha: angular velocity [rad/s] and acceleration [rad/s²].
        felt: acceleration of the frame's origin minus gravity [m/s²].
    """
    spinning = omega * _dot(v, omega) - v * _dot(omega, omega)
    first = np.cross(v, alpha) + spinning + np.cross(felt, z)
    return _columns(_dot(v, felt), first, _inertia(z, alpha) + _inertia(np.cross(z, omega), omega))


def momentum_columns(z: Array, v: Array, omega: Array, velocity: Array) -> Array:
    """Columns of z · (mc × velocity + I omega) + v · (m velocity + omega × mc), shape (…, 10)."""
    return _columns(_dot(v, velocity), np.cross(velocity, z) + np.cross(v, omega), _inertia(z, omega))


def energy_columns(omega: Array, velocity: Array) -> Array:
    """Columns of the kinetic energy ½ m v·v + v · (omega × mc) + ½ omega · I omega, shape (…, 10)."""
    return _columns(0.5 * _dot(velocity, velocity), np.cross(velocity, omega), 0.5 * _inertia(omega, omega))


def _columns(of_mass: Array, of_first_moment: Array, of_inertia: Array) -> Array:
    shape = np.broadcast_shapes(of_mass.shape[:-1], of_first_moment.shape[:-1], of_inertia.shape[:-1])
    parts = (of_mass, of_first_moment, of_inertia)
    return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)


def _inertia(left: Array, right: Array) -> Array:
    """Columns of left · I right for Ixx, Ixy, Ixz, Iyy, Iyz, Izz."""
    (a, b, c), (x, y, z) = (np.moveaxis(each, -1, 0) for each in (left, right))
    return np.stack([a * x, a * y + b * x, a * z + c * x, b * y, b * z + c * y, c * z], axis=-1)


def _dot(left: Array, right: Array) -> Array:
    return np.sum(left * right, axis=-1, keepdims=True)


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
    folded, rows = coordinate_matrix(robot) * robot.modelled, np.zeros((len(q), robot.n_links, robot.n_links, 10))
    for i in np.flatnonzero(robot.modelled_links).tolist():
        z = motion.jacobians.angular(i)
        v = motion.jacobians.linear(i, motion.jacobians.origins[:, i])
        omega, velocity = motion.omega[:, i, None], motion.velocity[:, i, None]
        rows[:, :, i] = momentum_columns(*(motion.in_link(i, each) for each in (z, v, omega, velocity)))
    return np.einsum("lj,klic->kjic", folded, rows).reshape(len(q) * robot.n_joints, 10 * robot.n_links)
