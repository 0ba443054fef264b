"""URDF files: geometry and inertia as Pinocchio reads them from the same text, and errors that say what to do."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.errors import FileError
from jointbench.model import Robot, energy, forward_kinematics, load_robot
from jointbench.tests.model.test_link import parameters_of

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

# Sums of a hundred products of numbers of order one in double precision.
ROUNDING = 1e-12


def inertial(mass: float, xyz: str = "0.01 -0.02 0.1", rpy: str = "0.3 -0.2 0.5") -> str:
    return (
        f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia ixx="{0.02 * mass}" ixy="{0.001 * mass}" ixz="{-0.002 * mass}" iyy="{0.03 * mass}" '
        f'iyz="{0.0015 * mass}" izz="{0.025 * mass}"/></inertial>'
    )


def joint(name: str, kind: str, parent: str, child: str, extra: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0.2 -0.3" rpy="0.4 0.5 -0.6"/>{extra}</joint>'
    )


LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="40"/>'
MIMIC = '<mimic joint="push" multiplier="-0.5" offset="0.1"/>'
FREE = '<limit velocity="5" effort="6" acceleration="7"/>'
TREE = f"""<robot name="tree">
  <link name="base">{inertial(9)}</link> <link name="mount"/>
  <link name="arm">{inertial(4)}</link> <link name="box">{inertial(0.5)}</link> <link name="tip"/>
  <link name="lid">{inertial(0.2, "0 0 0.05", "0 0 0")}</link>
  <link name="slide">{inertial(2)}</link> <link name="finger">{inertial(0.3)}</link>
  <link name="wheel">{inertial(1)}</link>
  {joint("fix0", "fixed", "base", "mount")}
  {joint("turn", "revolute", "mount", "arm", '<axis xyz="0 1 0"/>' + LIMIT)}
  {joint("fix1", "fixed", "arm", "box")} {joint("fix2", "fixed", "box", "lid")} {joint("fix3", "fixed", "lid", "tip")}
  {joint("push", "prismatic", "tip", "slide", '<axis xyz="1 2 -2"/>' + LIMIT)}
  {joint("grip", "prismatic", "slide", "finger", '<axis xyz="0 0 1"/>' + MIMIC + LIMIT)}
  {joint("roll", "continuous", "box", "wheel", '<axis xyz="0.6 0 0.8"/>' + FREE)}
</robot>"""


def load(tmp_path: Path, text: str) -> Robot:
    path = tmp_path / "arm.urdf"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_what_moves_are_joints_and_the_rest_are_frames(tmp_path: Path) -> None:
    robot = load(tmp_path, TREE)
    assert [joint.name for joint in robot.joints] == ["turn", "push", "grip", "roll"]
    assert robot.joint_names == ("turn", "push", "roll")
    assert [joint.parent for joint in robot.joints] == [-1, 0, 1, 0]
    assert [joint.kind for joint in robot.joints] == ["revolute", "prismatic", "prismatic", "revolute"]
    assert {frame.name: frame.joint for frame in robot.frames} == {
        "base": -1, "mount": -1, "arm": 0, "box": 0, "lid": 0, "tip": 0, "slide": 1, "finger": 2, "wheel": 3,
    }  # fmt: skip
    np.testing.assert_allclose(robot.position_limits, [[-1, 2], [-1, 2], [-np.pi, np.pi]])
    np.testing.assert_allclose(robot.acceleration_limits, [15, 15, 7])
    assert [text.split(":")[0] for text in robot.assumptions] == ["joint 'turn'", "joint 'push'", "joint 'grip'"]
    index, factor, offset = robot.coordinates
    assert (index.tolist(), factor.tolist(), offset.tolist()) == ([0, 1, 1, 2], [1, 1, -0.5, 1], [0, 0, 0.1, 0])


def test_geometry_and_energy_are_pinocchios(tmp_path: Path) -> None:
    """With the mimicking joint free in Pinocchio's model, and moved there as it must move."""
    robot = load(tmp_path, TREE)
    model = pinocchio.buildModelFromXML(TREE.replace("<mimic", "<was_mimic"))
    data = model.createData()
    rng = np.random.default_rng(1)
    q, dq = rng.uniform(-1.0, 1.0, (2, 8, robot.n_joints))
    index, factor, _ = robot.coordinates
    at, speed = robot.all_positions(q), dq[:, index] * factor
    _, origins = forward_kinematics(robot, q)
    kinetic, potential = energy(robot, q, dq, parameters_of(robot))
    for k in range(len(q)):
        there, moving = np.zeros(model.nq), np.zeros(model.nv)
        for i, joint in enumerate(robot.joints):
            found = model.joints[model.getJointId(joint.name)]
            turns_forever = found.nq == 2
            there[found.idx_q : found.idx_q + found.nq] = (
                [np.cos(at[k, i]), np.sin(at[k, i])] if turns_forever else at[k, i]
            )
            moving[found.idx_v] = speed[k, i]
        pinocchio.forwardKinematics(model, data, there, moving)
        for i, joint in enumerate(robot.joints):
            np.testing.assert_allclose(origins[k, i], data.oMi[model.getJointId(joint.name)].translation, atol=ROUNDING)
        assert kinetic[k] == pytest.approx(pinocchio.computeKineticEnergy(model, data, there, moving), rel=ROUNDING)
        # The base's own weight is nobody's torque: Pinocchio leaves it out as well.
        assert potential[k] == pytest.approx(
            pinocchio.computePotentialEnergy(model, data, there) * 9.80665 / 9.81, rel=ROUNDING
        )


def test_impossible_inertias_are_named(tmp_path: Path) -> None:
    heavy = TREE.replace(f'ixx="{0.02 * 2}"', 'ixx="0.9"')
    (warning,) = [text for text in load(tmp_path, heavy).warnings if "triangle" in text]
    assert warning.startswith("link 'slide' of 'tree'")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            '<robot name="tree">',
            '<!DOCTYPE robot [<!ENTITY a "b">]><robot name="tree">',
            "DOCTYPE robot> is not allowed",
        ),
        ('<robot name="tree">', '<sdf name="tree">', "is not XML: mismatched tag"),
        ('<robot name="tree">', '<robot name="../tree">', "name = '../tree' is no name"),
        ('<link name="tip"/>', '<link name="t:ip"/>', "name = 't:ip' is no name"),
        ('<link name="tip"/>', '<link name="lid"/>', "link 'lid' is there twice; names must differ"),
        (
            'type="prismatic"',
            'type="planar"',
            "joint 'push': type 'planar' is not read; allowed are revolute, continuous",
        ),
        ('<child link="slide"/>', '<child link="slid"/>', "joint 'push': <child> names link 'slid', which is not in"),
        ('<child link="tip"/>', '<child link="box"/>', "link 'box' already hangs on joint 'fix1'; closed loops"),
        ('<axis xyz="1 2 -2"/>', '<axis xyz="0 0 0"/>', "joint 'push': its <axis> is zero"),
        ('<axis xyz="1 2 -2"/>', '<axis xyz="1 2"/>', "axis: xyz = '1 2' must be 3 finite numbers"),
        ('velocity="3"', 'velocity="0"', "joint 'turn', limit: velocity = 0 must be above 0"),
        ('lower="-1"', 'lower="nan"', "limit: lower = 'nan' must be a finite number"),
        ('lower="-1"', 'lower="2"', "limit: lower = 2 must be below upper = 2"),
        ('mimic joint="push"', 'mimic joint="pull"', "mimic: no moving joint 'pull'; there are turn, push, grip, roll"),
        ('<mass value="4"/>', "", "link 'arm', inertial: has no element <mass>; add one"),
        ('<mass value="4"/>', '<mass value="four"/>', "mass: value = 'four' must be a finite number"),
        ('<axis xyz="0 1 0"/>' + LIMIT, "", "joint 'turn': has no element <limit>"),
        (
            '<axis xyz="1 2 -2"/>',
            '<mimic joint="grip"/><axis xyz="1 2 -2"/>',
            "joints grip, push mimic each other in a loop; let one of them be free",
        ),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in TREE
    with pytest.raises(FileError) as caught:
        load(tmp_path, TREE.replace(before, after, 1))
    assert message in str(caught.value)
    assert "arm.urdf" in str(caught.value)


def test_a_continuous_joint_may_be_without_limits(tmp_path: Path) -> None:
    robot = load(tmp_path, TREE.replace(FREE, ""))
    roll = robot.joints[3]
    assert (roll.velocity_limit, roll.torque_limit) == (10.0, 10.0)
    assert roll.position_limits == (-np.pi, np.pi)
    (assumption,) = [text for text in robot.warnings if "'roll'" in text]
    assert assumption == "joint 'roll': velocity limit 10 rad/s and effort 10 N·m; the file gives it no <limit>"


def test_a_joint_may_mimic_one_that_mimics_another(tmp_path: Path) -> None:
    follower = '<mimic joint="grip" multiplier="3" offset="0.2"/>'
    robot = load(tmp_path, TREE.replace(FREE, follower + FREE))
    index, factor, offset = robot.coordinates
    # 3 (-0.5 q + 0.1) + 0.2, up to rounding
    assert index.tolist() == [0, 1, 1, 1]
    assert factor == pytest.approx([1.0, 1.0, -0.5, -1.5])
    assert offset == pytest.approx([0.0, 0.0, 0.1, 0.5])


def test_a_second_base_and_a_loop_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"2 links hang on no joint \(base, loose\); exactly one must be the base"):
        load(tmp_path, TREE.replace("</robot>", '<link name="loose"/></robot>'))
    looped = f'<link name="a"/><link name="b"/>{joint("x", "fixed", "a", "b")}{joint("y", "fixed", "b", "a")}</robot>'
    with pytest.raises(FileError, match="links a, b hang on each other in a loop, and not on 'base'"):
        load(tmp_path, TREE.replace("</robot>", looped))


def test_more_joints_than_allowed_are_refused(tmp_path: Path) -> None:
    def chain(n: int) -> str:
        links = "".join(f'<link name="l{i}"/>' for i in range(n + 1))
        joints = "".join(joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}", LIMIT) for i in range(n))
        return f'<robot name="chain">{links}{joints}</robot>'

    assert load(tmp_path, chain(40)).n_joints == 40
    with pytest.raises(FileError, match="41 joints move; at most 40 are allowed"):
        load(tmp_path, chain(41))
    with pytest.raises(FileError, match="no joint moves"):
        load(tmp_path, chain(0))


def test_an_axis_of_any_length_is_a_direction(tmp_path: Path) -> None:
    robot = load(tmp_path, TREE.replace('xyz="1 2 -2"', 'xyz="1e300 2e300 -2e300"'))
    assert robot.joints[robot.joint_names.index("push")].axis == pytest.approx((1 / 3, 2 / 3, -2 / 3))


def test_a_file_beyond_all_size_is_not_read_as_xml(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="longer than 16 MiB"):
        load(tmp_path, TREE.replace("</robot>", f"<!--{' ' * 2**24}--></robot>"))
    with pytest.raises(FileError, match="has no element <link>"):
        load(tmp_path, '<robot name="nothing"/>')
