"""Wrenches: joint torques that balance one from outside, and what the base exerts, with its zero-moment point."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model.catalogue import as_robot
from jointbench.model.equations_of_motion import force_columns
from jointbench.model.kinematics import BaseMotion, Jacobians, coordinate_matrix
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays, parameter_vector


@dataclass(frozen=True, eq=False)
class Wrench:
    """A force and a moment on the robot, at the origin of one of its frames.

    Attributes:
        frame: name of a link or of another frame of the robot.
        force: on the robot [N], shape (3,), or (n_samples, 3) where it changes, as a recorded channel does.
        moment: on the robot, about that origin [N·m], of the same shapes.
        turns: whether both are in the axes of that frame, as of a sensor fixed there; else in those of the base.

    >>> weight = Wrench("hand", [0.0, 0.0, -29.4])  # 3 kg
    >>> weight.frame, weight.turns
    ('hand', False)
    """

    frame: str
    force: ArrayLike
    moment: ArrayLike = (0.0, 0.0, 0.0)
    turns: bool = False

    def part(self, rows: slice) -> Wrench:
        """Select some of the samples."""
        arrays = map(np.asarray, (self.force, self.moment))
        force, moment = (array[rows] if array.ndim == 2 else array for array in arrays)
        return Wrench(self.frame, force, moment, self.turns)


def external_torques(robot: Robot | str | Path, q: ArrayLike, wrench: Wrench) -> Array:
    """Joint torques that balance a wrench on the robot, beside all that its motion takes.

    M(q) ddq + C(q, dq) dq + G(q) + tau_f + tau_ext = tau with tau_ext = -J(q)ᵀ w, so that a weight on the hand and a
    heavier hand ask the same of the joints.

    Args:
        robot: whose base stands still, or what `load_robot` takes.
        q: joint positions [rad or m], shape (n_samples, n_joints).
        wrench: what acts on it.

    Returns:
        tau_ext [N·m or N], shape (n_samples, n_joints).

    Raises:
        FileError: the robot has no such frame.
        ShapeError: q does not match the robot, or force or moment do not match q, or are not finite.

    >>> stretched = [[0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]]
    >>> weight = Wrench("hand", [0.0, 0.0, -10.0])
    >>> external_torques("nursing_arm", stretched, weight).shape
    (1, 6)
    """
    robot = as_robot(robot)
    (q,) = motion_arrays(robot, q=q)
    frame = robot.frame(wrench.frame)
    force, moment = (_per_sample(name, getattr(wrench, name), len(q)) for name in ("force", "moment"))
    if frame.joint < 0:
        return np.zeros((len(q), robot.n_joints))
    jacobians = Jacobians.of(robot, q)
    link = jacobians.rotations[:, frame.joint]
    point = jacobians.origins[:, frame.joint] + link @ frame.origin
    if wrench.turns:
        axes = link @ np.array(frame.rotation)
        force, moment = (np.einsum("kab,kb->ka", axes, vectors) for vectors in (force, moment))
    link_torques = np.einsum("kja,ka->kj", jacobians.linear(frame.joint, point), force)
    link_torques += np.einsum("kja,ka->kj", jacobians.angular(frame.joint), moment)
    return -link_torques @ coordinate_matrix(robot)


def _per_sample(name: str, value: ArrayLike, n: int) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((3,), (n, 3)) or not np.isfinite(array).all():
        raise ShapeError(
            f"{name} of a wrench has shape {array.shape}; it must be (3,), or ({n}, 3) for {n} samples, and finite"
        )
    return np.broadcast_to(array, (n, 3))


def base_wrench_regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
    """Regressor of the force and moment that the base must exert on the links: [f, n] = B(q, dq, ddq) @ pi.

    f = Σ m (a_C - g); n = Σ r_C × m (a_C - g) + d(I omega)/dt about the base frame's origin, in its axes.

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).

    Returns:
        B, shape (n_samples, 6, 10 * n_links): rows fx, fy, fz [N], nx, ny, nz [N·m].

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.
    """
    q, dq, ddq = motion_arrays(robot, q=q, dq=dq, ddq=ddq)
    motion = BaseMotion.of(robot, q, dq, ddq)
    columns = np.zeros((len(q), 6, robot.n_links, 10))
    units = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    for i in range(robot.n_links):
        specific_force = motion.acceleration[:, i, None] - np.array(robot.gravity)
        lever_velocity = np.cross(units, motion.jacobians.origins[:, i, None])  # of a turn about the base's axes
        z = np.concatenate([np.zeros_like(units), units], axis=1)
        v = np.concatenate([units, lever_velocity], axis=1)
        vectors = (z, v, motion.omega[:, i, None], motion.alpha[:, i, None], specific_force)
        columns[:, :, i] = force_columns(*(motion.in_link(i, vector) for vector in vectors))
    return columns.reshape(len(q), 6, 10 * robot.n_links)


@dataclass(frozen=True, eq=False)
class ZeroMomentPoint:
    """Points of the plane z = `height` where the ground's reaction has no horizontal moment.

    Attributes:
        points: x and y [m] in the base frame, shape (n_samples, 2).
        gradient: of x and y by the standard parameters, shape (n_samples, 2, 10 * n_links).
        wrench_columns: what the points follow from: rows x numerator, y numerator, vertical force, each times the
            parameters; shape (n_samples, 3, 10 * n_links).
        vertical_force: [N], shape (n_samples,).
    """

    points: Array
    gradient: Array
    wrench_columns: Array
    vertical_force: Array

    def hessian(self, sample: int) -> Array:
        """Second derivatives of x and y by the standard parameters at a sample, (2, 10 n_links, 10 n_links).

        ∂²x = -(∂x ∂Fᵀ + ∂F ∂xᵀ)/F, as numerator and force F are linear in the parameters.
        """
        force = self.wrench_columns[sample, 2]
        half = np.einsum("ca,b->cab", self.gradient[sample], force)
        return -(half + half.transpose(0, 2, 1)) / self.vertical_force[sample]


def zero_moment_point(
    robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, standard_parameters: ArrayLike, height: float = 0.0
) -> ZeroMomentPoint:
    """Zero-moment points of a motion and their derivatives by the inertial parameters.

    x = (h f_x - n_y)/f_z, y = (h f_y + n_x)/f_z with force f and moment n about the base frame's origin, of the ground
    on the robot, and h the height of the ground's plane.

    Args:
        robot: the kinematic tree, its base frame's z axis up.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).
        standard_parameters: ten per link in link order, shape (10 * n_links,).
        height: of the ground in the base frame [m].

    Returns:
        Points, gradients, and what Hessians follow from.

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Vukobratović & Borovac, Int. J. Humanoid Robotics 1(1), 2004; the derivatives by the quotient rule as in
    Wu & Gao, J. Harbin Institute of Technology 53(7), 2021.
    """
    wrench = base_wrench_regressor(robot, q, dq, ddq)
    parameters = parameter_vector(robot, standard_parameters)
    fx, fy, fz, nx, ny, _ = wrench.transpose(1, 0, 2)
    columns = np.stack([height * fx - ny, height * fy + nx, fz], axis=1)
    numerators, force = (columns[:, :2] @ parameters), columns[:, 2] @ parameters
    points = numerators / force[:, None]
    gradient = (columns[:, :2] - points[:, :, None] * columns[:, 2:]) / force[:, None, None]
    return ZeroMomentPoint(points, gradient, columns, force)


def center_of_mass(robot: Robot, q: ArrayLike, standard_parameters: ArrayLike) -> Array:
    """Centre of mass of all links [m] in the base frame, shape (n_samples, 3).

    Args:
        robot: the kinematic tree.
        q: joint position [rad or m], shape (n_samples, n_joints).
        standard_parameters: ten per link in link order, shape (10 * n_links,).

    Raises:
        ShapeError: the arrays do not match the robot.
    """
    (q,) = motion_arrays(robot, q=q)
    links = parameter_vector(robot, standard_parameters).reshape(-1, 10)
    at_rest = np.zeros_like(q)
    frames = BaseMotion.of(robot, q, at_rest, at_rest).jacobians
    moments = np.einsum("i,kia->ka", links[:, 0], frames.origins)
    moments += np.einsum("kiab,ib->ka", frames.rotations, links[:, 1:4])
    return moments / links[:, 0].sum()
