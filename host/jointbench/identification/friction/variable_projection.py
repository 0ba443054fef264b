"""Fit a friction law by variable projection: what is linear is eliminated, only the shapes are searched."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.friction.bounded_least_squares import solve_bounded
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law

_GRID = {0: 1, 1: 24, 2: 12, 3: 7}
"""Points along each shape on which a search begins, by the number of shapes."""

_GRID_ROWS = 120
"""The grid looks at this many rows, spread evenly over the speeds: it only has to find valleys."""

_STARTS = 6
_KEPT = 2
"""Valleys of the grid to descend into for a few steps, and how many of them to the bottom."""

_FIRST_ITERATIONS = 8
_ITERATIONS = 40
_NEAR, _ARRIVED = 1e-7, 1e-12
"""A sum of squares that changes by less, relatively: the better valley is known then, and its bottom to rounding."""


@dataclass(frozen=True, eq=False)
class _Points:
    """Shapes (as logarithms) with the best coefficients for them, and what is left; stacked along the first axis."""

    log_shapes: Array
    coefficients: Array
    free: NDArray[np.bool_]
    columns: Array
    residual: Array
    squares: Array

    def pick(self, rows: NDArray[np.intp]) -> _Points:
        """Some of the stack."""
        return _Points(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    def replace_by(self, others: _Points, rows: NDArray[np.bool_]) -> None:
        """Put other points into some rows, a mask."""
        for each in fields(self):
            getattr(self, each.name)[rows] = getattr(others, each.name)[rows]


def variable_projection(data: FrictionData, law: Law) -> Array:
    """Parameters of a law that leave the least squares of the torque, the same for the same data.

    min over shapes s of min over coefficients c >= 0 of ‖torque - columns(s) @ c‖². The shapes are searched on a grid,
    and from its best points descended together by Levenberg and Marquardt's method in log s, with Kaufman's Jacobian:
    the derivative of columns(s) @ c at constant c, less what the columns themselves explain of it.

    Args:
        data: at least as many rows as the law has parameters.
        law: to fit.

    Returns:
        Parameters, shape (n_parameters,).

    Source: Golub & Pereyra, SIAM J. Numer. Anal. 10(2), 1973; Kaufman, BIT 15, 1975.
    """
    if not law.shapes:
        found = _project(data, law, np.zeros((1, 0)))
    else:
        bounds = np.log(law.shape_bounds(data))
        found = _in_valleys(data, law, bounds)
        found = _descend(data, law, found.pick(np.argsort(found.squares)[:_KEPT]), bounds, _ITERATIONS, _NEAR)
        found = _descend(data, law, found.pick(np.argsort(found.squares)[:1]), bounds, _ITERATIONS, _ARRIVED)
    best = int(np.argmin(found.squares))
    return np.concatenate([found.coefficients[best], np.exp(found.log_shapes[best])])


def valleys(data: FrictionData, law: Law) -> Array:
    """Parameters in each of the valleys that `variable_projection` descends into, above the bottom, the best first.

    Returns:
        Parameters, shape (n_valleys, n_parameters).
    """
    if not law.shapes:
        return variable_projection(data, law)[None]
    found = _in_valleys(data, law, np.log(law.shape_bounds(data)))
    return np.hstack([found.coefficients, np.exp(found.log_shapes)])[np.argsort(found.squares)]


def _in_valleys(data: FrictionData, law: Law, bounds: Array) -> _Points:
    """Some steps down from the best points of the grid; bounds are those of the shapes' logarithms."""
    grid = _grid(bounds)
    squares = _project(_thinned(data), law, grid).squares
    starts = _project(data, law, grid[_valleys(squares, len(bounds))])
    return _descend(data, law, starts, bounds, _FIRST_ITERATIONS, _NEAR)


def _grid(bounds: Array) -> Array:
    """All combinations of evenly spaced points strictly within bounds."""
    count = _GRID[len(bounds)]
    inner = (np.arange(count) + 0.5) / count
    axes = [low + (high - low) * inner for low, high in bounds]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(bounds))


def _thinned(data: FrictionData) -> FrictionData:
    """The rows that the grid looks at."""
    if data.n_rows <= _GRID_ROWS:
        return data
    chosen = np.zeros(data.n_rows, dtype=np.bool_)
    chosen[np.argsort(data.velocity, kind="stable")[np.linspace(0, data.n_rows - 1, _GRID_ROWS).astype(int)]] = True
    return data.part(chosen)


def _valleys(squares: Array, n_shapes: int) -> NDArray[np.intp]:
    """Points of the grid with no better neighbour along any shape, the best first."""
    cube = squares.reshape([_GRID[n_shapes]] * n_shapes)
    lowest = np.ones(cube.shape, dtype=np.bool_)
    for axis in range(n_shapes):
        along, low = np.moveaxis(cube, axis, 0), np.moveaxis(lowest, axis, 0)
        low[1:] &= along[1:] <= along[:-1]
        low[:-1] &= along[:-1] <= along[1:]
    valleys = np.flatnonzero(lowest)
    return valleys[np.argsort(squares[valleys], kind="stable")][:_STARTS]


def _project(data: FrictionData, law: Law, log_shapes: Array) -> _Points:
    """The best coefficients for some shapes."""
    columns = law.columns(data, np.exp(log_shapes))
    coefficients, free = solve_bounded(columns, data.torque, law.coefficient_bounds(data))
    residual = data.torque - (columns @ coefficients[..., None])[..., 0]
    return _Points(log_shapes, coefficients, free, columns, residual, np.sum(residual**2, axis=-1))


def _descend(data: FrictionData, law: Law, at: _Points, bounds: Array, iterations: int, small: float) -> _Points:
    """Go downhill from each of the stack's points, in place, until none falls any more."""
    damping = np.full(len(at.squares), 1e-2)
    for _ in range(iterations):
        step = _step(data, law, at, damping, bounds)
        tried = _project(data, law, np.clip(at.log_shapes + step, bounds[:, 0], bounds[:, 1]))
        fell = at.squares - tried.squares
        better = fell > 0.0
        arrived = np.abs(fell) <= small * at.squares
        at.replace_by(tried, better)
        damping = np.where(better, damping * 0.2, damping * 8.0).clip(1e-9, 1e9)
        if arrived.all():
            break
    return at


def _step(data: FrictionData, law: Law, at: _Points, damping: Array, bounds: Array) -> Array:
    """Levenberg–Marquardt step in log shapes; a shape that is at its bound and pushed outwards stays."""
    shapes = np.exp(at.log_shapes)
    slopes = law.by_shapes(data, shapes, at.coefficients) * shapes[..., None, :]
    columns = at.columns * at.free[..., None, :]
    across = np.swapaxes(columns, -1, -2) @ slopes
    normal = np.swapaxes(columns, -1, -2) @ columns
    size = np.sqrt(np.einsum("sii->si", normal))
    size[size == 0.0] = 1.0
    normal = normal / (size[:, :, None] * size[:, None, :])
    normal += np.eye(normal.shape[-1]) * np.where(at.free, 1e-12, 1.0)[..., None]
    across /= size[:, :, None]
    hessian = np.swapaxes(slopes, -1, -2) @ slopes - np.swapaxes(across, -1, -2) @ np.linalg.solve(normal, across)
    downhill = (np.swapaxes(slopes, -1, -2) @ at.residual[..., None])[..., 0]
    held = ((at.log_shapes <= bounds[:, 0]) & (downhill < 0.0)) | ((at.log_shapes >= bounds[:, 1]) & (downhill > 0.0))
    hessian = np.where(held[..., None] | held[:, None, :], 0.0, hessian)
    diagonal = np.einsum("sii->si", hessian)
    largest = diagonal.max(axis=1, keepdims=True)
    weight = damping[:, None] * np.maximum(diagonal, 1e-6 * largest)
    # A shape that is held, or changes nothing anywhere, takes no step; its row must be solvable all the same.
    weight += held | (largest == 0.0)
    hessian = hessian + weight[..., None] * np.eye(len(bounds))
    return np.linalg.solve(hessian, np.where(held, 0.0, downhill)[..., None])[..., 0]
