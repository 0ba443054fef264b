"""Motions through recorded positions: there and back, no faster than limits allow."""

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation import certify, load_excitation, taught_excitation, usable_limits
from jointbench.excitation.taught import NODE_PERIOD
from jointbench.model import load_robot

ROBOT = load_robot("cobot6:2")
PERIOD = 0.01


def path(way: float, seconds: float = 4.0) -> Array:
    """Both joints from home by a way [rad] and on to there, as a hand would lead them."""
    share = np.arange(0.0, 1.0, PERIOD / seconds)[:, None]
    return np.array(ROBOT.home) + np.array([way, -0.5 * way]) * (1.0 - np.cos(np.pi * share)) / 2.0


def test_it_goes_through_what_was_recorded_and_back_from_rest_to_rest(tmp_path) -> None:
    recorded = path(0.4)
    recorded[37] = np.nan  # a sample that was lost
    motion = load_excitation(taught_excitation(ROBOT, recorded, PERIOD).save(tmp_path / "taught.json"))
    time = np.linspace(0.0, motion.duration, 2001)
    q, dq, _ = motion.evaluate(time)
    np.testing.assert_allclose(q[[0, -1]], motion.home[None].repeat(2, axis=0), atol=1e-9)
    np.testing.assert_allclose(dq[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(q, q[::-1], atol=1e-9)
    first = round(NODE_PERIOD / PERIOD)
    for mean in recorded[2 * first : 5 * first].reshape(3, first, 2).mean(axis=1):
        # Between two of 2001 times a joint goes some 1e-4 rad.
        assert np.abs(q - mean).max(axis=1).min() <= 5e-4
    np.testing.assert_allclose(np.ptp(q, axis=0), np.ptp(path(0.4), axis=0), rtol=0.02)


def test_what_was_led_too_fast_is_played_slower_and_keeps_the_limits() -> None:
    slow, fast = (taught_excitation(ROBOT, path(1.6, seconds), PERIOD) for seconds in (8.0, 1.0))
    assert slow.duration == pytest.approx((2 * 8.0 / NODE_PERIOD + 6 + 5) * NODE_PERIOD, rel=0.01)
    assert fast.duration > 1.2 * (2 * 1.0 / NODE_PERIOD + 6 + 5) * NODE_PERIOD
    for motion in (slow, fast):
        assert certify(usable_limits(ROBOT, motion.home), motion.basis, motion.home, motion.weights).feasible


def test_nothing_is_made_of_an_arm_that_stood_still_or_left_its_limits() -> None:
    with pytest.raises(ExcitationError, match=r"no joint moved by more than 0\.01 rad"):
        taught_excitation(ROBOT, path(0.001), PERIOD)
    with pytest.raises(ExcitationError, match=r"2 quarters of a second were recorded whole"):
        taught_excitation(ROBOT, path(0.4)[:50], PERIOD)
    with pytest.raises(
        InfeasibleExcitation, match=r"even 16 times slower than it was taught; .*j1 0\.06\d* to 19\.9 \(limits"
    ):
        taught_excitation(ROBOT, path(20.0), PERIOD)
