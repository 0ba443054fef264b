"""Joint torques against a wrench from outside, against virtual work and statics by hand."""

import numpy as np
import pytest

from jointbench.dynamics import Wrench, external_torques, forward_kinematics, gravity_torques
from jointbench.errors import RobotFileError, ShapeError
from jointbench.robot import Robot, load_robot, with_payload

ROBOTS = ("nursing_arm", "cobot6", "modular7")


def poses(robot: Robot, n: int = 20) -> np.ndarray:
    low, high = robot.position_limits.T
    return np.random.default_rng(0).uniform(low, high, (n, robot.n_joints))


def place(robot: Robot, frame: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes and origin of a frame, from the links' frames alone."""
    rotations, origins = forward_kinematics(robot, q)
    at = robot.frame(frame)
    link = rotations[:, at.joint]
    return link @ np.array(at.rotation), origins[:, at.joint] + link @ at.origin


@pytest.mark.parametrize("name", ROBOTS)
def test_its_work_is_that_of_the_joints(name: str) -> None:
    """Virtual work: w · (displacement, turn) + tau_ext · dq = 0 for each joint's small step, by differences."""
    robot = load_robot(name)
    frame = "hand" if name == "nursing_arm" else robot.joints[-1].link.name
    q, (force, moment) = poses(robot), np.random.default_rng(1).normal(size=(2, 20, 3))
    torque = external_torques(robot, q, Wrench(frame, force, moment))
    for joint in range(robot.n_joints):
        step = 1e-6 * np.eye(robot.n_joints)[joint]
        (axes, before), (turned, after) = (place(robot, frame, q + sign * step) for sign in (-1, 1))
        skew = turned @ axes.transpose(0, 2, 1)  # R R'^T = 1 + [turn]x
        turn = 0.5 * np.stack(
            [skew[:, 2, 1] - skew[:, 1, 2], skew[:, 0, 2] - skew[:, 2, 0], skew[:, 1, 0] - skew[:, 0, 1]], axis=1
        )
        work = np.einsum("ka,ka->k", force, after - before) + np.einsum("ka,ka->k", moment, turn)
        np.testing.assert_allclose(torque[:, joint], -work / 2e-6, atol=1e-8)


def test_a_weight_on_the_hand_is_a_heavier_hand() -> None:
    robot = load_robot("nursing_arm")
    q, mass = poses(robot), 3.0
    loaded = with_payload(robot, "load", "hand", mass, (0.0, 0.0, 0.0))
    assert robot.standard_parameters is not None
    assert loaded.standard_parameters is not None
    heavier = gravity_torques(loaded, q, loaded.standard_parameters)
    heavier -= gravity_torques(robot, q, robot.standard_parameters)
    weight = Wrench("hand", mass * np.array(robot.gravity))
    np.testing.assert_allclose(external_torques(robot, q, weight), heavier, atol=1e-12)


def test_a_sensors_axes_turn_with_it() -> None:
    robot = load_robot("nursing_arm")
    q = poses(robot)
    axes, _ = place(robot, "hand", q)
    base = np.random.default_rng(2).normal(size=(20, 3))
    own = np.einsum("kba,kb->ka", axes, base)
    np.testing.assert_allclose(
        external_torques(robot, q, Wrench("hand", own, own, turns=True)),
        external_torques(robot, q, Wrench("hand", base, base)),
        atol=1e-12,
    )


def test_on_the_base_no_joint_feels_it() -> None:
    robot = load_robot("nursing_dual")
    with pytest.raises(RobotFileError, match="has no frame 'hand'; there are"):
        external_torques(robot, poses(robot), Wrench("hand", [1.0, 0.0, 0.0]))
    left = external_torques(robot, poses(robot), Wrench(robot.joints[5].link.name, [1.0, 2.0, 3.0]))
    assert np.abs(left[:, :6]).max() > 0.1
    np.testing.assert_array_equal(left[:, 6:], 0.0)  # the other arm hangs on the same base


@pytest.mark.parametrize("force", [[1.0, 2.0], np.ones((3, 3)), [np.nan, 0.0, 0.0]])
def test_a_wrench_of_another_shape_is_refused(force: np.ndarray) -> None:
    robot = load_robot("cobot6")
    with pytest.raises(ShapeError, match=r"force of a wrench has shape .*; it must be \(3,\), or \(20, 3\) for 20"):
        external_torques(robot, poses(robot), Wrench(robot.joints[-1].link.name, force))
