"""The stair of speeds: every speed held in both directions over the same positions, within reach and limits."""

import json
import math
from typing import Any

import numpy as np
import pytest

from jointbench.errors import ExcitationError, InfeasibleExcitation, RobotError
from jointbench.excitation import Excitation, SpeedStairs, plan_speed_sweep, usable_limits
from jointbench.excitation.limits.certificate import motion_at
from jointbench.model import load_robot

STAIRS = SpeedStairs(n_speeds=9, first=0.05, step=0.06, reach=0.45, acceleration=2.5)


def test_the_paper_speeds_are_the_defaults() -> None:
    speeds = np.degrees(SpeedStairs().speeds)
    assert speeds[[0, 1, -1]] == pytest.approx([1.0, 1.5, 31.0])
    assert len(speeds) > 60


def test_each_speed_is_held_twice_at_the_same_positions() -> None:
    assert len(STAIRS.ways) == 3
    assert [speed for _, _, speed in STAIRS.holds] == pytest.approx(STAIRS.speeds)
    part = np.linspace(0.0, STAIRS.hold, 20)
    for there, back, speed in STAIRS.holds:
        up, up_speed, up_bend = (value[:, 0] for value in STAIRS.evaluate(there + part))
        down, down_speed, down_bend = (value[:, 0] for value in STAIRS.evaluate(back + part))
        np.testing.assert_allclose(up_speed[:-1], speed, rtol=1e-12)
        np.testing.assert_allclose(down_speed[:-1], -speed, rtol=1e-12)
        np.testing.assert_allclose(up, down[::-1], atol=1e-12)
        # Between pieces it has the value of one side: the last instant may be the next piece's, at rest too.
        np.testing.assert_allclose([up_bend, down_bend], 0.0, atol=1e-9)


def test_it_leaves_home_and_returns_at_rest_within_its_reach_and_acceleration() -> None:
    time = STAIRS.grid(1e-3)
    q, dq, ddq, dddq = (value[:, 0] for value in STAIRS.evaluate(time, 3))
    np.testing.assert_allclose([q[0], dq[0], ddq[0], dddq[0]], 0.0, atol=1e-12)
    last = STAIRS.evaluate(np.nextafter(time[-1:], 0.0), 2)
    np.testing.assert_allclose(np.concatenate(last), 0.0, atol=1e-9)
    assert q.min() >= 0.0
    assert 0.5 * STAIRS.reach < q.max() <= STAIRS.reach
    assert 0.9 * STAIRS.acceleration < np.abs(ddq).max() <= STAIRS.acceleration
    # The trapezoidal rule over milliseconds.
    np.testing.assert_allclose(
        np.concatenate([[0.0], np.cumsum(0.5 * (dq[1:] + dq[:-1]) * np.diff(time))]), q, atol=1e-5
    )
    steps = STAIRS.duration / STAIRS.change
    assert steps == pytest.approx(round(steps), abs=1e-9)


def test_bounds_are_never_too_low() -> None:
    weights = np.array([[1.0], [-0.5]])
    bounds = STAIRS.bounds(weights)
    for values, bound in zip(STAIRS.evaluate(STAIRS.grid(1e-3), 5), bounds, strict=True):
        assert np.all(np.abs(values @ weights.T).max(axis=0) <= bound * (1.0 + 1e-9))
    assert np.all(bounds[:4] > 0.0)


def test_samples_lie_where_a_speed_is_held() -> None:
    times = STAIRS.sample_times(40)
    assert len(np.unique(times)) == 40
    speeds = np.abs(STAIRS.evaluate(times)[1][:, 0])
    assert np.all(np.min(np.abs(speeds[:, None] - STAIRS.speeds), axis=1) < 1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_speeds": 0}, "at least 1 speed"),
        ({"first": 0.0}, "first = 0 must be above 0"),
        ({"step": -0.1}, "step = -0.1 must be above 0"),
        ({"hold": 0.1}, "hold = 0.1 s is no whole multiple of change = 0.032 s"),
        ({"reach": 0.05}, "give more reach or acceleration"),
        ({"hold": math.inf}, "hold = inf s must be a positive number of seconds"),
    ],
)
def test_what_is_no_stair_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=message):
        SpeedStairs(**settings)


def test_a_sweep_of_a_differential_keeps_the_limits_and_can_be_stored() -> None:
    robot = load_robot("nursing_arm")
    sweep = plan_speed_sweep(robot, ("j2", "j4", "j6"), hold=0.16)
    np.testing.assert_array_equal(sweep.weights[:, 0], [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(sweep.home[::2], 0.0)
    motion = motion_at(sweep.basis, sweep.home, sweep.weights, sweep.basis.grid(0.004))
    assert max(float(limit.usage(motion).max()) for limit in usable_limits(robot, sweep.home)) <= 1.0 + 1e-9
    again = Excitation.from_dict(json.loads(json.dumps(sweep.to_dict())))
    assert again.basis == sweep.basis
    np.testing.assert_array_equal(again.weights, sweep.weights)
    np.testing.assert_array_equal(again.home, sweep.home)


def test_an_impossible_sweep_is_refused() -> None:
    robot = load_robot("nursing_arm")
    with pytest.raises(InfeasibleExcitation, match=r"joint 'j1' velocity .* sweep fewer speeds, or slower ones"):
        plan_speed_sweep(robot, ["j1"], n_speeds=100)
    with pytest.raises(RobotError, match="elbow"):
        plan_speed_sweep(robot, ["elbow"])
    with pytest.raises(ExcitationError, match="no joint is named to sweep; the joints are j1, j2"):
        plan_speed_sweep(robot, [])
