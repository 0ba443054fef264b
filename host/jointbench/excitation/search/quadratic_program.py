"""Small convex quadratic programs, by non-negative least squares."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from jointbench.arrays import Array

_NO_POINT = 1e-10
"""Residual of the least squares under which no point keeps all rows; it is 1 where d = 0 would be the answer."""


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
