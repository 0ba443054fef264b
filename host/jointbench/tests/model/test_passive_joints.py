"""Passive joints in robot files, and in a model in which neither they nor neglected links have a part."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, RobotError
from jointbench.model import (
    Coupling,
    Robot,
    base_parameters,
    drive_columns,
    inverse_dynamics,
    load_robot,
    model_columns,
    model_parameter_names,
    momentum_regressor,
    normal_equations,
    regressor,
    regressor_adjoint,
    with_passive,
)
from jointbench.tests.model.test_inverse_dynamics import FROM_PINOCCHIO
from jointbench.tests.model.test_link import parameters_of

HEAD = 'version = 1\nname = "arm"\nsource = "made up"\ndescription = "three joints"\n'
LIMITS = "position_deg = [-90, 180]\nvelocity_deg_s = 90\nacceleration_deg_s2 = 180\ntorque_Nm = 10\n"
PLACE = "alpha_deg = 90\na_mm = 100\nd_mm = 20\n"
DRIVE = '[joints.drive]\nkind = "direct"\nratio = 100\ntorque_constant_Nm_A = 0.1\ncurrent_limit_A = 1\n'
BODY = "mass_kg = 2\ncenter_of_mass_mm = [10, 0, 0]\ninertia_kg_m2 = { xx = 0.01, yy = 0.02, zz = 0.025 }\n"
LINK = f"[joints.link]\n{BODY}"
HANDLE = f'[[joints]]\nname = "handle"\n{PLACE}{LIMITS}passive = true\n'
WHOLE = HEAD + "".join(f'[[joints]]\nname = "{name}"\n{PLACE}{LIMITS}{LINK}{DRIVE}' for name in ("a", "b")) + HANDLE


def load(tmp_path: Path, text: str, name: str = "arm.toml") -> Robot:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_a_passive_joint_needs_neither_link_nor_drive(tmp_path: Path) -> None:
    robot = load(tmp_path, WHOLE)
    assert robot.joint_names == ("a", "b", "handle")
    assert robot.modelled.tolist() == [True, True, False]
    assert robot.modelled_links.tolist() == [True, True, False]
    assert (robot.drives[2].kind, robot.drives[2].ratio) == ("none", 1.0)
    assert robot.standard_parameters is not None
    assert not robot.standard_parameters[20:].any()
    assert robot.warnings == ()


def test_a_passive_joint_may_have_both(tmp_path: Path) -> None:
    robot = load(tmp_path, WHOLE + LINK + DRIVE)
    assert robot.modelled.tolist() == [True, True, False]
    assert robot.modelled_links.all()
    assert robot.drives[2].kind == "direct"
    unknown = load(tmp_path, WHOLE + "[joints.link]\n")
    assert unknown.modelled_links.all()
    assert unknown.standard_parameters is None


def test_what_is_fixed_to_a_neglected_link_counts(tmp_path: Path) -> None:
    tool = f'[[fixed]]\nname = "grip"\nparent = "handle"\n{PLACE}[fixed.link]\n{BODY}'
    assert load(tmp_path, WHOLE + tool).modelled_links.all()


def test_one_may_carry_others(tmp_path: Path) -> None:
    robot = load(tmp_path, WHOLE + HANDLE.replace("handle", "tip") + LINK)
    assert robot.modelled.tolist() == [True, True, False, False]
    assert robot.modelled_links.tolist() == [True, True, False, True]


def test_any_joint_of_any_robot_can_be_made_passive(tmp_path: Path) -> None:
    robot = load_robot("cobot6")
    assert with_passive(robot, "j2", "j6").modelled.tolist() == [True, False, True, True, True, False]
    assert with_passive(robot, "j2").standard_parameters is not None
    assert with_passive(robot, "j6", neglected=True).neglected_links == (5,)
    as_read = load(tmp_path, WHOLE.replace("passive = true", "passive = false\n" + DRIVE))
    assert with_passive(as_read, "handle", neglected=True).joints == load(tmp_path, WHOLE + DRIVE).joints
    with pytest.raises(RobotError, match=r"robot 'cobot6' has no joint 'elbow'; its joints: j1"):
        with_passive(robot, "elbow")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("passive = true", 'passive = "yes"', "joint 'handle': passive = 'yes' must be true or false"),
        ("passive = true", "", "joint 'handle': 'drive' is missing"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in WHOLE
    with pytest.raises(FileError) as caught:
        load(tmp_path, WHOLE.replace(before, after))
    assert message in str(caught.value)


RandomRobot = Callable[..., Robot]
RandomMotion = Callable[[Robot, int, int], tuple[Array, Array, Array]]

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

SAMPLES = 20
ROUNDING = 1e-11  # of sums of a few hundred products of numbers below 1e3, relative to the largest


def passive_at(robot: Robot, *joints: int, neglected: bool = False) -> Robot:
    """The robot with passive joints of these indices."""
    return with_passive(robot, *(robot.joint_names[joint] for joint in joints), neglected=neglected)


def close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=ROUNDING * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("passive", [(0,), (5,), (1, 3), (0, 1, 2, 3, 4, 5)])
@pytest.mark.parametrize("tree", [False, True])
def test_only_modelled_joints_contribute_rows(
    passive: tuple[int, ...], tree: bool, random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    free = random_robot("RRPRPR", 3, tree=tree)
    robot, motion = passive_at(free, *passive), random_motion(free, SAMPLES, 3)
    rows = regressor(robot, *motion).reshape(SAMPLES, 6, 60)
    expected = regressor(free, *motion).reshape(SAMPLES, 6, 60)
    expected[:, list(passive)] = 0.0
    np.testing.assert_array_equal(rows, expected)
    momenta = momentum_regressor(free, *motion[:2]).reshape(SAMPLES, 6, 60)
    momenta[:, list(passive)] = 0.0
    np.testing.assert_array_equal(momentum_regressor(robot, *motion[:2]).reshape(SAMPLES, 6, 60), momenta)


def test_torques_are_those_of_the_motion_wherever_it_comes_from(
    random_robot: RandomRobot, random_motion: RandomMotion
) -> None:
    """Inverse dynamics says what a hand must do at a passive joint; the model says nothing there."""
    free = random_robot("RRRRR", 4)
    robot, motion = passive_at(free, 2), random_motion(free, SAMPLES, 4)
    torques = inverse_dynamics(robot, *motion, parameters_of(robot))
    np.testing.assert_array_equal(torques, inverse_dynamics(free, *motion, parameters_of(free)))
    of_model = (regressor(robot, *motion) @ parameters_of(robot)).reshape(torques.shape)
    close(of_model[:, robot.modelled], torques[:, robot.modelled])


def test_normal_equations_have_the_same_rows(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    """What a passive joint's torque is makes no difference."""
    robot = passive_at(passive_at(random_robot("RRPRR", 5), 1), 4, neglected=True)
    motion = random_motion(robot, SAMPLES + 3, 5)
    tau = np.random.default_rng(5).normal(size=(SAMPLES + 3, 5))
    found = normal_equations(robot, *motion, tau)
    rows, values = regressor(robot, *motion), np.where(robot.modelled, tau, 0.0).ravel()
    close(found.gram, rows.T @ rows)
    close(found.right, rows.T @ values)
    assert found.squares == pytest.approx(values @ values, rel=1e-12)  # a sum of squares
    assert found.rows == 3 * (SAMPLES + 3)


def test_a_neglected_tip_leaves_the_robot_without_it(random_motion: RandomMotion) -> None:
    """Four modelled joints of five: the regressor and the base parameters of the robot that ends at the fourth."""
    whole = load_robot("rehab_arm")
    robot = passive_at(whole, 4, neglected=True)
    short = replace(whole, joints=whole.joints[:4], drives=whole.drives[:4], home=whole.home[:4])
    motion = random_motion(robot, SAMPLES, 6)
    rows = regressor(robot, *motion).reshape(SAMPLES, 5, 50)
    expected = regressor(short, *(each[:, :4] for each in motion)).reshape(SAMPLES, 4, 40)
    np.testing.assert_array_equal(rows[:, :4, :40], expected)
    assert not rows[:, 4].any()
    assert not rows[:, :, 40:].any()
    for drives in (False, True):
        assert base_parameters(robot, drives=drives).names == base_parameters(short, drives=drives).names


@pytest.mark.parametrize("passive", [(2,), (4,), (0, 3)])
def test_base_parameters_are_those_of_the_modelled_rows(passive: tuple[int, ...], random_robot: RandomRobot) -> None:
    """As many as Pinocchio's regressor without the passive joints' rows has rank."""
    free = random_robot("RRRRR", 7)
    robot = passive_at(free, *passive)
    model = pinocchio.Model()
    for i, joint in enumerate(free.joints):
        moves = pinocchio.JointModelRevoluteUnaligned(np.array(joint.axis))
        model.addJoint(i, moves, pinocchio.SE3(*joint.placement), joint.name)
    model.gravity.linear = np.array(free.gravity)
    data, rng = model.createData(), np.random.default_rng(7)
    rows = [pinocchio.computeJointTorqueRegressor(model, data, *rng.normal(size=(3, 5))) for _ in range(200)]
    kept = np.array(rows)[:, robot.modelled].reshape(-1, 5, 10)[:, :, FROM_PINOCCHIO].reshape(-1, 50)
    found = base_parameters(robot, drives=False)
    assert found.rank == np.linalg.matrix_rank(kept)
    assert np.linalg.matrix_rank(found.project(kept)) == found.rank


def test_a_neglected_link_may_carry_others(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    """As where it weighs nothing: only its own columns are gone."""
    free = random_robot("RRRRR", 11)
    robot, motion = passive_at(free, 2, neglected=True), random_motion(free, SAMPLES, 11)
    rows = regressor(robot, *motion).reshape(SAMPLES, 5, 5, 10)
    expected = regressor(passive_at(free, 2), *motion).reshape(SAMPLES, 5, 5, 10)
    expected[:, :, 2] = 0.0
    np.testing.assert_array_equal(rows, expected)
    torques = inverse_dynamics(robot, *motion, parameters_of(robot))
    close(
        (rows.reshape(-1, 50) @ parameters_of(robot)).reshape(SAMPLES, 5)[:, robot.modelled], torques[:, robot.modelled]
    )


def test_drives_of_passive_joints_have_no_columns(random_motion: RandomMotion) -> None:
    robot = passive_at(load_robot("cobot6"), 2)
    motion = random_motion(robot, SAMPLES, 8)
    columns, names = drive_columns(robot, *motion[1:])
    plain, all_names = drive_columns(load_robot("cobot6"), *motion[1:])
    kept = [k for k, name in enumerate(all_names) if not name.startswith("j3.")]
    assert names == tuple(all_names[k] for k in kept)
    np.testing.assert_array_equal(columns, plain[:, kept])
    assert len(model_parameter_names(robot)) == model_columns(robot, *motion)[0].shape[1] == 60 + 20


def test_a_coupled_motor_still_rubs_at_the_joint_that_is_modelled(random_motion: RandomMotion) -> None:
    arm = replace(load_robot("cobot6"), couplings=(Coupling("wrist", ("j5", "j6"), ((100.0, 0.0), (100.0, 100.0))),))
    robot, motion = passive_at(arm, 5), random_motion(arm, SAMPLES, 9)
    columns, names = drive_columns(robot, *motion[1:])
    plain, all_names = drive_columns(arm, *motion[1:])
    expected = plain.reshape(SAMPLES, 6, -1)[:, :, [all_names.index(name) for name in names]]
    expected[:, 5] = 0.0
    np.testing.assert_array_equal(columns.reshape(SAMPLES, 6, -1), expected)
    assert "wrist.coulomb" in names


def test_the_adjoint_is_of_these_rows_alone(random_robot: RandomRobot, random_motion: RandomMotion) -> None:
    robot = passive_at(random_robot("RPRRR", 10, tree=True), 1, 4)
    motion, step = random_motion(robot, SAMPLES, 10), 1e-6
    weights = np.random.default_rng(10).normal(size=(SAMPLES * 5, 50))
    slopes = regressor_adjoint(robot, *motion, weights)
    for order, slope in enumerate(slopes):
        for joint in range(5):
            ahead, behind = ([each.copy() for each in motion] for _ in range(2))
            ahead[order][:, joint] += step
            behind[order][:, joint] -= step
            change = weights * (regressor(robot, *ahead) - regressor(robot, *behind))
            numeric = change.reshape(SAMPLES, -1).sum(axis=1) / (2.0 * step)
            # Rounding of sums of some 1e2 over the step, and step² times a third derivative of some 1e3.
            np.testing.assert_allclose(slope[:, joint], numeric, atol=1e-6)
