"""The covariance of a sum of terms that are correlated in time."""

from typing import NamedTuple

import numpy as np

from jointbench.robot import Array


class LongRun(NamedTuple):
    """Covariance of a sum, shape (p, p), and the lag window's length it was taken with."""

    covariance: Array
    lags: int


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
    n = len(terms)
    lags = _window_length(terms)
    covariance = terms.T @ terms
    for lag in range(1, lags + 1):
        product = terms[lag:].T @ terms[:-lag]
        covariance += (1.0 - lag / (lags + 1.0)) * (product + product.T)
    return LongRun(covariance / (1.0 - lags / n), lags)


def _window_length(terms: Array) -> int:
    """Andrews' plug-in rule for the triangular window, each column counting alike, n/4 at most."""
    n = len(terms)
    power = np.sum(terms**2, axis=0)
    present = power > 0.0
    if not present.any():
        return 0
    correlation = np.sum(terms[1:, present] * terms[:-1, present], axis=0) / power[present]
    correlation = np.clip(correlation, -0.97, 0.97)
    innovation = 1.0 - correlation**2
    above = np.sum(4.0 * correlation**2 * innovation**2 / ((1.0 - correlation) ** 6 * (1.0 + correlation) ** 2))
    below = np.sum(innovation**2 / (1.0 - correlation) ** 4)
    return min(int(np.ceil(1.1447 * (above / below * n) ** (1.0 / 3.0))), n // 4)
