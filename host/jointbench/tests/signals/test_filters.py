import numpy as np
import pytest

from jointbench.errors import SignalError
from jointbench.signals import LowPass

H = 1e-3


def test_delays_nothing_and_keeps_slow_motion():
    low_pass = LowPass(cutoff_Hz=20.0, sample_period=H)
    time = H * np.arange(4000)
    slow = np.sin(2.0 * np.pi * 0.5 * time)
    inner = slice(3 * low_pass.settling, -3 * low_pass.settling)
    # |H|² of the double pass at 0.5 Hz is 1 - (0.5/20)^8: nothing but rounding is left well away from the edges.
    assert np.abs(low_pass.apply(slow) - slow)[inner].max() < 1e-6


def test_halves_the_cutoff_frequency_and_removes_what_is_well_above():
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


def test_filters_columns_alike():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((500, 2, 3))
    low_pass = LowPass(30.0, H)
    whole = low_pass.apply(columns)
    assert np.array_equal(whole[:, 1, 2], low_pass.apply(columns[:, 1, 2]))


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 500.0, 900.0])
def test_refuses_an_impossible_cutoff(cutoff: float):
    with pytest.raises(SignalError, match=r"cut-off .* must be above 0 and below half the sample rate, 500 Hz"):
        LowPass(cutoff, H)


def test_refuses_an_unusual_order():
    with pytest.raises(SignalError, match="order 9 must be 1 to 8"):
        LowPass(20.0, H, order=9)


def test_says_how_many_samples_it_needs():
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
