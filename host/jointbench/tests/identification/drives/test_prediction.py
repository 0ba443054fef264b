import numpy as np
import pytest
from scipy.optimize import brentq

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.identification.drives import GearTorque
from jointbench.identification.drives.prediction import (
    Load,
    exact_motor_torque,
    motor_torque_by_stand_in,
    torque_but_load_friction,
    torque_slopes,
)

A = np.array([0.4, 1.6, 2.9, 0.5, 1 / 500, 0.0, 0.0])
"""Of the size published for joint 1; the flexibility large enough to matter."""


def moved(n: int = 4000) -> tuple[Array, Array, GearTorque, Array]:
    """One period of a joint that swings under a load: velocity, acceleration, gear torque, time."""
    t = np.arange(n) * 2.0 * np.pi / n
    dq, ddq = np.cos(t) + 0.3 * np.cos(2 * t + 1.0), -np.sin(t) - 0.6 * np.sin(2 * t + 1.0)
    gear = GearTorque(
        2.0 + 16.0 * np.sin(t + 0.5) - 3.0 * np.cos(3 * t),
        16.0 * np.cos(t + 0.5) + 9.0 * np.sin(3 * t),
        -16.0 * np.sin(t + 0.5) + 27.0 * np.cos(3 * t),
    )
    return dq, ddq, gear, t


def test_the_motion_has_all_four_quadrants():
    dq, ddq, gear, _ = moved()
    torque = exact_motor_torque(A, dq, ddq, gear)
    assert {(v > 0, tau > 0) for v, tau in zip(dq, torque, strict=True)} == {
        (True, True), (True, False), (False, True), (False, False)
    }  # fmt: skip


def test_exact_torque_is_the_root_that_a_search_finds():
    dq, ddq, gear, _ = moved(60)
    torque = exact_motor_torque(A, dq, ddq, gear)
    rest, sign = torque_but_load_friction(A, dq, ddq, gear)
    for k in range(60):
        root = brentq(lambda tau, k=k: tau - rest[k] - A[0] * abs(tau) * sign[k], -500.0, 500.0, xtol=1e-12)
        assert torque[k] == pytest.approx(root, abs=1e-9)


def test_exact_torque_is_the_fixed_point_of_the_published_way():
    dq, ddq, gear, _ = moved()
    exact = exact_motor_torque(A, dq, ddq, gear)
    assert motor_torque_by_stand_in(A, dq, ddq, gear, exact) == pytest.approx(exact, abs=1e-12)
    # An error of the stand-in is passed on times a1, so repeating the published way gets there.
    torque = exact + 2.0
    for _ in range(5):
        torque = motor_torque_by_stand_in(A, dq, ddq, gear, torque)
        assert np.max(np.abs(torque - exact)) <= 2.0 * A[0] * (1.0 + 1e-9)
    assert np.max(np.abs(torque - exact)) <= 2.0 * A[0] ** 5 * (1.0 + 1e-9)
    assert np.max(np.abs(torque - exact)) > 1e-3  # five times are not enough to be exact


def test_what_is_measured_wrong_is_not_rubbed_against():
    dq, ddq, gear, _ = moved()
    shifted = A + np.array([0, 0, 0, 0, 0, 0.7, 0.02])
    true = exact_motor_torque(A, dq, ddq, gear)
    assert exact_motor_torque(shifted, dq, ddq, gear) == pytest.approx(1.02 * true + 0.7)
    assert motor_torque_by_stand_in(shifted, dq, ddq, gear, true) == pytest.approx(1.02 * true + 0.7)


def test_the_gear_passes_on_its_share_in_either_direction_of_power():
    gear = GearTorque(np.array([10.0, 10.0]), np.zeros(2), np.zeros(2))
    only_load = np.array([0.2, 0, 0, 0, 0, 0, 0])
    driving, braking = exact_motor_torque(only_load, np.array([1.0, -1.0]), np.zeros(2), gear)
    assert 10.0 / driving == pytest.approx(1.0 - 0.2)
    assert 10.0 / braking == pytest.approx(1.0 + 0.2)


def test_load_friction_of_the_gear_goes_by_the_gears_torque():
    gear = GearTorque(np.array([10.0, -10.0]), np.zeros(2), np.zeros(2))
    only_load = np.array([0.2, 0, 0, 0, 0, 0, 0])
    assert exact_motor_torque(only_load, np.ones(2), np.zeros(2), gear, "gear") == pytest.approx([12.0, -8.0])


def test_power_balance_over_a_period():
    # What the motor gives and the link does not get is lost: rotor and spring end the period as they began it.
    dq, ddq, gear, t = moved()
    a1, a2, a3, _, a5, _, _ = A
    torque = exact_motor_torque(A, dq, ddq, gear)
    motor_velocity = dq + a5 * gear.rate
    step = t[1] - t[0]
    given = step * np.sum(torque * motor_velocity)
    got = step * np.sum(gear.value * dq)
    loss = (a1 * np.abs(torque) + a2) * np.abs(motor_velocity) + a3 * motor_velocity**2
    assert np.all(loss >= 0.0)
    # The sum over a smooth period is exact but for the kinks at reversals, of the step's second order.
    assert given - got == pytest.approx(step * np.sum(loss), rel=1e-5)
    assert given - got > 0.1 * abs(given)  # there is something to balance


@pytest.mark.parametrize("load", ["motor", "gear"])
def test_slopes_are_the_derivatives(load: Load):
    dq, ddq, gear, _ = moved(50)
    here = A + np.array([0, 0, 0, 0, 0, 0.1, 0.05])
    torque, slopes = torque_slopes(here, dq, ddq, gear, load)
    assert torque == pytest.approx(exact_motor_torque(here, dq, ddq, gear, load), abs=1e-12)
    for index in range(7):
        step = np.zeros(7)
        step[index] = 1e-6
        ahead, behind = (exact_motor_torque(here + s * step, dq, ddq, gear, load) for s in (1.0, -1.0))
        # Differences over 2e-6 of values near 10 carry 1e-9 of rounding; a5's kinks lie between samples here.
        assert slopes[:, index] == pytest.approx((ahead - behind) / 2e-6, abs=1e-6, rel=1e-5)


def test_a_gear_that_passes_on_nothing_is_refused():
    dq, ddq, gear, _ = moved(10)
    with pytest.raises(FitError, match=r"load_friction = 1\.2 must lie between -1 and 1"):
        exact_motor_torque(np.array([1.2, 0, 0, 0, 0, 0, 0]), dq, ddq, gear)


def test_sampled_torque_has_the_derivatives_of_a_parabola():
    t = 0.1 * np.arange(20)
    gear = GearTorque.sampled((3.0 + 2.0 * t + 5.0 * t**2)[:, None], 0.1)
    assert gear.rate[1:-1, 0] == pytest.approx(2.0 + 10.0 * t[1:-1])
    assert gear.acceleration[:, 0] == pytest.approx(np.full(20, 10.0))
    with pytest.raises(ShapeError, match="2 samples"):
        GearTorque.sampled(np.zeros((2, 1)), 0.1)
