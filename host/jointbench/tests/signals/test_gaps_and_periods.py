import numpy as np
import pytest

from jointbench.signals import average_periods, spans


def test_spans_are_the_stretches_without_gaps():
    valid = np.array([0, 1, 1, 1, 0, 1, 0, 1, 1], dtype=np.bool_)
    assert list(spans(valid)) == [slice(1, 4), slice(5, 6), slice(7, 9)]
    assert list(spans(valid, least=2)) == [slice(1, 4), slice(7, 9)]
    assert list(spans(np.zeros(4, dtype=np.bool_))) == []


def test_mean_and_spread_of_periods():
    rng = np.random.default_rng(1)
    period, repeats = 500, 40
    truth = np.sin(2.0 * np.pi * np.arange(period) / period)
    values = np.tile(truth, repeats) + 0.3 * rng.standard_normal(period * repeats)
    tick = np.arange(period * repeats)
    average = average_periods(values[:, None], np.ones(len(tick), dtype=np.bool_), tick, period)
    assert average.spread == pytest.approx([0.3], rel=0.03)  # 20 000 samples: 0.5 % standard error
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
    assert np.isnan(average.spread).all()  # one period tells nothing of the spread
