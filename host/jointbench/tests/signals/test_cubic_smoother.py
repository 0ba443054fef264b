import numpy as np
import pytest
from scipy import signal

from jointbench.errors import SignalError
from jointbench.signals import savitzky_golay, savitzky_golay_gain


@pytest.mark.parametrize("passes", [1, 20])
def test_cubics_stay_as_they_are_to_the_very_ends(passes: int):
    time = np.linspace(-1.0, 1.0, 41)
    cubic = np.column_stack([1.0 + 2.0 * time - 3.0 * time**2 + 4.0 * time**3, time**3])
    assert savitzky_golay(cubic, passes) == pytest.approx(cubic, abs=1e-13)
    quartic = time**4
    assert np.abs(savitzky_golay(quartic) - quartic).max() > 1e-7  # a degree more does not pass


def test_one_pass_is_the_least_squares_cubic():
    values = np.random.default_rng(0).standard_normal((50, 3))
    expected = signal.savgol_filter(values, 5, 3, axis=0, mode="interp")
    assert savitzky_golay(values) == pytest.approx(expected, abs=1e-13)


def test_five_samples_are_enough():
    values = np.random.default_rng(1).standard_normal(5)
    fitted = np.polynomial.Polynomial.fit(np.arange(5), values, 3)
    assert savitzky_golay(values) == pytest.approx(fitted(np.arange(5)), abs=1e-13)


@pytest.mark.parametrize("cycles", [0.01, 0.1, 0.25, 0.4, 0.5])
def test_gain_is_that_of_a_sine(cycles: float):
    wave = np.cos(2.0 * np.pi * cycles * np.arange(-400, 401))
    passed = savitzky_golay(wave, 20)[400]
    assert passed == pytest.approx(float(savitzky_golay_gain(np.array(cycles), 20)), abs=1e-12)


def test_passes_add_up_and_none_changes_nothing():
    values = np.random.default_rng(2).standard_normal(60)
    assert np.array_equal(savitzky_golay(savitzky_golay(values, 12), 8), savitzky_golay(values, 20))
    assert np.array_equal(savitzky_golay(values, 0), values)


def test_the_input_is_left_alone():
    values = np.random.default_rng(3).standard_normal(30)
    before = values.copy()
    savitzky_golay(values, 3)
    assert np.array_equal(values, before)


def test_bad_wishes_are_named():
    with pytest.raises(SignalError, match="4 samples are too few for the five-point smoother"):
        savitzky_golay(np.zeros(4))
    with pytest.raises(SignalError, match="passes = -1 of the five-point smoother must be 0 or more"):
        savitzky_golay(np.zeros(9), -1)
