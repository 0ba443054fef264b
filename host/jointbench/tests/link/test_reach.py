"""Joints that nothing drives are not asked to move."""

import numpy as np
import pytest

from jointbench.errors import TrajectoryError
from jointbench.link.identity import Facts
from jointbench.link.trajectory import check_driven, pose_within_reach
from jointbench.robot import load_robot
from jointbench.tests.link.wire import DEFAULTS

MEASURING = Facts({**DEFAULTS, "board.channels": 1 << 2})
COBOT = load_robot("cobot6")


def test_a_joint_without_a_motor_may_stand_anywhere_and_not_move() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    q = np.full((3, 6), 0.7)
    check_driven(q, COBOT, facts)
    q[2, 5] = 0.70001
    with pytest.raises(TrajectoryError, match=r"^joint 'j6' is asked to move from 0\.7 to 0\.70001 rad, but nothing"):
        check_driven(q, COBOT, facts)


def test_a_pose_leaves_a_joint_without_a_motor_where_it_is() -> None:
    facts = [*[Facts(DEFAULTS)] * 5, MEASURING]
    start = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    for named in (COBOT.home[5], 0.3):
        goal = pose_within_reach(COBOT, facts, start, np.array([0.1, 0.2, 0.3, 0.4, 0.5, named]))
        assert goal.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.3]
    with pytest.raises(TrajectoryError, match=r"^joint 'j6' is asked to go to 0\.2 rad.*It is at 0\.3 rad"):
        pose_within_reach(COBOT, facts, start, np.full(6, 0.2))
