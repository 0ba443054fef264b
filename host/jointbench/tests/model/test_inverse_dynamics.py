"""Joint torques of motions, of gravity, and against forces from outside."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, RobotError, ShapeError
from jointbench.model import (
    Robot,
    Wrench,
    energy,
    external_torques,
    forward_kinematics,
    gravity_torques,
    hanging_pose,
    inverse_dynamics,
    load_robot,
    regressor,
    with_payload,
)

RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]

CHAINS = ["R", "P", "RR", "RP", "PRR", "RRRRRR", "RPRPRR", "RRRRRRR"]
SEEDS = range(3)

# Sums of a few hundred products of numbers below about 1e3 in double precision: 1e-11 relative leaves two decades.
ROUNDING = 1e-11


def parameters_of(robot: Robot) -> Array:
    parameters = robot.standard_parameters
    assert parameters is not None
    return parameters


def pinocchio_model(robot: Robot) -> Any:
    model = pinocchio.Model()
    for i, joint in enumerate(robot.joints):
        kind = pinocchio.JointModelRZ() if joint.kind == "revolute" else pinocchio.JointModelPZ()
        model.addJoint(joint.parent + 1, kind, pinocchio.SE3(*joint.placement), joint.name)
        link = joint.link
        center = np.array(link.center_of_mass)
        inertia = pinocchio.Inertia(link.mass, center, np.array(link.inertia_about_center_of_mass))
        model.appendBodyToJoint(i + 1, inertia, pinocchio.SE3.Identity())
    model.gravity.linear = np.array(robot.gravity)
    return model


@pytest.mark.parametrize("kinds", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tree", [False, True])
def test_agrees_with_pinocchio(
    kinds: str,
    seed: int,
    tree: bool,
    random_robot: RandomRobot,
    random_motion: RandomMotion,
) -> None:
    robot = random_robot(kinds, seed, tree=tree)
    model = pinocchio_model(robot)
    data = model.createData()
    q, dq, ddq = random_motion(robot, 20, seed)
    torques = inverse_dynamics(robot, q, dq, ddq, parameters_of(robot))
    columns = regressor(robot, q, dq, ddq)
    rotations, origins = forward_kinematics(robot, q)

    for k in range(len(q)):
        expected = pinocchio.rnea(model, data, q[k], dq[k], ddq[k])
        np.testing.assert_allclose(torques[k], expected, rtol=ROUNDING, atol=ROUNDING * np.abs(expected).max())

        theirs = pinocchio.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k])
        theirs = theirs.reshape(robot.n_joints, robot.n_links, 10)[:, :, FROM_PINOCCHIO].reshape(robot.n_joints, -1)
        ours = columns[k * robot.n_joints : (k + 1) * robot.n_joints]
        np.testing.assert_allclose(ours, theirs, rtol=ROUNDING, atol=ROUNDING * np.abs(theirs).max())

        pinocchio.forwardKinematics(model, data, q[k])
        for i in range(robot.n_links):
            np.testing.assert_allclose(rotations[k, i], data.oMi[i + 1].rotation, atol=ROUNDING)
            np.testing.assert_allclose(origins[k, i], data.oMi[i + 1].translation, atol=ROUNDING)


@pytest.mark.parametrize("kinds", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_standard_parameters_are_pinocchios(kinds: str, seed: int, random_robot: RandomRobot) -> None:
    robot = random_robot(kinds, seed)
    model = pinocchio_model(robot)

    theirs = [model.inertias[i + 1].toDynamicParameters()[FROM_PINOCCHIO] for i in range(robot.n_links)]

    np.testing.assert_allclose(parameters_of(robot), np.concatenate(theirs), rtol=ROUNDING, atol=1e-14)


@pytest.mark.parametrize("kinds", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tree", [False, True])
def test_power_is_the_rate_of_energy(
    kinds: str,
    seed: int,
    tree: bool,
    random_robot: RandomRobot,
    random_motion: RandomMotion,
) -> None:
    """dE/dt = dq · tau, for any inertial parameters, even those of no body."""
    robot = random_robot(kinds, seed, tree=tree)
    q, dq, ddq = random_motion(robot, 50, seed)
    parameters = np.random.default_rng(seed).normal(size=10 * robot.n_links)

    def total_energy(time: float):
        moved = q + time * dq + 0.5 * time**2 * ddq
        return sum(energy(robot, moved, dq + time * ddq, parameters))

    h = 1e-5
    # Five-point difference: its error is of order h^4 = 1e-20 and that of rounding eps / h = 2e-11, relative.
    rate = (8 * (total_energy(h) - total_energy(-h)) - (total_energy(2 * h) - total_energy(-2 * h))) / (12 * h)
    power = np.sum(dq * inverse_dynamics(robot, q, dq, ddq, parameters), axis=1)
    scale = np.abs(total_energy(0.0)).max() + np.abs(power).max()
    np.testing.assert_allclose(power, rate, atol=1e-9 * scale)


@pytest.mark.parametrize("kinds", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_newton_euler_is_the_regressor_times_parameters(
    kinds: str,
    seed: int,
    random_robot: RandomRobot,
    random_motion: RandomMotion,
) -> None:
    robot = random_robot(kinds, seed)
    q, dq, ddq = random_motion(robot, 50, seed)
    parameters = np.random.default_rng(seed).normal(size=10 * robot.n_links)

    torques = inverse_dynamics(robot, q, dq, ddq, parameters)

    expected = (regressor(robot, q, dq, ddq) @ parameters).reshape(torques.shape)
    np.testing.assert_allclose(torques, expected, atol=ROUNDING * np.abs(torques).max())


def test_pendulum_in_closed_form() -> None:
    """Joint 1 of a horizontal-axis pendulum: tau = (I + m l²) ddq + m g l cos q."""
    robot = load_robot("cobot6")
    mass, length, inertia = 2.0, 0.5, 0.1
    parameters = np.zeros(60)
    parameters[10:20] = [mass, mass * length, 0, 0, 0, 0, 0, mass * length**2, 0, inertia + mass * length**2]
    q, ddq = np.zeros((1, 6)), np.zeros((1, 6))
    q[0, 1], ddq[0, 1] = 0.3, 0.7

    torque = inverse_dynamics(robot, q, np.zeros((1, 6)), ddq, parameters)[0, 1]

    expected = (inertia + mass * length**2) * 0.7 + mass * 9.81 * length * np.cos(0.3)
    assert torque == pytest.approx(expected, rel=1e-12)


def test_gravity_torques_are_those_of_rest() -> None:
    robot = load_robot("cobot6")
    q = np.random.default_rng(0).normal(size=(5, 6))
    rest = np.zeros_like(q)

    torques = gravity_torques(robot, q, parameters_of(robot))

    np.testing.assert_array_equal(torques, inverse_dynamics(robot, q, rest, rest, parameters_of(robot)))
    assert np.abs(torques).max() > 1.0


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
    with pytest.raises(RobotError, match=r"'nursing_arm' has links of unknown inertia"):
        hanging_pose(unknown)


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
    with pytest.raises(FileError, match="has no frame 'hand'; there are"):
        external_torques(robot, poses(robot), Wrench("hand", [1.0, 0.0, 0.0]))
    left = external_torques(robot, poses(robot), Wrench(robot.joints[5].link.name, [1.0, 2.0, 3.0]))
    assert np.abs(left[:, :6]).max() > 0.1
    np.testing.assert_array_equal(left[:, 6:], 0.0)  # the other arm hangs on the same base


@pytest.mark.parametrize("force", [[1.0, 2.0], np.ones((3, 3)), [np.nan, 0.0, 0.0]])
def test_a_wrench_of_another_shape_is_refused(force: np.ndarray) -> None:
    robot = load_robot("cobot6")
    with pytest.raises(ShapeError, match=r"force of a wrench has shape .*; it must be \(3,\), or \(20, 3\) for 20"):
        external_torques(robot, poses(robot), Wrench(robot.joints[-1].link.name, force))
