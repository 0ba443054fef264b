import numpy as np
import pytest
from scipy import signal

from jointbench.signals import BoardFilter

H = 1e-3
NONE = ((1.0,), (1.0,))


def test_a_window_of_one_tick_delays_by_half_a_tick():
    time = H * np.arange(2000)
    omega = 2.0 * np.pi * 5.0
    mean_over_the_window = np.cos(omega * (time - 0.5 * H)) * np.sinc(5.0 * H)
    filtered = BoardFilter(*NONE, window=1.0).apply(np.cos(omega * time))
    # Two points stand for the mean up to (omega h)²/12 = 8e-5.
    assert filtered[1:] == pytest.approx(mean_over_the_window[1:], abs=1e-4)


def test_no_window_and_no_biquad_change_nothing():
    values = np.random.default_rng(0).standard_normal((50, 3))
    assert np.array_equal(BoardFilter(*NONE, window=0.0).apply(values), values)


def test_biquad_is_causal_and_starts_at_rest():
    b, a = signal.butter(2, 100.0, fs=1.0 / H)
    board = BoardFilter(tuple(b), tuple(a), window=0.0)
    step = np.concatenate([np.full(100, 2.0), np.full(100, 3.0)])[:, None]
    filtered = board.apply(step)
    assert filtered[:100] == pytest.approx(2.0, abs=1e-12)
    assert filtered[-1] == pytest.approx(3.0, abs=1e-9)
    alone = signal.lfilter(b, a, step[:, 0] - 2.0) + 2.0
    assert filtered[:, 0] == pytest.approx(alone, abs=1e-12)


def test_gain_is_that_of_the_quantised_coefficients():
    board = BoardFilter((0.25, 0.5), (1.0, -0.26), window=1.0)
    assert board.apply(np.full((400, 1), 4.0))[-1] == pytest.approx(4.0 * board.gain)
    assert board.gain == pytest.approx(0.75 / 0.74)
