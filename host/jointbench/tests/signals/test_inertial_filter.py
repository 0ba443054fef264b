"""The inertial filter: exact against its differential equation, linear, and late by its time constant."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from jointbench.errors import SignalError
from jointbench.signals import FirstOrderLag

H = 0.008
FILTER = FirstOrderLag(0.05, H)


def test_it_solves_its_differential_equation() -> None:
    u = np.random.default_rng(1).standard_normal(40)
    time = H * np.arange(40)
    solution = solve_ivp(
        lambda t, y: (np.interp(t, time, u) - y) / 0.05,
        (0.0, time[-1]), u[:1], t_eval=time, max_step=H / 4, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    # The solver's steps do not end at each corner of the signal, which costs it some of its tolerance.
    np.testing.assert_allclose(FILTER.apply(u), solution.y[0], rtol=0, atol=1e-7)


def test_a_ramp_comes_out_late_by_the_time_constant() -> None:
    time = H * np.arange(400, dtype=np.float64)
    late = FILTER.apply(3.0 * time)
    np.testing.assert_allclose(late[300:], 3.0 * (time[300:] - FILTER.delay), rtol=0, atol=1e-12)


def test_after_settling_one_percent_of_a_step_is_left() -> None:
    step = FILTER.apply(np.concatenate([[0.0], np.ones(FILTER.settling + 1)]))
    assert 1.0 - step[FILTER.settling] < 0.02  # the ramp up to the step's first sample is late by up to one more
    assert 1.0 - step[FILTER.settling // 2] > 0.05


def test_it_is_linear_in_columns_of_any_shape() -> None:
    columns = np.random.default_rng(2).standard_normal((50, 3, 4))
    weights = np.arange(4.0)
    # Rounding of some hundred products of numbers of order one.
    np.testing.assert_allclose(FILTER.apply(columns) @ weights, FILTER.apply(columns @ weights), rtol=0, atol=1e-13)


def test_no_time_constant_changes_nothing() -> None:
    values = np.random.default_rng(3).standard_normal(9)
    np.testing.assert_array_equal(FirstOrderLag(0.0, H).apply(values), values)
    assert FirstOrderLag(0.0, H).settling == 0


@pytest.mark.parametrize(("constant", "period"), [(-0.1, H), (np.inf, H), (0.1, 0.0)])
def test_what_is_no_filter_is_refused(constant: float, period: float) -> None:
    with pytest.raises(SignalError, match="a first-order lag needs a time constant of 0 s or more"):
        FirstOrderLag(constant, period)
