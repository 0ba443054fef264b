"""Tests that are honest about how many there are, and about how well σ is known."""

import numpy as np
import pytest
from scipy import stats

from jointbench.identification.comparison.torque_difference import holm, joint_test, single_tests

R, ROWS = 8, 60


def covariances(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two covariances, each estimated from `ROWS` rows, and a difference whose covariance they estimate."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).standard_normal((R, R))
    rows = rng.standard_normal((2, ROWS, R)) @ mixing
    difference = (rng.standard_normal((2, R)) @ mixing).sum(axis=0)
    return difference, np.einsum("knp,knr->kpr", rows, rows) / ROWS


def test_equal_parameters_are_called_different_as_often_as_it_says():
    """χ² alone calls them so far too often when σ rests on few rows."""
    p_values, of_chi_square = np.empty((2, 400))
    for seed in range(400):
        difference, (a, b) = covariances(seed)
        test = joint_test(difference, (a, b), (ROWS, ROWS))
        p_values[seed], of_chi_square[seed] = test.p_value, stats.chi2.sf(test.chi_square, test.freedom)
    # 400 draws: 5 % with a standard error of 1.1 %.
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(of_chi_square < 0.05) > np.mean(p_values < 0.05) + 0.02


def test_one_covariance_is_hotellings_test():
    difference, (a, _) = covariances(3)
    test = joint_test(difference, (a,), (ROWS,))
    t2 = difference @ np.linalg.solve(a, difference)
    assert test.chi_square == pytest.approx(t2)
    assert test.p_value == pytest.approx(stats.f.sf(t2 * (ROWS - R + 1) / (ROWS * R), R, ROWS - R + 1))


def test_units_do_not_matter():
    difference, (a, b) = covariances(4)
    units = np.logspace(-4.0, 3.0, R)
    scaled = joint_test(
        difference * units, (a * np.outer(units, units), b * np.outer(units, units)), (ROWS, 2.0 * ROWS)
    )
    plain = joint_test(difference, (a, b), (ROWS, 2.0 * ROWS))
    assert scaled.chi_square == pytest.approx(plain.chi_square, rel=1e-6)
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-6)


def test_a_combination_that_nobody_knows_is_not_tested():
    difference, (a, _) = covariances(5)
    twice = np.ix_([*range(R), 0], [*range(R), 0])
    test = joint_test(np.append(difference, difference[0]), (a[twice],), (ROWS,))
    assert test.freedom == R
    assert test.chi_square == pytest.approx(joint_test(difference, (a,), (ROWS,)).chi_square, rel=1e-6)


def test_too_few_rows_are_no_test():
    difference, (a, _) = covariances(6)
    assert np.isnan(joint_test(difference, (a,), (float(R - 2),)).p_value)
    assert np.isnan(joint_test(np.zeros(0), (np.zeros((0, 0)),), (10.0,)).p_value)


def test_each_for_itself_is_welchs_test():
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal(12), 3.0 * rng.standard_normal(7) + 1.0
    difference = np.array([other.mean() - one.mean(), 1.0])
    variances = (np.array([one.var(ddof=1) / 12, np.inf]), np.array([other.var(ddof=1) / 7, 1.0]))
    found = single_tests(difference, variances, (11.0, 6.0))
    assert found[0] == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)
    assert np.isnan(found[1])


def test_holm_names_something_wrongly_as_often_as_it_says():
    rng = np.random.default_rng(0)
    wrong = [np.min(holm(rng.random(30))) <= 0.05 for _ in range(1000)]
    # 1000 draws: 5 % with a standard error of 0.7 %.
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.02)


def test_holm_finds_more_than_bonferroni():
    assert holm(np.array([0.001, 0.011, 0.012])).tolist() == pytest.approx([0.003, 0.022, 0.022])
