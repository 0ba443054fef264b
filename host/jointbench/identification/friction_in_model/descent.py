"""Least squares of all rows by base parameters and friction laws together: Levenberg and Marquardt's method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.friction_in_model.joint_laws import Point
from jointbench.identification.least_squares import joint_weights
from jointbench.identification.rows import Rows
from jointbench.identification.triangles import Triangles, compress

STEPS = 100
_ARRIVED = 1e-4
"""What a step would gain, in units of the noise's variance, where parameters are some hundredth of their σ away."""

_FIRST_DAMPING = 1e-6

_FARTHEST = 1.0
"""Of a shape's logarithm in one step."""

_SINGULAR = 1e-10
"""Singular value of the scaled columns, relative to the largest, under which a direction is left alone."""


RowsAt = Callable[[Point, NDArray[np.bool_]], Sequence[Rows]]
"""Rows made linear around a point with some of the laws' parameters held, one `Rows` for each recording."""


class Bounds(NamedTuple):
    """Of the laws' parameters: least and largest values, shape (n_parameters, 2), and which are shapes."""

    values: Array
    is_shape: NDArray[np.bool_]


class Descent(NamedTuple):
    """Where it arrived, whether it did, and how well it explains there: less is better, by 1 for one σ of anything."""

    point: Point
    arrived: bool
    deviance: float


class _Look(NamedTuple):
    """A point with the rows around it, compressed, and its sum of squares in units of the joints' noise."""

    point: Point
    triangles: Triangles
    squares: float


class _Step(NamedTuple):
    """Where to, and by how much the sum of squares would fall were the rows linear."""

    to: Point
    gain: float


def descend(rows_at: RowsAt, start: Point, bounds: Bounds, steps: int = STEPS) -> Descent:
    """Go down from a start until the weighted sum of squares falls no more.

    min over base parameters and laws' parameters, these within bounds, of Σ_j Σ_k (torque - model)² / σ_j². Shapes step
    in their logarithms; after each step the base parameters are solved anew. Parameters at a bound that would have them
    beyond it stay there.

    Args:
        rows_at: gives the rows.
        start: within the bounds.
        bounds: of the laws' parameters.
        steps: to take at most.

    Source: the damping of Nielsen, IMM-REP-1999-05, Technical University of Denmark.
    """
    at, weights = _look(rows_at, start, None)
    damping, growth, arrived = _FIRST_DAMPING, 2.0, False
    for _ in range(steps):
        step = _step(at, weights, bounds, damping)
        if step.gain <= _ARRIVED:
            arrived = True
            break
        tried, _ = _look(rows_at, step.to, weights)
        fell = at.squares - tried.squares
        if fell > 0.0:
            damping *= max(1.0 / 3.0, 1.0 - (2.0 * fell / step.gain - 1.0) ** 3)
            growth = 2.0
            weights = joint_weights(tried.triangles)
            at = tried._replace(squares=_squares(tried.triangles, tried.point, weights))
        else:
            damping, growth = damping * growth, growth * 2.0
    return Descent(at.point, arrived, _deviance(at))


def at_bound(values: Array, bounds: Array) -> NDArray[np.bool_]:
    """Which values are at a bound of theirs; exp(log(bound)) is not the bound to the last bit."""
    return np.any(np.isclose(values[:, None], bounds, rtol=1e-6, atol=0.0), axis=1)


def _look(rows_at: RowsAt, point: Point, weights: Array | None) -> tuple[_Look, Array]:
    triangles = compress(rows_at(point, np.zeros(len(point.laws), dtype=np.bool_)))
    weights = joint_weights(triangles) if weights is None else weights
    return _Look(point, triangles, _squares(triangles, point, weights)), weights


def _squares(triangles: Triangles, point: Point, weights: Array) -> float:
    """The rows' sum of squares at the point itself."""
    return float(weights**2 @ triangles.squares(point.all))


def _deviance(at: _Look) -> float:
    """Σ n ln(mean square) over the joints of all recordings: twice the likelihood's logarithm, but for its sign."""
    counts, squares = at.triangles.counts, at.triangles.squares(at.point.all)
    present = (counts > 0) & (squares > 0.0)
    return float(np.sum(counts[present] * np.log(squares[present] / counts[present])))


def _step(at: _Look, weights: Array, bounds: Bounds, damping: float) -> _Step:
    """The next point to try."""
    stack = at.triangles.stacked(weights)
    rank = len(at.point.base)
    columns, residual = stack[:, :-1], stack[:, -1] - stack[:, :-1] @ at.point.all
    base, laws = columns[:, :rank], columns[:, rank:].copy()
    laws[:, bounds.is_shape] *= at.point.laws[bounds.is_shape]
    downhill = laws.T @ residual
    low, high = bounds.values.T
    near = at_bound(at.point.laws, bounds.values)
    held = near & np.where(at.point.laws - low <= high - at.point.laws, downhill < 0.0, downhill > 0.0)
    laws[:, held] = 0.0
    scale = np.linalg.norm(np.hstack([base, laws]), axis=0)
    scale[scale == 0.0] = 1.0
    # The base parameters take what they want of each step: damping is for the laws alone.
    weight = np.zeros((laws.shape[1], len(scale)))
    weight[:, rank:] = np.sqrt(damping) * np.eye(laws.shape[1])
    scaled = np.vstack([np.hstack([base, laws]) / scale, weight])
    change = np.linalg.lstsq(scaled, np.append(residual, np.zeros(len(weight))), rcond=_SINGULAR)[0] / scale
    by_laws = change[rank:]
    is_shape = bounds.is_shape
    moved = at.point.laws + np.where(is_shape, 0.0, by_laws)
    moved[is_shape] *= np.exp(np.clip(by_laws[is_shape], -_FARTHEST, _FARTHEST))
    moved = np.clip(moved, low, high)
    taken = moved - at.point.laws
    taken[is_shape] = np.log(moved[is_shape] / at.point.laws[is_shape])
    left = residual - laws @ taken
    by_base = np.linalg.lstsq(base / scale[:rank], left, rcond=_SINGULAR)[0] / scale[:rank]
    gain = at.squares - float(np.sum((left - base @ by_base) ** 2))
    return _Step(Point(at.point.base + by_base, moved), gain)
