"""Which columns of a robot's model are independent, and how the others group into them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import NumericalError
from jointbench.model.model_columns import model_columns, model_parameter_names
from jointbench.model.regressor import regressor
from jointbench.model.robot import Robot

_PREFERENCE = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mcx", "mcy", "mcz", "Iyy", "m")
"""Order in which a link's parameters are offered as base parameters: the ones usually grouped away come last."""

_DEPENDENT = 1e-8
"""Sine of a column's angle to those before it under which it counts as dependent. Rounding leaves about 1e-15 and
true independence about 1e-2, so the exact value hardly matters; that the two stay apart is checked."""

_CLEAR_GAP = 1e4
"""Least ratio between the smallest independent and the largest dependent sine for a rank to be believed."""


def random_columns(robot: Robot, *, drives: bool, seed: int, rows_per_column: int = 10) -> Array:
    """Columns of the model on random motion, shape (n_rows, n_full).

    Ten rows per column make the chance of a near-dependent sample set vanish; two do where the rank is known.
    """
    names = model_parameter_names(robot, drives=drives)
    samples = rows_per_column * (len(names) // max(1, int(robot.modelled.sum())) + 1)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (samples, robot.n_joints))
    dq, ddq = 2.0 * rng.standard_normal((2, samples, robot.n_joints))
    return model_columns(robot, q, dq, ddq)[0] if drives else regressor(robot, q, dq, ddq)


def independent_columns(robot: Robot, matrix: Array, names: Sequence[str]) -> tuple[list[int], float]:
    """Indices of the first independent columns in the order of preference, and the gap of the decision.

    Columns are offered by their names: link by link from base to tip, each link's by `_PREFERENCE`, then the drives'.

    Raises:
        NumericalError: no clear gap separates independent from dependent columns.
    """
    lengths = np.linalg.norm(matrix, axis=0)
    scale = lengths.max()
    basis = np.empty((matrix.shape[0], 0))
    kept: list[int] = []
    sines: list[float] = []
    for column in _preferred_order(names):
        rest = matrix[:, column] / max(lengths[column], _DEPENDENT * scale)
        for _ in range(2):  # the second pass removes what rounding of the first leaves (Kahan: twice is enough)
            rest = rest - basis @ (basis.T @ rest)
        sine = float(np.linalg.norm(rest))
        sines.append(sine)
        if sine > _DEPENDENT:
            kept.append(column)
            basis = np.column_stack([basis, rest / sine])
    weakest = min((sine for sine in sines if sine > _DEPENDENT), default=0.0)
    largest_dependent = max((sine for sine in sines if sine <= _DEPENDENT), default=0.0)
    gap = weakest / max(largest_dependent, np.finfo(float).eps)
    if gap < _CLEAR_GAP:
        raise NumericalError(
            f"robot {robot.name!r}: no clear gap between independent and dependent parameters: the weakest of "
            f"{len(kept)} independent columns has sine {weakest:.2g}, the strongest dependent one "
            f"{largest_dependent:.2g} (ratio {gap:.2g}, needed {_CLEAR_GAP:.0e}); look for angles or lengths that are "
            f"almost but not exactly 0 or 90 degrees"
        )
    return sorted(kept), gap


def grouping_matrix(matrix: Array, columns: Sequence[int]) -> Array:
    """K of matrix = matrix[:, columns] @ K, shape (n_columns, n_full); the columns are independent."""
    q, r = np.linalg.qr(matrix[:, columns])
    grouping: Array = np.linalg.solve(r, q.T @ matrix).astype(np.float64)
    # Rounding leaves about 1e-14 where a column takes no part in a group; geometry leaves much more where it does.
    grouping[np.abs(grouping) < 1e-10] = 0.0
    grouping[:, columns] = np.eye(len(columns))
    return grouping


def _preferred_order(names: Sequence[str]) -> list[int]:
    split = [name.rsplit(".", 1) for name in names]
    place = {owner: i for i, owner in enumerate(dict.fromkeys(owner for owner, _ in split))}
    rank = {quantity: i for i, quantity in enumerate(_PREFERENCE)}
    of_links = [k for k, (_, quantity) in enumerate(split) if quantity in rank]
    of_links.sort(key=lambda k: (place[split[k][0]], rank[split[k][1]]))
    return of_links + [k for k, (_, quantity) in enumerate(split) if quantity not in rank]
