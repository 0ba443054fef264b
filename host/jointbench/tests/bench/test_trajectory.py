"""Knots: the cubic Hermite through them, in whole counts, must be the trajectory."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.bench.identity import Facts
from jointbench.bench.trajectory import check_driven, check_repeats, plan_move, pose_within_reach, trajectory_knots
from jointbench.errors import ExcitationError
from jointbench.model import load_robot
from jointbench.tests.bench.wire import DEFAULTS

ROBOT = load_robot("cobot6")
FACTS = [Facts(DEFAULTS)] * ROBOT.n_joints
COUNTS = 4096 * 101 / (2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class Sine:
    amplitude: float
    period: float

    def evaluate(self, time: Array) -> tuple[Array, Array, Array]:
        w = 2.0 * np.pi / self.period
        phase = w * np.asarray(time)[:, None] + np.arange(6)
        q = self.amplitude * np.sin(phase)
        return q, self.amplitude * w * np.cos(phase), -(w**2) * q


def test_twenty_seconds_are_626_knots() -> None:
    assert trajectory_knots(Sine(0.5, 20.0), ROBOT, FACTS).shape == (6, 626, 2)


def test_hermite_between_knots_is_the_trajectory() -> None:
    motion = Sine(0.8, 3.2)
    knots = trajectory_knots(motion, ROBOT, FACTS).astype(float)
    u = np.arange(32)[:, None, None] / 32.0
    p0, v0 = knots[:, :-1, 0].T, knots[:, :-1, 1].T / 256.0 * 32.0
    p1, v1 = knots[:, 1:, 0].T, knots[:, 1:, 1].T / 256.0 * 32.0
    played = (
        (2 * u**3 - 3 * u**2 + 1) * p0 + (u**3 - 2 * u**2 + u) * v0 + (3 * u**2 - 2 * u**3) * p1 + (u**3 - u**2) * v1
    )
    time = np.arange(100 * 32, dtype=np.float64) * 1e-3
    q, _, _ = motion.evaluate(time)
    counts = played.transpose(1, 0, 2).reshape(-1, 6)
    # Interpolation: h^4/384 |d4q| = 0.002 counts; rounding: half a count in position, and 32 ticks x 1/4 x 1/512 count
    # in velocity; together below half a count and a tenth.
    assert np.abs(counts - q * COUNTS).max() < 0.6


def test_a_motor_that_turns_the_other_way() -> None:
    drive = replace(ROBOT.drives[2], ratio=-101.0)
    other = replace(ROBOT, drives=(*ROBOT.drives[:2], drive, *ROBOT.drives[3:]))
    plain, turned = (trajectory_knots(Sine(0.5, 3.2), robot, FACTS) for robot in (ROBOT, other))
    np.testing.assert_array_equal(turned[2], -plain[2])
    np.testing.assert_array_equal(turned[3], plain[3])


@pytest.mark.parametrize("period", [1.0, 0.01, 20.001])
def test_a_period_that_is_no_whole_number_of_steps(period: float) -> None:
    with pytest.raises(ExcitationError, match=r"no whole number of knot steps of 0\.032 s; the nearest that is: "):
        trajectory_knots(Sine(0.5, period), ROBOT, FACTS)


def test_what_does_not_fit_the_wire() -> None:
    with pytest.raises(ExcitationError, match="32-bit range"):
        trajectory_knots(Sine(1e5, 3.2), ROBOT, FACTS)


@pytest.mark.parametrize("repeats", [0, -1, 65536, 99_999_999])
def test_repeats_beyond_what_boards_count_are_refused(repeats: int) -> None:
    with pytest.raises(ExcitationError, match=rf"repeats = {repeats} must be a whole number from 1 to 65535"):
        check_repeats(repeats)
    check_repeats(65535)


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


MEASURING = Facts({**DEFAULTS, "board.channels": 1 << 2})
COBOT = load_robot("cobot6")


def test_a_joint_without_a_motor_may_stand_anywhere_and_not_move() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    q = np.full((3, 6), 0.7)
    check_driven(q, COBOT, facts)
    q[2, 5] = 0.70001
    with pytest.raises(ExcitationError, match=r"^joint 'j6' is asked to move from 0\.7 to 0\.70001 rad, but nothing"):
        check_driven(q, COBOT, facts)


def test_a_pose_leaves_a_joint_without_a_motor_where_it_is() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    start = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    for named in (COBOT.home[5], 0.3):
        goal = pose_within_reach(COBOT, facts, start, np.array([0.1, 0.2, 0.3, 0.4, 0.5, named]))
        assert goal.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.3]
    with pytest.raises(ExcitationError, match=r"^joint 'j6' is asked to go to 0\.2 rad.*It is at 0\.3 rad"):
        pose_within_reach(COBOT, facts, start, np.full(6, 0.2))
