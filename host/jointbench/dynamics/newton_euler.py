"""Inverse dynamics by the Newton-Euler recursion."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.batch import motion_batch, plain_array, result_array
from jointbench.dynamics.shapes import motion_arrays, parameter_vector
from jointbench.dynamics.tree import tree_of
from jointbench.robot import Robot


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

    >>> from jointbench.robot import load_robot
    >>> robot, motion = load_robot("cobot6"), [[0.1] * 6] * 5
    >>> inverse_dynamics(robot, motion, motion, motion, robot.standard_parameters).shape
    (5, 6)
    """
    from jointbench.dynamics.kernels import fill_torques

    q, dq, ddq = motion_batch(robot, q=q, dq=dq, ddq=ddq)
    parameters = plain_array(parameter_vector(robot, standard_parameters))
    out = result_array(out, q.shape)
    fill_torques(tree_of(robot), parameters.reshape(-1, 10), q, dq, ddq, out)
    return out


def gravity_torques(robot: Robot, q: ArrayLike, standard_parameters: ArrayLike) -> Array:
    """Joint torques that hold the robot still at q [rad or m], shapes as in `inverse_dynamics`.

    Raises:
        ShapeError: the arrays do not match the robot.
    """
    (q,) = motion_arrays(robot, q=q)
    return inverse_dynamics(robot, q, np.zeros_like(q), np.zeros_like(q), standard_parameters)
