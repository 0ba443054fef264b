"""Weighted least squares with error bars that know that residuals are neither equal nor independent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.least_squares.covariance import Score, sandwich
from jointbench.identification.least_squares.triangles import Solution, Triangles, compress, condition_number, solve
from jointbench.identification.rows import Rows, RowsInMemory

if TYPE_CHECKING:
    from jointbench.identification.physical import PhysicalParameters

_PASSES = 3
"""The first pass has equal weights; each other takes the joints' weights from the residuals of the pass before."""

TOLD_BY_PRIOR = "told_by_prior"
"""Among an estimate's figures: parameters that a prior tells rather than the data."""

_ENOUGH_FREEDOM = 0.5
"""Share of its rows that a recording of a joint must have left over to tell its own noise: what little the fit leaves
of fewer passes for exact, and would then rule the fit."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of parameters and what is known about its error.

    Attributes:
        parameters: shape (p,); 0 where not told.
        covariance: of the parameters, shape (p, p); an infinite variance where the data cannot tell a parameter.
        condition_number: of the regressor as it is, neither scaled nor weighted, over the rows used.
        joint_sigma: standard deviation of the residual per joint, nan for a joint without rows, shape (n_joints,).
        lags: length of the window of Newey and West: for how many rows residuals count as correlated.
        inflation: how many times the variances are those that noise without correlation would give, on average.
        notes: what a reader must know, in sentences.
        figures: the same as numbers and words by name, as plain values.
        physical: the physically possible parameters, of estimators that make them.
    """

    parameters: Array
    covariance: Array
    condition_number: float
    joint_sigma: Array
    lags: int
    inflation: float = 1.0
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])
    physical: PhysicalParameters | None = None


def weighted_least_squares(regressor: Array, torque: Array, used: NDArray[np.bool_]) -> Estimate:
    """Estimate parameters from torque rows, each joint weighted by the inverse of its residual's deviation.

    As `least_squares`, of rows in memory.

    Args:
        regressor: shape (n, n_joints, p), rows evenly spaced in time.
        torque: shape (n, n_joints).
        used: rows to use, shape (n, n_joints); more than p of them.
    """
    return least_squares([RowsInMemory(regressor, torque, used)])


def least_squares(parts: Sequence[Rows]) -> Estimate:
    """Estimate parameters from torque rows, each joint of each recording weighted by its residual's deviation.

    pi = argmin Σ_kj (torque_kj - regressor_kj @ pi)² / sigma_j² over the rows used. The covariance is the sandwich
    B S B with B = (Σ x xᵀ / sigma²)⁻¹ and S the long-run covariance of the scores Σ_j x_kj r_kj / sigma_j², so that
    it stays right when residuals are coloured, shared between joints, or grow with the motion. The rows are read
    once to compress them, which suffices for the parameters, and again for the scores.

    Args:
        parts: rows of one recording each, with the same columns; more than p rows in all.

    Returns:
        The estimate.

    Source: White, Econometrica 48(4), 1980, with the leverages of MacKinnon & White, J. Econometrics 29(3), 1985;
    Newey & West, Econometrica 55(3), 1987; weights by joint as in Gautier, IEEE CDC, 1997.
    """
    triangles = compress(parts)
    weights = joint_weights(triangles)
    return judged(parts, triangles, weights, solve(triangles, weights))


def joint_weights(triangles: Triangles, more: Array | None = None) -> Array:
    """Inverse deviation of each group's residual, taken anew from pass to pass; shape (n_groups,)."""
    weights = np.ones(len(triangles.counts))
    for _ in range(_PASSES - 1):
        squares, freedom = solve(triangles, weights, more).variances(triangles, weights)
        sigma = _deviations(triangles, squares, freedom)
        # A joint without rows, or one fitted to the last bit, has no deviation to weigh by.
        weights = 1.0 / np.where(sigma > 0.0, sigma, 1.0)
    return weights


def _deviations(triangles: Triangles, squares: Array, freedom: Array) -> Array:
    """Of each group's residual; of a recording too short for that, the joint's over all of them."""
    shape = (-1, triangles.n_joints)
    of_all = np.broadcast_to(
        _mean(squares.reshape(shape).sum(axis=0), freedom.reshape(shape).sum(axis=0)), squares.reshape(shape).shape
    ).ravel()
    enough = freedom > _ENOUGH_FREEDOM * triangles.counts
    return np.sqrt(np.where(enough, _mean(squares, freedom), of_all))


def _mean(squares: Array, freedom: Array) -> Array:
    return np.divide(squares, freedom, out=np.zeros_like(squares), where=freedom > 0.0)


def judged(
    parts: Sequence[Rows], triangles: Triangles, weights: Array, solution: Solution, *,
    score: Score | None = None, prior: Array | None = None,
) -> Estimate:  # fmt: skip
    """A solution with its error bars.

    Args:
        parts: the rows.
        triangles: of them, as solved.
        weights: of their groups, shape (n_groups,).
        solution: of them.
        score: as of `sandwich`.
        prior: rows of what was known beside the data, in its own σ, shape (n, p): its error counts as well.
    """
    long_run = sandwich(parts, weights, solution, score)
    spread = long_run.covariance
    if prior is not None:
        reach = prior @ solution.factor
        spread = spread + reach.T @ reach
    covariance = solution.factor @ spread @ solution.factor.T
    untold = solution.untold
    covariance[untold, :] = covariance[:, untold] = 0.0
    covariance[untold, untold] = np.inf
    return Estimate(
        parameters=np.where(untold, 0.0, solution.parameters),
        covariance=covariance,
        condition_number=condition_number(triangles),
        joint_sigma=joint_sigma(triangles, weights, solution),
        lags=long_run.lags,
        inflation=_inflation(long_run.covariance, solution.leverages(triangles, weights)),
    )


def _inflation(long_run: Array, leverages: Array) -> float:
    told = float(leverages.sum())
    return float(np.trace(long_run)) / told if told > 0.0 else 1.0


def joint_sigma(triangles: Triangles, weights: Array, solution: Solution) -> Array:
    """Deviation of each joint's residual over all recordings, nan for a joint without rows, shape (n_joints,)."""
    squares, freedom = (
        each.reshape(-1, triangles.n_joints).sum(axis=0) for each in solution.variances(triangles, weights)
    )
    return np.sqrt(np.divide(squares, freedom, out=np.full(triangles.n_joints, np.nan), where=freedom > 0.0))
