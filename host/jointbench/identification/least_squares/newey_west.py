"""The covariance of a sum of terms that are correlated in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array

_CHUNK = 4096
"""Terms taken at once: running sums of them stay in the cache."""


class LongRun(NamedTuple):
    """Covariance of a sum, shape (p, p), and the lag window's length it was taken with."""

    covariance: Array
    lags: int


class Windowed(NamedTuple):
    """The same before what windows miss is allowed for, and how many terms there are."""

    covariance: Array
    lags: int
    n: int


class Stretch(NamedTuple):
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
    return long_run_covariance_of(lambda: [Stretch(True, terms.T)], np.eye(terms.shape[1]))


def long_run_covariance_of(stretches: Callable[[], Iterable[Stretch]], judged: Array) -> LongRun:
    """The same of terms in stretches, as `windowed_covariance` takes them."""
    found = windowed_covariance(stretches, judged)
    return LongRun(found.covariance / (1.0 - found.lags / found.n), found.lags)


def windowed_covariance(stretches: Callable[[], Iterable[Stretch]], judged: Array) -> Windowed:
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


def _count_and_lags(stretches: Iterable[Stretch], judged: Array) -> tuple[int, int]:
    """How many terms there are, and the window's length: Andrews' plug-in rule for the triangular window.

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
