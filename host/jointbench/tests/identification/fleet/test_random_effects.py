"""The spread between units, and the units that are not like the others."""

import numpy as np
import pytest
from scipy import optimize

from jointbench.identification.fleet.random_effects import deleted_residuals, pool

MEAN, SPREAD, UNITS = 5.0, 1.5, 20


def units(seed: int, spread: float = SPREAD, n: int = UNITS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sigmas = rng.uniform(0.5, 2.0, n)
    return MEAN + spread * rng.standard_normal(n) + sigmas * rng.standard_normal(n), sigmas


def test_a_known_spread_is_recovered():
    found = pool(*(np.array(each) for each in zip(*map(units, range(400)), strict=True)))
    # 400 fleets: the mean's standard error is 2 % of the spread; a square root of an unbiased variance is biased by
    # 1 / (4 n) and more, some 4 % with errors as large as the spread.
    assert np.mean(found.spread) == pytest.approx(SPREAD, rel=0.08)
    assert np.mean(found.spread**2) == pytest.approx(SPREAD**2, rel=0.08)
    # 95 % with a standard error of 1.1 %.
    assert np.mean((found.lowest <= SPREAD) & (found.highest >= SPREAD)) == pytest.approx(0.95, abs=0.035)
    # The mean's σ is itself known to 16 %, which is what Student's t has over the normal distribution.
    assert np.mean(np.abs(found.mean - MEAN) < 2.0 * found.mean_sigma) == pytest.approx(0.94, abs=0.03)


def test_equal_units_are_called_different_as_often_as_it_says():
    found = pool(*(np.array(each) for each in zip(*(units(seed, 0.0) for seed in range(400)), strict=True)))
    assert np.mean(found.p_value < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.median(found.spread) < 0.3
    assert np.mean(found.inconsistency == 0.0) > 0.4


def test_root_is_that_of_a_bracketing_search():
    """However far the spread is from the σ: from nothing to a thousand times as large."""
    for spread in (0.0, 0.1, 1.0, 30.0, 1000.0):
        values, sigmas = units(1, spread)

        def excess(t: float, values: np.ndarray = values, sigmas: np.ndarray = sigmas) -> float:
            weight = 1.0 / (sigmas**2 + t)
            mean = np.sum(weight * values) / np.sum(weight)
            return float(np.sum(weight * (values - mean) ** 2) - (UNITS - 1))

        expected = np.sqrt(optimize.brentq(excess, 0.0, 1e8, xtol=1e-14)) if excess(0.0) > 0.0 else 0.0
        assert pool(values, sigmas).spread == pytest.approx(expected, rel=1e-6)


def test_exact_values_have_the_usual_deviation():
    values = np.random.default_rng(0).standard_normal(9)
    found = pool(values, np.full(9, 1e-9))
    assert found.spread == pytest.approx(np.std(values, ddof=1))
    assert found.mean_sigma == pytest.approx(np.std(values, ddof=1) / 3.0)


def test_units_without_an_estimate_take_no_part():
    values, sigmas = units(2)
    missing = sigmas.copy()
    missing[3] = np.inf
    whole, without = pool(np.delete(values, 3), np.delete(sigmas, 3)), pool(values, missing)
    assert without.count == UNITS - 1
    for name in ("mean", "mean_sigma", "spread", "lowest", "highest", "p_value", "inconsistency"):
        assert getattr(without, name) == pytest.approx(getattr(whole, name))


def test_one_unit_has_no_spread():
    one = pool(np.array([3.0, 7.0]), np.array([0.1, np.inf]))
    assert (one.mean, one.mean_sigma) == (3.0, pytest.approx(0.1))
    assert np.isnan([one.spread, one.lowest, one.highest, one.p_value, one.inconsistency]).all()
    none = pool(np.array([3.0, 7.0]), np.array([np.inf, np.inf]))
    assert np.isnan(none.mean)


def test_like_units_are_called_outliers_as_often_as_it_says():
    values = np.random.default_rng(0).standard_normal((1000, 8))
    _, p_values = deleted_residuals(values, np.full(values.shape, 0.3))
    # 8000 of which a thousand are independent: 5 % with a standard error below 0.7 %.
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.02)


def test_an_outlier_does_not_hide_behind_its_own_spread():
    values, sigmas = units(3)
    values[7] += 20.0
    residuals, p_values = deleted_residuals(values[None], sigmas[None])
    assert int(np.argmin(p_values)) == 7
    assert residuals[0, 7] > 5.0
    assert p_values[0, 7] < 1e-4
    with_all = (values[7] - values.mean()) / values.std(ddof=1)
    assert with_all < 4.5


def test_two_units_have_no_outlier():
    _, p_values = deleted_residuals(np.array([[0.0, 100.0]]), np.array([[1.0, 1.0]]))
    assert np.isnan(p_values).all()
