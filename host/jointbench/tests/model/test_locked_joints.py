"""Robots with joints that are held still move and weigh as the whole robot does when these joints do not move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import RobotError
from jointbench.model import (
    Capsule,
    Robot,
    forward_kinematics,
    inverse_dynamics,
    load_robot,
    spring,
    with_compensations,
)
from jointbench.model.locked_joints import lock_reference, read_locks, with_locked
from jointbench.recording import Samples, open_run, save_samples
from jointbench.results import export
from jointbench.tests.identification.log_check.logs import data_folder
from jointbench.tests.model.test_urdf import TREE, load

ROUNDING = 1e-12  # sums of a hundred products of numbers of order one in double precision


def torques(robot: Robot, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    assert robot.standard_parameters is not None
    return inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)


@pytest.mark.parametrize("locks", [{"turn": 0.7}, {"push": -0.4}, {"roll": None}, {"turn": 0.2, "push": 0.3}])
def test_a_locked_robot_is_the_whole_one_at_rest_in_these_joints(
    locks: dict[str, float | None], tmp_path: Path
) -> None:
    whole = load(tmp_path, TREE)
    locked = with_locked(whole, locks)
    free = [whole.joint_names.index(name) for name in locked.joint_names]
    q, dq, ddq = np.random.default_rng(1).standard_normal((3, 10, whole.n_joints))
    for name, position in locks.items():
        k = whole.joint_names.index(name)
        q[:, k], dq[:, k], ddq[:, k] = whole.home[k] if position is None else position, 0.0, 0.0
    np.testing.assert_allclose(
        torques(locked, q[:, free], dq[:, free], ddq[:, free]), torques(whole, q, dq, ddq)[:, free], atol=ROUNDING
    )
    names = [joint.name for joint in whole.joints]
    kept = [names.index(joint.name) for joint in locked.joints]
    for ours, theirs in zip(forward_kinematics(locked, q[:, free]), forward_kinematics(whole, q), strict=True):
        np.testing.assert_allclose(ours, theirs[:, kept], atol=ROUNDING)
    # Every link is still there by its name, at the place it had.
    rotations, origins = forward_kinematics(locked, q[:, free])
    whole_rotations, whole_origins = forward_kinematics(whole, q)
    for i, joint in enumerate(whole.joints):
        frame = locked.frame(joint.link.name)
        expected = whole_rotations[:, i], whole_origins[:, i]
        carrier = np.tile(np.eye(3), (10, 1, 1)), np.zeros((10, 3))
        if frame.joint >= 0:
            carrier = rotations[:, frame.joint], origins[:, frame.joint]
        np.testing.assert_allclose(carrier[1] + carrier[0] @ np.array(frame.origin), expected[1], atol=ROUNDING)
        np.testing.assert_allclose(carrier[0] @ np.array(frame.rotation), expected[0], atol=ROUNDING)


def test_capsules_move_with_the_links_they_are_part_of(tmp_path: Path) -> None:
    whole = load(tmp_path, TREE)
    whole = replace(whole, capsules=(Capsule("slide", 1, (0.0, 0.0, 0.1), (0.0, 0.2, 0.0), 0.05),))
    (capsule,) = with_locked(whole, {"push": 0.5}).capsules
    rotations, origins = forward_kinematics(whole, np.array([[0.0, 0.5, 0.0]]))
    back = rotations[0, 0].T
    expected = back @ (origins[0, 1] + rotations[0, 1] @ [0.0, 0.2, 0.0] - origins[0, 0])
    assert capsule.joint == 0
    np.testing.assert_allclose(capsule.end, expected, atol=ROUNDING)


def test_a_reference_locks_joints_and_a_run_remembers_them(tmp_path: Path) -> None:
    load(tmp_path, TREE)
    reference = f"{tmp_path / 'arm.urdf'}:lock=roll,push=0.25"
    robot = load_robot(reference)
    assert robot.joint_names == ("turn",)
    assert robot.name == "tree"
    assert robot.locked == (("push", 0.25), ("roll", 0.0))
    samples = Samples(
        time=0.01 * np.arange(20.0),
        joint_names=("turn",),
        motor_position=np.zeros((20, 1)),
        link_position=None,
        motor_current=None,
        motor_torque=np.ones((20, 1)),
        joint_torque=None,
        joint_velocity=None,
        play_tick=np.full(20, -1, dtype=np.int64),
        valid=np.ones((20, 1), dtype=np.bool_),
        board_filters=None,
        sample_period=0.01,
    )
    run = open_run(save_samples(tmp_path / "run", samples, {"robot": reference, "kind": "import"}))
    assert run.robot.joint_names == ("turn",)
    assert run.robot.locked == robot.locked
    assert run.provenance["robot"] == "tree:lock=push=0.25,roll=0"


def test_a_urdf_is_written_with_what_the_locked_robot_weighs(tmp_path: Path) -> None:
    locked = with_locked(load(tmp_path, TREE), {"push": 0.3, "roll": None})
    path = export(locked, tmp_path / "out.urdf", source=tmp_path / "arm.urdf")
    again = load_robot(path)
    assert again.joint_names == ("turn", "push", "roll")  # the text is kept but for the inertias
    q = np.array([[0.4, 0.3, 0.0]])
    still = np.zeros_like(q)
    parameters = np.concatenate(
        [np.zeros(10) if (own := joint.link.standard_parameters) is None else own for joint in again.joints]
    )
    np.testing.assert_allclose(
        inverse_dynamics(again, q, still, still, parameters)[:, :1],
        torques(locked, q[:, :1], still[:, :1], still[:, :1]),
        rtol=1e-9,  # digits of a URDF
    )


def test_what_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    whole = load(tmp_path, TREE)
    for locks, message in (
        ({"tur": None}, "joint 'tur' cannot be locked, it is none of its joints; its joints: turn, push, roll"),
        ({"grip": None}, "joint 'grip' cannot be locked, it mimics another one; lock that one"),
        ({"turn": None, "push": None, "roll": None}, "all of its 3 joints are locked; leave one free"),
    ):
        with pytest.raises(RobotError) as error:
            with_locked(whole, locks)
        assert message in str(error.value)
    coupled = load_robot("tx40")
    with pytest.raises(RobotError, match=r"coupling '.*' is of joints .*; lock all of them or none"):
        with_locked(coupled, {coupled.couplings[0].joints[0]: None})
    sprung = with_compensations(load_robot("cobot6"), spring("elbow", "j3"))
    assert with_locked(sprung, {"j3": None}).compensations == ()


def test_the_text_of_locks_is_read_and_written() -> None:
    assert read_locks("a, b=-0.5") == {"a": None, "b": -0.5}
    assert lock_reference({"a": None, "b": -0.5}) == ":lock=a,b=-0.5"
    assert lock_reference({}) == ""
    for text in ("", "a,", "a,a", "a=x", "a=nan", "=1"):
        with pytest.raises(RobotError, match="give names with commas between them"):
            read_locks(text)


def test_the_tiago_keeps_torso_and_arm() -> None:
    whole = load_robot(data_folder("tiago") / "tiago_48_schunk.urdf")
    arm = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
    assert whole.n_joints == 23  # and a finger that mimics the other
    locked = with_locked(whole, {name: None for name in whole.joint_names if name not in arm})
    assert locked.joint_names == arm
    whole_mass, mass = (sum(joint.link.mass or 0.0 for joint in robot.joints) for robot in (whole, locked))
    base = sum(joint.link.mass or 0.0 for joint in whole.joints[: whole.joint_names.index("torso_lift_joint")])
    assert mass == pytest.approx(whole_mass - base, rel=1e-12)  # head, gripper and fingers are carried, wheels are not
