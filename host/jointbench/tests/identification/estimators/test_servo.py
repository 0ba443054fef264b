"""The servo that a run's boards had, from their registers."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.estimators.output_error import board_servo
from jointbench.link.identity import Facts
from jointbench.link.settings import default_settings, motor_settings
from jointbench.recording import Run
from jointbench.robot import Robot, load_robot
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.link.wire import DEFAULTS

ROBOT = arm(3)


def recorded(robot: Robot, **changed: float) -> Run:
    """A run that was made with boards whose servo has the bench's settings, some changed."""
    boards: list[dict[str, Any]] = []
    settings = [dataclasses.replace(each, **changed) for each in default_settings(robot)]
    motors = motor_settings(settings, robot.drive_train)
    for node, (motor, drive) in enumerate(zip(motors, robot.drives, strict=True)):
        registers = motor.registers(drive.joint, node, Facts(DEFAULTS))
        boards.append({"node": node, "joint": drive.joint, "registers": dict(DEFAULTS) | dict(registers)})
    run = synthetic_run(ROBOT, motion_seed=1, noise_seed=1, repeats=1)
    return dataclasses.replace(run, robot=robot, provenance={"board": boards, "clock": "common"})


def test_its_gains_at_the_joints_are_those_that_were_set() -> None:
    servo = board_servo(recorded(ROBOT, integral=500.0, friction_torque=4.0, friction_band=0.05))
    assert servo is not None
    for joint, settings in enumerate(default_settings(ROBOT)):
        ratio = servo.matrix[joint, joint]
        # Registers hold whole numbers: the gains keep three digits, those of integral and friction fewer.
        assert servo.stiffness[joint] * ratio**2 == pytest.approx(settings.stiffness, rel=1e-3)
        assert servo.damping[joint] * ratio**2 == pytest.approx(settings.damping, rel=5e-3)
        assert servo.integral[joint] * ratio**2 == pytest.approx(500.0, rel=0.1)
        assert servo.friction[joint] * ratio == pytest.approx(4.0, rel=0.02)
        assert servo.friction_band[joint] / ratio == pytest.approx(0.05, rel=0.02)
        drive = ROBOT.drives[joint]
        assert servo.limit[joint] == pytest.approx(drive.torque_constant * settings.current_limit, rel=1e-3)


def test_coupled_motors_keep_their_matrix() -> None:
    robot = load_robot("nursing_arm")
    servo = board_servo(recorded(robot, following_limit=0.02))
    assert servo is not None
    assert servo.matrix.tolist() == robot.transmission_matrix.tolist()
    assert np.count_nonzero(servo.matrix) > robot.n_joints


def test_a_run_without_boards_has_none() -> None:
    assert board_servo(synthetic_run(ROBOT, motion_seed=1, noise_seed=1, repeats=1)) is None


def test_damaged_registers_are_said_to_be() -> None:
    run = recorded(ROBOT)
    del run.provenance["board"][1]["registers"]["servo.kp"]
    with pytest.raises(FitError, match=r"servo cannot be read.*servo\.kp"):
        board_servo(run)
