"""Normal equations of the dynamics, from logs of any length in constant memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.batch import LANES, lengthened, motion_batch, plain_array
from jointbench.dynamics.parallel import n_threads, share
from jointbench.dynamics.tree import tree_of
from jointbench.errors import BadWeight, ShapeError
from jointbench.robot import Robot

if TYPE_CHECKING:
    from jointbench.dynamics.kernels.sharing import Counters


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
    """Normal equations of a robot's links, without W ever being there.

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
    from jointbench.dynamics.kernels.gram import PIECE, add_gram

    q, dq, ddq, tau = motion_batch(robot, q=q, dq=dq, ddq=ddq, tau=tau)
    roots = np.sqrt(_weights(robot, weights, q.shape))
    tree, n_columns = tree_of(robot), 10 * robot.n_links
    whole = len(q) - len(q) % LANES
    # Each thread has its own sums, each of eight parts.
    sums = np.zeros((n_threads(), n_columns**2 + n_columns + 1, LANES))

    def add(many: list[Array], thread: int, counters: Counters) -> None:
        q, dq, ddq, tau, roots = many
        add_gram(tree, q, dq, ddq, tau, roots, sums[thread].reshape(-1), counters)

    motion = [q, dq, ddq, tau]
    share(partial(add, [values[:whole] for values in (*motion, roots)]), -(-whole // PIECE))
    if whole < len(q):
        # Behind the last samples come such that do not count.
        few = np.broadcast_to(roots[whole:] if len(roots) > 1 else roots, q[whole:].shape)
        share(partial(add, [lengthened(values) for values in (*(each[whole:] for each in motion), few)]), 1)
    totals = sums.sum(axis=(0, 2))
    kept = np.repeat(robot.modelled_links, 10)
    upper = np.triu(totals[: n_columns**2].reshape(n_columns, n_columns)) * np.outer(kept, kept)
    right, rows = totals[n_columns**2 : -1] * kept, len(q) * int(robot.modelled.sum())
    return NormalEquations(upper + np.triu(upper, 1).T, right, float(totals[-1]), rows)


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
    return plain_array(np.atleast_2d(values) * robot.modelled)
