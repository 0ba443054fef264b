import dataclasses

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import WeightedLeastSquares
from jointbench.identification.estimators.regularised import Ridge, split_by_time
from jointbench.identification.rows import RowsInMemory
from jointbench.tests.identification.estimators.exact_problem import InBlocks, noisy_rows, problem_of

N, JOINTS, P, ALIKE = 400, 2, 24, 20
SIGMA = np.array([0.5, 2.0])


def nearly_collinear(seed: int, rows: int = N) -> tuple[RowsInMemory, np.ndarray]:
    """Rows in which the first twenty columns are one but for a thousandth, and the parameters behind the torque."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, JOINTS, P))
    x[..., :ALIKE] = x[..., :1] + 1e-3 * rng.standard_normal((rows, JOINTS, ALIKE))
    true = np.array([1.0] * ALIKE + [-2.0, 0.5, 1.5, 3.0])
    torque = x @ true
    return RowsInMemory(x, torque + SIGMA * rng.standard_normal(torque.shape), np.ones((rows, JOINTS), bool)), true


def test_no_strength_is_weighted_least_squares():
    problem = problem_of(noisy_rows(0))
    ridge, plain = Ridge(0.0)(problem), WeightedLeastSquares()(problem)
    np.testing.assert_allclose(ridge.parameters, plain.parameters, rtol=1e-9)
    np.testing.assert_allclose(ridge.covariance, plain.covariance, rtol=1e-6)


def test_a_given_strength_is_the_closed_form():
    rows, _ = nearly_collinear(0)
    strength = 0.01
    found = Ridge(strength)(problem_of(rows))
    weights = 1.0 / WeightedLeastSquares()(problem_of(rows)).joint_sigma
    x, y = (rows.regressor * weights[:, None]).reshape(-1, P), (rows.torque * weights).ravel()
    gram = x.T @ x
    expected = np.linalg.solve(gram + strength * np.diag(np.diag(gram)), x.T @ y)
    # The weights of the last pass belong to the parameters of the one before.
    assert found.parameters == pytest.approx(expected, rel=1e-4)


def test_collinear_columns_are_shared_out_and_the_rest_is_left_alone():
    off_ridge, off_plain = [], []
    for seed in range(10):
        rows, true = nearly_collinear(seed, rows=100)
        found = Ridge()(problem_of(rows))
        off_ridge.append(found.parameters - true)
        off_plain.append(WeightedLeastSquares()(problem_of(rows)).parameters - true)
        assert found.figures["strength"] > 0.0
        assert found.figures["held_out_relative_error"] <= found.figures["held_out_relative_error_without"]
    ridge, plain = (np.sqrt(np.mean(np.array(each) ** 2, axis=0)) for each in (off_ridge, off_plain))
    assert np.linalg.norm(ridge[:ALIKE]) < 0.3 * np.linalg.norm(plain[:ALIKE])
    assert np.linalg.norm(ridge[ALIKE:]) < 1.5 * np.linalg.norm(plain[ALIKE:])


def test_what_no_row_tells_stays_untold():
    rows, _ = nearly_collinear(0)
    rows.regressor[..., P - 2] = 0.0
    found = Ridge(0.01)(problem_of(rows))
    assert np.isinf(np.diag(found.covariance)).tolist() == [False] * (P - 2) + [True, False]
    assert found.parameters[P - 2] == 0.0


def test_the_split_is_seven_to_three_by_blocks_of_time():
    rows, _ = nearly_collinear(0)
    (block,) = rows.blocks()
    for cuts in ((), (1, 57, 133, 390)):
        split = split_by_time([InBlocks(dataclasses.replace(block, start=1000), cuts)])
        assert split.fitted.counts.tolist() == [280, 280]
        assert split.held_out.counts.tolist() == [120, 120]
        held = np.concatenate([np.arange(80, 120), np.arange(200, 240), np.arange(320, 360)])
        expected = np.sum(rows.torque[held] ** 2, axis=0)
        assert split.held_out.squares(np.zeros(P)) == pytest.approx(expected, rel=1e-12)


def test_too_few_rows_to_choose():
    x = np.random.default_rng(0).standard_normal((5, 1, 4))
    rows = RowsInMemory(x, x.sum(axis=2), np.ones((5, 1), bool))
    with pytest.raises(FitError, match=r"rows to fit and \d held out are too few to choose the ridge's strength"):
        Ridge()(problem_of(rows))
