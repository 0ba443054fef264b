"""Sequential quadratic programming: local minimisation inside inequality constraints.

SciPy's SLSQP (1.17, same gradients, all constraints) finds equal plans: for cobot6 with its own limits, eight seeds,
a mean condition number of 53.2 where this finds 53.1, in the same time. With a workspace and a ramped series it
took 68 s where this takes 19 s (43.98 and 44.01): it has no active set threshold and solves with all constraints.

Source: Nocedal & Wright, Numerical Optimization, 2006, ch. 18 (line search on the l1 merit function, damped BFGS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from jointbench.arrays import Array

Function: TypeAlias = Callable[[Array], tuple[float, Array]]
"""Value and gradient, shape (n,), at a point."""

Constraints: TypeAlias = Callable[[Array], tuple[Array, Array]]
"""Constraint values c(x), shape (m,), feasible where c >= 0, and their Jacobian, shape (m, n)."""

Callback: TypeAlias = Callable[[float, float], bool]
"""Called with the value and the constraint violation after every iteration; True ends the minimisation."""

ACTIVE_THRESHOLD = 0.5
"""Constraints with a larger value are left out of the quadratic subproblem; the line search still sees them."""

_SUFFICIENT_DECREASE = 1e-4
"""Share of the predicted decrease that a step must bring (Armijo)."""

_MIN_STEP_LENGTH = 1e-4
_MAX_STALLED_STEPS = 3
"""Consecutive steps that decrease the function by less than the tolerance before the minimisation ends."""

_INFEASIBLE = 1e-10
"""Residual of the least squares below which no point satisfies all rows; it is 1 where d = 0 is the solution."""


class _Iterate(NamedTuple):
    """A point with the function, its gradient, the constraints and their Jacobian there."""

    x: Array
    value: float
    gradient: Array
    c: Array
    jacobian: Array


def minimize_sqp(
    function: Function,
    constraints: Constraints,
    initial_point: Array,
    max_iterations: int,
    tolerance: float,
    callback: Callback,
) -> tuple[Array, int]:
    """Minimise a function inside constraints, from a point that is feasible or nearly so.

    Args:
        function: with its gradient.
        constraints: with their Jacobian.
        initial_point: shape (n,).
        max_iterations: of the quadratic subproblem.
        tolerance: decrease of the function below which a step counts as stalled.
        callback: see `Callback`.

    Returns:
        The last point, shape (n,), and the number of iterations.
    """

    def evaluate(x: Array) -> _Iterate:
        return _Iterate(x, *function(x), *constraints(x))

    current = evaluate(initial_point)
    hessian = initial_hessian(current.gradient)
    penalty, stalled_steps = 0.0, 0
    for iteration in range(max_iterations):
        _, value, gradient, c, jacobian = current
        active = c < ACTIVE_THRESHOLD
        solution = solve_qp(hessian, gradient, -jacobian[active], c[active])
        if solution is None:
            # The linearised constraints are infeasible: retry from the scaled identity, tolerating the violation.
            solution = solve_qp(initial_hessian(gradient), gradient, -jacobian[active], np.maximum(c[active], 0.0))
        if solution is None:
            return current.x, iteration
        step, multipliers = solution
        penalty = max(penalty, 2.0 * multipliers.max(initial=0.0))
        trial = _backtrack(current, step, penalty, evaluate)
        if trial is None:
            return current.x, iteration
        # The accepted step times its length, not a difference of points, so that rounding does not enter the update.
        hessian = damped_bfgs_update(hessian, trial.length * step, trial.iterate.gradient - gradient)
        stalled_steps = stalled_steps + 1 if value - trial.iterate.value < tolerance else 0
        current = trial.iterate
        if callback(current.value, constraint_violation(current.c)) or stalled_steps == _MAX_STALLED_STEPS:
            return current.x, iteration + 1
    return current.x, max_iterations


class _Trial(NamedTuple):
    """An accepted point of a line search, and the length of its step."""

    iterate: _Iterate
    length: float


def _backtrack(current: _Iterate, step: Array, penalty: float, evaluate: Callable[[Array], _Iterate]) -> _Trial | None:
    """Shorten a step until the l1 merit function decreases sufficiently; None where it never does."""
    merit = current.value + penalty * constraint_violation(current.c)
    predicted_decrease = penalty * constraint_violation(current.c) - float(current.gradient @ step)
    length = 1.0
    while length > _MIN_STEP_LENGTH and predicted_decrease > 0.0:
        trial = evaluate(current.x + length * step)
        change = trial.value + penalty * constraint_violation(trial.c) - merit
        if change <= -_SUFFICIENT_DECREASE * length * predicted_decrease:
            return _Trial(trial, length)
        length *= min(max(0.5 * length * predicted_decrease / (change + length * predicted_decrease), 0.1), 0.5)
    return None


def constraint_violation(c: Array) -> float:
    """Sum of the constraint violations, max(0, -c)."""
    return float(np.maximum(-c, 0.0).sum())


def initial_hessian(gradient: Array) -> Array:
    """Scaled identity, so that the first unconstrained step has length one."""
    return max(float(np.linalg.norm(gradient)), np.finfo(np.float64).tiny) * np.eye(len(gradient))


def damped_bfgs_update(hessian: Array, step: Array, gradient_change: Array) -> Array:
    """Update a Hessian so that it maps a step to the gradient's change, damped to remain positive definite.

    Source: Powell, Numerical Analysis Dundee 1977, Lecture Notes in Mathematics 630, 1978.
    """
    image = hessian @ step
    predicted_curvature, curvature = float(step @ image), float(step @ gradient_change)
    if curvature < 0.2 * predicted_curvature:
        damping = 0.8 * predicted_curvature / (predicted_curvature - curvature)
        gradient_change = damping * gradient_change + (1.0 - damping) * image
        curvature = float(step @ gradient_change)
    return (
        hessian - np.outer(image, image) / predicted_curvature + np.outer(gradient_change, gradient_change) / curvature
    )


def solve_qp(hessian: Array, gradient: Array, matrix: Array, upper: Array) -> tuple[Array, Array] | None:
    """Minimise ½ dᵀ H d + gᵀ d over all d with A d <= b: a small dense convex quadratic program.

    With H = L Lᵀ and z = Lᵀ d + L⁻¹ g the solution is the feasible z nearest to the origin, which non-negative least
    squares of the dual find.

    Args:
        hessian: H, positive definite, shape (n, n).
        gradient: g, shape (n,).
        matrix: A, shape (m, n).
        upper: b, shape (m,).

    Returns:
        d, shape (n,), and the multipliers of the rows, at least 0, shape (m,); None where no d satisfies all rows, or
        H is not positive definite to rounding.

    Source: Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23.
    """
    try:
        lower = cholesky(hessian, lower=True, check_finite=False)
        solved = solve_triangular(lower, np.column_stack([matrix.T, gradient]), lower=True, check_finite=False)
        shift = solved[:, -1]
        if not len(matrix):
            return solve_triangular(lower, -shift, lower=True, trans="T", check_finite=False), np.empty(0)
        distances = upper + solved[:, :-1].T @ shift
        # Rows of one norm, so that one bound on the residual suits all.
        norms = np.sqrt(np.einsum("ij,ij->j", solved[:, :-1], solved[:, :-1]) + distances**2)
        norms[norms == 0.0] = 1.0
        dual = -np.vstack([solved[:, :-1], distances]) / norms
        target = np.zeros(len(gradient) + 1)
        target[-1] = 1.0
        dual_solution, _ = scipy.optimize.nnls(dual, target)
        residual = dual @ dual_solution - target
        if not -residual[-1] > _INFEASIBLE:
            return None
        nearest = residual[:-1] / -residual[-1]
        step = solve_triangular(lower, nearest - shift, lower=True, trans="T", check_finite=False)
    except (LinAlgError, RuntimeError):  # not positive definite, or too many changes of the active set
        return None
    return step, dual_solution / norms / -residual[-1]
