import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals import (
    average_periods,
    interpolate_samples,
    moving_mask,
    resample,
    resampling,
    rest_threshold,
    valid_spans,
)


def test_spans_are_the_stretches_without_gaps():
    valid = np.array([0, 1, 1, 1, 0, 1, 0, 1, 1], dtype=np.bool_)
    assert list(valid_spans(valid)) == [slice(1, 4), slice(5, 6), slice(7, 9)]
    assert list(valid_spans(valid, min_length=2)) == [slice(1, 4), slice(7, 9)]
    assert list(valid_spans(np.zeros(4, dtype=np.bool_))) == []


def test_threshold_is_a_share_of_each_joints_largest_speed():
    velocity = np.array([[0.1, -2.0], [-1.0, 0.5]])
    assert rest_threshold(velocity) == pytest.approx([0.03, 0.06])


def test_guard_widens_rest_on_both_sides():
    velocity = np.ones((9, 2))
    velocity[4, 0] = 0.0
    threshold = np.array([0.5, 0.5])
    assert moving_mask(velocity, threshold)[:, 0].tolist() == [True] * 4 + [False] + [True] * 4
    assert moving_mask(velocity, threshold, guard=2)[:, 0].tolist() == [True] * 2 + [False] * 5 + [True] * 2
    assert moving_mask(velocity, threshold, guard=2)[:, 1].all()


def test_guard_at_the_ends():
    velocity = np.ones((6, 1))
    velocity[0] = velocity[5] = 0.0
    assert moving_mask(velocity, np.array([0.5]), guard=1)[:, 0].tolist() == [False, False, True, True, False, False]


def test_guard_longer_than_the_motion():
    velocity = np.ones((4, 1))
    velocity[1] = 0.0
    assert not moving_mask(velocity, np.array([0.5]), guard=10).any()


H = 0.01


def jittered(n: int, seed: int, share: float = 0.25) -> Array:
    """Times of an even clock, late or early by up to a share of its period."""
    return H * (np.arange(n) + np.random.default_rng(seed).uniform(-share, share, n))


def waves(time: Array) -> Array:
    return np.column_stack([np.sin(2.0 * np.pi * 0.7 * time), np.cos(2.0 * np.pi * 1.3 * time)])


def test_times_that_are_even_give_the_samples_back():
    time = 5.0 + H * np.arange(200, dtype=np.float64)
    found = resample(time, waves(time))
    assert found.values == pytest.approx(waves(time), abs=1e-12)
    assert found.valid.all()
    assert found.n_gaps == 0
    assert found.jitter < 1e-12


def test_jitter_is_taken_out_and_told():
    time = jittered(2000, 1)
    found = resample(time, waves(time), sample_period=H)
    # A cubic spline's error is some 5/384 (2 pi f h)^4 of the wave, 1e-6 here, near the ends a few dozen times that.
    assert found.values == pytest.approx(waves(found.time), abs=1e-4)
    assert found.values[20:-20] == pytest.approx(waves(found.time)[20:-20], abs=3e-6)
    assert np.abs(waves(H * np.arange(2000) + time[0])[:1900] - waves(time)[:1900]).max() > 0.01  # what it would cost
    assert found.jitter == pytest.approx(H * 0.25 * np.sqrt(2.0 / 3.0), rel=0.05)  # of two uniform values' difference


def test_a_gap_stays_a_gap():
    time = jittered(1000, 2)
    kept = np.delete(np.arange(1000), np.arange(300, 350))
    found = resample(time[kept], waves(time[kept]), sample_period=H)
    inside = (found.time > time[299]) & (found.time < time[350])
    assert inside.sum() >= 49
    assert not found.valid[inside].any()
    assert found.valid[~inside].all()
    assert found.n_gaps == 1
    assert np.isnan(found.values[~found.valid]).all()


def test_flagged_and_missing_samples_do_not_enter():
    time = jittered(500, 3)
    values = waves(time)
    values[100] = 1e6
    values[200, 1] = np.nan
    flags = np.arange(500) != 100
    found = resample(time, values, flags, sample_period=H)
    assert np.abs(found.values[found.valid]).max() < 1.1
    assert 2 <= (~found.valid).sum() <= 6  # only what lies between the neighbours of the two
    assert found.n_gaps == 2


def test_logs_of_networks_in_which_some_steps_are_longer():
    """8 ms steps of which one in five is late by up to 5 ms, as logs of real arms have them."""
    rng = np.random.default_rng(4)
    time = np.cumsum(0.008 + np.where(rng.random(1500) < 0.2, rng.uniform(0.0, 0.0045, 1500), 0.0))
    found = resample(time, waves(time))
    assert found.sample_period == pytest.approx(0.008)
    assert found.valid.all()
    assert found.values[20:-20] == pytest.approx(waves(found.time)[20:-20], abs=1e-5)


def test_too_irregular_times_are_refused():
    rng = np.random.default_rng(5)
    with pytest.raises(SignalError, match=r"too irregular to resample"):
        resample(np.cumsum(rng.uniform(0.5, 1.5, 50)), np.zeros((50, 1)), sample_period=0.1)
    with pytest.raises(SignalError, match=r"times must rise: 0.02 s follows 0.03 s"):
        resample(np.array([0.0, 0.01, 0.03, 0.02, 0.04]), np.zeros((5, 1)))
    with pytest.raises(SignalError, match=r"3 good samples are too few"):
        resample(np.arange(5.0), np.array([[0.0], [np.nan], [0.0], [np.inf], [0.0]]))


def test_interpolation_is_exact_for_polynomials_up_to_the_fifth_degree():
    rng = np.random.default_rng(0)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(6), domain=[0, 20])
    places = rng.uniform(0.0, 20.0, 100)  # those near the ends are met from one side
    found = interpolate_samples(polynomial(np.arange(21.0)), places)
    assert found == pytest.approx(polynomial(places), abs=1e-12)


def test_whole_indices_return_the_samples_to_the_bit():
    values = np.random.default_rng(1).standard_normal((30, 2, 3))
    assert np.array_equal(interpolate_samples(values, np.arange(30.0)), values)


@pytest.mark.parametrize(("samples_a_cycle", "lost"), [(10, 3e-4), (5, 0.0152)])
def test_what_a_sine_loses_half_way_between_samples(samples_a_cycle: int, lost: float):
    omega = 2.0 * np.pi / samples_a_cycle
    places = np.arange(10.0, 190.0) + 0.5
    sine = interpolate_samples(np.sin(omega * np.arange(200)), places)
    assert np.max(np.abs(sine)) <= 1.0
    gain = sine @ np.sin(omega * places) / np.sum(np.sin(omega * places) ** 2)
    assert 0.0 < 1.0 - gain < lost


def test_nothing_is_interpolated_beyond_the_ends():
    with pytest.raises(SignalError, match=r"sample indices from -0.1 to 3 must lie within the samples, 0 to 9"):
        interpolate_samples(np.zeros(10), np.array([-0.1, 3.0]))
    with pytest.raises(SignalError, match="5 samples are too few to interpolate; at least 6"):
        interpolate_samples(np.zeros(5), np.array([1.0]))


def test_mean_and_spread_of_periods():
    rng = np.random.default_rng(1)
    period, repeats = 500, 40
    truth = np.sin(2.0 * np.pi * np.arange(period) / period)
    values = np.tile(truth, repeats) + 0.3 * rng.standard_normal(period * repeats)
    tick = np.arange(period * repeats)
    average = average_periods(values[:, None], np.ones(len(tick), dtype=np.bool_), tick, period)
    assert average.standard_deviation == pytest.approx([0.3], rel=0.03)  # 20 000 samples: 0.5 % standard error
    assert np.std(average.mean[:, 0] - truth) == pytest.approx(0.3 / np.sqrt(repeats), rel=0.15)


def test_what_one_period_lacks_comes_from_the_others():
    values = np.array([1.0, 2.0, 3.0, 1.0, np.nan, 5.0])[:, None]
    valid = np.array([1, 1, 0, 1, 0, 0], dtype=np.bool_)
    average = average_periods(values, valid, np.arange(6), period=3)
    assert average.mean[:2, 0] == pytest.approx([1.0, 2.0])
    assert average.valid.tolist() == [True, True, False]
    assert average.count.tolist() == [2, 1, 0]


def test_rows_before_the_motion_take_no_part():
    values = np.array([100.0, 1.0, 2.0])[:, None]
    average = average_periods(values, np.ones(3, dtype=np.bool_), np.array([-1, 0, 1]), period=2)
    assert average.mean[:, 0] == pytest.approx([1.0, 2.0])
    assert np.isnan(average.standard_deviation).all()  # one period tells nothing of the spread


def repeated(periods: int, seed: int, period: int = 400) -> tuple[Array, NDArray[np.intp]]:
    """Noise of 0.1 and 0.02 about a wave in two columns, and its ticks."""
    tick = np.arange(period * periods)
    wave = np.sin(2.0 * np.pi * tick / period)[:, None] * [1.0, 3.0]
    return wave + [0.1, 0.02] * np.random.default_rng(seed).standard_normal(wave.shape), tick


@pytest.mark.parametrize("periods", [3, 4, 10])
def test_planted_outliers_are_found_counted_and_leave_no_trace(periods: int):
    values, tick = repeated(periods, 2)
    planted = np.random.default_rng(3).choice(len(tick), 25, replace=False)
    planted = planted[np.unique(planted % 400, return_index=True)[1]]  # one a phase: of three, two must be right
    spoiled = values.copy()
    spoiled[planted, 1] += 0.5  # 25 deviations of this column
    valid = np.ones(len(tick), dtype=np.bool_)
    average = average_periods(spoiled, valid, tick, 400, reject_outliers=True)
    assert set(np.flatnonzero(average.rejected)) == set(planted)
    assert average.n_outliers.tolist() == [0, len(planted)]
    assert average.count.sum() == len(tick) - len(planted)
    without = average_periods(values, ~average.rejected, tick, 400)
    assert np.array_equal(average.mean, without.mean)
    assert average.standard_deviation == pytest.approx([0.1, 0.02], rel=0.1)
    assert average_periods(spoiled, valid, tick, 400).standard_deviation[1] > 0.04  # what they do when they stay


def test_without_outliers_next_to_nothing_is_rejected():
    rejected = sum(
        int(average_periods(values, np.ones(len(tick), dtype=np.bool_), tick, 400, reject_outliers=True).rejected.sum())
        for values, tick in (repeated(periods, seed) for periods in (3, 5, 10) for seed in range(10))
    )
    assert rejected <= 1  # of 144 000 Gaussian values


def test_a_phase_at_which_periods_truly_differ_is_not_thinned_out():
    values, tick = repeated(8, 4)
    lively = (tick % 400 >= 100) & (tick % 400 < 120)
    values[lively] += np.random.default_rng(5).uniform(-2.0, 2.0, (160, 1))
    average = average_periods(values, np.ones(len(tick), dtype=np.bool_), tick, 400, reject_outliers=True)
    assert average.count[100:120].mean() > 7.5  # of 8; those at its edges have calm neighbours


def test_steps_of_an_encoder_are_no_outliers():
    tick = np.arange(4000)
    values = np.round(5.0 * np.sin(2.0 * np.pi * tick / 400))[:, None]
    values[np.random.default_rng(6).choice(4000, 200, replace=False)] += 1.0  # most periods are the same to the bit
    average = average_periods(values, np.ones(4000, dtype=np.bool_), tick, 400, reject_outliers=True)
    assert not average.rejected.any()
    values[777] += 10.0
    average = average_periods(values, np.ones(4000, dtype=np.bool_), tick, 400, reject_outliers=True)
    assert np.flatnonzero(average.rejected).tolist() == [777]


def test_of_two_periods_neither_is_the_outlier():
    values, tick = repeated(2, 7)
    values[100] += 1e3
    average = average_periods(values, np.ones(len(tick), dtype=np.bool_), tick, 400, reject_outliers=True)
    assert not average.rejected.any()
    assert average.n_outliers.tolist() == [0, 0]


def test_some_phases_at_a_time_give_what_all_at_once_give(monkeypatch: pytest.MonkeyPatch):
    values, tick = repeated(9, 8)
    values[np.random.default_rng(10).choice(len(tick), 40, replace=False), 0] += 5.0
    valid = np.random.default_rng(9).random(len(tick)) < 0.9
    whole = average_periods(values, valid, tick - 130, 400, reject_outliers=True)
    monkeypatch.setattr(resampling, "_BLOCK_BYTES", 5e3)
    parts = average_periods((values[:, :1], values[:, 1:]), valid, tick - 130, 400, reject_outliers=True)
    assert whole.rejected.sum() > 20
    for name in ("mean", "count", "n_outliers", "rejected"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)
    assert parts.standard_deviation == pytest.approx(whole.standard_deviation, rel=1e-12)


def test_rounding_in_phases_at_rest_is_no_step_however_they_are_cut(monkeypatch: pytest.MonkeyPatch):
    """An encoder that is read through a coupling stands still but for the last bit; its step is seen elsewhere."""
    rng = np.random.default_rng(0)
    step, period, repeats = 1e-3, 4000, 6
    phase = np.tile(np.arange(period), repeats)
    true = 1.0 + np.where(phase < 1000, 0.0, np.sin(2.0 * np.pi * (phase - 1000) / 3000.0))
    values = step * np.rint((true + 0.3 * step * rng.standard_normal(len(true))) / step)
    rest = phase < 1000
    values[rest] = 1.0 + 2.2e-16 * rng.integers(-2, 3, rest.sum())
    used = np.ones(len(values), dtype=np.bool_)
    monkeypatch.setattr(resampling, "_BLOCK_BYTES", 4e4)
    average = average_periods(values[:, None], used, np.arange(len(values)), period, reject_outliers=True)
    assert average.n_outliers.tolist() == [0]
