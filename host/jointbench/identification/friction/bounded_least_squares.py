"""Small linear least squares, many at once, in which coefficients keep bounds."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array

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
    normal, right = turned @ flat, turned @ values
    size = np.sqrt(np.einsum("sii->si", normal))
    size[size == 0.0] = 1.0
    normal = normal / (size[:, :, None] * size[:, None, :]) + _RIDGE * np.eye(k)

    scaled = np.linalg.solve(normal, (right / size)[..., None])[..., 0]
    coefficients, free = scaled / size, np.ones(scaled.shape, dtype=np.bool_)
    out = np.flatnonzero(((coefficients < bounds[:, 0]) | (coefficients > bounds[:, 1])).any(axis=1))
    if len(out):
        coefficients[out], free[out] = _best_of_sets(normal[out], right[out], size[out], bounds)
    return coefficients.reshape(*stack, k), free.reshape(*stack, k)


def _best_of_sets(normal: Array, right: Array, size: Array, bounds: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Hold each set of coefficients at each combination of their bounds; nan stands for free."""
    held = np.array(list(product(*([np.nan, *each[np.isfinite(each)]] for each in bounds))))
    free = np.isnan(held)
    at = np.where(free, 0.0, held)[:, None] * size
    target = right / size - (normal @ at[..., None])[..., 0]
    both = free[:, :, None] & free[:, None, :]
    masked = np.where(both[:, None], normal, np.eye(len(bounds)))
    scaled = np.linalg.solve(masked, np.where(free[:, None], target, at)[..., None])[..., 0]
    found = np.where(free[:, None], scaled / size, np.where(free, 0.0, held)[:, None])
    # Half of what the sum of squares is above that of no coefficients at all.
    cost = np.sum(scaled * (0.5 * (normal @ scaled[..., None])[..., 0] - right / size), axis=-1)
    cost[((found < bounds[:, 0]) | (found > bounds[:, 1])).any(axis=-1)] = np.inf
    best = np.argmin(cost, axis=0)
    return found[best, np.arange(len(right))], free[best]
