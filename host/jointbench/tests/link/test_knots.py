"""Knots: the cubic Hermite through them, in whole counts, must be the trajectory."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import TrajectoryError
from jointbench.link.identity import Facts
from jointbench.link.trajectory import check_repeats, trajectory_knots
from jointbench.robot import load_robot
from jointbench.tests.link.wire import DEFAULTS

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
    with pytest.raises(TrajectoryError, match=r"no whole number of knot steps of 0\.032 s; the nearest that is: "):
        trajectory_knots(Sine(0.5, period), ROBOT, FACTS)


def test_what_does_not_fit_the_wire() -> None:
    with pytest.raises(TrajectoryError, match="32-bit range"):
        trajectory_knots(Sine(1e5, 3.2), ROBOT, FACTS)


@pytest.mark.parametrize("repeats", [0, -1, 65536, 99_999_999])
def test_repeats_beyond_what_boards_count_are_refused(repeats: int) -> None:
    with pytest.raises(TrajectoryError, match=rf"repeats = {repeats} must be a whole number from 1 to 65535"):
        check_repeats(repeats)
    check_repeats(65535)
