"""Variable projection and particle swarm for friction laws, over small bounded least-squares problems."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import product

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law

_RIDGE = 1e-12
"""On the diagonal of the scaled normal equations: columns that vanish, or are the same, get values too."""


def solve_bounded(columns: Array, values: Array, bounds: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Coefficients within bounds that fit the values best, exactly.

    c = argmin ‖values - columns @ c‖² with lower <= c <= upper. Where the free solution breaks a bound, every way
    to hold some coefficients at bounds is tried: the best that leaves the others within theirs is the solution.

    Args:
        columns: shape (…, n, k), k small.
        values: shape (n,).
        bounds: lower and upper for each coefficient, infinite where there is none, shape (k, 2).

    Returns:
        Coefficients, and which of them are free (not held at a bound), shape (…, k) each.
    """
    stack, k = columns.shape[:-2], columns.shape[-1]
    flat = columns.reshape(-1, *columns.shape[-2:])
    turned = np.swapaxes(flat, 1, 2)
    coefficients, free = solve_bounded_sums(turned @ flat, turned @ values, bounds)
    return coefficients.reshape(*stack, k), free.reshape(*stack, k)


def solve_bounded_sums(normal: Array, right: Array, bounds: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Solve the same problem given by its sums.

    Args:
        normal: columnsᵀ columns, shape (n, k, k).
        right: columnsᵀ values, shape (n, k).
        bounds: as of `solve_bounded`.

    Returns:
        Coefficients, and which of them are free, shape (n, k) each.
    """
    k = normal.shape[-1]
    size = np.sqrt(np.einsum("sii->si", normal))
    size[size == 0.0] = 1.0
    normal = normal / (size[:, :, None] * size[:, None, :]) + _RIDGE * np.eye(k)

    scaled = np.linalg.solve(normal, (right / size)[..., None])[..., 0]
    coefficients, free = scaled / size, np.ones(scaled.shape, dtype=np.bool_)
    out = np.flatnonzero(((coefficients < bounds[:, 0]) | (coefficients > bounds[:, 1])).any(axis=1))
    if len(out):
        coefficients[out], free[out] = _best_of_sets(normal[out], right[out], size[out], bounds)
    return coefficients, free


def _best_of_sets(normal: Array, right: Array, size: Array, bounds: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Hold each set of coefficients at each combination of their bounds; nan stands for free."""
    held = np.array(list(product(*([np.nan, *bound[np.isfinite(bound)]] for bound in bounds))))
    free = np.isnan(held)
    at = np.where(free, 0.0, held)[:, None] * size
    target = right / size - (normal @ at[..., None])[..., 0]
    both = free[:, :, None] & free[:, None, :]
    masked = np.where(both[:, None], normal, np.eye(len(bounds)))
    scaled = np.linalg.solve(masked, np.where(free[:, None], target, at)[..., None])[..., 0]
    solutions = np.where(free[:, None], scaled / size, np.where(free, 0.0, held)[:, None])
    # Half of what the sum of squares is above that of no coefficients at all.
    cost = np.sum(scaled * (0.5 * (normal @ scaled[..., None])[..., 0] - right / size), axis=-1)
    cost[((solutions < bounds[:, 0]) | (solutions > bounds[:, 1])).any(axis=-1)] = np.inf
    best = np.argmin(cost, axis=0)
    return solutions[best, np.arange(len(right))], free[best]


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
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)[rows]


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
        points = _project(data, law, np.zeros((1, 0)))
    else:
        bounds = np.log(law.shape_bounds(data))
        points = _in_valleys(data, law, bounds)
        points = _descend(data, law, points.pick(np.argsort(points.squares)[:_KEPT]), bounds, _ITERATIONS, _NEAR)
        points = _descend(data, law, points.pick(np.argsort(points.squares)[:1]), bounds, _ITERATIONS, _ARRIVED)
    best = int(np.argmin(points.squares))
    return np.concatenate([points.coefficients[best], np.exp(points.log_shapes[best])])


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


PARTICLES = 40
ITERATIONS = 200
_PULL = 2.05
"""Towards a particle's own best, and towards the swarm's."""

CONSTRICTION = 2.0 / abs(2.0 - 2.0 * _PULL - math.sqrt((2.0 * _PULL) ** 2 - 8.0 * _PULL))
"""Factor on the whole velocity, 0.7298: the swarm then contracts by itself, without a limit on velocities."""

_LARGEST = 2.0
"""A coefficient without a bound is searched up to where its column alone is this many times the largest torque."""


def particle_swarm(data: FrictionData, law: Law, *, seed: int = 0) -> Array:
    """Parameters of a law that a swarm found, all of them searched alike, shapes as logarithms.

    v ← χ (v + φ1 u1 (own best - x) + φ2 u2 (swarm's best - x)), x ← x + v, with u1, u2 uniform in [0, 1) for each
    coordinate; who leaves the box stops at its wall.

    Args:
        data: to fit.
        law: to fit.
        seed: of the swarm.

    Returns:
        Parameters, shape (n_parameters,).

    Source: Clerc & Kennedy, IEEE Trans. Evolutionary Computation 6(1), 2002.
    """
    rng = np.random.default_rng(seed)
    low, high = search_box(data, law).T
    place = rng.uniform(low, high, (PARTICLES, len(low)))
    velocity = np.zeros_like(place)
    best, least = place.copy(), squares(data, law, place)
    for _ in range(ITERATIONS):
        leader = best[np.argmin(least)]
        own, shared = rng.random((2, *place.shape))
        velocity = CONSTRICTION * (velocity + _PULL * own * (best - place) + _PULL * shared * (leader - place))
        wanted = place + velocity
        place = np.clip(wanted, low, high)
        velocity[place != wanted] = 0.0
        value = squares(data, law, place)
        better = value < least
        best[better], least[better] = place[better], value[better]
    return parameters_at(law, best[np.argmin(least)])


def search_box(data: FrictionData, law: Law) -> Array:
    """Bounds of all parameters, those of shapes as logarithms, all finite, shape (n_parameters, 2)."""
    shapes = law.shape_bounds(data)
    columns = np.abs(law.columns(data, np.sqrt(shapes[:, 0] * shapes[:, 1]))).max(axis=0)
    largest = _LARGEST * np.abs(data.torque).max() / np.where(columns > 0.0, columns, 1.0)
    bounds = law.coefficient_bounds(data)
    finite = np.stack([np.maximum(bounds[:, 0], -largest), np.minimum(bounds[:, 1], largest)], axis=-1)
    return np.concatenate([finite, np.log(shapes)])


def parameters_at(law: Law, place: Array) -> Array:
    """Parameters of a place in the search box, shape (…, n_parameters)."""
    linear = len(law.coefficients)
    return np.concatenate([place[..., :linear], np.exp(place[..., linear:])], axis=-1)


def squares(data: FrictionData, law: Law, place: Array) -> Array:
    """Sum of squared torque errors at places in the search box, shape (…,)."""
    return np.sum((law.torque(data, parameters_at(law, place)) - data.torque) ** 2, axis=-1)
