"""Robots made of a robot.

Robots with joints that are held still move and weigh as the whole robot does when these joints do not move.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import FileError, RobotError
from jointbench.excitation import random_excitation
from jointbench.model import (
    Capsule,
    Compensation,
    Coupling,
    Mimic,
    Robot,
    base_parameters,
    chain_of,
    forward_kinematics,
    inverse_dynamics,
    load_robot,
    sine_spring,
    spring,
    with_compensations,
)
from jointbench.model.compensation import KINDS
from jointbench.model.locked_joints import lock_reference, read_locks, with_locked
from jointbench.recording import Samples, open_run, save_samples
from jointbench.results import export
from jointbench.tests.identification.log_check.logs import data_folder
from jointbench.tests.identification.synthetic import run_of
from jointbench.tests.model.test_urdf import TREE, load

ALL = range(1, 8)


def weightless_behind(robot: Robot, n: int) -> np.ndarray:
    """Standard parameters of a robot whose links from joint n + 1 on weigh nothing."""
    assert robot.standard_parameters is not None
    parameters = robot.standard_parameters.copy()
    parameters[10 * n :] = 0.0
    return parameters


@pytest.mark.parametrize("n", ALL)
def test_a_chain_moves_and_weighs_as_the_arm_without_the_links_behind_it(n: int) -> None:
    whole, chain = load_robot("modular7"), load_robot(f"modular7:{n}")
    q, dq, ddq = np.random.default_rng(n).standard_normal((3, 20, 7))

    torque = inverse_dynamics(whole, q, dq, ddq, weightless_behind(whole, n))[:, :n]

    assert chain.joint_names == whole.joint_names[:n]
    assert chain.standard_parameters is not None
    np.testing.assert_allclose(
        inverse_dynamics(chain, q[:, :n], dq[:, :n], ddq[:, :n], chain.standard_parameters),
        torque,
        rtol=1e-12,
        atol=1e-12,
    )
    for ours, theirs in zip(forward_kinematics(chain, q[:, :n]), forward_kinematics(whole, q), strict=True):
        np.testing.assert_array_equal(ours, theirs[:, :n])


@pytest.mark.parametrize("n", ALL)
def test_base_parameters_of_a_chain_are_known_and_moved_by_a_plan(n: int) -> None:
    chain = load_robot(f"modular7:{n}")

    base = base_parameters(chain)
    plan = random_excitation(chain, period=10.0, seed=n)

    assert all(name.split(".")[0] in chain.joint_names for name in base.leading_names)
    assert plan.robot_name == chain.name == f"modular7:{n}"
    assert plan.weights.shape[0] == len(plan.home) == n


def test_one_upright_joint_tells_its_inertia_and_friction_alone() -> None:
    """Gravity does not turn a joint that stands upright: one inertia is all that its torque knows of the links."""
    names = base_parameters(load_robot("modular7:1")).leading_names

    assert names == ("j1.Izz", "j1.viscous", "j1.coulomb", "j1.offset")


@pytest.mark.parametrize("n", [0, 8, 1.5, "two", "-1", ""])
def test_a_chain_of_another_length_is_refused_with_those_there_are(n: object) -> None:
    with pytest.raises(RobotError, match=r"'modular7' has 7 joints.* whole number from 1 to 7"):
        load_robot(f"modular7:{n}")


def test_links_that_warn_are_named_while_they_are_there() -> None:
    arm = load_robot("modular7")
    wide = replace(arm.joints[3].link, inertia_about_center_of_mass=((0.8, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))
    joints = (*arm.joints[:3], replace(arm.joints[3], link=wide), *arm.joints[4:])
    arm = replace(arm, joints=joints)
    assert not chain_of(arm, 3).warnings
    (warning,) = chain_of(arm, 4).warnings
    assert warning.startswith("link 'link_4' of 'modular7:4': principal inertias")


def test_a_robot_that_branches_is_no_chain() -> None:
    arm = load_robot("cobot6")
    third = replace(arm.joints[2], parent=0)

    with pytest.raises(RobotError, match="'cobot6' branches at joint 'j3'"):
        chain_of(replace(arm, joints=(*arm.joints[:2], third, *arm.joints[3:])), 2)


def test_a_joint_is_not_parted_from_the_one_it_mimics() -> None:
    arm = load_robot("cobot6")
    last = replace(arm.joints[5], mimic=Mimic(2, 1.0, 0.0))
    mimicking = replace(arm, joints=(*arm.joints[:5], last), drives=arm.drives[:5], home=arm.home[:5])

    assert chain_of(mimicking, 5).n_links == 6
    assert chain_of(mimicking, 2).n_links == 2
    with pytest.raises(RobotError, match="cuts through joint 'j6', which mimics 'j3'"):
        chain_of(mimicking, 3)


def test_coupled_joints_are_not_parted() -> None:
    assert load_robot("tx40:4").couplings == ()
    assert len(load_robot("tx40:6").couplings) == 1
    with pytest.raises(RobotError, match="cuts through coupling 'wrist'"):
        load_robot("tx40:5")


def test_a_robot_that_is_not_there_has_no_chain() -> None:
    with pytest.raises(RobotError, match="modular8"):
        load_robot("modular8:3")
    with pytest.raises(RobotError, match=r"arm\.toml': there is no such file"):
        load_robot("some/arm.toml:3")


def test_what_is_fixed_behind_the_cut_goes_with_it() -> None:
    capsules = tuple(Capsule(f"link_{i + 1}", i, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0), 0.05) for i in range(-1, 7))
    arm = replace(
        load_robot("modular7"), capsules=capsules,
        assumptions=("joint 'j2': a guess", "joint 'j6': another"),
        couplings=(Coupling("hand", ("j6", "j7"), ((120.0, 0.0), (120.0, 120.0))),),
        compensations=(spring("shoulder", "j2"), spring("wrist", "j6")),
    )  # fmt: skip

    chain = chain_of(arm, 3)

    assert [each.name for each in chain.compensations] == ["shoulder"]
    assert [capsule.joint for capsule in chain.capsules] == [-1, 0, 1, 2]
    assert chain.assumptions == ("joint 'j2': a guess",)
    assert chain.couplings == ()


def test_a_run_of_a_chain_is_read_as_one(tmp_path: Path) -> None:
    chain = load_robot("modular7:2")
    samples = run_of(chain, np.zeros((50, 2)), np.zeros((50, 2)), plan=None, repeats=0).samples

    run = open_run(save_samples(tmp_path / "run", samples, {"robot": "modular7:2"}))

    assert run.robot == chain
    assert load_robot(f"{tmp_path / 'run' / 'robot.toml'}:2") == chain


ARM = load_robot("cobot6")
FILE = (Path(__file__).parents[2] / "model/library/cobot6.toml").read_text(encoding="utf-8")


def with_table(tmp_path: Path, table: str) -> Path:
    path = tmp_path / "arm.toml"
    path.write_text(f"{FILE}\n[[compensations]]\n{table}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_says_what_python_says(kind: str, tmp_path: Path) -> None:
    robot = load_robot(with_table(tmp_path, f'name = "balancer"\nkind = "{kind}"\njoint = "j2"'))
    assert robot == with_compensations(ARM, KINDS[kind]("balancer", "j2"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('name = "s"\nkind = "rubber"\njoint = "j2"', "kind = 'rubber' must be one of 'spring', 'sine_spring'"),
        ('name = "s"\nkind = "spring"\njoint = "elbow"', "compensation 's': no joint 'elbow'; the joints are j1, j2"),
        ('name = "s"\nkind = "spring"\njoint = "j2"\nk = 3', "compensation 's': unknown key 'k'"),
        ('name = "j3"\nkind = "spring"\njoint = "j2"', "'j3' of robot 'cobot6' has the name of a joint"),
    ],
)
def test_slips_in_a_file_are_named(table: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=said):
        load_robot(with_table(tmp_path, table))


def test_names_must_tell_them_apart() -> None:
    twice = with_compensations(ARM, spring("s", "j1"))
    with pytest.raises(RobotError, match="has the name of"):
        with_compensations(twice, sine_spring("s", "j2"))
    with pytest.raises(RobotError, match="no joint 'j9'"):
        with_compensations(ARM, spring("s", "j9"))

    def nothing(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        return q[:, :, None]

    for name, joints, parameters, said in (
        (" ", ("j1",), ("k",), "has no name"),
        ("s", (), ("k",), "one joint or more"),
        ("s", ("j1", "j1"), ("k",), "each named once"),
        ("s", ("j1",), (), "one parameter or more"),
        ("s", ("j1",), ("coulomb",), "would be taken for one of a link or drive"),
        ("s", ("j1",), ("mcx",), "would be taken for one of a link or drive"),
    ):
        with pytest.raises(RobotError, match=said):
            Compensation(name, joints, parameters, nothing)


def test_springs_pull_back_to_where_they_are_at_rest() -> None:
    """k (q - q0) and k sin(q - q0) by their two parameters."""
    q, rest, k = np.linspace(-3.0, 3.0, 7)[:, None], 0.4, 5.0
    linear = spring("s", "j1").columns(q, q, q) @ [k, -k * rest]
    np.testing.assert_allclose(linear, k * (q - rest), rtol=0.0, atol=1e-14)
    turning = sine_spring("s", "j1").columns(q, q, q) @ [k * np.cos(rest), -k * np.sin(rest)]
    np.testing.assert_allclose(turning, k * np.sin(q - rest), rtol=0.0, atol=1e-14)


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
