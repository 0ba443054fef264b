"""Exact derivatives of weighted sums by a motion: of the regressor's elements, and of joint torques."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model.motion_arrays import motion_batch, parameter_vector, plain_array
from jointbench.model.robot import Robot
from jointbench.model.tree import tree_of

Slopes = tuple[Array, Array, Array]
"""Derivatives by q, dq and ddq, shape (n_samples, n_joints) each."""


def regressor_adjoint(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, weights: ArrayLike) -> Slopes:
    """Derivatives of a weighted sum of the regressor's elements by the motion.

    d(Σ weights * W(q, dq, ddq)) / d(q, dq, ddq), W as of `regressor`. With weights = df/dW it is the gradient of any
    f(W), by one pass over the samples however many joints there are.

    Args:
        robot: the kinematic tree.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        weights: of W's shape, (n_samples * n_joints, 10 * n_links). Where W is always zero, they do not count.

    Returns:
        Derivatives by q, dq and ddq, shape (n_samples, n_joints) each.

    Raises:
        ShapeError: the arrays differ in shape, or do not match the robot.

    Source: reverse accumulation (Griewank & Walther, Evaluating Derivatives, 2008, ch. 3) of the recursion of
    `regressor`.
    """
    from jointbench.model.kernels import fill_regressor_slopes

    q, dq, ddq = motion_batch(robot, q=q, dq=dq, ddq=ddq)
    weights = plain_array(np.asarray(weights, dtype=np.float64))
    shape = (len(q) * robot.n_joints, 10 * robot.n_links)
    if weights.shape != shape:
        raise ShapeError(f"weights has shape {weights.shape}; the regressor of {len(q)} samples has {shape}")
    if not robot.modelled_links.all():
        weights = weights * np.repeat(robot.modelled_links, 10)
    out = np.empty((len(q), 3 * robot.n_joints))
    weights = weights.reshape(len(q), robot.n_joints, robot.n_links, 10)
    fill_regressor_slopes(tree_of(robot), q, dq, ddq, weights, out)
    return _by_order(out)


def inverse_dynamics_adjoint(
    robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, standard_parameters: ArrayLike, weights: ArrayLike
) -> Slopes:
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
    from jointbench.model.kernels import fill_torque_slopes

    q, dq, ddq, weights = motion_batch(robot, q=q, dq=dq, ddq=ddq, weights=weights)
    links = plain_array(parameter_vector(robot, standard_parameters)).reshape(-1, 10)
    out = np.empty((len(q), 3 * robot.n_joints))
    fill_torque_slopes(tree_of(robot), links, q, dq, ddq, weights, out)
    return _by_order(out)


def _by_order(slopes: Array) -> Slopes:
    by_q, by_dq, by_ddq = np.split(slopes, 3, axis=1)
    return by_q, by_dq, by_ddq
