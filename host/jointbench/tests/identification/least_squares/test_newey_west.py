from itertools import pairwise

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.least_squares import covariance
from jointbench.identification.least_squares.covariance import Stretch, long_run_covariance, windowed_covariance


def written_out(terms: Array, lags: int) -> Array:
    """Newey and West's sum, lag by lag; terms of shape (n, p)."""
    total = terms.T @ terms
    for lag in range(1, lags + 1):
        product = terms[lag:].T @ terms[:-lag]
        total += (1.0 - lag / (lags + 1.0)) * (product + product.T)
    return total


def stretches(terms: Array, cuts: tuple[int, ...], gaps: tuple[int, ...] = ()):
    """The terms cut into stretches, some of them after a gap."""
    ends = (0, *cuts, len(terms))
    return [Stretch(start == 0 or start in gaps, terms[start:stop].T) for start, stop in pairwise(ends)]


@pytest.mark.parametrize("lags", [0, 1, 7, 40, 100])
@pytest.mark.parametrize("cuts", [(), (1, 2, 150), tuple(range(10, 300, 10))])
def test_moving_sums_are_the_sum_over_lags(monkeypatch: pytest.MonkeyPatch, lags: int, cuts: tuple[int, ...]):
    terms = np.random.default_rng(0).standard_normal((300, 3)).cumsum(axis=0)
    monkeypatch.setattr(covariance, "_count_and_lags", lambda *_: (300, lags))
    found = windowed_covariance(lambda: stretches(terms, cuts), np.eye(3))
    np.testing.assert_allclose(found.covariance, written_out(terms, lags), rtol=1e-11)


def test_nothing_is_correlated_across_a_gap(monkeypatch: pytest.MonkeyPatch):
    terms = np.random.default_rng(0).standard_normal((300, 3)).cumsum(axis=0)
    monkeypatch.setattr(covariance, "_count_and_lags", lambda *_: (300, 20))
    found = windowed_covariance(lambda: stretches(terms, (80, 200), gaps=(200,)), np.eye(3))
    expected = written_out(terms[:200], 20) + written_out(terms[200:], 20)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-11)


def test_the_window_is_the_same_however_terms_are_cut():
    rng = np.random.default_rng(1)
    terms = rng.standard_normal((500, 4)).cumsum(axis=0) + rng.standard_normal((500, 4))
    whole = long_run_covariance(terms)
    cut = covariance.long_run_covariance_of(lambda: stretches(terms, (3, 77, 400)), np.eye(4))
    assert cut.lags == whole.lags > 5
    np.testing.assert_allclose(cut.covariance, whole.covariance, rtol=1e-10)
