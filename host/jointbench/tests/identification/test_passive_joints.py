"""Robots with a joint that is measured but not modelled: the others are identified while it moves."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jointbench.identification import Model, fit, load_model, validate
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.model import Coupling, Drive, Robot
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

PASSIVE = 2


def passive_arm() -> Robot:
    """Three joints, the last of which is moved by hand; its link is known to weigh something, and told."""
    whole = arm(3)
    joints = (*whole.joints[:PASSIVE], dataclasses.replace(whole.joints[PASSIVE], passive=True))
    return dataclasses.replace(whole, joints=joints)


def recorded(motion_seed: int, torque_there: float = 3.0) -> Run:
    """As the arm with three modelled joints would record it, but for a torque at the third that means nothing."""
    run = synthetic_run(arm(3), motion_seed=motion_seed, noise_seed=motion_seed)
    torque = run.samples.motor_torque
    assert torque is not None
    spoiled = torque.copy()
    spoiled[:, PASSIVE] = torque_there
    samples = dataclasses.replace(run.samples, motor_torque=spoiled)
    return dataclasses.replace(run, robot=passive_arm(), samples=samples)


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(recorded(0))


def test_the_modelled_joints_are_identified(model: Model) -> None:
    assert np.abs(model.deviations(truth(passive_arm()))).max() < 4.0
    assert model.rows[PASSIVE] == 0
    assert not any(name.startswith("j3.coulomb") for name in model.names)
    assert [verdict.word for verdict in model.joint_verdicts] == ["identified", "identified", "passive"]
    assert model.verdict.word == "identified"


@pytest.mark.parametrize("torque_there", [-100.0, np.nan])
def test_what_was_recorded_as_its_torque_makes_no_difference(model: Model, torque_there: float) -> None:
    np.testing.assert_array_equal(fit(recorded(0, torque_there)).parameters, model.parameters)


def test_it_is_judged_by_the_others_on_another_motion(model: Model) -> None:
    check = validate(model, recorded(1))
    assert check.verdict.word == "identified"
    assert check.joint_verdicts[PASSIVE].word == "passive"
    assert check.error_all.relative[:PASSIVE].max() < 0.1
    assert np.isnan(check.error_all.relative[PASSIVE])
    assert not check.predicted[:, PASSIVE].any()


def test_a_model_file_keeps_it(model: Model, tmp_path: Path) -> None:
    again = load_model(model.save(tmp_path / "model.json"))
    assert again.robot == model.robot
    assert again.joint_verdicts == model.joint_verdicts


def test_a_model_file_keeps_bases_that_move_and_motors_beyond_one_for_each_joint() -> None:
    whole = arm(3)
    drive = Drive("second", "j1", "direct", -80.0, 0.1, 5.0, link_encoder=True, motor_coulomb=0.1)
    robot = dataclasses.replace(
        whole,
        couplings=(Coupling("twins", ("j1",), ((101.0,), (-80.0,)), (drive,)),),
        base_link=dataclasses.replace(whole.joints[0].link, name="trunk"),
        part_faults=(("lid", "mass 0 kg is not positive"),),
    )
    assert robot_from(plain(robot_values(robot))) == robot
