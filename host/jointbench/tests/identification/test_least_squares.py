"""Blocks of time: strength, error bars and held-out errors of least squares beside a prior."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from jointbench.arrays import Array
from jointbench.identification.blocked_least_squares import (
    BLOCKS,
    BlockedFit,
    GaussianPrior,
    block_sums,
    blocked_fit,
    body_prior,
    ridge,
)
from jointbench.identification.least_squares import (
    ConsecutiveTerms,
    least_squares,
    long_run_covariance,
    long_run_covariance_of,
    weighted_least_squares,
    windowed_covariance,
)
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, reference_bodies, relative_to
from jointbench.identification.rows import Block, RowsInMemory
from jointbench.model import base_parameters, load_robot
from jointbench.tests.identification.estimators.exact_problem import InBlocks

COUNT_AND_LAGS = "jointbench.identification.least_squares._count_and_lags"
N, JOINTS, P = 600, 2, 4
TRUTH = np.array([3.0, -1.0, 0.5, 20.0])
SIGMA = np.array([0.1, 2.0])
ALL = np.ones((N, JOINTS), dtype=np.bool_)


def regressor(seed: int = 0):
    """Smooth columns: with white ones no correlation of the noise would matter."""
    rng = np.random.default_rng(seed)
    slow = signal.lfilter(*signal.butter(2, 0.05), rng.standard_normal((N, JOINTS, P)), axis=0)
    return slow / slow.std(axis=0)


def colored(rng: np.random.Generator, correlation: float):
    """First-order autoregressive noise of unit variance."""
    white = rng.standard_normal((N + 200, JOINTS)) * np.sqrt(1.0 - correlation**2)
    return signal.lfilter([1.0], [1.0, -correlation], white, axis=0)[200:]


FEW_OR_MANY = pytest.mark.parametrize("runs", [75, pytest.param(300, marks=pytest.mark.slow)])


def repeat(x, correlation: float, runs: int):
    """Estimates and their covariances over many draws of the noise."""
    rng = np.random.default_rng(7)
    estimates = [weighted_least_squares(x, x @ TRUTH + SIGMA * colored(rng, correlation), ALL) for _ in range(runs)]
    return np.array([e.parameters for e in estimates]), np.array([np.diag(e.covariance) for e in estimates])


@FEW_OR_MANY
def test_reaches_the_cramer_rao_bound_in_white_noise(runs: int):
    x = regressor()
    information = np.einsum("kjp,kjq,j->pq", x, x, 1.0 / SIGMA**2)
    bound = np.sqrt(np.diag(np.linalg.inv(information)))
    parameters, variances = repeat(x, 0.0, runs)
    spread = parameters.std(axis=0, ddof=1)
    # 300 draws tell a deviation to 1/sqrt(600) = 4 %; three times that.
    assert spread == pytest.approx(bound, rel=3.0 / np.sqrt(2.0 * runs))
    assert np.sqrt(variances.mean(axis=0)) == pytest.approx(bound, rel=0.10)


@FEW_OR_MANY
def test_error_bars_are_honest_in_colored_noise(runs: int):
    x = regressor()
    parameters, variances = repeat(x, 0.7, runs)
    spread = parameters.std(axis=0, ddof=1)
    stated = np.sqrt(variances.mean(axis=0))
    # The window of Newey and West leaves some of the correlation out: 13 % at most, on top of the draws' 12 % of 300.
    apart = 0.13 + 3.0 / np.sqrt(2.0 * runs)
    assert np.all(stated > (1.0 - apart) * spread)
    assert np.all(stated < (1.0 + apart) * spread)
    # What the textbook formula would state is far too small: the test can tell.
    information = np.einsum("kjp,kjq,j->pq", x, x, 1.0 / SIGMA**2)
    assert np.all(np.sqrt(np.diag(np.linalg.inv(information))) < 0.6 * spread)


def test_weights_are_the_joints_own_deviations():
    x = regressor()
    rng = np.random.default_rng(3)
    estimate = weighted_least_squares(x, x @ TRUTH + SIGMA * rng.standard_normal((N, JOINTS)), ALL)
    assert estimate.joint_sigma == pytest.approx(SIGMA, rel=0.1)  # 600 rows: 3 % standard error


def test_exact_data_give_exact_parameters():
    x = regressor()
    estimate = weighted_least_squares(x, x @ TRUTH, ALL)
    assert estimate.parameters == pytest.approx(TRUTH, rel=1e-12)
    assert estimate.condition_number == pytest.approx(np.linalg.cond(x.reshape(-1, P)), rel=1e-9)


def test_a_parameter_that_is_not_excited_is_said_not_to_be_told():
    x = regressor()
    x[..., 2] = 0.0
    estimate = weighted_least_squares(x, x @ TRUTH + 0.1, ALL)
    assert np.isinf(estimate.covariance[2, 2])
    assert estimate.parameters[2] == 0.0
    assert np.isfinite(np.diag(estimate.covariance)[[0, 1, 3]]).all()
    assert np.isinf(estimate.condition_number)


def test_parameters_told_only_together_are_not_told_apart():
    x = regressor()
    x[..., 1] = 2.0 * x[..., 0]
    estimate = weighted_least_squares(x, x @ TRUTH + 0.1, ALL)
    assert np.isinf(np.diag(estimate.covariance)).tolist() == [True, True, False, False]


def test_rows_that_are_not_used_do_not_matter():
    x = regressor()
    rng = np.random.default_rng(5)
    torque = x @ TRUTH + 0.1 * rng.standard_normal((N, JOINTS))
    used = rng.random((N, JOINTS)) < 0.7
    spoiled = np.where(used, torque, 1e9)
    clean = weighted_least_squares(x, torque, used)
    assert weighted_least_squares(x, spoiled, used).parameters == pytest.approx(clean.parameters, rel=1e-12)
    assert clean.parameters == pytest.approx(TRUTH, abs=0.1)


def test_a_joint_without_rows():
    x = regressor()
    used = ALL.copy()
    used[:, 1] = False
    estimate = weighted_least_squares(x, x @ TRUTH, used)
    assert np.isnan(estimate.joint_sigma[1])
    assert estimate.parameters == pytest.approx(TRUTH, rel=1e-9)


def test_long_run_covariance_of_an_autoregression():
    # Of a sum of n terms with correlation r the variance is n (1 + r)/(1 - r).
    rng = np.random.default_rng(11)
    r, n = 0.5, 50_000
    white = rng.standard_normal((n, 1)) * np.sqrt(1.0 - r**2)
    terms = signal.lfilter([1.0], [1.0, -r], white, axis=0)
    long_run = long_run_covariance(terms)
    assert long_run.covariance[0, 0] / n == pytest.approx((1.0 + r) / (1.0 - r), rel=0.1)  # window 0.3 %, draw 4 %
    assert long_run.lags > 10


def test_long_run_covariance_of_white_noise_needs_next_to_no_lags():
    terms = np.random.default_rng(2).standard_normal((5000, 3))
    long_run = long_run_covariance(terms)
    assert long_run.lags <= 5
    assert np.diag(long_run.covariance) / 5000 == pytest.approx(np.ones(3), rel=0.1)
    assert np.linalg.eigvalsh(long_run.covariance).min() > 0.0


def test_long_run_covariance_of_nothing():
    assert long_run_covariance(np.zeros((10, 2))).covariance.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("cuts", [(1, 2, 3), tuple(range(7, N, 7)), (599,)])
def test_many_blocks_are_one(cuts: tuple[int, ...]):
    x = regressor()
    torque = x @ TRUTH + SIGMA * colored(np.random.default_rng(4), 0.7)
    used = np.random.default_rng(5).random((N, JOINTS)) < 0.9
    block = Block.of(50, x, torque, used, np.ones(N, dtype=np.bool_))
    whole, cut = weighted_least_squares(x, torque, used), least_squares([InBlocks(block, cuts)])
    assert cut.parameters == pytest.approx(whole.parameters, rel=1e-10)
    assert cut.condition_number == pytest.approx(whole.condition_number, rel=1e-9)
    assert cut.lags == whole.lags
    # Scores are kept in single precision; a window at a block's end begins anew where the share is looked up.
    assert cut.covariance == pytest.approx(whole.covariance, rel=0.05, abs=1e-3 * np.abs(whole.covariance).max())


def test_joints_may_come_in_any_order_and_unit():
    x = regressor()
    torque = x @ TRUTH + SIGMA * colored(np.random.default_rng(4), 0.7)
    plain = weighted_least_squares(x, torque, ALL)
    swapped = weighted_least_squares(x[:, ::-1], torque[:, ::-1], ALL)
    assert swapped.parameters == pytest.approx(plain.parameters, rel=1e-10)
    assert swapped.joint_sigma == pytest.approx(plain.joint_sigma[::-1], rel=1e-10)
    units = np.array([1e-3, 1.0, 1e4, 7.0])
    scaled = weighted_least_squares(x / units, torque, ALL)
    assert scaled.parameters == pytest.approx(plain.parameters * units, rel=1e-9)
    assert scaled.covariance == pytest.approx(plain.covariance * np.outer(units, units), rel=1e-5)


def test_a_short_recording_takes_its_noise_from_the_others():
    """Four rows of four parameters fit them exactly: their own noise would be none, and they would rule all."""
    x = regressor()
    noise = SIGMA * np.random.default_rng(6).standard_normal((N, JOINTS))
    torque = x @ TRUTH + noise
    long = RowsInMemory(x, torque, ALL)
    far = x[::150] @ TRUTH + 5.0 * SIGMA
    short = RowsInMemory(x[::150], far, ALL[::150])
    alone, both = least_squares([long]), least_squares([long, short])
    sigma = np.sqrt(np.diag(alone.covariance))
    assert np.abs((both.parameters - alone.parameters) / sigma).max() < 3.0


def test_error_bars_hold_for_few_rows_whatever_the_window(monkeypatch: pytest.MonkeyPatch):
    """Residuals of a fit have lost what its parameters took; windows must not lose it from the error bars again."""
    rng = np.random.default_rng(0)
    x = signal.lfilter(*signal.butter(2, 0.1), rng.standard_normal((300, JOINTS, 30)), axis=0)
    used = np.ones((300, JOINTS), dtype=np.bool_)
    for lags in (0, 4, 15):
        monkeypatch.setattr(COUNT_AND_LAGS, lambda *_, lags=lags: (300, lags))
        found = [weighted_least_squares(x, SIGMA * rng.standard_normal((300, JOINTS)), used) for _ in range(60)]
        errors = np.array([each.parameters for each in found])
        stated = np.array([np.diag(each.covariance) for each in found])
        # 60 draws of 30 parameters tell the ratio to 2 %; without the share it is 1.05, 0.90 and 0.85.
        assert np.sqrt(np.mean(stated / np.mean(errors**2, axis=0))) == pytest.approx(1.0, abs=0.12)


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
    return [ConsecutiveTerms(start == 0 or start in gaps, terms[start:stop].T) for start, stop in pairwise(ends)]


@pytest.mark.parametrize("lags", [0, 1, 7, 40, 100])
@pytest.mark.parametrize("cuts", [(), (1, 2, 150), tuple(range(10, 300, 10))])
def test_moving_sums_are_the_sum_over_lags(monkeypatch: pytest.MonkeyPatch, lags: int, cuts: tuple[int, ...]):
    terms = np.random.default_rng(0).standard_normal((300, 3)).cumsum(axis=0)
    monkeypatch.setattr(COUNT_AND_LAGS, lambda *_: (300, lags))
    found = windowed_covariance(lambda: stretches(terms, cuts), np.eye(3))
    np.testing.assert_allclose(found.covariance, written_out(terms, lags), rtol=1e-11)


def test_nothing_is_correlated_across_a_gap(monkeypatch: pytest.MonkeyPatch):
    terms = np.random.default_rng(0).standard_normal((300, 3)).cumsum(axis=0)
    monkeypatch.setattr(COUNT_AND_LAGS, lambda *_: (300, 20))
    found = windowed_covariance(lambda: stretches(terms, (80, 200), gaps=(200,)), np.eye(3))
    expected = written_out(terms[:200], 20) + written_out(terms[200:], 20)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-11)


def test_the_window_is_the_same_however_terms_are_cut():
    rng = np.random.default_rng(1)
    terms = rng.standard_normal((500, 4)).cumsum(axis=0) + rng.standard_normal((500, 4))
    whole = long_run_covariance(terms)
    cut = long_run_covariance_of(lambda: stretches(terms, (3, 77, 400)), np.eye(4))
    assert cut.lags == whole.lags > 5
    np.testing.assert_allclose(cut.covariance, whole.covariance, rtol=1e-10)


TRUE_BASE = np.array([2.0, -1.0, 0.5])
FAR = GaussianPrior(np.zeros(3), 1e3 * np.eye(3), True, np.zeros(3), 1e3 * np.ones(3))
"""A prior that says nothing."""


def rows_of(noise: Array, seed: int) -> RowsInMemory:
    """Rows of two joints whose columns are slow waves, with a noise of this shape (n, 2)."""
    rng, n = np.random.default_rng(seed), len(noise)
    t, phases = np.linspace(0.0, 1.0, n), rng.uniform(0.0, 6.28, (2, 3))
    columns = np.sin(2.0 * np.pi * np.array([3.0, 5.0, 8.0]) * t[:, None, None] + phases)
    return RowsInMemory(columns, columns @ TRUE_BASE + noise, np.ones((n, 2), dtype=np.bool_))


def coloured(seed: int, n: int = 1000, memory: float = 0.0) -> Array:
    """Noise x[k] = memory x[k-1] + white, of standard deviation 1."""
    noise = np.random.default_rng(seed).standard_normal((n, 2))
    for k in range(1, n):
        noise[k] = memory * noise[k - 1] + np.sqrt(1.0 - memory**2) * noise[k]
    return noise


def fitted(noise: Array, seed: int, prior: GaussianPrior = FAR) -> BlockedFit:
    return blocked_fit(block_sums([rows_of(noise, seed)])[0], prior)


def test_sums_and_triangles_are_those_of_all_rows() -> None:
    rows = rows_of(coloured(0), 0)
    sums, triangles = block_sums([rows, rows_of(coloured(1, n=300), 1)])
    assert set(sums.block.tolist()) == set(range(BLOCKS))
    table = np.concatenate([rows.regressor, rows.torque[:, :, None]], axis=2)
    grams, counts = sums.of_groups
    np.testing.assert_allclose(grams[0], np.einsum("njk,njl->jkl", table, table), rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(counts, [[1000, 1000], [300, 300]])
    own = triangles.matrices[:2]
    np.testing.assert_allclose(np.swapaxes(own, 1, 2) @ own, grams[0], rtol=1e-10, atol=1e-8)


def test_ridge_is_the_closed_form() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    prior = GaussianPrior(np.ones(3), np.diag([1.0, 2.0, 3.0]), True, np.ones(3), np.ones(3))
    precision = np.diag([1.0, 1.0 / 4.0, 1.0 / 9.0])
    table = np.column_stack([x, y])
    for strength in (0.1, 10.0):
        expected = np.linalg.solve(x.T @ x + strength * precision, x.T @ y + strength * precision @ prior.mean)
        np.testing.assert_allclose(ridge(table.T @ table, prior, np.array([strength]))[0], expected, rtol=1e-12)


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_inflation_is_how_many_rows_count_as_one(memory: float) -> None:
    """(1 + a) / (1 - a) of a first-order noise against columns that are slow beside it."""
    expected = (1.0 + memory) / (1.0 - memory)
    values = [fitted(coloured(seed, memory=memory), seed).inflation for seed in range(30)]
    # 3 parameters from 20 blocks tell a variance to about 20 %, 30 fits to 4 %; it is at least 1 in each.
    assert np.mean(values) == pytest.approx(max(expected, 1.1), rel=0.15)


def test_error_bars_cover_the_truth_where_noise_has_a_memory() -> None:
    inside, white = list[NDArray[np.bool_]](), list[NDArray[np.bool_]]()
    for seed in range(60):
        fit = fitted(coloured(seed, memory=0.9), seed)
        away = np.abs(fit.parameters - TRUE_BASE)
        inside.append(away < 2.0 * np.sqrt(np.diag(fit.covariance())))
        gram = fit.blocks.sum(axis=0)[:-1, :-1]
        white.append(away < 2.0 * np.sqrt(np.diag(np.linalg.inv(gram))))
    # Of 180 parameters, three correlated ones at a time, 2 σ hold 95 ± 2.5 %; rows that count as independent hold half.
    assert np.mean(inside) > 0.88
    assert np.mean(white) < 0.7


def test_covariance_is_one() -> None:
    """Of full rank, though few blocks make it, so that distances from an estimate can be told."""
    covariance = fitted(coloured(3, memory=0.9), 3).covariance()
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0


def test_a_prior_of_balls_is_as_strong_as_it_predicts() -> None:
    """Noise that says nothing is held down to the prior's zero; a signal is not."""
    balls = GaussianPrior(np.zeros(3), np.eye(3), False, np.zeros(3), np.ones(3))
    rows = rows_of(coloured(5, memory=0.95), 5)
    nothing = RowsInMemory(rows.regressor, coloured(5, memory=0.95), rows.used)
    weak = blocked_fit(block_sums([rows])[0], balls)
    strong = blocked_fit(block_sums([nothing])[0], balls)
    assert weak.strength < 1.0 < strong.strength


def test_a_quarter_that_moves_otherwise_is_seen_by_the_others() -> None:
    """An offset in one quarter of the time: parameters fitted without it miss it."""
    noise = 0.01 * coloured(6)
    rows = rows_of(noise, 6)
    bent = rows.torque.copy()
    bent[:250] = rows.regressor[:250] @ np.array([3.0, -1.0, 0.5])
    fit = blocked_fit(block_sums([RowsInMemory(rows.regressor, bent, rows.used)])[0], FAR)
    np.testing.assert_allclose(fit.quarters[0], TRUE_BASE, atol=0.02)  # noise of 0.01 over some 500 rows' worth
    assert abs(fit.parameters[0] - 2.0) > 0.15


def test_links_are_held_by_the_second_order_of_the_log_det_divergence() -> None:
    robot = load_robot("cobot6")
    base = base_parameters(robot)
    ones = np.ones(robot.n_joints)
    prior = body_prior(base, ones, np.ones((robot.n_joints, base.rank)))
    assert prior.is_nominal
    assert robot.standard_parameters is not None
    bodies = reference_bodies(robot)
    link = bodies.links[2]
    own = slice(10 * link, 10 * link + 10)
    reference, step = bodies.matrices[2], np.zeros(10)
    step[0], step[4], step[7], step[9] = 1e-3, 1e-4, 2e-4, 1e-4
    moved = reference + pseudo_inertia(step)
    ratio = np.linalg.solve(reference, moved)
    divergence = np.trace(ratio) - np.log(np.linalg.det(ratio)) - 4.0
    away = np.linalg.solve(relative_to(reference), step)
    # The next order is as large as the step relative to the body, some 1e-3 … 1e-2.
    assert 0.5 * away @ away == pytest.approx(divergence, rel=0.05)
    np.testing.assert_allclose(
        prior.sigma_of_all[own] ** 2, 2.0 * np.sum(relative_to(reference) ** 2, axis=1), rtol=1e-9
    )
