"""Ridge, and Bayes with the robot file's parameters."""

import dataclasses

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import WeightedLeastSquares
from jointbench.identification.estimators.regularised import (
    Bayes,
    ParameterPrior,
    RelativeSigma,
    Ridge,
    parameter_prior,
    split_by_time,
)
from jointbench.identification.rows import RowsInMemory
from jointbench.identification.triangles import compress
from jointbench.tests.identification.estimators.exact_problem import (
    ARM,
    InBlocks,
    base,
    noisy_rows,
    problem_of,
    true_parameters,
)
from jointbench.tests.identification.synthetic import truth

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


FLAT = Bayes(np.inf, np.inf, np.inf, np.inf)


def test_a_prior_that_says_nothing_leaves_weighted_least_squares():
    problem = problem_of(noisy_rows(0))
    found, plain = FLAT(problem), WeightedLeastSquares()(problem)
    np.testing.assert_allclose(found.parameters, plain.parameters, rtol=1e-8)
    np.testing.assert_allclose(found.covariance, plain.covariance, rtol=1e-6, atol=1e-9 * plain.covariance.max())
    assert found.figures["told_by_prior"] == []


def test_a_prior_that_knows_all_is_what_comes_out():
    tight = 1e-7
    found = Bayes(tight, tight, tight, tight)(problem_of(noisy_rows(0)))
    thought = parameter_prior(base(), RelativeSigma(tight, tight, tight, tight), compress([noisy_rows(0)]))
    assert found.parameters == pytest.approx(base().group(thought.values), rel=1e-4, abs=1e-4)
    assert set(found.figures["told_by_prior"]) == set(base().leading_names)


def test_the_prior_is_the_file_and_its_sigma_goes_by_size():
    prior = parameter_prior(base(), RelativeSigma(0.1, 0.2, 0.3, 0.4), compress([noisy_rows(0)]))
    links = 10 * ARM.n_links
    np.testing.assert_array_equal(prior.values[:links], truth(ARM)[:links])
    assert prior.guessed == ()
    for link, values in enumerate(prior.values[:links].reshape(-1, 10)):
        sigma = prior.sigma[10 * link : 10 * link + 10]
        assert sigma[0] == pytest.approx(0.1 * values[0])
        size = np.sqrt((values[4] + values[7] + values[9]) / 2.0 / values[0])
        assert sigma[1:4] == pytest.approx(0.2 * values[0] * size)
        assert sigma[4:] == pytest.approx(0.3 * values[0] * size**2)


def test_rows_of_the_prior_have_the_covariance_of_the_sums_they_are():
    rng = np.random.default_rng(0)
    prior = ParameterPrior(rng.standard_normal(base().n_full), rng.uniform(0.1, 2.0, base().n_full), ())
    rows = prior.rows(base())
    expected = base().grouping * prior.sigma**2 @ base().grouping.T
    assert np.linalg.inv(rows[:, :-1].T @ rows[:, :-1]) == pytest.approx(expected, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(rows[:, :-1] @ base().group(prior.values), rows[:, -1], atol=1e-9)


def test_an_unknown_parameter_leaves_open_what_it_has_a_share_in():
    sigma = np.ones(base().n_full)
    unknown = base().full_names.index("j3.m")
    sigma[unknown] = np.inf
    rows = ParameterPrior(np.zeros(base().n_full), sigma, ()).rows(base())
    shares = base().grouping[:, unknown]
    assert len(rows) == base().rank - 1
    np.testing.assert_allclose(rows[:, :-1] @ shares, 0.0, atol=1e-9)
    # As with a σ so large that it makes no difference.
    large = np.where(np.isinf(sigma), 1e5, sigma)
    almost = ParameterPrior(np.zeros(base().n_full), large, ()).rows(base())[:, :-1]
    np.testing.assert_allclose(rows[:, :-1].T @ rows[:, :-1], almost.T @ almost, atol=1e-4)


def test_the_posterior_holds_a_truth_drawn_from_the_prior():
    """Few rows and a prior that matters: over draws of both, 95 % lie within 2 σ of the posterior."""
    relative, inside = RelativeSigma(0.2, 0.2, 0.2, 0.2), []
    short = noisy_rows(0, samples=60)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        prior = parameter_prior(base(), relative, compress([short]))
        drawn = base().group(
            prior.values + np.where(np.isfinite(prior.sigma), prior.sigma, 0.0) * rng.standard_normal(base().n_full)
        )
        motion = (short.q, short.dq, short.ddq)
        noise = np.array([0.4, 0.15, 0.05]) * rng.standard_normal(short.q.shape)
        clean = np.concatenate([block.predict(drawn) for block in short.blocks()])
        rows = type(short)(base(), *motion, clean + noise)
        # The size of friction is taken from the torque, which differs from draw to draw by a few per cent.
        found = Bayes(0.2, 0.2, 0.2, 0.2)(problem_of(rows))
        inside.append(np.abs(found.parameters - drawn) < 2.0 * np.sqrt(np.diag(found.covariance)))
    # 40 draws of some 10 independent ones: 95.4 % told to 1 %; friction's prior is off by a few per cent of its own.
    assert 0.91 < np.mean(inside) < 0.99


def test_the_right_prior_helps_where_the_data_are_few():
    errors = {}
    for name, estimator in (("bayes", Bayes(0.1, 0.1, 0.1, 1.0)), ("wls", WeightedLeastSquares())):
        found = [estimator(problem_of(noisy_rows(seed, samples=60))).parameters for seed in range(10)]
        errors[name] = np.sqrt(np.mean((np.array(found) - true_parameters()) ** 2, axis=0))
    led_by_links = np.array([name.split(".")[1][0] in "mI" for name in base().leading_names])
    assert np.median((errors["bayes"] / errors["wls"])[led_by_links]) < 0.7
