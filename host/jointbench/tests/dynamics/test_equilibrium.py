"""The pose in which gravity turns nothing: of a pendulum, of arms, and where it cannot be told."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.dynamics import gravity_torques, hanging_pose
from jointbench.errors import UnknownInertia
from jointbench.robot import load_robot


@pytest.mark.parametrize("name", ["nursing_arm", "rehab_arm"])
def test_gravity_turns_no_joint_of_a_hanging_arm(name: str) -> None:
    robot = load_robot(name)
    assert robot.standard_parameters is not None
    pose = hanging_pose(robot)
    torque = gravity_torques(robot, pose[None], robot.standard_parameters)
    assert np.abs(torque).max() < 1e-6
    low, high = robot.position_limits.T
    assert np.all((low < pose) & (pose < high))


def test_it_keeps_to_the_position_limits() -> None:
    """An arm on a table cannot hang: what is left is as little as there is within the limits."""
    robot = load_robot("nursing_arm")
    assert robot.standard_parameters is not None
    turned = replace(robot, gravity=(0.0, 0.0, 9.81))
    pose = hanging_pose(turned)
    low, high = robot.position_limits.T
    assert np.all((low <= pose) & (pose <= high))
    home = gravity_torques(turned, np.array([robot.home]), robot.standard_parameters)
    assert np.sum(gravity_torques(turned, pose[None], robot.standard_parameters) ** 2) < np.sum(home**2)


def test_unknown_inertias_are_named() -> None:
    robot = load_robot("nursing_arm")
    first = robot.joints[0]
    unknown = replace(robot, joints=(replace(first, link=replace(first.link, mass=None)), *robot.joints[1:]))
    with pytest.raises(UnknownInertia, match=r"'nursing_arm' has links of unknown inertia"):
        hanging_pose(unknown)
