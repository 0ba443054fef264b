"""The integer twins of the board's filters: what is proven of them here, and that their stated responses are theirs.

The example of docs/filters.md gives what it shows.
"""

import dataclasses
import doctest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import signal

from jointbench.errors import SignalError
from jointbench.signals import (
    PASS_THROUGH,
    BiquadCoefficients,
    Biquads,
    BoardFilter,
    Cic,
    MtVelocity,
    TrackingObserver,
    boxcar,
    butterworth_sections,
    dequantise_biquad,
    moving_average_response,
)

H = 1e-3
ONE = PASS_THROUGH[0]
TICKS = 6000
SETTLED = 2000  # the slowest filter here forgets its start long before
SEED = 11


def amplitude(values, frequency: float, period: float = H) -> complex:
    """Complex amplitude of the settled part, by least squares: a sine's, and what stands still."""
    turns = 2.0 * np.pi * frequency * period * np.arange(SETTLED, len(values))
    columns = np.column_stack([np.cos(turns), np.sin(turns), np.ones_like(turns)])
    cosine, sine, _ = np.linalg.lstsq(columns, values[SETTLED:], rcond=None)[0]
    return cosine - 1j * sine


def adc_samples(frequency: float, window: float) -> np.ndarray:
    """Converted swing of nearly full scale, 16 instants in each tick's window, with half a bit of noise."""
    rng = np.random.default_rng(SEED)
    late = window * (15.5 - np.arange(16)) / 16
    time = H * np.arange(TICKS)[:, None] - late
    swing = 2048 + 2000 * np.cos(2.0 * np.pi * frequency * time) + rng.normal(0.0, 0.5, time.shape)
    return np.clip(np.rint(swing), 0, 4095).astype(np.uint16)


@pytest.mark.parametrize("cic_order", [1, 2])
@pytest.mark.parametrize(("order", "cutoff_hz"), [(2, 15.0), (4, 60.0), (4, 400.0)])
@pytest.mark.parametrize("frequency", [1.7, 12.3, 61.7, 401.3, 733.1, 1871.3])
def test_gain_and_phase_of_sines_are_the_stated_response(
    order: int, cutoff_hz: float, frequency: float, cic_order: int
):
    """From a current in time, through converter and whole-number filters, also above half the sample rate."""
    sections = butterworth_sections(order, cutoff_hz, 1.0 / H)
    window = 0.9 * H
    samples = adc_samples(frequency, window)
    decimated = boxcar(samples) if cic_order == 1 else Cic().run(samples)
    board = BoardFilter(
        sections=tuple(map(dequantise_biquad, sections)), cic_order=cic_order, window=window, sample_period=H
    )
    measured = amplitude(Biquads(sections).run(decimated), frequency) / 32_000.0
    (stated,) = board.response(np.array([frequency]))
    # Noise and rounding leave some 3 counts a sample; over 4000 samples 5 σ of an amplitude is 5 x 3 sqrt(2/4000).
    assert abs(measured - stated) < 5 * 3.0 * np.sqrt(2.0 / (TICKS - SETTLED)) / 32_000.0, f"seed {SEED}"


@pytest.mark.parametrize(("alpha", "beta"), [(128, 512), (64, 100)])
@pytest.mark.parametrize("frequency", [0.9, 7.7, 41.9, 166.3])
def test_gain_and_phase_of_the_observer_are_the_stated_response(alpha: int, beta: int, frequency: float):
    observer = TrackingObserver(alpha, beta)
    per_tick = 2.0 * np.pi * frequency * H
    counts = np.floor(300.0 / per_tick * np.sin(per_tick * np.arange(TICKS))).astype(np.int64)
    measured = amplitude(observer.run(counts % 2**16), frequency)
    fastest = 300.0 * 256.0
    (stated,) = observer.response(np.array([frequency]), H)
    # An encoder's steps are at most a count, 256 of velocity, before the observer; 5 σ of uniform ones over 4000 ticks.
    tolerance = 5 * 256.0 * np.sqrt(2.0 / 12.0 * 2.0 / (TICKS - SETTLED))
    assert abs(measured - stated * fastest) < tolerance


def test_delay_of_the_observer_is_that_of_slow_motion():
    observer = TrackingObserver(100, 300)
    (slow,) = observer.response(np.array([0.01]), H)
    assert observer.delay(H) == pytest.approx(-np.angle(slow) / (2.0 * np.pi * 0.01), rel=1e-4)
    assert abs(slow) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("speed", [37.0, -411.3])
def test_both_velocities_settle_on_a_constant_speed(speed: float):
    clocks = 125_000
    exact = speed * np.arange(1, 3001)
    counts = np.floor(exact).astype(np.int64)
    edges = np.floor((counts + (speed < 0)) / speed * clocks).astype(np.int64)  # when the last edge was passed
    observed = TrackingObserver(128, 512).run(counts % 2**16)[1000:]
    counted = MtVelocity(clocks).run(counts % 2**16, edges % 2**32)[1000:]
    assert np.mean(observed) == pytest.approx(256.0 * speed, abs=0.6)  # its rounding is down, by half a unit
    assert np.abs(counted - 256.0 * speed).max() <= 1.0 + 256.0 * abs(speed) * 2.0 / clocks


def test_counting_takes_the_mean_over_its_own_interval():
    """Each velocity is the counts between two edges over the time between them, to 1/256 count per tick."""
    clocks, rng = 16_000, np.random.default_rng(SEED)
    moves = rng.integers(1, 400, 2000) * rng.choice([-1, 1], 2000)
    edges = clocks * np.arange(2000) + rng.integers(0, clocks, 2000)
    found = MtVelocity(clocks).run(np.cumsum(moves) % 2**16, edges)
    exact = np.minimum(256.0 * np.abs(moves[1:]) * clocks / np.diff(edges), 32767 * 256 + 255)
    assert np.all(np.sign(found[1:]) == np.sign(moves[1:]))
    assert np.abs(np.abs(found[1:]) - exact).max() < 1.0


def test_mean_response_is_that_of_a_mean():
    frequency, interval = np.array([0.0, 3.0, 80.0]), 4e-3
    time = -interval * (np.arange(20_000) + 0.5) / 20_000
    mean = np.exp(2j * np.pi * frequency[:, None] * time).mean(axis=1)
    assert moving_average_response(frequency, interval) == pytest.approx(mean, abs=1e-8)


def test_without_edges_counting_comes_to_rest():
    board = MtVelocity(clocks_per_tick=1000)
    board.run(np.array([50, 100]), np.array([900, 1900]))
    slowing = board.run(np.full(300, 100), np.full(300, 1900))
    assert slowing.tolist() == [min(50 * 256, 256 // n) for n in range(1, 301)]
    # The capture clock may have gone round since: whatever it says, the first edge begins anew.
    assert board.run(np.array([101]), np.array([1901])).tolist() == [0]
    assert board.run(np.array([103]), np.array([2901])).tolist() == [2 * 256]


@given(
    cutoff=st.floats(1.0, 450.0), order=st.sampled_from([2, 4]), level=st.integers(-32768, 32752),
)  # fmt: skip
def test_a_constant_comes_out_as_it_is(cutoff: float, order: int, level: int):
    sections = butterworth_sections(order, cutoff, 1.0 / H)
    for b0, b1, b2, a1, a2 in sections:
        assert b0 + b1 + b2 == ONE + a1 + a2
    settled = Biquads(sections).run(np.full(6000, level // 2))[-1]
    # Below 2 Hz the last section may come to rest a count away: less than its 14 bits behind the point would move it.
    assert abs(settled - level // 2) <= (cutoff < 2.0)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_blocks_go_on_where_the_last_one_ended(lengths, seed):
    rng = np.random.default_rng(seed)
    cuts, total = np.cumsum(lengths), sum(lengths)
    samples = rng.integers(0, 4096, (total, 16))
    counters, edges = rng.integers(0, 2**16, total), rng.integers(0, 2**32, total)
    values = rng.integers(-32768, 32768, total)
    sections = butterworth_sections(4, 30.0, 1000.0)

    def whole_and_parts(make, *given):
        parts = zip(*(np.split(array, cuts[:-1]) for array in given), strict=True)
        block = make()
        assert np.concatenate([block.run(*part) for part in parts]).tolist() == make().run(*given).tolist()

    whole_and_parts(Cic, samples)
    whole_and_parts(lambda: Biquads(sections), values)
    whole_and_parts(lambda: TrackingObserver(128, 512), counters)
    whole_and_parts(lambda: MtVelocity(125_000), counters, edges)


def test_outputs_are_clipped_not_wrapped():
    step = np.repeat([-32768, 32752], 200)
    out = Biquads(butterworth_sections(4, 100.0, 1000.0)).run(step)
    assert out.max() == 32767
    assert out[-1] == 32752
    assert np.all(Biquads((PASS_THROUGH,) * 2).run(step) == step)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("cutoff", [1.0, 5.0, 100.0, 450.0])
def test_the_quantised_design_is_butterworths(order: int, cutoff: float):
    sections = butterworth_sections(order, cutoff, 1000.0)
    board = BoardFilter(sections=tuple(map(dequantise_biquad, sections)), cic_order=1, window=0.0, sample_period=H)
    frequency = np.linspace(0.0, 499.0, 300)
    _, designed = signal.freqz_sos(signal.butter(order, cutoff, fs=1000.0, output="sos"), frequency, fs=1000.0)
    # A denominator's sum, 5300 of its units at 1 Hz, is rounded to half a unit: 1e-4 of it, and less above.
    assert np.abs(board.response(frequency) - designed).max() < 2e-4
    assert board.gain == 1.0
    assert abs(board.response(np.array([cutoff]))[0]) == pytest.approx(np.sqrt(0.5), abs=2e-4)


def test_designs_that_no_board_can_have_are_refused():
    with pytest.raises(SignalError, match=r"filter order 3 does not suit the board's two sections; it must be 2 or 4"):
        butterworth_sections(3, 50.0, 1000.0)
    for cutoff in (0.9, 451.0, float("nan")):
        with pytest.raises(SignalError, match=rf"cut-off {cutoff:g} Hz must be from 1 to 450 Hz on a board that"):
            butterworth_sections(2, cutoff, 1000.0)


UNITY: BiquadCoefficients = ((0.2, 0.3, 0.1), (1.0, -0.5, 0.1))
OTHER: BiquadCoefficients = ((0.04, 0.08, 0.04), (1.0, -1.4, 0.56))
NONE = BoardFilter(sections=(), cic_order=1, window=0.0, sample_period=H)
WHOLE = BoardFilter(sections=(UNITY, OTHER), cic_order=2, window=H, sample_period=H)


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
    half = dataclasses.replace(WHOLE, sections=(((0.25, 0.0, 0.0), (1.0, -0.5, 0.0)), UNITY))
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
