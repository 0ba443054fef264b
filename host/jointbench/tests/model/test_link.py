"""Links: inertia that can be, capsules, kinds of links, feet."""

import dataclasses
import importlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.errors import FileError, RobotError
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.model import (
    Capsule,
    Foot,
    Link,
    LinkAxis,
    LinkKind,
    Robot,
    chain_of,
    forward_kinematics,
    load_robot,
    on_free_base,
)
from jointbench.model.joint import as_matrix
from jointbench.model.robot_file import read_robot_file
from jointbench.model.variants import BASE_JOINTS
from jointbench.tests.model.test_free_base import BODY, FLOATING, PLACE, WHOLE, inertial, urdf


def parameters_of(what: Robot | Link) -> Array:
    """Its standard parameters."""
    parameters = what.standard_parameters
    assert parameters is not None
    return parameters


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("link", ["w", "x", "y", "z"])
def test_every_impossible_link_is_named_even_one_that_is_a_part(tmp_path: Path, link: str, floating_base: bool) -> None:
    """Although with what is fixed to it the body as a whole may be possible."""
    path = tmp_path / "arm.urdf"
    path.write_text(urdf(**{link: inertial(0.05)}), encoding="utf-8")
    faults = [text for text in load_robot(path, floating_base=floating_base).warnings if "link" in text]
    assert faults == [
        f"link {link!r} of 'arm': principal inertias 0.02, 0.025, 0.05 kg·m² break the triangle inequality: "
        f"the largest must be less than the sum of the others"
    ]


BAD = BODY.replace("xx = 0.01", "xx = 0.05")


def test_a_robot_file_names_them_too(tmp_path: Path) -> None:
    part = f'[[fixed]]\nname = "box"\nparent = "b"\n{PLACE}[fixed.link]\n'
    payload = '[[payloads]]\nname = "ball"\non = "a"\nmass_kg = 3\ncenter_of_mass_mm = [0, 0, 0]\n'

    def named(text: str) -> list[str]:
        return [each.split("'")[1] for each in load(tmp_path, text).warnings]

    assert named(WHOLE + part + BAD) == ["box"]
    assert named(WHOLE.replace(BODY, BAD) + part + BODY) == ["a", "b"]
    assert named(WHOLE.replace(BODY, BAD, 1) + payload) == ["a"]
    assert named(FLOATING.replace("'trunk'\n" + BODY, "'trunk'\n" + BAD)) == ["trunk"]


def test_a_fault_is_a_pseudo_inertia_that_is_not_positive() -> None:
    """The (4, 4) matrix of zeroth, first and second moments is positive definite exactly where no fault is found.

    Source: Wensing, Kim & Slotine, IEEE Robotics and Automation Letters 3(1), 2018.
    """
    rng, found = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(500):
        axes = Rotation.random(rng=rng).as_matrix()
        inertia = as_matrix(axes @ np.diag(rng.uniform(-0.1, 1.5, 3)) @ axes.T)
        x, y, z = rng.normal(size=3).tolist()
        link = Link("body", float(rng.uniform(-0.5, 3.0)), (x, y, z), inertia)
        parameters = link.standard_parameters
        assert parameters is not None
        about_origin = parameters[[[4, 5, 6], [5, 7, 8], [6, 8, 9]]]
        second = 0.5 * np.trace(about_origin) * np.eye(3) - about_origin
        pseudo = np.block([[second, parameters[1:4, None]], [parameters[None, 1:4], parameters[None, :1]]])
        possible = bool(np.linalg.eigvalsh(pseudo)[0] > 0.0)
        assert (link.physical_fault is None) == possible
        found[possible] += 1
    assert min(found.values()) > 50  # both cases were seen


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
    with pytest.raises(FileError) as caught:
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
    with pytest.raises(FileError) as caught:
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


AXIS = LinkAxis("shin", (0.3, 0.0, 0.0), (0.0, 0.0, 0.0))


def test_an_axis_goes_from_its_start_to_its_end() -> None:
    assert AXIS.length == pytest.approx(0.3)
    np.testing.assert_allclose(AXIS.direction, [-1.0, 0.0, 0.0])
    assert AXIS.along((0.1, 0.05, -0.02)) == pytest.approx(0.2)


def test_the_biped_names_its_kinds_and_has_its_masses_on_their_axes() -> None:
    robot = load_robot("gorobot2")
    base = robot.base_link
    assert base is not None
    links = {link.name: link for link in (base, *(joint.link for joint in robot.joints))}

    assert [kind.name for kind in robot.link_kinds] == ["trunk", "thigh", "shank", "foot"]
    for kind in robot.link_kinds:
        places = set[float]()
        for axis in kind.links:
            center = links[axis.link].center_of_mass
            assert center is not None
            along = axis.along(center)
            np.testing.assert_allclose(center, axis.start + along * axis.direction, atol=1e-12)
            places.add(round(along, 9))
        assert len(places) == 1  # left = right


def test_an_axis_without_a_direction_is_refused() -> None:
    with pytest.raises(RobotError, match="axis of link 'shin' starts where it ends"):
        LinkAxis("shin", (0.1, 0.0, 0.0), (0.1, 0.0, 0.0))


def test_links_that_are_not_alike_are_no_kind() -> None:
    longer = LinkAxis("thigh", (0.0, 0.0, 0.0), (0.31, 0.0, 0.0))
    with pytest.raises(RobotError, match="axis of 'thigh' is 310 mm long, that of 'shin' 300 mm"):
        LinkKind("leg", (AXIS, longer))
    with pytest.raises(RobotError, match="has no links"):
        LinkKind("leg", ())


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('link = "r_thigh"', 'link = "r_sole"', "link kind 'thigh'.*no link 'r_sole' with a mass of its own"),
        ('link = "r_thigh"', 'link = "l_thigh"', "link of a kind 'l_thigh' is named 2 times"),
        ('name = "thigh"\nlinks', 'name = "shank"\nlinks', "link kind 'shank' is named 2 times"),
        ("to_mm = [80, 0, 400]", "to_mm = [80, 0, 0]", "link kind 'trunk': the axis of link 'trunk' starts where"),
    ],
)
def test_a_file_with_a_bad_kind_says_which(before: str, after: str, message: str, tmp_path: Path) -> None:
    text = (files("jointbench.model") / "library" / "gorobot2.toml").read_text()
    assert before in text
    path = tmp_path / "biped.toml"
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(FileError, match=message):
        read_robot_file(path)


def test_a_chain_keeps_the_kinds_of_the_links_that_are_left() -> None:
    kinds = chain_of(load_robot("gorobot2"), 6).link_kinds  # up to the trunk
    assert [(kind.name, [axis.link for axis in kind.links]) for kind in kinds] == [
        ("trunk", ["trunk"]),
        ("thigh", ["r_thigh"]),
        ("shank", ["r_shank"]),
        ("foot", ["r_foot"]),
    ]
    assert [kind.name for kind in chain_of(load_robot("gorobot2"), 3).link_kinds] == ["thigh", "shank", "foot"]


SOLE = ((130.0, 60.0, 0.0), (130.0, -60.0, 0.0), (-90.0, -60.0, 0.0), (-90.0, 60.0, 0.0))


def test_points_are_forward_and_left_of_the_middle() -> None:
    foot = load_robot("gorobot2").foot("r_foot")

    np.testing.assert_allclose(foot.origin, [0.02, 0.0, -0.06], atol=1e-15)
    np.testing.assert_allclose(foot.axes, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(foot.points, [[0.11, 0.06], [0.11, -0.06], [-0.11, -0.06], [-0.11, 0.06]], atol=1e-15)


def test_both_feet_are_the_same_in_their_own_axes() -> None:
    left, right = (load_robot("gorobot2").foot(name) for name in ("l_foot", "r_foot"))

    np.testing.assert_allclose(left.points, right.points, atol=1e-15)
    # The left foot's frame has x down, y back, z to the left.
    np.testing.assert_allclose(left.axes, np.array([[0, 0, -1], [-1, 0, 0], [0, 1, 0]]), atol=1e-15)


def test_pressure_acts_between_the_corners_by_their_forces() -> None:
    foot = load_robot("gorobot2").foot("r_foot")
    forces = np.array([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.0, 0.0], [3.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])

    points = foot.pressure_point(forces)

    np.testing.assert_allclose(points[:3], [[0.0, 0.0], [0.11, 0.0], [0.055, 0.06]], atol=1e-15)
    assert np.isnan(points[3]).all()  # nothing presses


def test_distance_to_edge_is_that_of_the_nearest_side() -> None:
    foot = load_robot("gorobot2").foot("l_foot")
    points = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, -0.05], [-0.12, 0.0], [0.11, 0.06]])

    np.testing.assert_allclose(foot.distance_to_edge(points), [0.06, 0.01, 0.01, -0.01, 0.0], atol=1e-15)


def test_feet_follow_the_joint_that_moves_them() -> None:
    robot = load_robot("gorobot2")

    assert [foot.joint for foot in robot.feet] == [-1, 11]
    assert [foot.joint for foot in on_free_base(robot).feet] == [BASE_JOINTS - 1, BASE_JOINTS + 11]
    assert [foot.name for foot in chain_of(robot, 6).feet] == ["r_foot"]


def test_the_base_is_a_foot_or_none_is() -> None:
    biped = load_robot("gorobot2")

    assert biped.base_foot is biped.feet[0]
    assert load_robot("cobot6").base_foot is None
    assert on_free_base(biped).base_foot is None  # six joints carry it


def test_a_foot_that_is_not_there_is_named() -> None:
    with pytest.raises(RobotError, match="no foot 'hoof'; its feet: r_foot, l_foot"):
        load_robot("gorobot2").foot("hoof")
    with pytest.raises(RobotError, match=r"its file has no \[\[feet\]\]"):
        load_robot("cobot6").foot("hoof")


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 0, 1, 2), (0, 1, 1, 0)])
def test_corners_that_go_round_no_sole_are_refused(order: tuple[int, ...]) -> None:
    with pytest.raises(RobotError, match="go round no sole; give four in the order front left"):
        Foot("paw", -1, tuple(SOLE[i] for i in order))  # type: ignore[arg-type]  # a tuple of four


def test_corners_off_a_plane_are_refused() -> None:
    lifted = ((0.13, 0.06, 0.01), (0.13, -0.06, 0.0), (-0.09, -0.06, 0.0), (-0.09, 0.06, 0.0))
    with pytest.raises(RobotError, match=r"2\.5 mm off a plane"):
        Foot("paw", -1, lifted)


def test_a_file_with_a_bad_foot_says_which(tmp_path: Path) -> None:
    text = (
        (files("jointbench.model") / "library" / "gorobot2.toml")
        .read_text()
        .replace("[[130, 60, 0], [130, -60, 0]", "[[130, -60, 0], [130, 60, 0]", 1)
    )
    path = tmp_path / "biped.toml"
    path.write_text(text)
    with pytest.raises(FileError, match=r"biped\.toml: foot 'r_foot': .*go round no sole"):
        read_robot_file(path)
