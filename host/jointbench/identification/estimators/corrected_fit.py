"""Least squares with a regressor whose errors are known in size, or in proportion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.terms_of_residuals import covariance_of_terms
from jointbench.identification.least_squares import Estimate
from jointbench.identification.least_squares.newey_west import Stretch
from jointbench.identification.least_squares.solution import condition_number
from jointbench.identification.least_squares.triangles import Triangles
from jointbench.identification.rows import Rows

_PASSES = 3
"""The first pass has equal weights; each other takes the joints' weights from the residuals of the pass before."""

_SINGULAR = 1e-10
"""Eigenvalue of the scaled products, relative to the largest, under which a direction is not told at all."""

_MOST_ERROR = 0.8
"""Share of errors beyond which next to nothing is left: of a few hundred rows the squares of noise scatter by 5 to 7 %,
and what remains when they are taken off must be well beyond that."""

_UNTOLD = 1e-6
"""Share of a parameter in directions that are not told above which it is not told either."""


class Corrected(NamedTuple):
    """An estimate, and the share of errors in what was corrected."""

    estimate: Estimate
    share: float


def corrected_least_squares(parts: Sequence[Rows], triangles: Triangles, products: Array) -> Corrected:
    """Least squares with the regressor's errors taken out: (Σ x xᵀ - C) pi = Σ x torque, all rows weighted.

    Args:
        parts: the rows.
        triangles: of them.
        products: C of each part and joint, Σ_k e_kj e_kjᵀ, shape (n_groups, p, p).

    Returns:
        The estimate; and the largest share of errors in the squares of any combination of columns.

    Raises:
        FitError: in some direction there is nothing but errors.
    """

    def solve(weights: Array) -> _Solution:
        return _solve(triangles, weights, np.einsum("g,gpq->pq", weights**2, products))

    return _iterated(parts, triangles, solve, products)


def scaled_total_least_squares(parts: Sequence[Rows], triangles: Triangles, exact: NDArray[np.bool_]) -> Corrected:
    """Mixed total least squares with all columns scaled to the same length.

    min |E|² + |e|² over errors E of the inexact columns and e of the torque, (X + E) pi = tau + e, each divided by the
    length of its column, all rows weighted.

    Args:
        parts: the rows.
        triangles: of them.
        exact: columns without errors, shape (p,).

    Returns:
        The estimate; and the smallest squared singular value: errors as a share of the squares of each column.
    """
    p = triangles.scale.size

    def lengths(weights: Array) -> Array:
        return np.linalg.norm(_weighted(triangles, weights), axis=0)

    def solve(weights: Array) -> _Solution:
        length = lengths(weights)
        inexact = np.flatnonzero(~exact & (length[:p] > 0.0))
        order = np.append(inexact, p)
        stacked = _weighted(triangles, weights)
        # What the exact columns cannot say of the others: it is there that errors are looked for.
        known = np.linalg.qr(stacked[:, np.flatnonzero(exact & (length[:p] > 0.0))])[0]
        left = stacked[:, order] - known @ (known.T @ stacked[:, order])
        smallest = float(np.linalg.svd(left / length[order], compute_uv=False)[-1]) ** 2
        errors = np.zeros((p, p))
        errors[inexact, inexact] = smallest * length[inexact] ** 2
        return _solve(triangles, weights, errors)._replace(share=smallest, errors=errors)

    return _iterated(parts, triangles, solve, None)


def _weighted(triangles: Triangles, weights: Array) -> Array:
    """One triangle of all groups, each times its weight, shape (p + 1, p + 1)."""
    rows = (triangles.matrices * weights[:, None, None]).reshape(-1, triangles.matrices.shape[2])
    return cast(Array, np.linalg.qr(rows, mode="r"))


class _Solution(NamedTuple):
    """A solution of given weights.

    Attributes:
        parameters: shape (p,), 0 where not told.
        inverse: of Σ x xᵀ less the errors' products, over the directions told, shape (p, p).
        untold: shape (p,).
        share: of errors.
        errors: their products in all rows together, where they are only assumed, shape (p, p).
    """

    parameters: Array
    inverse: Array
    untold: NDArray[np.bool_]
    share: float
    errors: Array | None = None


_Solve = Callable[[Array], _Solution]


def _solve(triangles: Triangles, weights: Array, errors: Array) -> _Solution:
    """Solve (Σ x xᵀ - errors) pi = Σ x torque in directions that the rows tell."""
    p = triangles.scale.size
    scale = triangles.scale
    stacked = _weighted(triangles, weights)
    rows, values = stacked[:, :p] / scale, stacked[:, p]
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    told = s**2 > _SINGULAR * s[0] ** 2
    whitened = vt[told].T / s[told]  # directions in which the squares of the rows are 1
    shares, directions = np.linalg.eigh(whitened.T @ (errors / np.outer(scale, scale)) @ whitened)
    if not shares[-1] < _MOST_ERROR:
        raise FitError(
            f"tls: the regressor's errors are {100.0 * shares[-1]:.3g} % of the squares of one combination of its "
            f"columns, and must be below {100.0 * _MOST_ERROR:g} %; record livelier motion, lower cutoff_Hz, or "
            f'choose "iv"'
        )
    factor = whitened @ directions / np.sqrt(1.0 - shares)
    inverse = factor @ factor.T / np.outer(scale, scale)
    untold = (np.sum(vt[~told] ** 2, axis=0) > _UNTOLD) | ~rows.any(axis=0)
    parameters = np.where(untold, 0.0, inverse @ (stacked[:, :p].T @ values))
    return _Solution(parameters, inverse, untold, float(shares[-1]))


def _iterated(parts: Sequence[Rows], triangles: Triangles, solve: _Solve, products: Array | None) -> Corrected:
    """Solve with the weights of the residuals, and judge the solution."""
    weights = np.ones(len(triangles.counts))
    solution = solve(weights)
    for _ in range(_PASSES - 1):
        squares, freedom = _variances(triangles, weights, solution)
        sigma = np.sqrt(np.divide(squares, freedom, out=np.zeros_like(squares), where=freedom > 0.0))
        weights = 1.0 / np.where(sigma > 0.0, sigma, 1.0)
        solution = solve(weights)
    squares, freedom = _variances(triangles, weights, solution)
    scores = _Scores.of(parts, triangles, weights, solution, products)
    long_run = covariance_of_terms(scores.stretches, solution.inverse, parts, triangles, weights)
    covariance = solution.inverse @ long_run.covariance @ solution.inverse.T
    covariance[solution.untold, :] = covariance[:, solution.untold] = 0.0
    covariance[solution.untold, solution.untold] = np.inf
    squares, freedom = (each.reshape(-1, triangles.n_joints).sum(axis=0) for each in (squares, freedom))
    unknown = np.full(triangles.n_joints, np.nan)
    estimate = Estimate(
        parameters=solution.parameters,
        covariance=covariance,
        condition_number=condition_number(triangles),
        joint_sigma=np.sqrt(np.divide(squares, freedom, out=unknown, where=freedom > 0.0)),
        lags=long_run.lags,
    )
    return Corrected(estimate, solution.share)


def _variances(triangles: Triangles, weights: Array, solution: _Solution) -> tuple[Array, Array]:
    """Sum of each group's squared residuals, and the freedom its rows have left."""
    columns = triangles.matrices[:, :, :-1]
    leverage = weights**2 * np.einsum("gip,pq,giq->g", columns, solution.inverse, columns)
    return triangles.squares(solution.parameters), np.maximum(triangles.counts - leverage, 0.0)


@dataclass(frozen=True, eq=False)
class _Scores:
    """What each time adds to the equations that the solution fulfils; their sum is zero.

    Σ_j weight² (x r + pull) with pull = C_j pi / n_j where the errors' products C are known, and where only their
    proportions are, r² C pi / (length² + piᵀ C pi).

    Attributes:
        parts, weights, solution: what was solved, with which weights, shape (n_parts, n_joints).
        pulls: C_j pi / n_j of each part and joint, or C pi over its length, shape (n_parts, n_joints, p).
        by_square: whether the pulls go with the squared residual.
    """

    parts: Sequence[Rows]
    weights: Array
    solution: _Solution
    pulls: Array
    by_square: bool

    @classmethod
    def of(
        cls, parts: Sequence[Rows], triangles: Triangles, weights: Array, solution: _Solution, products: Array | None
    ) -> _Scores:
        """Prepare."""
        shape = (len(parts), triangles.n_joints)
        if products is not None:
            pulls = products @ solution.parameters / np.maximum(triangles.counts, 1)[:, None]
        else:
            assert solution.errors is not None
            length = float(np.sum(_weighted(triangles, weights)[:, -1] ** 2))
            unit = solution.errors / solution.share if solution.share > 0.0 else 0.0 * solution.errors
            pull = unit @ solution.parameters
            pulls = np.tile(pull / (length + solution.parameters @ pull), (len(weights), 1))
        return cls(parts, weights.reshape(shape), solution, pulls.reshape(*shape, -1), products is None)

    def stretches(self) -> Iterator[Stretch]:
        """All terms, in order of time."""
        pi, inverse = self.solution.parameters, self.solution.inverse
        for part, weights, pulls in zip(self.parts, self.weights, self.pulls, strict=True):
            stop = -1
            for block in part.blocks():
                residual = np.where(block.used, block.torque - block.predict(pi), 0.0)
                terms = np.zeros((len(residual), len(pi)))
                for joint in range(part.n_joints):
                    which, columns = block.of_joint(joint)
                    leverage = weights[joint] ** 2 * np.sum((inverse[np.ix_(which, which)] @ columns) * columns, axis=0)
                    share = residual[:, joint] / (1.0 - np.clip(leverage, 0.0, 0.999))
                    terms[:, which] += (columns * (weights[joint] ** 2 * share)).T
                    size = residual[:, joint] ** 2 if self.by_square else block.used[:, joint]
                    terms += np.outer(weights[joint] ** 2 * size, pulls[joint])
                yield Stretch(block.start != stop, terms.T)
                stop = block.stop
