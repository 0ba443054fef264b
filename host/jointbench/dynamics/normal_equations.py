"""Normal equations of the dynamics, from logs of any length in constant memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.batch import motion_batch
from jointbench.dynamics.regressor import regressor
from jointbench.errors import BadWeight, ShapeError
from jointbench.robot import Robot

_SAMPLES = 256
"""Of which the regressor is there at a time: of six joints 0.7 MB, which a processor's caches hold."""


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """What least squares need of tau = W pi, and no more of its samples.

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
        BadWeight: a weight is negative or not a number.
    """
    q, dq, ddq, tau = motion_batch(robot, q=q, dq=dq, ddq=ddq, tau=tau)
    roots = np.broadcast_to(np.sqrt(_weights(robot, weights, q.shape)), q.shape)
    n_columns = 10 * robot.n_links
    gram, right, squares = np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0
    for first in range(0, len(q), _SAMPLES):
        some = slice(first, first + _SAMPLES)
        root, torques = roots[some].reshape(-1, 1), (roots[some] * tau[some]).ravel()
        rows = root * regressor(robot, q[some], dq[some], ddq[some])
        gram += rows.T @ rows
        right += rows.T @ torques
        squares += float(torques @ torques)
    return NormalEquations(gram, right, squares, len(q) * int(robot.modelled.sum()))


def _weights(robot: Robot, weights: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Weights of each torque, or one row for all samples.

    Raises:
        ShapeError: they have another shape.
        BadWeight: one is negative or not a number.
    """
    values = np.ones(robot.n_joints) if weights is None else np.asarray(weights, dtype=np.float64)
    if values.shape not in (shape, shape[1:]):
        raise ShapeError(
            f"weights has shape {values.shape}; robot {robot.name!r} needs {shape}, or {shape[1:]} for all samples"
        )
    if not (values >= 0.0).all():
        raise BadWeight(f"weights holds {values[~(values >= 0.0)][0]:g}; each must be zero or more, such as 1/σ²")
    return np.atleast_2d(values) * robot.modelled
