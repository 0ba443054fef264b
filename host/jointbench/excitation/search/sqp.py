"""Sequential quadratic programming: local minimisation inside inequality constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from jointbench.arrays import Array

_NO_POINT = 1e-10
"""Residual of the least squares under which no point keeps all rows; it is 1 where d = 0 would be the answer."""

Function: TypeAlias = Callable[[Array], tuple[float, Array]]
"""Value and gradient, shape (n,), at a point."""

Room: TypeAlias = Callable[[Array], tuple[Array, Array]]
"""What is left of each constraint at a point, at least 0 where it is kept, shape (m,), and its Jacobian, (m, n)."""

Told: TypeAlias = Callable[[float, float], bool]
"""Told the value, and by how much all constraints are broken, after every iteration; True ends the descent."""

WATCHED = 0.5
"""Constraints of which more than this is left do not take part in a step; should it break one, it is shortened."""

_ENOUGH = 1e-4
"""Share of the predicted descent that a step must bring."""

_SHORTEST = 1e-4
_QUIET = 3
"""How many steps in a row that hardly bring anything are taken for the end."""


def least_quadratic(hessian: Array, slope: Array, rows: Array, room: Array) -> tuple[Array, Array] | None:
    """Minimise ½ dᵀ H d + gᵀ d over all d with A d <= b.

    With H = L Lᵀ and z = Lᵀ d + L⁻¹ g it is the point z nearest to the origin, and that is what non-negative least
    squares of the dual find.

    Args:
        hessian: H, positive definite, shape (n, n).
        slope: g, shape (n,).
        rows: A, shape (m, n).
        room: b, shape (m,).

    Returns:
        d, shape (n,), and the multipliers of the rows, at least 0, shape (m,); None where no d keeps all rows, or
        rounding hides H's being positive definite.

    Source: Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23.
    """
    try:
        lower = cholesky(hessian, lower=True, check_finite=False)
        turned = solve_triangular(lower, np.column_stack([rows.T, slope]), lower=True, check_finite=False)
        shift = turned[:, -1]
        if not len(rows):
            return solve_triangular(lower, -shift, lower=True, trans="T", check_finite=False), np.empty(0)
        distances = room + turned[:, :-1].T @ shift
        # Rows of one size, so that one bound on the residual suits all.
        size = np.sqrt(np.einsum("ij,ij->j", turned[:, :-1], turned[:, :-1]) + distances**2)
        size[size == 0.0] = 1.0
        dual = -np.vstack([turned[:, :-1], distances]) / size
        target = np.zeros(len(slope) + 1)
        target[-1] = 1.0
        shares, _ = nnls(dual, target)
        residual = dual @ shares - target
        if not -residual[-1] > _NO_POINT:
            return None
        nearest = residual[:-1] / -residual[-1]
        step = solve_triangular(lower, nearest - shift, lower=True, trans="T", check_finite=False)
    except (LinAlgError, RuntimeError):  # not positive definite, or too many changes of the active rows
        return None
    return step, shares / size / -residual[-1]


def descend(
    function: Function, room: Room, first: Array, iterations: int, tolerance: float, told: Told
) -> tuple[Array, int]:
    """Go downhill from a point that keeps the constraints, or nearly does.

    Each step minimises a quadratic model within the linearised constraints; curvature is gathered from the gradients
    on the way, and what a step breaks of the constraints counts against it.

    Args:
        function: to be minimised.
        room: the constraints.
        first: where to begin, shape (n,).
        iterations: most steps.
        tolerance: fall of the function that is hardly anything.
        told: see `Told`.

    Returns:
        The last point, shape (n,), and the number of steps.

    Source: Nocedal & Wright, Numerical Optimization, 2006, ch. 18 (line search on the l1 merit function, damped BFGS).
    """
    x, (value, gradient), (left, slopes) = first, function(first), room(first)
    hessian = steepness(gradient)
    price, quiet = 0.0, 0
    for iteration in range(iterations):
        watched = left < WATCHED
        found = least_quadratic(hessian, gradient, -slopes[watched], left[watched])
        if found is None:  # what is broken is broken by so little that the next step may as well leave it so
            found = least_quadratic(steepness(gradient), gradient, -slopes[watched], np.maximum(left[watched], 0.0))
        if found is None:
            return x, iteration
        step, multipliers = found
        price = max(price, 2.0 * multipliers.max(initial=0.0))
        merit = value + price * broken(left)
        fall = price * broken(left) - gradient @ step
        length, ahead = 1.0, None
        while length > _SHORTEST and fall > 0.0:
            there = x + length * step
            ahead = function(there), room(there)
            rise = ahead[0][0] + price * broken(ahead[1][0]) - merit
            if rise <= -_ENOUGH * length * fall:
                break
            length *= min(max(0.5 * length * fall / (rise + length * fall), 0.1), 0.5)
            ahead = None
        if ahead is None:
            return x, iteration
        hessian = curved(hessian, length * step, ahead[0][1] - gradient)
        quiet = quiet + 1 if value - ahead[0][0] < tolerance else 0
        x, (value, gradient), (left, slopes) = x + length * step, ahead[0], ahead[1]
        if told(value, broken(left)) or quiet == _QUIET:
            return x, iteration + 1
    return x, iterations


def broken(left: Array) -> float:
    """By how much all constraints together are broken."""
    return float(np.maximum(-left, 0.0).sum())


def steepness(gradient: Array) -> Array:
    """A first guess of the Hessian: a step of length 1 would be right if nothing were in its way."""
    return max(float(np.linalg.norm(gradient)), np.finfo(np.float64).tiny) * np.eye(len(gradient))


def curved(hessian: Array, step: Array, change: Array) -> Array:
    """The Hessian, changed so as to explain a gradient's change along a step, and still positive definite.

    Source: Powell, Numerical Analysis Dundee 1977, Lecture Notes in Mathematics 630, 1978 (damped BFGS).
    """
    image = hessian @ step
    expected, seen = float(step @ image), float(step @ change)
    if seen < 0.2 * expected:
        mix = 0.8 * expected / (expected - seen)
        change = mix * change + (1.0 - mix) * image
        seen = float(step @ change)
    return hessian - np.outer(image, image) / expected + np.outer(change, change) / seen
