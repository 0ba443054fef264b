"""Physically possible parameters by semidefinite programming: an interior-point solver with 4 × 4 matrix cones."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from jointbench.arrays import Array
from jointbench.errors import PhysicalSolverFailed
from jointbench.foreign import foreign_code
from jointbench.identification.physical.log_cholesky import Around
from jointbench.identification.physical.pseudo_inertia import UNIT, Prior, as_matrix

_TOLERANCE = 1e-9
"""Of gap and feasibility, relative; the solver's own is 1e-8, and margins are down to 1e-6."""

_ITERATIONS = 200

_LOWER = np.tril_indices(4)


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """What the solver found.

    Attributes:
        x: parameters, shape (n,); meaningless where `possible` is False.
        possible: False where it proved that none of the parameters that are looked at are possible.
        status: in words.
        iterations: of the interior-point method.
    """

    x: Array
    possible: bool
    status: str
    iterations: int


def solve_conic(around: Around, prior: Prior, weight: float, signed: NDArray[np.intp], margin: float) -> ConicSolution:
    """Minimise ½ Σ stiffness z² + slope · z + weight * prior(x) over z
    where x = origin + directions @ z is physically possible.

    The solver is given x and z as shares of the largest |origin|, where that is above 1: numbers beyond 1e20 it takes
    for infinite, and does not survive them in a matrix.

    Args:
        around: which x to look at, and the price of z.
        prior: of x.
        weight: of the prior, positive.
        signed: indices of the parameters x that must not be negative.
        margin: P' ⪰ margin * E for each link.

    Raises:
        PhysicalSolverFailed: the solver ends without an answer either way, or breaks down.

    Source: Wensing, Kim & Slotine, IEEE RA-L 3(1), 2018; solver: Goulart & Chen, Clarabel, arXiv 2405.12762, 2024.
    """
    clarabel: Any = importlib.import_module("clarabel")  # deferred: only this needs it
    size = max(1.0, float(np.abs(around.origin).max()))
    shares = replace(around, origin=around.origin / size, slope=around.slope / size)
    program = _Program(shares, prior.n_bodies if prior.log_det else 0)
    program.squares(weight * prior.squares, prior.center / size)
    program.not_negative(signed)
    for body in range(prior.n_bodies):
        program.at_least(body, margin / size)
        if prior.log_det:
            program.log_det(body, weight / size, weight / size / size)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = _ITERATIONS
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, _TOLERANCE)
    data = program.assembled(clarabel)
    with foreign_code(
        PhysicalSolverFailed,
        f"the conic solver breaks down on an estimate up to {size:.3g} times the reference bodies",
        "look for spikes in the recorded torques, or take method='log_cholesky'",
    ):
        solution = clarabel.DefaultSolver(*data, settings).solve()
    status = str(solution.status)
    z = size * np.array(solution.x[: len(around.stiffness)], dtype=np.float64)
    x = around.origin + around.directions @ z
    if status in ("PrimalInfeasible", "AlmostPrimalInfeasible"):
        return ConicSolution(x, False, "no such parameters are possible", solution.iterations)
    if status not in ("Solved", "AlmostSolved") or not np.isfinite(x).all():
        raise PhysicalSolverFailed(
            f"the conic solver ended with {status} after {solution.iterations} iterations; "
            f"try another prior or a larger margin, or method='log_cholesky'"
        )
    word = "solved" if status == "Solved" else "solved to reduced accuracy"
    return ConicSolution(x, True, f"{word} in {solution.iterations} iterations", solution.iterations)


class _Program:
    """Minimise ½ yᵀ Q y + c y with G y + s = h and s in cones; y is z, and for log-det 14 numbers more per body."""

    def __init__(self, around: Around, n_log_det: int) -> None:
        self._around = around
        self._free = len(around.stiffness)
        self._size = self._free + 14 * n_log_det
        self._linear = np.zeros(self._size)
        self._linear[: self._free] = around.slope
        self._square = np.zeros((self._size, self._size))
        self._square[: self._free, : self._free] = np.diag(around.stiffness)
        self._blocks: list[Array] = []
        self._right: list[Array] = []
        self._cones: list[tuple[str, int]] = []

    def squares(self, weights: Array, center: Array) -> None:
        """Add ½ Σ weights (x - center)²."""
        origin, directions = self._around.origin, self._around.directions
        self._square[: self._free, : self._free] += directions.T @ (weights[:, None] * directions)
        self._linear[: self._free] += directions.T @ (weights * (origin - center))

    def not_negative(self, indices: NDArray[np.intp]) -> None:
        """Parameters that are zero or more."""
        if len(indices):
            self._add("NonnegativeConeT", len(indices), self._minus(indices), self._around.origin[indices])

    def at_least(self, body: int, margin: float) -> None:
        """P' ⪰ margin * E."""
        place = np.arange(10 * body, 10 * body + 10)
        self._add("PSDTriangleConeT", 4, self._minus(place), self._around.origin[place] - margin * UNIT)

    def log_det(self, body: int, trace: float, weight: float) -> None:
        """Add trace * tr P' - weight * log det P': with Z lower triangular, [[P', Z], [Zᵀ, diag Z]] ⪰ 0, t ≤ log Z_ii.

        Then log det P' ≥ log det(Z diag(Z)⁻¹ Zᵀ) = Σ log Z_ii, and equal for the best Z.
        """
        place = np.arange(10 * body, 10 * body + 10)
        self._linear[: self._free] += trace * (UNIT @ self._around.directions[place])
        first = self._free + 14 * body
        rows, columns = np.triu_indices(8)
        order = np.lexsort((rows, columns))
        rows, columns = rows[order], columns[order]
        stretch = np.where(rows == columns, 1.0, np.sqrt(2.0))

        def written(matrix: Array) -> Array:
            return matrix[rows, columns] * stretch

        block = np.zeros((36, self._size))
        origin = np.zeros((8, 8))
        origin[:4, :4] = as_matrix(self._around.origin[place])
        whole = np.zeros((10, 8, 8))
        whole[:, :4, :4] = as_matrix(np.eye(10))
        of_body = np.array([written(each) for each in whole]).T
        block[:, : self._free] = -of_body @ self._around.directions[place]
        for k, (row, column) in enumerate(zip(*_LOWER, strict=True)):
            unit = np.zeros((8, 8))
            unit[row, 4 + column] = unit[4 + column, row] = 1.0
            if row == column:
                unit[4 + row, 4 + row] = 1.0
            block[:, first + k] = -written(unit)
        self._add("PSDTriangleConeT", 8, block, written(origin))
        for i, k in enumerate(np.flatnonzero(_LOWER[0] == _LOWER[1])):
            logarithm = np.zeros((3, self._size))
            logarithm[0, first + 10 + i] = -1.0  # (t, 1, Z_ii): exp(t) ≤ Z_ii
            logarithm[2, first + k] = -1.0
            self._add("ExponentialConeT", 0, logarithm, np.array([0.0, 1.0, 0.0]))
            self._linear[first + 10 + i] = -weight

    def assembled(self, clarabel: Any) -> tuple[Any, ...]:
        """What the solver takes."""
        cones = [getattr(clarabel, kind)(*([size] if size else [])) for kind, size in self._cones]
        square = sparse.csc_matrix(np.triu(self._square))
        return square, self._linear, sparse.csc_matrix(np.vstack(self._blocks)), np.concatenate(self._right), cones

    def _minus(self, indices: NDArray[np.intp]) -> Array:
        block = np.zeros((len(indices), self._size))
        block[:, : self._free] = -self._around.directions[indices]
        return block

    def _add(self, cone: str, size: int, block: Array, right: Array) -> None:
        self._cones.append((cone, size))
        self._blocks.append(block)
        self._right.append(right)
