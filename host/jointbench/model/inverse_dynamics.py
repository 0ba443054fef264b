"""Inverse dynamics by the Newton-Euler recursion, and its regressor: torque as linear in the inertial parameters.

With them gravity's torques, the pose in which gravity turns no joint, and the regressor's normal equations and QR.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import FitError, RobotError, ShapeError
from jointbench.model.catalogue import as_robot
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays, motion_batch, parameter_vector, plain_array, result_array, tree_of

_SAMPLES = 256
"""Of which the regressor is there at a time: of six joints 0.7 MB, which a processor's caches hold."""


def inverse_dynamics(
    robot: Robot | str | Path,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    standard_parameters: ArrayLike,
    out: Array | None = None,
) -> Array:
    """Joint torques that a motion needs, without friction and rotor inertia.

    tau = M(q) ddq + C(q, dq) dq + g(q), by forces and moments summed from the tips to the base.

    Args:
        robot: the kinematic tree, or what `load_robot` takes.
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

    robot = as_robot(robot)
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


def regressor(
    robot: Robot | str | Path, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, out: Array | None = None
) -> Array:
    """Joint-torque regressor W of a rigid-body robot, stacked over samples.

    tau = W(q, dq, ddq) @ pi, with pi the ten standard parameters of each link in link order:
    m, m*cx, m*cy, m*cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz (inertia about the link frame). The base stands still;
    `floating_regressor` is of one that moves.

    Args:
        robot: the kinematic tree, or what `load_robot` takes; only modelled joints contribute rows: those of passive
            joints are zero, and so are the columns of neglected links.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        out: filled and returned where given, float64 and C-contiguous, of the shape of the result.

    Returns:
        W, shape (n_samples * n_joints, 10 * n_links), row k*n_joints + j is joint j at sample k.

    Raises:
        ShapeError: the three arrays differ in shape, or do not match the robot; or `out` does not match them.

    Source: Atkeson, An & Hollerbach, IJRR 5(3), 1986; joint axes carried outward as twists as in
    Featherstone, RBDA, 2008, sec. 5.3.

    >>> motion = [[0.1] * 6] * 5
    >>> regressor("cobot6", motion, motion, motion).shape
    (30, 60)
    """
    from jointbench.model.kernels import fill_regressor

    robot = as_robot(robot)
    q, dq, ddq = motion_batch(robot, q=q, dq=dq, ddq=ddq)
    out = result_array(out, (len(q) * robot.n_joints, 10 * robot.n_links))
    fill_regressor(tree_of(robot), q, dq, ddq, out.reshape(len(q), robot.n_joints, robot.n_links, 10))
    for link in robot.neglected_links:
        out[:, 10 * link : 10 * link + 10] = 0.0
    return out


def regressor_adjoint(
    robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
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
    from jointbench.model.kernels import fill_regressor_gradients

    q, dq, ddq = motion_batch(robot, q=q, dq=dq, ddq=ddq)
    weights = plain_array(np.asarray(weights, dtype=np.float64))
    shape = (len(q) * robot.n_joints, 10 * robot.n_links)
    if weights.shape != shape:
        raise ShapeError(f"weights has shape {weights.shape}; the regressor of {len(q)} samples has {shape}")
    if not robot.modelled_links.all():
        weights = weights * np.repeat(robot.modelled_links, 10)
    out = np.empty((len(q), 3 * robot.n_joints))
    weights = weights.reshape(len(q), robot.n_joints, robot.n_links, 10)
    fill_regressor_gradients(tree_of(robot), q, dq, ddq, weights, out)
    by_q, by_dq, by_ddq = np.split(out, 3, axis=1)
    return by_q, by_dq, by_ddq


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Sums of tau = W pi that least squares need, without its samples.

    Those of two logs added are those of both: equations + equations.

    Attributes:
        gram: Wᵀ V W, V being the diagonal matrix of weights, shape (n_parameters, n_parameters).
        right: Wᵀ V tau, shape (n_parameters,).
        squares: tauᵀ V tau.
        rows: how many there are of W.
    """

    gram: Array
    right: Array
    squares: float
    rows: int

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram + other.gram, self.right + other.right, self.squares + other.squares, self.rows + other.rows
        )


def normal_equations(
    robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike, weights: ArrayLike | None = None
) -> NormalEquations:
    """Normal equations of a robot's links, with no more than a piece of W at a time.

    gram @ pi = right has the solution of least Σ w (tau - W pi)², W as of `regressor`. The condition number of gram
    is W's squared: where W's is beyond 1e6 or so, `StreamingQR` loses fewer digits.

    Args:
        robot: the kinematic tree; passive joints have no rows, and neglected links no columns but zeros.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.
        tau: joint torques [N·m, N for prismatic joints], of the same shape.
        weights: of each torque's square, such as 1/σ²; of that shape, or (n_joints,) for all samples;
            1 where not given.

    Returns:
        The normal equations.

    Raises:
        ShapeError: the arrays differ in shape, or do not match the robot.
        FitError: a weight is negative or not a number.
    """
    q, dq, ddq, tau = motion_batch(robot, q=q, dq=dq, ddq=ddq, tau=tau)
    roots = np.broadcast_to(np.sqrt(_weights(robot, weights, q.shape)), q.shape)
    n_columns = 10 * robot.n_links
    gram, right, squares = np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0
    for first in range(0, len(q), _SAMPLES):
        chunk = slice(first, first + _SAMPLES)
        root, torques = roots[chunk].reshape(-1, 1), (roots[chunk] * tau[chunk]).ravel()
        rows = root * regressor(robot, q[chunk], dq[chunk], ddq[chunk])
        gram += rows.T @ rows
        right += rows.T @ torques
        squares += float(torques @ torques)
    return NormalEquations(gram, right, squares, len(q) * int(robot.modelled.sum()))


def _weights(robot: Robot, weights: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Weights of each torque, or one row for all samples.

    Raises:
        ShapeError: they have another shape.
        FitError: one is negative or not a number.
    """
    values = np.ones(robot.n_joints) if weights is None else np.asarray(weights, dtype=np.float64)
    if values.shape not in (shape, shape[1:]):
        raise ShapeError(
            f"weights has shape {values.shape}; robot {robot.name!r} needs {shape}, or {shape[1:]} for all samples"
        )
    if not (values >= 0.0).all():
        raise FitError(f"weights holds {values[~(values >= 0.0)][0]:g}; each must be zero or more, such as 1/σ²")
    return np.atleast_2d(values) * robot.modelled


class StreamingQR:
    """R of the QR decomposition of rows [A | b], as they come; memory does not grow with them.

    |A x - b|² = |R x - z|² + residual for every x, so that least squares need R, z and residual only; unlike normal
    equations they have A's condition number, not its square.

    Attributes:
        n_columns: columns of A.
        rows: how many rows have come.

    Source: Golub & Van Loan, Matrix Computations, 4th ed. 2013, sec. 5.3 and 6.5.
    """

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.rows: int = 0
        self._triangle: Array = np.zeros((n_columns + 1, n_columns + 1))

    def add(self, matrix: Array, right: ArrayLike) -> None:
        """Take rows.

        Args:
            matrix: of A, shape (n_rows, n_columns), as `regressor` makes them; any number of rows.
            right: of b, shape (n_rows,) or any that has as many elements, such as (n_samples, n_joints).

        Raises:
            ShapeError: the matrix has another number of columns, or not as many rows as `right` has elements.
        """
        values = np.asarray(right, dtype=np.float64).reshape(-1, 1)
        if matrix.ndim != 2 or matrix.shape != (len(values), self.n_columns):
            raise ShapeError(
                f"rows of shape {matrix.shape} with {len(values)} values on the right; "
                f"needed are ({len(values)}, {self.n_columns})"
            )
        self.rows += len(values)
        new_rows = np.hstack([matrix, values])
        self._triangle = cast(Array, np.linalg.qr(np.vstack([self._triangle, new_rows]), mode="r"))

    @property
    def triangle(self) -> Array:
        """R, upper triangular, shape (n_columns, n_columns); RᵀR = AᵀA. Its rows' signs are arbitrary."""
        return self._triangle[:-1, :-1].copy()

    @property
    def right(self) -> Array:
        """The vector z = Qᵀ b, shape (n_columns,)."""
        return self._triangle[:-1, -1].copy()

    @property
    def residual(self) -> float:
        """Least |A x - b|² that any x reaches, where A's columns are independent."""
        return float(self._triangle[-1, -1]) ** 2
