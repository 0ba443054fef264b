"""Random trees of all kinds of joints, a thousand with --slow: the compiled kernels against Pinocchio."""

from collections.abc import Callable

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import inverse_dynamics, regressor
from jointbench.robot import Robot
from jointbench.robot.robot import MOST_JOINTS
from jointbench.tests.dynamics.pinocchio_peer import Peer
from jointbench.tests.robot.inertia import parameters_of

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

AGREEMENT = 1e-10  # relative to the largest element; rounding leaves about 1e-14


def kinds_of(rng: np.random.Generator, most: int) -> str:
    """Letters of 1 to `most` joints: half of them revolute about any axis, each sixth or so follows another."""
    letters = rng.choice(list("RrrPpm"), rng.integers(1, most + 1))
    return "r" + "".join(letters[1:])


@pytest.mark.parametrize("trees", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_trees_are_pinocchios(trees: int, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    rng = np.random.default_rng(0)
    for seed in range(trees):
        robot = random_robot(kinds_of(rng, MOST_JOINTS if seed % 50 == 0 else 12), seed, tree=seed % 2 == 0)
        peer, motion = Peer(robot), random_motion(robot, 2, seed)
        theirs, torques = peer.regressor(*motion), peer.torques(*motion)
        ours = regressor(robot, *motion)
        by_sweep = inverse_dynamics(robot, *motion, parameters_of(robot))
        about = f"tree {seed}, {robot.name}"
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=AGREEMENT * np.abs(theirs).max(), err_msg=about)
        np.testing.assert_allclose(by_sweep, torques, rtol=0, atol=AGREEMENT * np.abs(torques).max(), err_msg=about)


@pytest.mark.parametrize("tree", [False, True])
def test_as_many_joints_as_are_allowed(tree: bool, random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = random_robot("rRpPm" * (MOST_JOINTS // 5), 3, tree=tree)
    motion = random_motion(robot, 20, 3)

    theirs = Peer(robot).regressor(*motion)

    assert (robot.n_links, robot.n_joints) == (MOST_JOINTS, MOST_JOINTS - MOST_JOINTS // 5)
    np.testing.assert_allclose(regressor(robot, *motion), theirs, rtol=0, atol=AGREEMENT * np.abs(theirs).max())


def test_the_trees_have_what_they_are_to_test(random_robot: RandomRobot) -> None:
    rng = np.random.default_rng(0)
    robots = [random_robot(kinds_of(rng, 12), seed, tree=True) for seed in range(100)]
    joints = [joint for robot in robots for joint in robot.joints]

    assert {joint.kind for joint in joints if joint.mimic} == {"revolute", "prismatic"}
    assert {joint.axis == (0.0, 0.0, 1.0) for joint in joints} == {True, False}
    assert any(sum(joint.parent == 0 for joint in robot.joints) > 1 for robot in robots)
    assert all(abs(np.linalg.norm(joint.axis) - 1.0) < 1e-12 for joint in joints)
