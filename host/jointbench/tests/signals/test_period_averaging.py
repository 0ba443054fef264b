import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.signals import average_periods, resampling


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
