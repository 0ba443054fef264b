import numpy as np
import pytest

from jointbench.signals import LowPass, bandwidth, smooth_motion

H = 1e-3


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


def test_a_joint_at_rest_does_not_count():
    time = H * np.arange(20_000)
    moving = np.sin(2.0 * np.pi * 3.0 * time)
    assert bandwidth(np.column_stack([moving, np.zeros_like(moving)]), H) == bandwidth(moving[:, None], H)


def test_steps_of_a_coarse_encoder_are_not_all_taken_for_jumps():
    """Between its steps it stands still but for rounding, which is no steady speed to hold them against."""
    time = np.arange(20000) * H
    coarse = 0.05 * np.rint(np.sin(2.0 * np.pi * 2.0 * time) / 0.05)
    assert bandwidth(coarse[:, None], H) >= 2.0
