import numpy as np
import pytest

from jointbench.dynamics import inverse_dynamics
from jointbench.excitation import RestToRestFourier
from jointbench.excitation.limits.certificate import motion_at
from jointbench.excitation.limits.torque_bounds import product, torque_bounds, turning
from jointbench.robot import Drive, Joint, Link, Robot, load_robot
from jointbench.tests.excitation.random_robots import random_family, random_tree, random_weights

STEP = 1e-3
"""Step [s] of difference quotients. They are mean values of the derivative, so that a bound holds for them as well."""


def test_jets_follow_leibniz() -> None:
    # |t² · t³| and its derivatives at t = 1, all terms of one sign: the bound is the value itself.
    assert product((1.0, 2.0, 2.0), (1.0, 3.0, 6.0)) == (1.0, 5.0, 20.0)


def test_a_vector_that_turns_evenly_has_the_derivatives_of_a_circle() -> None:
    # |v^(k)| = r ω^k, with no angular acceleration.
    assert turning(2.0, (3.0, 0.0, 0.0)) == pytest.approx([2.0, 6.0, 18.0, 54.0])


def pendulum(mass: float, length: float, inertia: float) -> Robot:
    """A ball of some inertia on a massless rod that swings about z, gravity along -y."""
    even = ((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia))
    link = Link("ball", mass, (length, 0.0, 0.0), even)
    same = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    joint = Joint("j", "revolute", -1, same, (0.0, 0.0, 0.0), (-3.0, 3.0), 2.0, 5.0, 9.0, link)
    drive = Drive("j", "j", "direct", 1.0, 1.0, 9.0)
    return Robot("pendulum", (joint,), (drive,), (), (0.0, -9.81, 0.0), (0.0,), "", "")


def test_torque_of_a_pendulum_is_bounded_as_by_hand() -> None:
    mass, length, inertia = 2.0, 0.5, 0.1
    robot = pendulum(mass, length, inertia)
    bounds = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])

    assert robot.standard_parameters is not None
    torque, rate, curvature = torque_bounds(robot, robot.standard_parameters, bounds)[:, 0]

    # tau = I q'' + m g l cos q, and so |tau'| <= I q''' + m g l q', |tau''| <= I q'''' + m g l (q'' + q'²). The bound
    # does not see that ω × J ω, at most half of what J's principal values differ by, times ω², is across the axis.
    weight, about_pivot, across = mass * 9.81 * length, inertia + mass * length**2, 0.5 * mass * length**2
    assert torque == pytest.approx(about_pivot * 3.0 + weight + across * 4.0)
    assert rate == pytest.approx(about_pivot * 4.0 + weight * 2.0 + across * 2.0 * 2.0 * 3.0)
    assert curvature == pytest.approx(about_pivot * 5.0 + weight * 7.0 + across * 2.0 * (2.0 * 4.0 + 3.0 * 3.0))


@pytest.mark.parametrize("seed", range(60))
def test_torques_never_change_faster_than_their_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(1, 9)), mimics=seed % 2 == 1)
    basis = random_family(rng)
    weights = random_weights(rng, robot, basis)
    assert robot.standard_parameters is not None

    time = basis.grid(STEP)
    q, dq, ddq, _ = motion_at(basis, np.array(robot.home), weights, time)
    torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    most = torque_bounds(robot, robot.standard_parameters, basis.bounds(weights))

    assert np.all(np.abs(torque) <= most[0])
    step = np.diff(time)[:, None]
    rate = np.diff(torque, axis=0) / step
    assert np.all(np.abs(rate) <= most[1] * (1.0 + 1e-9))
    even = np.isclose(step[1:], step[:-1], rtol=1e-9)  # a break between pieces may lie where steps differ
    curvature = np.where(even, np.diff(rate, axis=0) / step[1:], 0.0)
    assert np.all(np.abs(curvature) <= most[2] * (1.0 + 1e-6) + 1e-4)  # torques of 1e3 rounded to 1e-13, over 1e-6 s²


@pytest.mark.parametrize(("name", "excess"), [("cobot6", 1000.0), ("tx40", 5000.0)])
def test_bounds_of_an_arm_are_not_absurd(name: str, excess: float) -> None:
    """They count every joint at its fastest, all in one direction.

    Angular velocity enters the second derivative to the fourth power: twice the speed at each of four places is 16
    times, and three joints' speeds added up where one counts are 81 times as much. A certificate needs the square
    root of that more samples, and only where a limit is near.
    """
    robot = load_robot(name)
    basis = RestToRestFourier(5, 10.0)
    assert robot.standard_parameters is not None
    ratios: list[float] = []
    for seed in range(5):
        weights = np.random.default_rng(seed).standard_normal((6, basis.size))
        weights /= (basis.bounds(weights)[1] / robot.velocity_limits)[:, None]
        q, dq, ddq, _ = motion_at(basis, np.array(robot.home), weights, basis.grid(STEP))
        torque = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
        curvature = np.abs(np.diff(torque, 2, axis=0)).max(axis=0) / STEP**2
        most = torque_bounds(robot, robot.standard_parameters, basis.bounds(weights))[2]
        ratios += (most / curvature).tolist()

    assert np.median(ratios) < excess  # seen: 340 for cobot6, 1900 for the fast tx40
