import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals import LowPass, bandwidth, fit_fourier_series, smooth_motion

H = 1e-3
PERIOD = 5.0
TIME = H * np.arange(5000, dtype=np.float64)
OMEGA = 2.0 * np.pi / PERIOD
EVERYWHERE = np.ones(len(TIME), dtype=np.bool_)


def test_derivatives_of_a_sine():
    time = H * np.arange(5000)
    omega = 2.0 * np.pi * 0.4
    motion = smooth_motion(np.sin(omega * time)[:, None], LowPass(20.0, H))
    inner = slice(300, -300)
    # Central differences lack (omega h)²/6 = 1e-6; the edges' remains are of that size too.
    assert motion.dq[inner, 0] == pytest.approx(omega * np.cos(omega * time)[inner], abs=1e-5 * omega)
    assert motion.ddq[inner, 0] == pytest.approx(-(omega**2) * np.sin(omega * time)[inner], abs=1e-4 * omega**2)


def test_bandwidth_is_that_of_the_motion_not_of_the_encoder():
    time = H * np.arange(20_000)
    step = 2.0 * np.pi / 4096 / 101
    position = np.round(np.sin(2.0 * np.pi * 0.25 * time) / step) * step
    assert bandwidth(position[:, None], H) == pytest.approx(0.25, abs=0.15)  # the window's main lobe is 0.1 Hz wide


def test_bandwidth_is_not_that_of_doubled_samples():
    """One sample in eighty is there twice, and the next is lost."""
    position = np.sin(2.0 * np.pi * 0.25 * H * np.arange(20_000))[:, None]
    kept = position.copy()
    doubled = np.random.default_rng(0).choice(19_990, 250, replace=False)
    kept[doubled + 1] = kept[doubled]
    assert bandwidth(kept, H) == pytest.approx(0.25, abs=0.15)
    pieces = kept[:16_000].reshape(4, 4000, 1)
    assert bandwidth(pieces, H) == pytest.approx(0.25, abs=0.5)  # the main lobe of a fifth of the time


def test_bandwidth_of_rest_is_the_resolution():
    assert bandwidth(np.zeros((1001, 2)), H) == pytest.approx(1.0)


def test_a_joint_at_rest_does_not_count_in_the_bandwidth():
    time = H * np.arange(20_000)
    moving = np.sin(2.0 * np.pi * 3.0 * time)
    assert bandwidth(np.column_stack([moving, np.zeros_like(moving)]), H) == bandwidth(moving[:, None], H)


def test_steps_of_a_coarse_encoder_are_not_all_taken_for_jumps():
    """Between its steps it stands still but for rounding, which is no steady speed to hold them against."""
    time = np.arange(20000) * H
    coarse = 0.05 * np.rint(np.sin(2.0 * np.pi * 2.0 * time) / 0.05)
    assert bandwidth(coarse[:, None], H) >= 2.0


def series(order: int) -> Array:
    """Derivative of two joints' positions: harmonics 1, 2 and 7, and 3 alone."""

    def wave(harmonic: int, phase: float) -> Array:
        omega = OMEGA * harmonic
        return omega**order * np.sin(omega * TIME + phase + 0.5 * np.pi * order)

    rest = 0.4 if order == 0 else 0.0
    return np.column_stack([rest + wave(1, 0.3) + 0.2 * wave(2, 1.0) + 0.01 * wave(7, 2.0), 0.5 * wave(3, -1.0)])


def test_a_series_comes_back_with_its_derivatives():
    found = fit_fourier_series(TIME, series(0), EVERYWHERE, PERIOD, min_harmonics=7, max_harmonics=20)
    assert found.motion.q == pytest.approx(series(0), abs=1e-12)
    assert found.motion.dq == pytest.approx(series(1), abs=1e-10)
    assert found.motion.ddq == pytest.approx(series(2), abs=1e-9)


def test_number_of_harmonics_is_what_the_noise_leaves():
    noise = 1e-3 * np.random.default_rng(0).standard_normal((len(TIME), 2))
    found = fit_fourier_series(TIME, series(0) + noise, EVERYWHERE, PERIOD, min_harmonics=3, max_harmonics=40)
    assert found.n_harmonics == 7  # of a hundredth of a radian, ten deviations of a single sample
    assert found.residual_rms == pytest.approx([1e-3, 1e-3], rel=0.03)
    noisy = series(0) + 300.0 * noise
    assert fit_fourier_series(TIME, noisy, EVERYWHERE, PERIOD, min_harmonics=3, max_harmonics=40).n_harmonics == 3


def test_acceleration_of_a_series_is_far_better_than_by_differences():
    """Its error is that of the coefficients: variance Σ over harmonics of (ωl)⁴ 2/n of that of the positions, each."""
    sigma = 1e-3
    errors, filtered = [], []
    for seed in range(20):
        noise = sigma * np.random.default_rng(seed).standard_normal((len(TIME), 2))
        fit = fit_fourier_series(TIME, series(0) + noise, EVERYWHERE, PERIOD, min_harmonics=7, max_harmonics=7)
        errors.append(fit.motion.ddq - series(2))
        filtered.append((smooth_motion(series(0) + noise, LowPass(20.0, H)).ddq - series(2))[300:-300])
    expected = sigma * np.sqrt(2.0 / len(TIME) * np.sum((OMEGA * np.arange(1, 8)) ** 4))
    # 20 draws of 14 coefficients for two joints, of which the last few count most: 10 % at 2 deviations.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.1)
    assert np.sqrt(np.mean(np.square(filtered))) > 20.0 * expected


def test_missing_samples_are_told_by_the_others():
    valid = EVERYWHERE.copy()
    valid[1000:1400] = False
    position = np.where(valid[:, None], series(0), 99.0)
    found = fit_fourier_series(TIME, position, valid, PERIOD, min_harmonics=7, max_harmonics=7)
    assert found.motion.dq == pytest.approx(series(1), abs=1e-9)


def test_series_of_a_joint_at_rest_stays_at_rest():
    position = np.column_stack([series(0)[:, 0], np.full(len(TIME), 0.7)])
    found = fit_fourier_series(TIME, position, EVERYWHERE, PERIOD, min_harmonics=7, max_harmonics=20)
    assert found.motion.q[:, 1] == pytest.approx(0.7, abs=1e-15)
    assert found.motion.ddq[:, 1] == pytest.approx(0.0, abs=1e-15)


def test_series_of_too_few_samples_and_no_harmonics_are_refused():
    few = EVERYWHERE & (np.arange(5000) < 29)
    with pytest.raises(SignalError, match=r"29 good samples are too few for 7 harmonics"):
        fit_fourier_series(TIME, series(0), few, PERIOD, min_harmonics=7, max_harmonics=9)
    with pytest.raises(SignalError, match=r"min_harmonics = 3 and max_harmonics = 2 leave no series to choose"):
        fit_fourier_series(TIME, series(0), EVERYWHERE, PERIOD, min_harmonics=3, max_harmonics=2)
