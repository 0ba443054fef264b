"""The library's TX40 against the published model it was made from."""

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.dynamics import forward_kinematics, inverse_dynamics
from jointbench.robot import load_robot

pinocchio: Any = importlib.import_module("pinocchio")

URDF = Path(__file__).resolve().parents[5] / "shared/data/staubli_tx40/tx40_mdh_modified.urdf"

# The model's zero has the upper arm and the forearm horizontal; ours is the motors' own, upright.
OFFSET = np.array([0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0])

# The URDF writes right angles with 12 digits, so its geometry is off by about 1e-11.
DIGITS = 1e-10


@pytest.fixture
def model() -> Any:
    if not URDF.is_file():
        if os.environ.get("CI"):
            pytest.fail(f"{URDF} is missing, and CI must not pass without it")
        pytest.skip(f"no real recordings beside the checkout ({URDF.parent})")
    return pinocchio.buildModelFromUrdf(str(URDF))


def test_frames_are_those_of_the_urdf(model: Any) -> None:
    robot = load_robot("tx40")
    data = model.createData()
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 6))

    rotations, origins = forward_kinematics(robot, q)

    # Our base frame is the URDF's.
    for k in range(len(q)):
        pinocchio.forwardKinematics(model, data, q[k] + OFFSET)
        for i in range(6):
            np.testing.assert_allclose(rotations[k, i], data.oMi[i + 1].rotation, atol=DIGITS)
            np.testing.assert_allclose(origins[k, i], data.oMi[i + 1].translation, atol=DIGITS)


def test_torques_are_those_of_the_urdf(model: Any) -> None:
    robot = load_robot("tx40")
    assert robot.standard_parameters is not None
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 20, 6))

    torques = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)

    for k in range(len(q)):
        expected = pinocchio.rnea(model, model.createData(), q[k] + OFFSET, dq[k], ddq[k])
        np.testing.assert_allclose(torques[k], expected, atol=10 * DIGITS)  # arms of about 10 kg m²


def test_limits_are_those_of_the_urdf(model: Any) -> None:
    robot = load_robot("tx40")

    # We round to whole degrees per second, and two position limits to the controller's.
    np.testing.assert_allclose(robot.velocity_limits, model.velocityLimit, rtol=0.01)
    np.testing.assert_allclose(robot.torque_limits, model.effortLimit)
    np.testing.assert_allclose(robot.position_limits[:, 0], model.lowerPositionLimit, atol=0.02)
    np.testing.assert_allclose(robot.position_limits[:, 1], model.upperPositionLimit, atol=0.02)
