"""Weighted least squares over blocks of rows, with a covariance that knows of correlated residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.rows import Block, Rows, RowsInMemory, prefetch
from jointbench.identification.triangles import (
    GroupRows,
    Solution,
    Triangles,
    blocks_of,
    compress,
    condition_number,
    group_rows,
    solve,
)

if TYPE_CHECKING:
    from jointbench.identification.judgement import HeldOutError
    from jointbench.identification.physical import PhysicalParameters


_CHUNK = 4096
"""Terms taken at once: running sums of them stay in the cache."""


class LongRun(NamedTuple):
    """Covariance of a sum, shape (p, p), and the lag window's length it was taken with."""

    covariance: Array
    lags: int


class Windowed(NamedTuple):
    """Covariance before its correction for finite windows, and the number of terms."""

    covariance: Array
    lags: int
    n: int


class ConsecutiveTerms(NamedTuple):
    """Terms at consecutive times, shape (p, n); `starts` after a gap, else they go on with the stretch before."""

    starts: bool
    terms: NDArray[np.floating]


def long_run_covariance(terms: Array) -> LongRun:
    """Covariance of Σ_k terms_k when neighbours are correlated.

    S = Γ_0 + Σ_{l=1..L} (1 - l/(L+1)) (Γ_l + Γ_lᵀ) with Γ_l = Σ_k terms_{k+l} terms_kᵀ; the window's length L follows
    from the lag-one correlation of the terms. Rows of zeros stand for missing times and take no part.

    Args:
        terms: mean zero, evenly spaced in time, shape (n, p), n >= 2.

    Returns:
        The covariance, divided by 1 - L/n for what the window misses of a finite record, and L.

    Source: Newey & West, Econometrica 55(3), 1987; L from Andrews, Econometrica 59(3), 1991, eq. 6.2 and 6.4;
    missing times as in Parzen's amplitude modulation; the divisor is the first-order mean of the estimator in
    Kiefer & Vogelsang, Econometric Theory 21(6), 2005.
    """
    return long_run_covariance_of(lambda: [ConsecutiveTerms(True, terms.T)], np.eye(terms.shape[1]))


def long_run_covariance_of(stretches: Callable[[], Iterable[ConsecutiveTerms]], judged: Array) -> LongRun:
    """Return the long-run covariance of terms in stretches, as `windowed_covariance` takes them."""
    long_run = windowed_covariance(stretches, judged)
    return LongRun(long_run.covariance / (1.0 - long_run.lags / long_run.n), long_run.lags)


def windowed_covariance(stretches: Callable[[], Iterable[ConsecutiveTerms]], judged: Array) -> Windowed:
    """S of terms in stretches, of which only one is in memory at a time; not divided by what windows miss.

    It is the sum of w wᵀ / (L+1) over all sums w of L+1 consecutive terms, those that reach over an end of a stretch
    included: the same figure at a cost that does not depend on L.

    Args:
        stretches: gives the same ones again each of the two times it is called.
        judged: the window's length is that which suits judged @ terms, shape (q, p).
    """
    n, lags = _count_and_lags(stretches(), judged)
    sums = _MovingSums(judged.shape[1], lags)
    for stretch in stretches():
        if stretch.starts:
            sums.end()
        sums.add(stretch.terms)
    sums.end()
    return Windowed(sums.products / (lags + 1.0), lags, n)


class _MovingSums:
    """Σ w wᵀ over the sums w of consecutive terms, zeros before the first and after the last."""

    def __init__(self, p: int, lags: int) -> None:
        self.products = np.zeros((p, p))
        self._before = np.zeros((p, lags))
        self._lags = lags

    def add(self, terms: NDArray[np.floating]) -> None:
        """Terms at the times after those before."""
        step = max(_CHUNK, self._lags)
        for start in range(0, terms.shape[1], step):
            row = np.hstack([self._before, terms[:, start : start + step]])
            self._before = row[:, row.shape[1] - self._lags :].copy()
            sums = np.cumsum(row, axis=1)
            windows = sums[:, self._lags :].copy()
            windows[:, 1:] -= sums[:, : windows.shape[1] - 1]
            self.products += windows @ windows.T

    def end(self) -> None:
        """No more terms follow; the next ones are others."""
        self.add(np.zeros_like(self._before))
        self._before[:] = 0.0


def _count_and_lags(stretches: Iterable[ConsecutiveTerms], judged: Array) -> tuple[int, int]:
    """Return the number of terms, and the window's length: Andrews' plug-in rule for the triangular window.

    Each judged quantity counts alike; n/4 at most.
    """
    p = judged.shape[1]
    n, power, product = 0, np.zeros((p, p)), np.zeros((p, p))
    last = np.zeros((p, 1))
    for starts, terms in stretches:
        n += terms.shape[1]
        power += terms @ terms.T
        product += terms[:, 1:] @ terms[:, :-1].T
        if not starts:
            product += terms[:, :1] @ last.T
        last = terms[:, -1:].copy()
    powers, products = (np.einsum("ij,jk,ik->i", judged, gamma, judged) for gamma in (power, product))
    present = powers > 0.0
    if not present.any():
        return n, 0
    correlation = np.clip(products[present] / powers[present], -0.97, 0.97)
    innovation = 1.0 - correlation**2
    above = np.sum(4.0 * correlation**2 * innovation**2 / ((1.0 - correlation) ** 6 * (1.0 + correlation) ** 2))
    below = np.sum(innovation**2 / (1.0 - correlation) ** 4)
    return n, min(int(np.ceil(1.1447 * (above / below * n) ** (1.0 / 3.0))), n // 4)


_KEPT_BYTES = 64_000_000
"""Terms up to this size are kept for the second look at them, in single precision, which is enough of a covariance;
more are computed again."""

_LARGEST_LEVERAGE = 0.999

_NEGLIGIBLE = 0.01
"""Share of the variance that is not worth another look at the rows: half a percent of σ."""

_WINDOWS = 1000

LEAST_EXPECTED = 0.1
"""Of `expected_share`: with less, nearly all that tells a parameter lies within one window, and its σ is a guess."""

Score = Callable[[int, Array], Array]
"""Score of a group's weighted residuals, by its number."""


def sandwich(parts: Sequence[Rows], weights: Array, solution: Solution, score: Score | None = None) -> LongRun:
    """Long-run covariance S of Σ_k Fᵀ Σ_j x_kj w score(w r_kj) / (1 - h_kj); F S Fᵀ is that of the parameters.

    The residuals r are those of the solution, h the leverages of rows; terms of one time are summed over joints before
    they are multiplied, so that what joints' residuals share counts. S is divided by the share of white noise's
    variance that windows find in the residuals of a fit: see `expected_share`.

    Args:
        parts: the rows that were solved.
        weights: w of each group, shape (n_groups,).
        solution: of them.
        score: None: the weighted residuals themselves.

    Source: White, Econometrica 48(4), 1980; leverages of MacKinnon & White, J. Econometrics 29(3), 1985; windows as in
    `long_run_covariance`.
    """
    terms = _Terms(parts, weights, solution, score)
    long_run = windowed_covariance(terms.stretches, solution.factor)
    rank, width = solution.factor.shape[1], long_run.lags + 1
    # Of a long log windows miss (L+1) n_told / n at most, which is not worth another look at it.
    if width * rank < _NEGLIGIBLE * long_run.n:
        return LongRun(long_run.covariance, long_run.lags)
    share = expected_share(parts, weights, solution, width)
    return LongRun(long_run.covariance / max(share, LEAST_EXPECTED), long_run.lags)


def expected_share(parts: Sequence[Rows], weights: Array, solution: Solution, width: int) -> float:
    """Return the share of white noise's variance that windows of `width` times find in residuals on average.

    Such residuals have the covariance E - H, for the parameters have taken what lies along the regressor out. With
    v = w Fᵀ x / sqrt(1 - h) and h = |w Fᵀ x|² rows k and l of a window take away (v_k · v_l)², which is
    H_kl² / ((1 - h_k) (1 - h_l)), so that the share is (Σ_k |v_k|² + |v_k|⁴ - Σ_windows |Σ_k v_k v_kᵀ|²) / Σ_k h_k: of
    one mean of n terms about 1 - width / n. Of more than a thousand windows side by side as many are looked at, evenly
    spread.

    Args:
        parts, weights, solution: as of `sandwich`.
        width: times of a window, L + 1.
    """
    number, found, trace = 0, 0.0, 0.0
    every = -(-sum(-(-len(block.torque) // width) for _, block in blocks_of(parts)) // _WINDOWS)
    for first, block in blocks_of(parts):
        joints = [_whitened(rows, weights, solution) for rows in group_rows(block, first)]
        for start in range(0, len(block.torque) if joints else 0, width):
            number += 1
            if number % every == 0:
                v = np.hstack([joint[:, start : start + width] for joint in joints])
                squares = np.sum(v**2, axis=0)
                products = v @ v.T if v.shape[0] < v.shape[1] else v.T @ v
                found += float(np.sum(squares + squares**2) - np.sum(products**2))
                trace += float(np.sum(squares / (1.0 + squares)))
    return found / trace if trace > 0.0 else 1.0


def _whitened(rows: GroupRows, weights: Array, solution: Solution) -> Array:
    """The v of a joint's rows, shape (n_told, n)."""
    reach = weights[rows.group] * (solution.factor[rows.parameters].T @ rows.columns)
    return reach / np.sqrt(1.0 - np.minimum(np.sum(reach**2, axis=0), _LARGEST_LEVERAGE))


class _Terms:
    """The terms, stretch by stretch; as many as fit are kept from the first time they are asked for."""

    def __init__(self, parts: Sequence[Rows], weights: Array, solution: Solution, score: Score | None) -> None:
        self._parts, self._weights, self._solution, self._score = parts, weights, solution, score
        self._short: dict[bytes, Array] = {}
        self._kept: list[ConsecutiveTerms] | None = None

    def stretches(self) -> Iterator[ConsecutiveTerms]:
        """All terms, in order of time."""
        if self._kept is not None:
            yield from self._kept
            return
        kept, size = list[ConsecutiveTerms](), 0
        for stretch in prefetch(self._computed()):
            size += stretch.terms.nbytes // 2
            if size <= _KEPT_BYTES:
                kept.append(stretch._replace(terms=stretch.terms.astype(np.float32)))
            else:
                kept.clear()
            yield stretch
        self._kept = kept if size <= _KEPT_BYTES else None

    def _computed(self) -> Iterator[ConsecutiveTerms]:
        group, stop = -1, 0
        for first, block in blocks_of(self._parts):
            yield ConsecutiveTerms(first != group or block.start != stop, self._of(block, first))
            group, stop = first, block.stop

    def _of(self, block: Block, first: int) -> Array:
        """Terms of one block, shape (n_told, n)."""
        sums = np.zeros((block.n_parameters, len(block.torque)))
        for rows in group_rows(block, first):
            sums[rows.parameters] += rows.columns * self._pulls(rows)
        return self._solution.factor.T @ sums

    def _pulls(self, rows: GroupRows) -> Array:
        """Return the factor of each row's regressor, shape (n,)."""
        weight = self._weights[rows.group]
        residual = rows.torque - self._solution.parameters[rows.parameters] @ rows.columns
        reach = self._reach(rows) @ rows.columns
        leverage = weight**2 * np.einsum("ij,ij->j", reach, reach)
        score = weight * residual if self._score is None else self._score(rows.group, weight * residual)
        return weight * score / (1.0 - np.minimum(leverage, _LARGEST_LEVERAGE))

    def _reach(self, rows: GroupRows) -> Array:
        """A short matrix T with |T x| = |Fᵀ x| of a joint's columns x."""
        key = rows.parameters.tobytes()
        if key not in self._short:
            self._short[key] = np.asarray(np.linalg.qr(self._solution.factor[rows.parameters].T, mode="r"))
        return self._short[key]


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
        prior: rows (regressor | value) of what is known beside the data, each in its own σ, shape (n, p + 1).
        held_out: errors with and without quarters of the time, of estimators that leave them out.
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
    prior: Array | None = None
    held_out: HeldOutError | None = None


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
    """Return the sigma of each group's residual; in a recording too short for that, the joint's over all of them."""
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
    degrees = float(leverages.sum())
    return float(np.trace(long_run)) / degrees if degrees > 0.0 else 1.0


def joint_sigma(triangles: Triangles, weights: Array, solution: Solution) -> Array:
    """Deviation of each joint's residual over all recordings, nan for a joint without rows, shape (n_joints,)."""
    squares, freedom = (
        each.reshape(-1, triangles.n_joints).sum(axis=0) for each in solution.variances(triangles, weights)
    )
    return np.sqrt(np.divide(squares, freedom, out=np.full(triangles.n_joints, np.nan), where=freedom > 0.0))
