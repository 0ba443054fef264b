"""Every linear estimator against Cramér and Rao's bound: known parameters, white noise of known size."""

import numpy as np
import pytest

from jointbench.identification.estimators import make_estimator
from jointbench.tests.identification.estimators.exact_problem import bound, noisy_rows, problem_of, true_parameters

SEEDS = range(40)

CASES = [
    # Errors over the bound, root mean square. 40 draws of 25 parameters, some 5 independent ones each, tell it to 5 %.
    ("wls", {}, 0.90, 1.10),
    ("irls", {}, 0.90, 1.13),  # 95 % efficient
    pytest.param("irls", {"loss": "bisquare"}, 0.90, 1.13, marks=pytest.mark.slow),
    ("ridge", {"strength": 0.0}, 0.90, 1.10),
    ("physical", {}, 0.85, 1.10),  # what is possible can only be nearer
    pytest.param("physical_log_cholesky", {}, 0.85, 1.10, marks=pytest.mark.slow),
    pytest.param("physical", {"weight": 1.0}, 0.70, 1.10, marks=pytest.mark.slow),  # the file holds the truth here
    ("bayes", {}, 0.70, 1.10),
]


@pytest.mark.parametrize(("name", "options", "least", "most"), CASES)
def test_errors_against_the_bound(name: str, options: dict[str, object], least: float, most: float):
    estimate = make_estimator(name, options)
    errors, sigmas = [], []
    for seed in SEEDS:
        found = estimate(problem_of(noisy_rows(seed)))
        errors.append(found.parameters - true_parameters())
        sigmas.append(np.sqrt(np.diag(found.covariance)))
    over = np.array(errors) / bound(noisy_rows(0))
    assert least < np.sqrt(np.mean(over**2)) < most
    within = np.mean(np.abs(np.array(errors) / sigmas) < 2.0)
    assert 0.92 < within < 0.985, within  # 95.4 %, told to 1.5 % by 200 independent ones


def test_ordinary_least_squares_pays_for_equal_weights():
    """But its error bars know."""
    estimate = make_estimator("ols")
    found = [estimate(problem_of(noisy_rows(seed))) for seed in SEEDS]
    errors = np.array([each.parameters - true_parameters() for each in found])
    over = np.sqrt(np.mean((errors / bound(noisy_rows(0))) ** 2))
    assert over > 1.3
    own = np.array([np.sqrt(np.diag(each.covariance)) for each in found])
    assert np.sqrt(np.mean((errors / own) ** 2)) == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize("name", ["wls", "ols", "irls", "ridge"])
def test_the_unit_of_torque_does_not_matter(name: str):
    rows = noisy_rows(3)
    other = type(rows)(rows.base, rows.q, rows.dq, rows.ddq, 1000.0 * rows.torque)
    one, thousand = (make_estimator(name)(problem_of(each)) for each in (rows, other))
    # Steps of reweighting end at a thousandth of a σ.
    scale = np.sqrt(np.diag(one.covariance))
    assert np.abs(thousand.parameters / 1000.0 - one.parameters).max() < 0.01 * scale.max()
    assert np.sqrt(np.diag(thousand.covariance)) / 1000.0 == pytest.approx(scale, rel=0.01)
