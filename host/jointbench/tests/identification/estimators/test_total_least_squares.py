"""Least squares that know of errors in the regressor."""

import numpy as np
import pytest
from scipy import signal

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.corrected_fit import corrected_least_squares, scaled_total_least_squares
from jointbench.identification.estimators.position_noise import flat_noise, noise_draws, position_noise
from jointbench.identification.estimators.total_least_squares import TotalLeastSquares
from jointbench.identification.least_squares import Estimate, least_squares, weighted_least_squares
from jointbench.identification.least_squares.triangles import compress
from jointbench.identification.rows import RowsInMemory
from jointbench.tests.identification.estimators.errors_in_variables import (
    POORLY_FILTERED,
    TRUTH,
    noisy_run,
    problem_of,
    z_of_mean,
)

N, JOINTS, P = 600, 2, 4
PARAMETERS = np.array([3.0, -1.0, 0.5, 2.0])
SIGMA = np.array([0.1, 0.5])
NOISE = np.array([0.3, 0.2, 0.0, 0.1])
EXACT = np.array([False, False, True, False])
ALL = np.ones((N, JOINTS), dtype=np.bool_)


def columns(seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    slow = signal.lfilter(*signal.butter(2, 0.05), rng.standard_normal((N, JOINTS, P)), axis=0)
    return slow / slow.std(axis=(0, 1))


def corrected(regressor: Array, torque: Array, noise: Array = NOISE) -> Estimate:
    part = RowsInMemory(regressor, torque, ALL)
    products = np.tile(N * np.diag(noise**2), (JOINTS, 1, 1))
    return corrected_least_squares([part], compress([part]), products).estimate


def scaled(regressor: Array, torque: Array, exact: Array = EXACT) -> Estimate:
    part = RowsInMemory(regressor, torque, np.ones(torque.shape, dtype=np.bool_))
    return scaled_total_least_squares([part], compress([part]), exact.astype(np.bool_)).estimate


def test_one_column_is_the_line_of_deming() -> None:
    rng = np.random.default_rng(1)
    x = np.linspace(-1.0, 1.0, 50)
    measured, torque = x + 0.1 * rng.standard_normal(50), 2.0 * x + 0.2 * rng.standard_normal(50)
    # Errors are as the columns' lengths here, so that in their units the line is the main axis: of 45°.
    squares = measured @ measured, torque @ torque
    ratio = squares[1] / squares[0]  # Deming's: of the errors' variances
    mixed = 2.0 * (measured @ torque)
    expected = (squares[1] - ratio * squares[0]) / mixed + np.sqrt(
        ((squares[1] - ratio * squares[0]) / mixed) ** 2 + ratio
    )
    estimate = scaled(measured[:, None, None], torque[:, None], np.array([False]))
    assert estimate.parameters[0] == pytest.approx(expected, rel=1e-10)


def test_it_makes_the_least_errors_of_all_that_fit_exactly() -> None:
    """Against the definition: min |E D⁻¹|² + |e / d|² with (X + E) pi = tau + e is min of residuals over a length."""
    rng = np.random.default_rng(2)
    x = columns()[:, :1]  # one joint: one weight
    x = x + NOISE * rng.standard_normal(x.shape)
    torque = x @ PARAMETERS + 0.3 * rng.standard_normal((N, 1))
    inexact = ~EXACT
    lengths, length = np.linalg.norm(x[:, 0], axis=0), np.linalg.norm(torque)

    def errors(parameters: Array) -> float:
        residual = torque[:, 0] - x[:, 0] @ parameters
        return float(residual @ residual / (length**2 + np.sum((lengths * parameters)[inexact] ** 2)))

    found = scaled(x, torque).parameters
    least = errors(found)
    for _ in range(50):
        assert errors(found * (1.0 + 1e-4 * rng.standard_normal(P))) > least
    plain = weighted_least_squares(x, torque, ALL[:, :1]).parameters
    assert errors(plain) > least * (1.0 + 1e-6)


def test_without_errors_it_is_least_squares() -> None:
    x = columns()
    torque = x @ PARAMETERS + SIGMA * np.random.default_rng(3).standard_normal((N, JOINTS))
    plain = weighted_least_squares(x, torque, ALL)
    found = corrected(x, torque, np.zeros(P))
    assert found.parameters == pytest.approx(plain.parameters, rel=1e-9)
    assert np.diag(found.covariance) == pytest.approx(np.diag(plain.covariance), rel=0.05)
    assert scaled(x, torque, np.ones(P)).parameters == pytest.approx(plain.parameters, rel=1e-9)
    assert scaled(x, x @ PARAMETERS).parameters == pytest.approx(PARAMETERS, rel=1e-6)


@pytest.mark.parametrize("draws", [50, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["corrected", "scaled"])
def test_it_is_right_where_its_assumption_is_and_its_error_bars_hold(kind: str, draws: int) -> None:
    x = columns()
    rng = np.random.default_rng(4)
    share = 0.2
    found, stated, plain = [], [], []
    for _ in range(draws):
        if kind == "corrected":
            noisy = x + NOISE * rng.standard_normal(x.shape)
            torque = x @ PARAMETERS + SIGMA * rng.standard_normal((N, JOINTS))
            estimate = corrected(noisy, torque)
        else:
            noisy = x + share * rng.standard_normal(x.shape) * ~EXACT
            clean = x @ PARAMETERS
            torque = clean + share * clean.std() * rng.standard_normal((N, JOINTS))
            estimate = scaled(noisy, torque)
        found.append(estimate.parameters)
        stated.append(np.diag(estimate.covariance))
        plain.append(weighted_least_squares(noisy, torque, ALL).parameters)
    # Four means over their own deviations: the largest is below 3.5 in 99.8 % of all cases.
    assert np.abs(z_of_mean(np.array(found), PARAMETERS)).max() < 3.5
    assert np.abs(z_of_mean(np.array(plain), PARAMETERS)).max() > 20.0 * np.sqrt(draws / 200)
    # 800 intervals, the four of a draw nearly independent: a share of 95 % is told to 0.8 %.
    inside = np.abs(np.array(found) - PARAMETERS) < 1.96 * np.sqrt(stated)
    assert inside.mean() == pytest.approx(0.95, abs=0.025 * np.sqrt(200 / draws))


def test_what_is_not_excited_is_not_told() -> None:
    x = columns()
    x[..., 1] = 0.0
    torque = x @ PARAMETERS + SIGMA * np.random.default_rng(5).standard_normal((N, JOINTS))
    for estimate in (corrected(x, torque, np.array([0.1, 0.0, 0.0, 0.1])), scaled(x, torque)):
        assert np.isinf(np.diag(estimate.covariance)).tolist() == [False, True, False, False]
        assert estimate.parameters[1] == 0.0


def test_nothing_but_errors_is_refused() -> None:
    x = columns()
    with pytest.raises(FitError, match=r"errors are 1\d\d % .* must be below 80 %; record livelier motion"):
        corrected(x, x @ PARAMETERS, np.array([1.1, 0.0, 0.0, 0.0]))


def test_noise_of_positions_is_told_from_the_motion() -> None:
    for noise in (0.0, 1e-5, 1e-4):
        found = position_noise(noisy_run(noise, 0), POORLY_FILTERED)
        # 8000 samples tell a deviation to 1 %; fourth differences of the motion itself are 1e-9 rad.
        assert found == pytest.approx(np.full(2, noise), rel=0.03, abs=1e-8)


@pytest.mark.slow
def test_noise_of_positions_biases_least_squares_and_not_this() -> None:
    problems = [problem_of(noisy_run(6e-5, seed)) for seed in range(40)]
    estimates = [TotalLeastSquares()(problem) for problem in problems]
    found = np.array([estimate.parameters for estimate in estimates])
    plain = np.array([least_squares(problem.parts).parameters for problem in problems])
    # Of 14 means in units of their own deviation, of 40 draws, the largest is below 3.7 in 99 % of all cases.
    assert np.abs(z_of_mean(found, TRUTH)).max() < 3.7
    assert np.abs(z_of_mean(plain, TRUTH)).max() > 15.0
    # 560 intervals, those of a draw correlated: a share of 95 % is told to about 2 %.
    within = np.abs(found - TRUTH) < 1.96 * np.sqrt([np.diag(estimate.covariance) for estimate in estimates])
    assert 0.89 < within.mean() < 0.99


def test_it_says_what_it_assumed() -> None:
    estimate = TotalLeastSquares()(problem_of(noisy_run(6e-5, 0)))
    assert estimate.figures["position_noise"] == pytest.approx([6e-5, 6e-5], rel=0.05)
    assert any("assumed: noise of positions is white" in note for note in estimate.notes)
    classical = TotalLeastSquares(errors="columns")(problem_of(noisy_run(0.0, 0, torque_noise=0.01)))
    assert any("same share of its length" in note for note in classical.notes)
    # Where torque is noisier than the weakest combination of columns is long, these would be nothing but errors.
    with pytest.raises(FitError, match="must be below 80 %"):
        TotalLeastSquares(errors="columns")(problem_of(noisy_run(0.0, 0)))
    with pytest.raises(FitError, match="errors = 'rows' must be one of 'positions', 'columns'"):
        TotalLeastSquares(errors="rows")
    with pytest.raises(FitError, match="noise = -1 must be a number from 0"):
        TotalLeastSquares(noise=-1.0)


def test_signs_make_products_of_joints_noises_cancel() -> None:
    draws = list(noise_draws(np.random.default_rng(1), 500, 3))
    assert len(draws) == 8
    for one, two in ((0, 1), (0, 2), (1, 2)):
        assert sum(draw[:, one] * draw[:, two] for draw in draws) == pytest.approx(np.zeros(500), abs=1e-12)
    assert len(list(noise_draws(np.random.default_rng(1), 10, 12))) == 16


@pytest.mark.parametrize("n", [1000, 1001])
def test_noise_with_a_flat_spectrum(n: int) -> None:
    noise = flat_noise(np.random.default_rng(0), n, 3)
    assert noise.shape == (n, 3)
    assert np.abs(np.fft.rfft(noise, axis=0)) == pytest.approx(np.full((n // 2 + 1, 3), np.sqrt(n)))
    assert np.mean(noise**2, axis=0) == pytest.approx(np.ones(3))
    # Columns have nothing to do with each other, nor neighbours: 3 % each, of 1000.
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.15
