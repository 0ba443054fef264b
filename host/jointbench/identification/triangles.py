"""Torque rows compressed into a triangle for each joint by QR, and their weighted least-squares solution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.identification.rows import Block, Rows

_CHUNK = 1024
"""Rows per QR decomposition: with their triangle they stay in the cache (measured: 256 and 4096 take longer)."""

_ROUNDING = 1e-14
"""Length of a column relative to the longest of its joint, under which it is rounding of what is zero: where no other
joint has the column, its parameter would come out as 1e28 ± 1e29 and not as one that the data do not tell."""


class GroupRows(NamedTuple):
    """Rows of one joint in one block, zero where they are not used.

    Attributes:
        group: number of the recording and joint they are of, part * n_joints + joint.
        parameters: which of all parameters the columns are of, shape (m,).
        columns: of the regressor, one behind the other, shape (m, n).
        torque: [N·m or N], shape (n,).
        used: shape (n,).
    """

    group: int
    parameters: NDArray[np.intp]
    columns: Array
    torque: Array
    used: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Triangles:
    """All that least squares need of rows: |R_g (pi, -1)|² = Σ (torque - regressor pi)² over the rows of group g.

    A group is one joint in one recording: it has one level of noise.

    Attributes:
        matrices: R of each group, shape (n_groups, p + 1, p + 1).
        counts: rows of each group, shape (n_groups,).
        n_joints: how many groups a recording has.
    """

    matrices: Array
    counts: NDArray[np.intp]
    n_joints: int

    @property
    def scale(self) -> Array:
        """Length of each of the regressor's columns over all rows, 1 where it is zero, shape (p,)."""
        lengths = np.linalg.norm(self.matrices[:, :, :-1], axis=(0, 1))
        return np.where(lengths > 0.0, lengths, 1.0)

    def stacked(self, weights: Array) -> Array:
        """All triangles below each other, each times the weight of its group, shape (n_groups * (p + 1), p + 1)."""
        weighted = self.matrices * weights[:, None, None]
        return weighted.reshape(-1, weighted.shape[2])

    def squares(self, parameters: Array) -> Array:
        """Sum of the squared residuals of each group, shape (n_groups,)."""
        return np.sum((self.matrices @ np.append(parameters, -1.0)) ** 2, axis=1)


def compress(parts: Sequence[Rows], weigh: Callable[[GroupRows], Array] | None = None) -> Triangles:
    """Compress rows block by block, each joint by QR decompositions of the columns that it has.

    Args:
        parts: rows of one recording each, all with the same columns.
        weigh: the weight of each of a group's rows, shape (n,); None: all are 1.
    """
    width, n_joints = parts[0].n_parameters + 1, parts[0].n_joints
    matrices = np.zeros((len(parts) * n_joints, width, width))
    counts = np.zeros(len(matrices), dtype=np.intp)
    for first, block in blocks_of(parts):
        for rows in group_rows(block, first):
            counts[rows.group] += np.count_nonzero(rows.used)
            _add(matrices[rows.group], rows, None if weigh is None else weigh(rows))
    lengths = np.linalg.norm(matrices[:, :, :-1], axis=1)
    matrices[:, :, :-1] *= (lengths > _ROUNDING * lengths.max(axis=1, keepdims=True))[:, None]
    return Triangles(matrices, counts, n_joints)


def blocks_of(parts: Sequence[Rows]) -> Iterator[tuple[int, Block]]:
    """All blocks, each with the number of its part's first group."""
    for number, part in enumerate(parts):
        for block in part.blocks():
            yield number * part.n_joints, block


def group_rows(block: Block, first_group: int) -> Iterator[GroupRows]:
    """The rows of a block, joint by joint; none of joints without rows to fit."""
    for joint, used in enumerate(np.ascontiguousarray(block.used.T)):  # of columns beside each other any() is slow
        if not used.any():
            continue
        (parameters, columns), torque = block.of_joint(joint), block.torque[:, joint]
        if not used.all():
            columns, torque = np.where(used, columns, 0.0), np.where(used, torque, 0.0)
        yield GroupRows(first_group + joint, parameters, columns, torque, used)


def _add(matrix: Array, rows: GroupRows, weight: Array | None) -> None:
    """Add rows to a triangle, in place."""
    width = len(matrix)
    present = np.any(matrix[:, :-1] != 0.0, axis=0)
    present[rows.parameters] = True
    columns = np.append(np.flatnonzero(present), width - 1)
    places = np.searchsorted(columns, rows.parameters)
    triangle = matrix[: len(columns), columns]
    for start in range(0, len(rows.torque), _CHUNK):
        part = slice(start, start + _CHUNK)
        torque = rows.torque[part]
        # Column by column in memory, as LAPACK wants it.
        stack = np.empty((len(columns), len(columns) + len(torque)))
        stack[:, : len(columns)] = triangle.T
        if len(places) + 1 < len(columns):
            stack[:, len(columns) :] = 0.0
        stack[places, len(columns) :], stack[-1, len(columns) :] = rows.columns[:, part], torque
        if weight is not None:
            stack[:, len(columns) :] *= weight[part]
        triangle = _upper(stack.T)
    matrix[: len(columns), columns] = triangle


def _upper(stack: Array) -> Array:
    """R of the QR decomposition of a tall matrix, which is overwritten."""
    (geqrf,) = linalg.get_lapack_funcs(("geqrf",), (stack,))
    decomposed, _, _, _ = geqrf(stack, lwork=32 * stack.shape[1], overwrite_a=True)
    return np.triu(decomposed[: stack.shape[1]])


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
        """Return the sum of squared residuals and the degrees of freedom left of each group, shape (n_groups,)."""
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
    kept = s > _SINGULAR * s[0]
    factor = vt[kept].T / s[kept] / scale[:, None]
    untold = (np.sum(vt[~kept] ** 2, axis=0) > _UNTOLD) | ~rows.any(axis=0)
    return Solution(factor @ (u[:, kept].T @ values), factor, untold)


def condition_number(triangles: Triangles) -> float:
    """Largest over smallest singular value of the regressor as it is, neither scaled nor weighted; may be infinite."""
    singular = np.linalg.svd(triangles.stacked(np.ones(len(triangles.counts)))[:, :-1], compute_uv=False)
    rounding = int(triangles.counts.sum()) * np.finfo(np.float64).eps * singular[0]
    return float(singular[0] / singular[-1]) if singular[-1] > rounding else float("inf")
