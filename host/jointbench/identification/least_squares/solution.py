"""Least squares of compressed rows by singular values: what the data tell, and what they leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.least_squares.triangles import Triangles

_SINGULAR = 1e-10
"""Singular value of the scaled regressor, relative to the largest, under which a direction is not excited at all."""

_UNTOLD = 1e-6
"""Share of a parameter in unexcited directions above which the data cannot tell it."""

_LEAST_FREEDOM = 1e-3
"""Share of its rows that any joint counts as left over: with fewer, its residual would pass for exact."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimum of Σ_g weight_g² Σ (torque - regressor pi)², and of its neighbourhood.

    Attributes:
        parameters: the shortest of those that are a minimum, shape (p,).
        factor: F of (Σ weight² x xᵀ)⁻¹ = F Fᵀ, taken over the directions that the data tell, shape (p, n_told).
        untold: parameters with a share in the other directions, shape (p,).
    """

    parameters: Array
    factor: Array
    untold: NDArray[np.bool_]

    def leverages(self, triangles: Triangles, weights: Array) -> Array:
        """Sum of the leverages of each group's rows, shape (n_groups,)."""
        reach = triangles.matrices[:, :, :-1] @ self.factor
        return weights**2 * np.sum(reach**2, axis=(1, 2))

    def variances(self, triangles: Triangles, weights: Array) -> tuple[Array, Array]:
        """Of each group the sum of its squared residuals and the freedom its rows have left, shape (n_groups,)."""
        freedom = triangles.counts - self.leverages(triangles, weights)
        return triangles.squares(self.parameters), np.maximum(freedom, _LEAST_FREEDOM * triangles.counts)


def solve(triangles: Triangles, weights: Array, more: Array | None = None) -> Solution:
    """Solve compressed rows with one weight for each group.

    Args:
        triangles: the rows.
        weights: shape (n_groups,).
        more: further rows, (regressor | value) each, shape (n, p + 1): what is known beside the data.
    """
    stack = triangles.stacked(weights)
    if more is not None:
        stack = np.vstack([stack, more])
    scale = np.linalg.norm(stack[:, :-1], axis=0)
    scale[scale == 0.0] = 1.0
    rows, values = stack[:, :-1] / scale, stack[:, -1]
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    told = s > _SINGULAR * s[0]
    factor = vt[told].T / s[told] / scale[:, None]
    untold = (np.sum(vt[~told] ** 2, axis=0) > _UNTOLD) | ~rows.any(axis=0)
    return Solution(factor @ (u[:, told].T @ values), factor, untold)


def condition_number(triangles: Triangles) -> float:
    """Largest over smallest singular value of the regressor as it is, neither scaled nor weighted; may be infinite."""
    singular = np.linalg.svd(triangles.stacked(np.ones(len(triangles.counts)))[:, :-1], compute_uv=False)
    rounding = int(triangles.counts.sum()) * np.finfo(np.float64).eps * singular[0]
    return float(singular[0] / singular[-1]) if singular[-1] > rounding else float("inf")
