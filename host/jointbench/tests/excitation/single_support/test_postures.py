"""Joint positions from poses and back; poses that legs do not reach are refused."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.single_support.task import poses_of, positions_at
from jointbench.robot import load_robot

ROBOT = load_robot("gorobot2")
HOME = np.array(ROBOT.home)


def test_positions_are_found_again_from_their_poses() -> None:
    q = HOME + np.random.default_rng(3).uniform(-0.25, 0.25, (50, 12))
    found = positions_at(ROBOT, poses_of(ROBOT, q), np.broadcast_to(HOME, q.shape))
    np.testing.assert_allclose(found, q, atol=1e-8)  # Newton ends at 1e-10 m and rad; legs are far from stretched


def test_a_pose_out_of_reach_is_refused() -> None:
    poses = poses_of(ROBOT, HOME[None])
    far = replace(poses, origins=poses.origins + np.array([0.0, 0.0, 0.3]))
    with pytest.raises(InfeasibleExcitation, match="its legs do not reach where trunk and swing foot are to be"):
        positions_at(ROBOT, far, HOME[None])


def test_stretched_legs_bend() -> None:
    """There the Jacobian is singular but for rounding, and the first step as long as it may be."""
    straight = np.zeros((1, 12))
    lower = poses_of(ROBOT, straight)
    lower = replace(lower, origins=lower.origins - np.array([0.0, 0.0, 0.05]))
    np.testing.assert_allclose(poses_of(ROBOT, positions_at(ROBOT, lower, straight)).origins, lower.origins, atol=1e-9)
