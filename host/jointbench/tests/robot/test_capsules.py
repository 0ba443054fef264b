"""The room that links take up: read from TOML and from URDF, where Pinocchio places the same shapes."""

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import forward_kinematics
from jointbench.errors import RobotFileError
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.robot import Capsule, Robot, load_robot

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

# Sums of some ten products of lengths of order one in double precision.
ROUNDING = 1e-14

ARM = """
version = 1
name = "arm"
source = "made up"
description = "one joint, and a plate that is fixed to its link"
[[joints]]
name = "turn"
alpha_deg = 0
a_mm = 0
d_mm = 100
position_deg = [-90, 90]
velocity_deg_s = 90
acceleration_deg_s2 = 180
torque_Nm = 1
[joints.drive]
kind = "direct"
ratio = 1
torque_constant_Nm_A = 1
current_limit_A = 1
[[fixed]]
name = "plate"
alpha_deg = 90
a_mm = 10
d_mm = 0
[[capsules]]
link = "base"
from_mm = [0, 0, 0]
to_mm = [0, 0, 50]
radius_mm = 40
[[capsules]]
link = "turn"
from_mm = [0, 0, 0]
to_mm = [200, 0, 0]
radius_mm = 30
[[capsules]]
link = "plate"
from_mm = [0, 1, 2]
to_mm = [0, 1, 2]
radius_mm = 3
"""

SHAPES = """<robot name="shapes">
  <link name="root"><collision><origin xyz="0 0 0.1" rpy="0.1 0 0"/><geometry><sphere radius="0.2"/></geometry>
  </collision></link>
  <link name="arm">
    <collision name="first"><origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 0.6"/>
      <geometry><cylinder radius="0.05" length="0.4"/></geometry></collision>
    <collision><geometry><mesh filename="arm.stl"/></geometry></collision>
    <collision><geometry><mesh filename="more.stl"/></geometry></collision>
    <collision><geometry><sphere radius="0"/></geometry></collision>
  </link>
  <link name="hand"><collision><origin xyz="0 0 0.2" rpy="-0.3 0 1"/>
    <geometry><box size="0.1 0.3 0.2"/></geometry></collision></link>
  <joint name="turn" type="revolute"><parent link="root"/><child link="arm"/><axis xyz="0 1 0"/>
    <origin xyz="0.1 0.2 0.3" rpy="1 2 3"/>
    <limit lower="-1" upper="1" velocity="1" acceleration="1" effort="1"/></joint>
  <joint name="hold" type="fixed"><parent link="arm"/><child link="hand"/>
    <origin xyz="0 0.5 0" rpy="0.2 0.3 0"/></joint>
</robot>"""


def load(tmp_path: Path, text: str) -> Robot:
    path = tmp_path / ("arm.urdf" if text.startswith("<") else "arm.toml")
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_a_capsule_is_on_the_base_on_a_link_or_on_what_is_fixed_to_one(tmp_path: Path) -> None:
    base, link, plate = load(tmp_path, ARM).capsules
    assert base == Capsule("base", -1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.05), 0.04)
    assert link == Capsule("turn", 0, (0.0, 0.0, 0.0), (0.2, 0.0, 0.0), 0.03)
    # The plate's frame is 10 mm out along the link's x, and turned a quarter about it: its y is the link's z.
    assert (plate.link, plate.joint) == ("plate", 0)
    np.testing.assert_allclose(plate.start, [0.01, -0.002, 0.001], atol=ROUNDING)
    assert plate.start == plate.end


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('link = "plate"', 'link = "plat"', "has no frame 'plat'; there are turn, plate"),
        ("radius_mm = 3\n", "radius_mm = 0\n", "capsules[2]: radius_mm = 0 must be above 0"),
        ("to_mm = [200, 0, 0]", "to_mm = [200, 0]", "capsules[1]: to_mm = [200, 0] must be a list of 3 numbers"),
        ("to_mm = [200, 0, 0]", "til_mm = [200, 0, 0]", "capsules[1]: 'to_mm' is missing"),
    ],
)
def test_errors_of_the_robot_file(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in ARM
    with pytest.raises(RobotFileError) as caught:
        load(tmp_path, ARM.replace(before, after))
    assert message in str(caught.value)


def surface(shape: Any, rng: np.random.Generator) -> Array:
    """Points of a shape of Pinocchio's that are as far out as any, in its own frame."""
    signs = rng.choice([-1.0, 1.0], (200, 3))
    if hasattr(shape, "halfSide"):
        return signs * shape.halfSide
    angle = rng.uniform(0.0, 2.0 * np.pi, 200)
    if hasattr(shape, "halfLength"):
        rim = shape.radius * np.cos(angle), shape.radius * np.sin(angle), signs[:, 2] * shape.halfLength
        return np.stack(rim, axis=1)
    direction = rng.normal(size=(200, 3))
    return shape.radius * direction / np.linalg.norm(direction, axis=1, keepdims=True)


def outside(capsule: Capsule, points: Array) -> Array:
    """How far points are from the axis of a capsule, less its radius."""
    start, way = np.array(capsule.start), np.array(capsule.end) - capsule.start
    share = np.clip((points - start) @ way / max(way @ way, 1e-300), 0.0, 1.0)
    return np.linalg.norm(points - start - share[:, None] * way, axis=1) - capsule.radius


def test_shapes_of_a_urdf_are_inside_their_capsules(tmp_path: Path) -> None:
    text = SHAPES.replace('<collision><geometry><mesh filename="arm.stl"/></geometry></collision>', "").replace(
        '<collision><geometry><mesh filename="more.stl"/></geometry></collision>', ""
    )
    robot = load(tmp_path, text)
    model = pinocchio.buildModelFromXML(text)
    path = str(tmp_path / "arm.urdf")
    shapes = pinocchio.buildGeomFromUrdf(model, path, pinocchio.GeometryType.COLLISION)
    data, placed = model.createData(), shapes.createData()
    rng = np.random.default_rng(0)
    by_link = {capsule.link: capsule for capsule in robot.capsules}
    assert list(by_link) == ["root", "arm", "hand"]
    for q in rng.uniform(-1.0, 1.0, (5, 1)):
        rotations, origins = forward_kinematics(robot, q[None])
        pinocchio.updateGeometryPlacements(model, data, shapes, placed, q)
        for index, shape in enumerate(shapes.geometryObjects):
            link = model.frames[shape.parentFrame].name
            capsule = by_link[link]
            pose = placed.oMg[index]
            points = surface(shape.geometry, rng) @ pose.rotation.T + pose.translation
            if capsule.joint >= 0:
                points = (points - origins[0, capsule.joint]) @ rotations[0, capsule.joint]
            beyond = outside(capsule, points)
            if getattr(shape.geometry, "radius", 1.0) > 0.0:
                assert abs(beyond.max()) < ROUNDING, link  # inside, and no larger than needed


def test_meshes_are_named_once_and_not_used(tmp_path: Path) -> None:
    robot = load(tmp_path, SHAPES)
    assert robot.assumptions == ("link 'arm': its collision mesh is not used",)
    assert [capsule.link for capsule in robot.capsules] == ["root", "arm", "hand"]  # and none of radius 0


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            '<sphere radius="0.2"/>',
            '<sphere radius="-0.2"/>',
            "link 'root', collision, geometry, sphere: radius = -0.2",
        ),
        ('<sphere radius="0.2"/>', "<cone/>", "has none of <sphere>, <cylinder>, <capsule>, <box> and <mesh>"),
        ('radius="0.05"', "", "collision 'first', geometry, cylinder: attribute 'radius' is missing"),
        ('size="0.1 0.3 0.2"', 'size="0.1 0.3 -0.2"', "size = -0.2 must not be below 0"),
        ('size="0.1 0.3 0.2"', "", "box: attribute 'size' is missing"),
        ('<geometry><sphere radius="0"/></geometry>', "", "collision: has no element <geometry>"),
    ],
)
def test_errors_of_the_urdf(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in SHAPES
    with pytest.raises(RobotFileError) as caught:
        load(tmp_path, SHAPES.replace(before, after, 1))
    assert message in str(caught.value)


def test_a_urdf_may_write_capsules(tmp_path: Path) -> None:
    drum, capsule = (load(tmp_path, SHAPES.replace("<cylinder", f"<{tag}")).capsules for tag in ("cylinder", "capsule"))
    assert drum == capsule


def test_a_model_file_keeps_capsules_and_may_have_none(tmp_path: Path) -> None:
    robot = load(tmp_path, ARM)
    values = json.loads(json.dumps(plain(robot_values(robot))))
    assert robot_from(values) == robot
    del values["capsules"]  # as files are that were written before there were any
    assert robot_from(values) == dataclasses.replace(robot, capsules=())


def test_capsules_of_the_library_have_their_links_inside() -> None:
    """The centre of mass of a link is within its capsule's radius, where it has one."""
    robot = load_robot("cobot6")
    by_joint = {capsule.joint: capsule for capsule in robot.capsules}
    assert sorted(by_joint) == [-1, 0, 1, 2, 3, 4, 5]
    for i, joint in enumerate(robot.joints):
        assert joint.link.center_of_mass is not None
        assert outside(by_joint[i], np.array([joint.link.center_of_mass]))[0] < 0.0
