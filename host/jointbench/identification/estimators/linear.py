"""Weighted, ordinary and iteratively reweighted least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import Estimate, joint_weights, judged, least_squares
from jointbench.identification.least_squares.triangles import (
    GroupRows,
    Solution,
    Triangles,
    blocks_of,
    compress,
    group_rows,
    solve,
)
from jointbench.identification.rows import Rows


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Each joint of each recording weighted by the inverse deviation of its residual: see `least_squares`.

    The default, for it assumes least: no prior, no shape of the noise, and of all linear estimators that are unbiased
    it has the least variance as far as joints' noises differ but rows of one joint do not.
    """

    name: ClassVar[str] = "wls"

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        return least_squares(problem.parts)


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """argmin Σ (torque - regressor pi)² [N²·m²], which the joints with the largest torques rule.

    Its error bars are as honest as those of `least_squares`; the estimate is only less exact.
    """

    name: ClassVar[str] = "ols"

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        weights = np.ones(len(triangles.counts))
        return judged(problem.parts, triangles, weights, solve(triangles, weights))


_TUNING = {"huber": 1.345, "bisquare": 4.685}
"""Residuals [σ] from where rows count less, or not at all: of normal noise the estimate then keeps 95 % of its
efficiency (Holland & Welsch, 1977)."""

_NORMAL = 0.6745
"""Median of a normal variable's magnitude [σ]."""

_STEPS = 50
_CLOSE = 1e-3
"""Change of the parameters at which steps end [σ of all together]."""

_LEAST_SLOPE = 0.1
"""Of the score, on average over a joint's rows: with less, nearly all rows are far off, and σ is not told."""


@dataclass(frozen=True)
class RobustLeastSquares:
    """Iteratively reweighted least squares: min Σ rho((torque - regressor pi) / sigma) over the rows.

    "huber": squares near zero and linear beyond the tuning constant, so that no row pulls more than that; convex.
    "bisquare": starts from that and gives rows beyond its constant no pull at all; choose it for gross errors. The
    sigma of each joint is the median of its residuals' magnitudes, divided by that of normal noise. What friction the
    model lacks is far off too: look at the share of rows that count less than half before believing the rest.

    Attributes:
        loss: "huber" or "bisquare".
        tuning: its constant [σ]; None: 1.345, or 4.685.

    Source: Huber, Robust Statistics, 1981, and of the covariance its sec. 7.6, with scores correlated in time as in
    `least_squares`; Beaton & Tukey, Technometrics 16(2), 1974; Holland & Welsch, Comm. in Statistics 6(9), 1977.
    """

    loss: Literal["huber", "bisquare"] = "huber"
    tuning: float | None = None

    name: ClassVar[str] = "irls"

    def __post_init__(self) -> None:
        """Refuse what is no loss."""
        if self.loss not in _TUNING:
            raise FitError(f"loss {self.loss!r} is not known; the losses are {', '.join(_TUNING)}")
        if self.tuning is not None and not (np.isfinite(self.tuning) and self.tuning > 0.0):
            raise FitError(f"tuning = {self.tuning!r} must be above 0 σ, or None for {_TUNING[self.loss]} σ")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        parts = problem.parts
        plain = compress(parts)
        solution = solve(plain, joint_weights(plain))
        huber = _Huber(self.tuning if self.loss == "huber" and self.tuning else _TUNING["huber"])
        fitted = _iterate(parts, plain, solution, huber)
        if self.loss == "bisquare":
            bisquare = _Bisquare(self.tuning or _TUNING["bisquare"])
            fitted = _iterate(parts, plain, fitted.solution, bisquare)
        return fitted.judged(parts, plain, problem.robot.joint_names)


@dataclass(frozen=True)
class _Huber:
    constant: float

    def weight(self, u: Array) -> Array:
        return np.minimum(1.0, self.constant / np.maximum(np.abs(u), self.constant))

    def slope(self, u: Array) -> Array:
        return (np.abs(u) < self.constant).astype(np.float64)


@dataclass(frozen=True)
class _Bisquare:
    constant: float

    def weight(self, u: Array) -> Array:
        return np.maximum(1.0 - (u / self.constant) ** 2, 0.0) ** 2

    def slope(self, u: Array) -> Array:
        square = np.minimum((u / self.constant) ** 2, 1.0)
        return (1.0 - square) * (1.0 - 5.0 * square)


_Loss = _Huber | _Bisquare


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Parameters where the steps ended, each group's sigma, 0 where it has none, and how far the last step went [σ]."""

    solution: Solution
    sigma: Array
    loss: _Loss
    steps: int
    change: float

    def judged(self, parts: Sequence[Rows], plain: Triangles, names: tuple[str, ...]) -> Estimate:
        residuals = _residuals(parts, plain, self.solution.parameters)
        scaled = [each / (sigma or 1.0) for each, sigma in zip(residuals, self.sigma, strict=True)]
        slopes = np.array([np.mean(self.loss.slope(u)) if len(u) else 1.0 for u in scaled])
        slopes = np.sqrt(np.maximum(slopes, _LEAST_SLOPE))
        weights = slopes * _inverse(self.sigma)
        bread = replace(solve(plain, weights), parameters=self.solution.parameters)

        def score(group: int, residual: Array) -> Array:
            u = residual / slopes[group]
            return u * self.loss.weight(u) / slopes[group]

        estimate = judged(parts, plain, weights, bread, score=score)
        little = np.array([np.sum(self.loss.weight(u) < 0.5) for u in scaled]).reshape(-1, plain.n_joints).sum(axis=0)
        rows = plain.counts.reshape(-1, plain.n_joints).sum(axis=0)
        shares = little / np.maximum(rows, 1)
        listed = ", ".join(f"{name} {share:.1%}" for name, share in zip(names, shares, strict=True))
        return replace(
            estimate,
            joint_sigma=_pooled(self.sigma, plain),
            notes=(f"rows that count less than half, after {self.steps} steps: {listed}", *self._unsettled),
            figures={
                "iterations": self.steps,
                "last_change_sigma": self.change,
                "share_counting_less_than_half": shares.tolist(),
            },
        )

    @property
    def _unsettled(self) -> tuple[str, ...]:
        if self.change < _CLOSE:
            return ()
        return (f"the weights have not settled: the last step changed the parameters by {self.change:.2g} σ",)


def _iterate(parts: Sequence[Rows], plain: Triangles, solution: Solution, loss: _Loss) -> _Fitted:
    """Reweight, sigma and all, until the parameters stay."""
    sigma, steps, change = np.ones(len(plain.counts)), 0, np.inf
    while steps < _STEPS and not change < _CLOSE:
        before = solution.parameters
        sigma = _scales(_residuals(parts, plain, before), plain)
        triangles = compress(parts, _Weigh(before, _inverse(sigma), loss))
        solution, steps = solve(triangles, _inverse(sigma)), steps + 1
        moved = triangles.stacked(_inverse(sigma))[:, :-1] @ (solution.parameters - before)
        change = float(np.linalg.norm(moved))
    return _Fitted(solution, sigma, loss, steps, change)


@dataclass(frozen=True, eq=False)
class _Weigh:
    """Root of the weight of rows, by their residuals from parameters."""

    parameters: Array
    per_sigma: Array
    loss: _Loss

    def __call__(self, rows: GroupRows) -> Array:
        residual = rows.torque - self.parameters[rows.parameters] @ rows.columns
        return np.sqrt(self.loss.weight(self.per_sigma[rows.group] * residual))


def _residuals(parts: Sequence[Rows], plain: Triangles, parameters: Array) -> list[Array]:
    """Of the rows of each group."""
    found: list[list[Array]] = [[] for _ in plain.counts]
    for first, block in blocks_of(parts):
        for rows in group_rows(block, first):
            found[rows.group].append((rows.torque - parameters[rows.parameters] @ rows.columns)[rows.used])
    return [np.concatenate(each) if each else np.zeros(0) for each in found]


def _scales(residuals: list[Array], plain: Triangles) -> Array:
    """Sigma of each group by the median, for the freedom that its rows have left; 0 of one without rows."""
    medians = np.array([np.median(np.abs(each)) if len(each) else 0.0 for each in residuals])
    _, freedom = solve(plain, _inverse(medians)).variances(plain, _inverse(medians))
    share = np.divide(freedom, plain.counts, out=np.ones_like(freedom), where=plain.counts > 0)
    return medians / _NORMAL / np.sqrt(share)


def _inverse(sigma: Array) -> Array:
    return 1.0 / np.where(sigma > 0.0, sigma, 1.0)


def _pooled(sigma: Array, plain: Triangles) -> Array:
    """Of each joint over all recordings, nan where it has no rows."""
    counts = plain.counts.reshape(-1, plain.n_joints).astype(np.float64)
    squares = np.sum(counts * sigma.reshape(counts.shape) ** 2, axis=0)
    rows = counts.sum(axis=0)
    return np.sqrt(np.divide(squares, rows, out=np.full(len(rows), np.nan), where=rows > 0.0))
