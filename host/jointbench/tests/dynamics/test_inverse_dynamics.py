import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import energy, forward_kinematics, gravity_torques, inverse_dynamics, regressor
from jointbench.robot import Robot, load_robot

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
