"""Positive definite 4 × 4 matrices by ten numbers without any limits, and exact derivatives by them.

P = L Lᵀ with L lower triangular; the numbers θ are L's entries row by row, of the diagonal ones their logarithms.
Source: Rucker & Wensing, IEEE RA-L 7(2), 2022, with L in place of their upper triangle.
"""

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.physical.pseudo_inertia import as_vector

_ROWS, _COLUMNS = np.tril_indices(4)
_DIAGONAL = np.flatnonzero(_ROWS == _COLUMNS)


def log_cholesky(matrix: Array) -> Array:
    """The numbers θ, shape (…, 10), of positive definite matrices, shape (…, 4, 4)."""
    theta: Array = np.linalg.cholesky(matrix).astype(np.float64)[..., _ROWS, _COLUMNS]
    theta[..., _DIAGONAL] = np.log(theta[..., _DIAGONAL])
    return theta


def triangle(theta: Array) -> Array:
    """L of P = L Lᵀ, shape (…, 4, 4), of numbers θ, shape (…, 10)."""
    lower = np.zeros((*theta.shape[:-1], 4, 4))
    entries = theta.copy()
    entries[..., _DIAGONAL] = np.exp(theta[..., _DIAGONAL])
    lower[..., _ROWS, _COLUMNS] = entries
    return lower


def slopes(lower: Array) -> Array:
    """Derivatives of `as_vector(P)` by θ, shape (…, 10, 10), at L, shape (…, 4, 4)."""
    moved = np.zeros((*lower.shape[:-2], 10, 4, 4))
    # Entry (r, c) of L changes row r of L Lᵀ by column c of L, and its column r alike.
    for k, (row, column) in enumerate(zip(_ROWS, _COLUMNS, strict=True)):
        moved[..., k, row, :] = lower[..., :, column]
    moved = (moved + np.swapaxes(moved, -1, -2)) * _chain(lower)[..., :, None, None]
    return np.swapaxes(as_vector(moved), -1, -2)


def curvature(lower: Array, weights: Array) -> Array:
    """Second derivatives of Σ weights * P by θ, shape (…, 10, 10).

    Args:
        lower: L, shape (…, 4, 4).
        weights: symmetric, shape (…, 4, 4).
    """
    same_column = (_COLUMNS[:, None] == _COLUMNS[None, :]).astype(np.float64)
    chain = _chain(lower)
    bent = 2.0 * weights[..., _ROWS[:, None], _ROWS[None, :]] * same_column
    bent *= chain[..., :, None] * chain[..., None, :]
    by_entry = 2.0 * (weights @ lower)[..., _ROWS, _COLUMNS]
    bent[..., _DIAGONAL, _DIAGONAL] += (by_entry * chain)[..., _DIAGONAL]
    return bent


def _chain(lower: Array) -> Array:
    """Derivative of each entry of L by its number."""
    chain = np.ones((*lower.shape[:-2], 10))
    chain[..., _DIAGONAL] = np.diagonal(lower, axis1=-2, axis2=-1)
    return chain
