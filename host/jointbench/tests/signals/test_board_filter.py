"""The example of docs/filters.md gives what it shows."""

import dataclasses
import doctest
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from jointbench.errors import SignalError
from jointbench.signals import BiquadCoefficients, BoardFilter

H = 1e-3
ONE: BiquadCoefficients = ((0.2, 0.3, 0.1), (1.0, -0.5, 0.1))
OTHER: BiquadCoefficients = ((0.04, 0.08, 0.04), (1.0, -1.4, 0.56))
NONE = BoardFilter(sections=(), cic_order=1, window=0.0, sample_period=H)
WHOLE = BoardFilter(sections=(ONE, OTHER), cic_order=2, window=H, sample_period=H)


def test_no_window_and_no_sections_change_nothing():
    values = np.random.default_rng(0).standard_normal((50, 3))
    assert np.array_equal(NONE.apply(values), values)
    assert NONE.gain == 1.0
    assert NONE.delay == 0.0


def test_a_window_of_one_tick_delays_by_half_a_tick():
    window = dataclasses.replace(NONE, window=H)
    time = H * np.arange(2000)
    omega = 2.0 * np.pi * 5.0
    mean_over_the_window = np.cos(omega * (time - 0.5 * H)) * np.sinc(5.0 * H)
    # 16 samples stand for the mean, and a cubic for the motion, within 2e-7; the values at the ends lack neighbours.
    assert window.apply(np.cos(omega * time))[2:-1] == pytest.approx(mean_over_the_window[2:-1], abs=3e-7)
    assert window.delay == pytest.approx(0.5 * H)


@pytest.mark.parametrize("cic_order", [1, 2])
@pytest.mark.parametrize("window", [0.0, 0.3e-3, H])
@pytest.mark.parametrize("frequency", [3.0, 20.0, 80.0])
def test_applying_is_the_exact_response(frequency: float, window: float, cic_order: int):
    board = dataclasses.replace(WHOLE, window=window, cic_order=cic_order)
    wave: NDArray[np.complex128] = np.exp(2j * np.pi * frequency * H * np.arange(4000))
    applied = board.apply(wave.real) + 1j * board.apply(wave.imag)
    (exact,) = board.response(np.array([frequency]))
    # The cubic between ticks: (2 pi f h)⁴/65 of the value, at most 1.1 times that anywhere; nothing without a window.
    tolerance = 1.1 * abs(exact) * (2.0 * np.pi * frequency * H) ** 4 / 65.0 + 1e-9
    assert np.abs(applied[1000:-1] - exact * wave[1000:-1]).max() < tolerance


def test_the_triangle_is_the_square_of_the_mean():
    frequency = np.linspace(0.0, 5000.0, 500)
    mean = dataclasses.replace(NONE, window=H)
    triangle = dataclasses.replace(mean, cic_order=2)
    assert np.abs(triangle.response(frequency)) == pytest.approx(np.abs(mean.response(frequency)) ** 2, abs=1e-12)
    assert triangle.delay == pytest.approx(H * (1.0 + 1.0 / 32.0))


def test_delay_is_the_slope_of_the_phase_at_rest():
    low = np.array([1e-3])
    late = -np.angle(WHOLE.response(low))[0] / (2.0 * np.pi * low[0])
    assert WHOLE.delay == pytest.approx(late, rel=1e-6)  # the slope changes by (2 pi f delay)² within a millihertz


def test_sections_are_causal_and_start_at_rest():
    board = dataclasses.replace(NONE, sections=(OTHER,))
    step = np.concatenate([np.full(100, 2.0), np.full(100, 3.0)])[:, None]
    filtered = board.apply(step)
    assert filtered[:100] == pytest.approx(2.0, abs=1e-12)
    alone = signal.lfilter(*OTHER, step[:, 0] - 2.0) + 2.0
    assert filtered[:, 0] == pytest.approx(alone, abs=1e-12)


def test_gain_is_that_of_the_quantised_coefficients():
    assert WHOLE.gain == pytest.approx(0.6 / 0.6 * 0.16 / 0.16)
    half = dataclasses.replace(WHOLE, sections=(((0.25, 0.0, 0.0), (1.0, -0.5, 0.0)), ONE))
    assert half.gain == pytest.approx(0.5)
    assert half.apply(np.full((400, 1), 4.0))[-1] == pytest.approx(2.0)


def test_a_single_value_and_a_pair_have_no_motion_to_guess():
    window = dataclasses.replace(NONE, window=H)
    assert window.apply(np.array([3.0])) == pytest.approx(3.0)
    assert window.apply(np.array([3.0, 3.0])) == pytest.approx(3.0)


def test_what_no_board_does_is_refused():
    with pytest.raises(SignalError, match=r"adc.cic_order 3 is not known; a board's decimator has order 1 or 2"):
        dataclasses.replace(NONE, cic_order=3)
    with pytest.raises(SignalError, match=r"adc.window 0.002 s must be from 0 to the tick, 0.001 s; correct the fact"):
        dataclasses.replace(NONE, window=2e-3)


DOCUMENT = Path(__file__).parents[4] / "docs" / "filters.md"


def test_the_example_gives_what_it_shows():
    outcome = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert outcome.attempted >= 7
    assert outcome.failed == 0
