"""Error bars of a fit whose residuals are correlated in time and whose priors may be wrong by their own σ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.least_squares.covariance import LEAST_EXPECTED, Stretch, windowed_covariance

_GAP = 1.5
"""Sample periods from row to row beyond which neighbours are none."""


_UNTOLD = 1e-12
"""Information on a direction, as a share of that on its parameters one by one, that rounding leaves; it then counts for
so much, which makes error bars a million times as long as those of each parameter alone."""


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """How well parameters are known.

    Attributes:
        covariance: of the parameters, shape (q, q).
        inflation: how many times the variance of a score's sum is that of scores without correlation, on average.
        lags: how many rows are taken for correlated.
    """

    covariance: Array
    inflation: float
    lags: int


def error_bars(
    jacobian: Array,
    scores: Array,
    slope: float,
    prior: Array,
    starts: NDArray[np.bool_],
    directions: Array | None = None,
) -> ErrorBars:
    """Sandwich covariance B M B of parameters that minimise Σ rho(u) + Σ w (d · theta)².

    B = (slope Σ Jᵀ J + Dᵀ W D)⁻¹, M = long-run covariance of Σ_k J_kᵀ psi_k, plus Dᵀ W² D: the prior of a combination
    d · theta with σ = 1 pulls by w d · theta. The rows of a time are summed first, so that what they share counts.

    Args:
        jacobian: J of the residuals u in their σ, as many rows at a time as there are, shape (n, c, q).
        scores: psi = rho'/2 of them, shape (n, c).
        slope: mean of psi'.
        prior: w, 0 where there is none, shape (r,).
        starts: whether a row does not follow the one before it, shape (n,).
        directions: D, the combinations that priors are of, shape (r, q); the parameters one by one where not given.

    Source: Huber, Robust Statistics, 1981, sec. 7.6; Newey & West, Econometrica 55(3), 1987; what windows miss of a
    fit's residuals as in `least_squares.sandwich.expected_share`.
    """
    rows = jacobian.reshape(-1, jacobian.shape[2])
    d = np.eye(rows.shape[1]) if directions is None else directions
    pull = d.T @ (prior[:, None] * d)
    scale = np.sqrt(slope * np.sum(rows**2, axis=0) + np.diag(pull))
    scale[scale == 0.0] = 1.0
    information = slope * (rows.T @ rows) + pull
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    vectors = vectors / scale[:, None]
    told = values > _UNTOLD
    bread = (vectors[:, told] / values[told]) @ vectors[:, told].T
    untold = vectors[:, ~told] @ vectors[:, ~told].T / _UNTOLD
    terms = np.einsum("kcq,kc->kq", jacobian, scores)
    found = windowed_covariance(lambda: _stretches(terms, starts), bread * scale[:, None])
    share = _share(jacobian, bread * slope, found.lags + 1)
    meat = found.covariance / max(share, LEAST_EXPECTED)
    alone = np.sum(scores**2) / scores.size * np.sum(rows**2, axis=0)
    seen = alone > 0.0
    inflation = float(np.mean(np.diag(meat)[seen] / alone[seen])) if seen.any() else 1.0
    return ErrorBars(bread @ (meat + d.T @ (prior[:, None] ** 2 * d)) @ bread + untold, max(inflation, 1.0), found.lags)


def starting_rows(time: Array, period: float) -> NDArray[np.bool_]:
    """Which rows do not follow the one before them by a sample period, shape (n,)."""
    steps = np.diff(time, prepend=-np.inf)
    return (steps <= 0.0) | (steps > _GAP * period)


def _stretches(terms: Array, starts: NDArray[np.bool_]) -> Iterator[Stretch]:
    for part in np.split(terms, np.flatnonzero(starts[1:]) + 1):
        yield Stretch(True, part.T)


def _share(jacobian: Array, bread: Array, width: int) -> float:
    """Share of white noise's variance that windows find in residuals from which a fit has taken its part."""
    values, vectors = np.linalg.eigh(bread)
    reach = jacobian @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    whole = len(reach) // width * width
    windows = reach[:whole].reshape(-1, width * reach.shape[1], reach.shape[2])
    taken = np.sum((windows.transpose(0, 2, 1) @ windows) ** 2)
    total = np.sum(reach[:whole] ** 2)
    return float(1.0 - taken / total) if total > 0.0 else 1.0
