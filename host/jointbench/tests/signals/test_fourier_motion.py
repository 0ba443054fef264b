import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals import LowPass, fourier_motion, smooth_motion

H = 1e-3
PERIOD = 5.0
TIME = H * np.arange(5000, dtype=np.float64)
OMEGA = 2.0 * np.pi / PERIOD
EVERYWHERE = np.ones(len(TIME), dtype=np.bool_)


def series(order: int) -> Array:
    """Derivative of two joints' positions: harmonics 1, 2 and 7, and 3 alone."""

    def wave(harmonic: int, phase: float) -> Array:
        omega = OMEGA * harmonic
        return omega**order * np.sin(omega * TIME + phase + 0.5 * np.pi * order)

    rest = 0.4 if order == 0 else 0.0
    return np.column_stack([rest + wave(1, 0.3) + 0.2 * wave(2, 1.0) + 0.01 * wave(7, 2.0), 0.5 * wave(3, -1.0)])


def test_a_series_comes_back_with_its_derivatives():
    found = fourier_motion(TIME, series(0), EVERYWHERE, PERIOD, least=7, most=20)
    assert found.motion.q == pytest.approx(series(0), abs=1e-12)
    assert found.motion.dq == pytest.approx(series(1), abs=1e-10)
    assert found.motion.ddq == pytest.approx(series(2), abs=1e-9)


def test_as_many_harmonics_as_the_noise_leaves():
    noise = 1e-3 * np.random.default_rng(0).standard_normal((len(TIME), 2))
    found = fourier_motion(TIME, series(0) + noise, EVERYWHERE, PERIOD, least=3, most=40)
    assert found.harmonics == 7  # of a hundredth of a radian, ten deviations of a single sample
    assert found.residual == pytest.approx([1e-3, 1e-3], rel=0.03)
    assert fourier_motion(TIME, series(0) + 300.0 * noise, EVERYWHERE, PERIOD, least=3, most=40).harmonics == 3


def test_acceleration_is_told_far_better_than_by_differences():
    """Its error is that of the coefficients: variance Σ over harmonics of (ωl)⁴ 2/n of that of the positions, each."""
    sigma = 1e-3
    errors, filtered = [], []
    for seed in range(20):
        noise = sigma * np.random.default_rng(seed).standard_normal((len(TIME), 2))
        motion = fourier_motion(TIME, series(0) + noise, EVERYWHERE, PERIOD, least=7, most=7).motion
        errors.append(motion.ddq - series(2))
        filtered.append((smooth_motion(series(0) + noise, LowPass(20.0, H)).ddq - series(2))[300:-300])
    expected = sigma * np.sqrt(2.0 / len(TIME) * np.sum((OMEGA * np.arange(1, 8)) ** 4))
    # 20 draws of 14 coefficients for two joints, of which the last few count most: 10 % at 2 deviations.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.1)
    assert np.sqrt(np.mean(np.square(filtered))) > 20.0 * expected


def test_what_is_missing_is_told_by_the_rest():
    valid = EVERYWHERE.copy()
    valid[1000:1400] = False
    position = np.where(valid[:, None], series(0), 99.0)
    found = fourier_motion(TIME, position, valid, PERIOD, least=7, most=7)
    assert found.motion.dq == pytest.approx(series(1), abs=1e-9)


def test_a_joint_at_rest_stays_at_rest():
    position = np.column_stack([series(0)[:, 0], np.full(len(TIME), 0.7)])
    found = fourier_motion(TIME, position, EVERYWHERE, PERIOD, least=7, most=20)
    assert found.motion.q[:, 1] == pytest.approx(0.7, abs=1e-15)
    assert found.motion.ddq[:, 1] == pytest.approx(0.0, abs=1e-15)


def test_bad_wishes_are_named():
    with pytest.raises(SignalError, match=r"29 good samples are too few for 7 harmonics"):
        fourier_motion(TIME, series(0), EVERYWHERE & (np.arange(5000) < 29), PERIOD, least=7, most=9)
    with pytest.raises(SignalError, match=r"harmonics from 3 to 2 are none to choose from"):
        fourier_motion(TIME, series(0), EVERYWHERE, PERIOD, least=3, most=2)
