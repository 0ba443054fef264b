import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals import interpolate_samples, moving_mask, resample, rest_threshold, valid_spans


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
