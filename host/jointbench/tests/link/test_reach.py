"""Motions that boards cannot refuse by themselves are refused by the joint's name."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.errors import TrajectoryError
from jointbench.link.identity import Facts
from jointbench.link.reach import check_reach, pose_within_reach
from jointbench.link.servo import default_settings
from jointbench.robot import Robot, load_robot
from jointbench.tests.link.wire import DEFAULTS

ARM = load_robot("nursing_arm")
MOTOR = Facts({**DEFAULTS, "encoder.motor_counts": 512, "drive.ratio": 3_060_000})
MEASURING = Facts({**DEFAULTS, "board.channels": 1 << 2})
COBOT = load_robot("cobot6")


def at(robot: Robot, joint: int, position: float, velocity: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Home, and a joint at a place and a velocity."""
    q, dq = np.array([robot.home] * 2), np.zeros((2, robot.n_joints))
    q[1, joint], dq[1, joint] = position, velocity
    return q, dq


@pytest.mark.parametrize("joint", range(6))
def test_a_coupled_joint_may_use_its_window_and_no_more(joint: int) -> None:
    count = 2.0 * np.pi / (512 * 3060)
    settings = default_settings(ARM)
    for end, way in zip(ARM.position_limits[joint], (-1.0, 1.0), strict=True):
        check_reach(*at(ARM, joint, end + way * count), ARM, [MOTOR] * 6, settings)
        with pytest.raises(TrajectoryError, match=f"^joint 'j{joint + 1}' is asked to go from"):
            check_reach(*at(ARM, joint, end + way * 4.0 * count), ARM, [MOTOR] * 6, settings)


def test_a_narrower_window_of_the_settings_holds() -> None:
    settings = list(default_settings(ARM))
    settings[2] = replace(settings[2], position_limits=(-0.5, 0.4), velocity_limit=0.2)
    check_reach(*at(ARM, 2, 0.4, velocity=-0.2), ARM, [MOTOR] * 6, settings)
    with pytest.raises(TrajectoryError, match=r"^joint 'j3' is asked to go from 0 to 0\.41 rad, its window is -0\.5"):
        check_reach(*at(ARM, 2, 0.41), ARM, [MOTOR] * 6, settings)
    with pytest.raises(TrajectoryError, match=r"^joint 'j3' is asked to go at 0\.21 rad/s, its limit is 0\.2 rad/s"):
        check_reach(*at(ARM, 2, 0.1, velocity=-0.21), ARM, [MOTOR] * 6, settings)


def test_a_joint_with_a_motor_of_its_own_is_left_to_its_board() -> None:
    check_reach(*at(COBOT, 1, 100.0, velocity=100.0), COBOT, [Facts(DEFAULTS)] * 6, ())


def test_a_joint_without_a_motor_may_stand_anywhere_and_not_move() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    q, dq = np.full((3, 6), 0.7), np.zeros((3, 6))
    check_reach(q, dq, COBOT, facts, ())
    q[2, 5] = 0.70001
    with pytest.raises(TrajectoryError, match=r"^joint 'j6' is asked to move from 0\.7 to 0\.70001 rad, but nothing"):
        check_reach(q, dq, COBOT, facts, ())


def test_a_pose_leaves_a_joint_without_a_motor_where_it_is() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    start = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    for named in (COBOT.home[5], 0.3):
        goal = pose_within_reach(COBOT, facts, start, np.array([0.1, 0.2, 0.3, 0.4, 0.5, named]))
        assert goal.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.3]
    with pytest.raises(TrajectoryError, match=r"^joint 'j6' is asked to go to 0\.2 rad.*It is at 0\.3 rad"):
        pose_within_reach(COBOT, facts, start, np.full(6, 0.2))
