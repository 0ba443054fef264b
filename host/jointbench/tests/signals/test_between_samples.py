import numpy as np
import pytest

from jointbench.errors import SignalError
from jointbench.signals import interpolate_samples


def test_polynomials_up_to_the_fifth_degree_are_exact():
    rng = np.random.default_rng(0)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(6), domain=[0, 20])
    places = rng.uniform(0.0, 20.0, 100)  # those near the ends are met from one side
    found = interpolate_samples(polynomial(np.arange(21.0)), places)
    assert found == pytest.approx(polynomial(places), abs=1e-12)


def test_whole_places_give_the_samples_back_to_the_bit():
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


def test_nothing_is_made_up_beyond_the_ends():
    with pytest.raises(SignalError, match=r"sample indices from -0.1 to 3 must lie within the samples, 0 to 9"):
        interpolate_samples(np.zeros(10), np.array([-0.1, 3.0]))
    with pytest.raises(SignalError, match="5 samples are too few to interpolate; at least 6"):
        interpolate_samples(np.zeros(5), np.array([1.0]))
