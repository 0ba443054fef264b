"""Inverse dynamics by the Newton-Euler recursion, gravity's torques, and the pose in which gravity turns no joint."""

from __future__ import annotations

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import RobotError
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays, motion_batch, parameter_vector, plain_array, result_array, tree_of


def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    standard_parameters: ArrayLike,
    out: Array | None = None,
) -> Array:
    """Joint torques that a motion needs, without friction and rotor inertia.

    tau = M(q) ddq + C(q, dq) dq + g(q), by forces and moments summed from the tips to the base.

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        standard_parameters: ten per link in link order, shape (10 * n_links,), as `robot.standard_parameters`.
        out: filled and returned where given, float64 and C-contiguous, of the shape of the result.

    Returns:
        tau [N·m, N for prismatic joints], shape (n_samples, n_joints).

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot; or `out` does not match them.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980, moments taken about the link frame.

    >>> from jointbench.model import load_robot
    >>> robot, motion = load_robot("cobot6"), [[0.1] * 6] * 5
    >>> inverse_dynamics(robot, motion, motion, motion, robot.standard_parameters).shape
    (5, 6)
    """
    from jointbench.model.kernels import fill_torques

    q, dq, ddq = motion_batch(robot, q=q, dq=dq, ddq=ddq)
    parameters = plain_array(parameter_vector(robot, standard_parameters))
    out = result_array(out, q.shape)
    fill_torques(tree_of(robot), parameters.reshape(-1, 10), q, dq, ddq, out)
    return out


def inverse_dynamics_adjoint(
    robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, standard_parameters: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
    """Derivatives of a weighted sum of joint torques by the motion.

    d(Σ weights * tau(q, dq, ddq)) / d(q, dq, ddq), tau as of `inverse_dynamics`. Samples do not see each other: with
    the weight of one torque at each sample, these are that torque's derivatives.

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        standard_parameters: ten per link in link order, shape (10 * n_links,), as `robot.standard_parameters`.
        weights: of each torque, shape (n_samples, n_joints).

    Returns:
        Derivatives by q, dq and ddq, shape (n_samples, n_joints) each.

    Raises:
        ShapeError: the arrays differ in shape, or do not match the robot.

    Source: as `regressor_adjoint`; the weights act as speeds of a virtual motion, whose power the sum is.
    """
    from jointbench.model.kernels import fill_torque_gradients

    q, dq, ddq, weights = motion_batch(robot, q=q, dq=dq, ddq=ddq, weights=weights)
    links = plain_array(parameter_vector(robot, standard_parameters)).reshape(-1, 10)
    out = np.empty((len(q), 3 * robot.n_joints))
    fill_torque_gradients(tree_of(robot), links, q, dq, ddq, weights, out)
    by_q, by_dq, by_ddq = np.split(out, 3, axis=1)
    return by_q, by_dq, by_ddq


def gravity_torques(robot: Robot, q: ArrayLike, standard_parameters: ArrayLike) -> Array:
    """Joint torques that hold the robot still at q [rad or m], shapes as in `inverse_dynamics`.

    Raises:
        ShapeError: the arrays do not match the robot.
    """
    (q,) = motion_arrays(robot, q=q)
    return inverse_dynamics(robot, q, np.zeros_like(q), np.zeros_like(q), standard_parameters)


def hanging_pose(robot: Robot) -> Array:
    """Pose near home in which gravity makes no torque at any joint, as far as position limits allow it.

    argmin Σ G_j(q)² within the limits, from home on: near a home that hangs it hangs, near one that stands it may be
    balanced upright. Either way it loads its gears least, so friction that grows with the load is at its smallest.

    Args:
        robot: with nominal inertias.

    Returns:
        q [rad or m], shape (n_joints,); joints on which gravity does not act anywhere stay at home.

    Raises:
        RobotError: the robot's file does not give all inertias.
    """
    parameters = robot.standard_parameters
    if parameters is None:
        raise RobotError(
            f"robot {robot.name!r} has links of unknown inertia, so where gravity turns no joint is not known; "
            f"give all inertias in its file, or choose the pose yourself"
        )

    def gravity(pose: Array) -> Array:
        return gravity_torques(robot, pose[None], parameters)[0]

    low, high = robot.position_limits.T
    solution = scipy.optimize.least_squares(gravity, np.array(robot.home), bounds=(low, high), xtol=1e-12, gtol=1e-12)
    return np.asarray(solution.x, dtype=np.float64)
