"""Linear instrumental variables on rows whose regressor is noisy."""

import numpy as np
import pytest
from scipy import signal

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.instrumental import InstrumentedEstimate, instrumented_fit
from jointbench.identification.estimators.paired_rows import PairedRows
from jointbench.identification.least_squares import weighted_least_squares
from jointbench.identification.rows import RowsInMemory

N, JOINTS, P = 600, 2, 4
TRUTH = np.array([3.0, -1.0, 0.5, 20.0])
SIGMA = np.array([0.1, 2.0])
NOISE = np.array([0.3, 0.2, 0.0, 0.1])
"""Of the regressor's columns, whose own deviation is 1."""
ALL = np.ones((N, JOINTS), dtype=np.bool_)


def smooth_columns(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    slow = signal.lfilter(*signal.butter(2, 0.05), rng.standard_normal((N, JOINTS, P)), axis=0)
    return slow / slow.std(axis=0)


def solved(measured: Array, instruments: Array, torque: Array) -> InstrumentedEstimate:
    return instrumented_fit([PairedRows(RowsInMemory(measured, torque, ALL), RowsInMemory(instruments, torque, ALL))])


def test_with_the_regressor_for_its_own_instruments_it_is_least_squares() -> None:
    x = smooth_columns(0)
    torque = x @ TRUTH + SIGMA * np.random.default_rng(1).standard_normal((N, JOINTS))
    found, plain = solved(x, x, torque), weighted_least_squares(x, torque, ALL)
    # Weights differ by how the freedom of 1200 rows is shared between the joints.
    assert found.estimate.parameters == pytest.approx(plain.parameters, abs=1e-3)
    assert np.sqrt(np.diag(found.estimate.covariance)) == pytest.approx(np.sqrt(np.diag(plain.covariance)), rel=0.02)
    assert found.estimate.condition_number == pytest.approx(plain.condition_number, rel=1e-9)
    assert found.estimate.joint_sigma == pytest.approx(plain.joint_sigma, rel=1e-2)
    assert found.correlation == pytest.approx(1.0, abs=1e-9)


def test_what_the_instruments_are_mixed_of_does_not_matter() -> None:
    x = smooth_columns(0)
    rng = np.random.default_rng(2)
    z, torque = x + 0.3 * rng.standard_normal(x.shape), x @ TRUTH + SIGMA * rng.standard_normal((N, JOINTS))
    mixed = z @ (np.eye(P) + 0.2 * rng.standard_normal((P, P)))
    one, two = solved(x, z, torque), solved(x, mixed, torque)
    assert two.estimate.parameters == pytest.approx(one.estimate.parameters, rel=1e-9)
    assert two.estimate.covariance == pytest.approx(one.estimate.covariance, rel=1e-6)
    assert two.correlation == pytest.approx(one.correlation, rel=1e-9)


@pytest.mark.parametrize("draws", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_it_is_right_where_least_squares_are_not_and_its_error_bars_hold(draws: int) -> None:
    x = smooth_columns(0)
    rng = np.random.default_rng(3)
    found, stated, plain = [], [], []
    for _ in range(draws):
        torque = x @ TRUTH + SIGMA * rng.standard_normal((N, JOINTS))
        noisy = x + NOISE * rng.standard_normal(x.shape)
        instruments = x + 0.5 * rng.standard_normal(x.shape)
        estimate = solved(noisy, instruments, torque).estimate
        found.append(estimate.parameters)
        stated.append(np.diag(estimate.covariance))
        plain.append(weighted_least_squares(noisy, torque, ALL).parameters)
    errors = np.array(found) - TRUTH
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(draws)
    # Of four independent errors of a mean in units of their own deviation the largest is below 3.5 in 99.8 %.
    assert np.abs(errors.mean(axis=0) / standard_error).max() < 3.5
    assert np.abs((np.mean(plain, axis=0) - TRUTH) / standard_error).max() > 20.0 * np.sqrt(draws / 200)
    # A share of 95 % of 800 intervals is told to 0.8 %; the four of a draw are nearly independent.
    inside = np.abs(errors) < 1.96 * np.sqrt(stated)
    assert inside.mean() == pytest.approx(0.95, abs=0.025 * np.sqrt(200 / draws))


def test_exact_rows_give_exact_parameters_whatever_the_instruments() -> None:
    x, z = smooth_columns(0), smooth_columns(0) + 0.5 * smooth_columns(1)
    assert solved(x, z, x @ TRUTH).estimate.parameters == pytest.approx(TRUTH, rel=1e-9)


def test_several_recordings_and_rows_that_are_not_used() -> None:
    x = smooth_columns(0)
    rng = np.random.default_rng(4)
    torque = x @ TRUTH + 0.1 * rng.standard_normal((N, JOINTS))
    used = rng.random((N, JOINTS)) < 0.8
    spoiled = np.where(used, torque, 1e6)
    parts = [
        PairedRows(RowsInMemory(x[part], spoiled[part], used[part]), RowsInMemory(x[part], spoiled[part], ALL[part]))
        for part in (slice(0, 250), slice(250, N))
    ]
    estimate = instrumented_fit(parts).estimate
    assert estimate.parameters == pytest.approx(TRUTH, abs=0.05)
    assert estimate.joint_sigma == pytest.approx([0.1, 0.1], rel=0.15)  # 480 rows each: 3 %


def test_what_the_instruments_know_nothing_of_is_not_told() -> None:
    x = smooth_columns(0)
    z = x.copy()
    z[..., 2] = 0.0
    torque = x @ TRUTH + SIGMA * np.random.default_rng(5).standard_normal((N, JOINTS))
    estimate = solved(x, z, torque).estimate
    assert np.isinf(estimate.covariance[2, 2])
    assert estimate.parameters[2] == 0.0
    unrelated = solved(x, smooth_columns(7), torque)
    assert unrelated.correlation < 0.3


def test_too_few_rows_are_refused() -> None:
    x = smooth_columns(0)
    none = RowsInMemory(x, x @ TRUTH, np.zeros_like(ALL))
    with pytest.raises(FitError, match="0 rows have instruments, for 4 parameters"):
        instrumented_fit([PairedRows(none, none)])
