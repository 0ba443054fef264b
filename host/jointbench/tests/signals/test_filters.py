"""Linear filters: zero-phase low-pass, first-order lag, Savitzky-Golay smoother."""

import numpy as np
import pytest
from scipy import signal
from scipy.integrate import solve_ivp

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals import (
    FirstOrderLag,
    LowPass,
    bandwidth,
    fit_fourier_series,
    savitzky_golay,
    savitzky_golay_gain,
    smooth_motion,
)

H = 1e-3
LAG_PERIOD = 0.008
LAG = FirstOrderLag(0.05, LAG_PERIOD)


def test_low_pass_delays_nothing_and_keeps_slow_motion():
    low_pass = LowPass(cutoff_Hz=20.0, sample_period=H)
    time = H * np.arange(4000)
    slow = np.sin(2.0 * np.pi * 0.5 * time)
    inner = slice(3 * low_pass.settling, -3 * low_pass.settling)
    # |H|² of the double pass at 0.5 Hz is 1 - (0.5/20)^8: nothing but rounding is left well away from the edges.
    assert np.abs(low_pass.apply(slow) - slow)[inner].max() < 1e-6


def test_low_pass_halves_the_cutoff_frequency_and_removes_higher_ones():
    low_pass = LowPass(cutoff_Hz=20.0, sample_period=H)
    time = H * np.arange(8000)
    inner = slice(1000, -1000)
    at_cutoff = low_pass.apply(np.sin(2.0 * np.pi * 20.0 * time))[inner]
    above = low_pass.apply(np.sin(2.0 * np.pi * 80.0 * time))[inner]
    assert np.sqrt(2.0 * np.mean(at_cutoff**2)) == pytest.approx(0.5, rel=1e-3)  # -6 dB, as said
    assert np.abs(above).max() < 4.0**-8 * 1.1  # order 4 twice: (20/80)^8


def test_an_edge_is_not_felt_beyond_settling():
    low_pass = LowPass(cutoff_Hz=20.0, sample_period=H)
    step = np.concatenate([np.zeros(1000), np.ones(1000)])
    moved = np.abs(low_pass.apply(step) - step)
    assert moved[: 1000 - low_pass.settling].max() < 0.01  # what `settling` promises
    assert moved[995:1005].max() > 0.3


def test_stride_keeps_two_samples_a_period_of_the_cutoff():
    assert LowPass(cutoff_Hz=20.0, sample_period=H).stride == 25
    assert LowPass(cutoff_Hz=400.0, sample_period=H).stride == 1


def test_low_pass_filters_columns_alike():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((500, 2, 3))
    low_pass = LowPass(30.0, H)
    whole = low_pass.apply(columns)
    assert np.array_equal(whole[:, 1, 2], low_pass.apply(columns[:, 1, 2]))


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 500.0, 900.0])
def test_an_impossible_cutoff_is_refused(cutoff: float):
    with pytest.raises(SignalError, match=r"cut-off .* must be above 0 and below half the sample rate, 500 Hz"):
        LowPass(cutoff, H)


def test_an_unusual_order_is_refused():
    with pytest.raises(SignalError, match="order 9 must be 1 to 8"):
        LowPass(20.0, H, order=9)


def test_low_pass_says_how_many_samples_it_needs():
    low_pass = LowPass(20.0, H)
    with pytest.raises(SignalError, match=f"40 samples are too few .* more than {low_pass.settling}"):
        low_pass.apply(np.zeros(40))


@pytest.mark.parametrize(("cutoff", "order"), [(20.0, 4), (3.0, 1), (150.0, 5)])
def test_many_values_are_filtered_by_compiled_loops_to_the_same_bits(cutoff: float, order: int):
    low_pass = LowPass(cutoff, H, order)
    few = np.random.default_rng(0).standard_normal((4000, 3))
    many = np.tile(few[:, None, :], (1, 20, 1))
    assert np.array_equal(low_pass.apply(many), np.tile(low_pass.apply(few)[:, None, :], (1, 20, 1)))


@pytest.mark.parametrize(("cutoff", "order"), [(20.0, 4), (2.0, 2), (150.0, 8), (400.0, 3)])
def test_an_edge_is_forgotten_beyond_memory(cutoff: float, order: int):
    low_pass = LowPass(cutoff, H, order)
    values = np.random.default_rng(1).standard_normal(30_000)
    cut = low_pass.apply(values[10_000:])
    apart = np.abs(cut - low_pass.apply(values)[10_000:])
    # Rounding, of values of 1, which recursion at a low cut-off makes larger: by some (sample rate / 2 pi cut-off)².
    assert apart[low_pass.memory :].max() < 1e-16 * max(100.0, (1.0 / (2.0 * np.pi * cutoff * H)) ** 2)
    if low_pass.memory > 3:
        assert apart[: low_pass.memory // 2].max() > 1e-10  # half as far it can be seen


def test_the_lag_solves_its_differential_equation() -> None:
    u = np.random.default_rng(1).standard_normal(40)
    time = LAG_PERIOD * np.arange(40)
    solution = solve_ivp(
        lambda t, y: (np.interp(t, time, u) - y) / 0.05,
        (0.0, time[-1]), u[:1], t_eval=time, max_step=LAG_PERIOD / 4, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    # The solver's steps do not end at each corner of the signal, which costs it some of its tolerance.
    np.testing.assert_allclose(LAG.apply(u), solution.y[0], rtol=0, atol=1e-7)


def test_a_ramp_lags_by_the_time_constant() -> None:
    time = LAG_PERIOD * np.arange(400, dtype=np.float64)
    late = LAG.apply(3.0 * time)
    np.testing.assert_allclose(late[300:], 3.0 * (time[300:] - LAG.delay), rtol=0, atol=1e-12)


def test_after_settling_the_lag_leaves_one_percent_of_a_step() -> None:
    step = LAG.apply(np.concatenate([[0.0], np.ones(LAG.settling + 1)]))
    assert 1.0 - step[LAG.settling] < 0.02  # the ramp up to the step's first sample is late by up to one more
    assert 1.0 - step[LAG.settling // 2] > 0.05


def test_the_lag_is_linear_in_columns_of_any_shape() -> None:
    columns = np.random.default_rng(2).standard_normal((50, 3, 4))
    weights = np.arange(4.0)
    # Rounding of some hundred products of numbers of order one.
    np.testing.assert_allclose(LAG.apply(columns) @ weights, LAG.apply(columns @ weights), rtol=0, atol=1e-13)


def test_no_time_constant_changes_nothing() -> None:
    values = np.random.default_rng(3).standard_normal(9)
    np.testing.assert_array_equal(FirstOrderLag(0.0, LAG_PERIOD).apply(values), values)
    assert FirstOrderLag(0.0, LAG_PERIOD).settling == 0


@pytest.mark.parametrize(("constant", "period"), [(-0.1, LAG_PERIOD), (np.inf, LAG_PERIOD), (0.1, 0.0)])
def test_an_impossible_lag_is_refused(constant: float, period: float) -> None:
    with pytest.raises(SignalError, match="a first-order lag needs a time constant of 0 s or more"):
        FirstOrderLag(constant, period)


@pytest.mark.parametrize("passes", [1, 20])
def test_smoother_preserves_cubics_up_to_the_ends(passes: int):
    time = np.linspace(-1.0, 1.0, 41)
    cubic = np.column_stack([1.0 + 2.0 * time - 3.0 * time**2 + 4.0 * time**3, time**3])
    assert savitzky_golay(cubic, passes) == pytest.approx(cubic, abs=1e-13)
    quartic = time**4
    assert np.abs(savitzky_golay(quartic) - quartic).max() > 1e-7  # a degree more does not pass


def test_one_pass_of_the_smoother_is_the_least_squares_cubic():
    values = np.random.default_rng(0).standard_normal((50, 3))
    expected = signal.savgol_filter(values, 5, 3, axis=0, mode="interp")
    assert savitzky_golay(values) == pytest.approx(expected, abs=1e-13)


def test_five_samples_are_enough_for_the_smoother():
    values = np.random.default_rng(1).standard_normal(5)
    fitted = np.polynomial.Polynomial.fit(np.arange(5), values, 3)
    assert savitzky_golay(values) == pytest.approx(fitted(np.arange(5)), abs=1e-13)


@pytest.mark.parametrize("cycles", [0.01, 0.1, 0.25, 0.4, 0.5])
def test_smoother_gain_is_that_of_a_sine(cycles: float):
    wave = np.cos(2.0 * np.pi * cycles * np.arange(-400, 401))
    passed = savitzky_golay(wave, 20)[400]
    assert passed == pytest.approx(float(savitzky_golay_gain(np.array(cycles), 20)), abs=1e-12)


def test_smoother_passes_add_up_and_none_changes_nothing():
    values = np.random.default_rng(2).standard_normal(60)
    assert np.array_equal(savitzky_golay(savitzky_golay(values, 12), 8), savitzky_golay(values, 20))
    assert np.array_equal(savitzky_golay(values, 0), values)


def test_smoother_leaves_its_input_alone():
    values = np.random.default_rng(3).standard_normal(30)
    before = values.copy()
    savitzky_golay(values, 3)
    assert np.array_equal(values, before)


def test_smoother_names_too_few_samples_and_negative_passes():
    with pytest.raises(SignalError, match="4 samples are too few for the five-point smoother"):
        savitzky_golay(np.zeros(4))
    with pytest.raises(SignalError, match="passes = -1 of the five-point smoother must be 0 or more"):
        savitzky_golay(np.zeros(9), -1)


PERIOD = 5.0
TIME = H * np.arange(5000, dtype=np.float64)
OMEGA = 2.0 * np.pi / PERIOD
EVERYWHERE = np.ones(len(TIME), dtype=np.bool_)


def test_derivatives_of_a_sine():
    time = H * np.arange(5000)
    omega = 2.0 * np.pi * 0.4
    motion = smooth_motion(np.sin(omega * time)[:, None], LowPass(20.0, H))
    inner = slice(300, -300)
    # Central differences lack (omega h)²/6 = 1e-6; the edges' remains are of that size too.
    assert motion.dq[inner, 0] == pytest.approx(omega * np.cos(omega * time)[inner], abs=1e-5 * omega)
    assert motion.ddq[inner, 0] == pytest.approx(-(omega**2) * np.sin(omega * time)[inner], abs=1e-4 * omega**2)


def test_bandwidth_is_that_of_the_motion_not_of_the_encoder():
    time = H * np.arange(20_000)
    step = 2.0 * np.pi / 4096 / 101
    position = np.round(np.sin(2.0 * np.pi * 0.25 * time) / step) * step
    assert bandwidth(position[:, None], H) == pytest.approx(0.25, abs=0.15)  # the window's main lobe is 0.1 Hz wide


def test_bandwidth_is_not_that_of_doubled_samples():
    """One sample in eighty is there twice, and the next is lost."""
    position = np.sin(2.0 * np.pi * 0.25 * H * np.arange(20_000))[:, None]
    kept = position.copy()
    doubled = np.random.default_rng(0).choice(19_990, 250, replace=False)
    kept[doubled + 1] = kept[doubled]
    assert bandwidth(kept, H) == pytest.approx(0.25, abs=0.15)
    pieces = kept[:16_000].reshape(4, 4000, 1)
    assert bandwidth(pieces, H) == pytest.approx(0.25, abs=0.5)  # the main lobe of a fifth of the time


def test_bandwidth_of_rest_is_the_resolution():
    assert bandwidth(np.zeros((1001, 2)), H) == pytest.approx(1.0)


def test_a_joint_at_rest_does_not_count_in_the_bandwidth():
    time = H * np.arange(20_000)
    moving = np.sin(2.0 * np.pi * 3.0 * time)
    assert bandwidth(np.column_stack([moving, np.zeros_like(moving)]), H) == bandwidth(moving[:, None], H)


def test_steps_of_a_coarse_encoder_are_not_all_taken_for_jumps():
    """Between its steps it stands still but for rounding, which is no steady speed to hold them against."""
    time = np.arange(20000) * H
    coarse = 0.05 * np.rint(np.sin(2.0 * np.pi * 2.0 * time) / 0.05)
    assert bandwidth(coarse[:, None], H) >= 2.0


def series(order: int) -> Array:
    """Derivative of two joints' positions: harmonics 1, 2 and 7, and 3 alone."""

    def wave(harmonic: int, phase: float) -> Array:
        omega = OMEGA * harmonic
        return omega**order * np.sin(omega * TIME + phase + 0.5 * np.pi * order)

    rest = 0.4 if order == 0 else 0.0
    return np.column_stack([rest + wave(1, 0.3) + 0.2 * wave(2, 1.0) + 0.01 * wave(7, 2.0), 0.5 * wave(3, -1.0)])


def test_a_series_comes_back_with_its_derivatives():
    found = fit_fourier_series(TIME, series(0), EVERYWHERE, PERIOD, min_harmonics=7, max_harmonics=20)
    assert found.motion.q == pytest.approx(series(0), abs=1e-12)
    assert found.motion.dq == pytest.approx(series(1), abs=1e-10)
    assert found.motion.ddq == pytest.approx(series(2), abs=1e-9)


def test_number_of_harmonics_is_what_the_noise_leaves():
    noise = 1e-3 * np.random.default_rng(0).standard_normal((len(TIME), 2))
    found = fit_fourier_series(TIME, series(0) + noise, EVERYWHERE, PERIOD, min_harmonics=3, max_harmonics=40)
    assert found.n_harmonics == 7  # of a hundredth of a radian, ten deviations of a single sample
    assert found.residual_rms == pytest.approx([1e-3, 1e-3], rel=0.03)
    noisy = series(0) + 300.0 * noise
    assert fit_fourier_series(TIME, noisy, EVERYWHERE, PERIOD, min_harmonics=3, max_harmonics=40).n_harmonics == 3


def test_acceleration_of_a_series_is_far_better_than_by_differences():
    """Its error is that of the coefficients: variance Σ over harmonics of (ωl)⁴ 2/n of that of the positions, each."""
    sigma = 1e-3
    errors, filtered = [], []
    for seed in range(20):
        noise = sigma * np.random.default_rng(seed).standard_normal((len(TIME), 2))
        fit = fit_fourier_series(TIME, series(0) + noise, EVERYWHERE, PERIOD, min_harmonics=7, max_harmonics=7)
        errors.append(fit.motion.ddq - series(2))
        filtered.append((smooth_motion(series(0) + noise, LowPass(20.0, H)).ddq - series(2))[300:-300])
    expected = sigma * np.sqrt(2.0 / len(TIME) * np.sum((OMEGA * np.arange(1, 8)) ** 4))
    # 20 draws of 14 coefficients for two joints, of which the last few count most: 10 % at 2 deviations.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.1)
    assert np.sqrt(np.mean(np.square(filtered))) > 20.0 * expected


def test_missing_samples_are_told_by_the_others():
    valid = EVERYWHERE.copy()
    valid[1000:1400] = False
    position = np.where(valid[:, None], series(0), 99.0)
    found = fit_fourier_series(TIME, position, valid, PERIOD, min_harmonics=7, max_harmonics=7)
    assert found.motion.dq == pytest.approx(series(1), abs=1e-9)


def test_series_of_a_joint_at_rest_stays_at_rest():
    position = np.column_stack([series(0)[:, 0], np.full(len(TIME), 0.7)])
    found = fit_fourier_series(TIME, position, EVERYWHERE, PERIOD, min_harmonics=7, max_harmonics=20)
    assert found.motion.q[:, 1] == pytest.approx(0.7, abs=1e-15)
    assert found.motion.ddq[:, 1] == pytest.approx(0.0, abs=1e-15)


def test_series_of_too_few_samples_and_no_harmonics_are_refused():
    few = EVERYWHERE & (np.arange(5000) < 29)
    with pytest.raises(SignalError, match=r"29 good samples are too few for 7 harmonics"):
        fit_fourier_series(TIME, series(0), few, PERIOD, min_harmonics=7, max_harmonics=9)
    with pytest.raises(SignalError, match=r"min_harmonics = 3 and max_harmonics = 2 leave no series to choose"):
        fit_fourier_series(TIME, series(0), EVERYWHERE, PERIOD, min_harmonics=3, max_harmonics=2)
