"""Moving from pose to pose within the robot's limits."""

import numpy as np
import pytest

from jointbench.link.trajectory import plan_move
from jointbench.robot import load_robot

ROBOT = load_robot("cobot6")
HOME = np.array(ROBOT.home)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("speed", [0.1, 0.5, 1.0])
def test_limits_are_kept_and_reached(seed: int, speed: float) -> None:
    low, high = ROBOT.position_limits.T
    goal = np.random.default_rng(seed).uniform(low, high)
    move = plan_move(ROBOT, HOME, goal, 0.032, speed)
    q, dq, ddq = move.evaluate(np.linspace(0.0, move.period, 4001))
    for ends, value in ((q, HOME), (q[::-1], goal)):
        np.testing.assert_allclose(ends[0], value, atol=1e-12)
    for rate in (dq[0], dq[-1], ddq[0], ddq[-1]):
        np.testing.assert_allclose(rate, 0.0, atol=1e-9)
    by_velocity = np.max(np.abs(dq) / (speed * ROBOT.velocity_limits))
    by_acceleration = np.max(np.abs(ddq) / (speed * ROBOT.acceleration_limits))
    # The period is rounded up to whole knots: at most one of 0.032 s longer than needed.
    assert max(by_velocity, by_acceleration) <= 1.0 + 1e-9
    assert max(by_velocity, by_acceleration) >= (1.0 - 0.032 / move.period) ** 2 - 1e-6
    assert move.period / 0.032 == pytest.approx(round(move.period / 0.032))


def test_derivatives_are_those_of_the_position() -> None:
    move = plan_move(ROBOT, HOME, HOME + 0.5, 0.032)
    time = np.linspace(0.0, move.period, 20001)
    q, dq, ddq = move.evaluate(time)
    step = time[1]
    # Central differences leave h²/6 of the next but one derivative; that is below 1e-6 for these steps.
    np.testing.assert_allclose((q[2:] - q[:-2]) / (2 * step), dq[1:-1], atol=1e-6)
    np.testing.assert_allclose((dq[2:] - dq[:-2]) / (2 * step), ddq[1:-1], atol=1e-5)


def test_no_way_at_all_is_one_step() -> None:
    assert plan_move(ROBOT, HOME, HOME, 0.032).period == 0.032
