"""Robot files."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.errors import FileError, RobotError
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.model import Robot, energy, library_names, load_robot, with_payload
from jointbench.tests.model.test_link import parameters_of


@pytest.mark.parametrize("name", library_names())
def test_library_robots_are_whole(name: str) -> None:
    robot = load_robot(name)

    assert robot.name == name
    assert len(robot.drives) == len(robot.home) == robot.n_joints == robot.n_links
    assert robot.standard_parameters is not None
    assert robot.standard_parameters.shape == (10 * robot.n_links,)
    low, high = robot.position_limits.T
    assert np.all((low < robot.home) & (robot.home < high))


def test_library_names_are_sorted() -> None:
    assert {"cobot6", "tx40"} <= set(library_names())
    assert list(library_names()) == sorted(library_names())


def test_cobot6_has_the_published_numbers() -> None:
    robot = load_robot("cobot6")

    alpha_deg = [0, 90, 0, 0, 90, -90]
    a_m, d_m = [0, 0, -0.270, -0.253, 0, 0], [0.1223, 0, 0, 0.1233, 0.1071, 0.0991]
    for joint, alpha, a, d in zip(robot.joints, alpha_deg, a_m, d_m, strict=True):
        about_x = Rotation.from_euler("x", alpha, degrees=True)
        np.testing.assert_allclose(joint.rotation, about_x.as_matrix(), atol=1e-15)
        np.testing.assert_allclose(joint.origin, about_x.apply([a, 0, d]), atol=1e-15)
        assert (joint.axis, joint.mimic) == ((0.0, 0.0, 1.0), None)
    assert [drive.ratio for drive in robot.drives] == [101] * 6
    assert [drive.torque_constant for drive in robot.drives] == [0.124, 0.124, 0.096, 0.096, 0.096, 0.096]
    assert all(drive.kind == "harmonic" for drive in robot.drives)
    assert all(joint.link.assumed for joint in robot.joints)
    assert robot.warnings == ()


def test_cobot6_holds_itself_with_torque_to_spare() -> None:
    """Gravity at any pose within the limits takes at most 60 % of each joint's torque."""
    from jointbench.model import gravity_torques

    robot = load_robot("cobot6")
    low, high = robot.position_limits.T
    poses = np.random.default_rng(0).uniform(low, high, (20_000, 6))

    assert robot.standard_parameters is not None
    torques = gravity_torques(robot, poses, robot.standard_parameters)

    assert np.all(np.abs(torques).max(axis=0) <= 0.6 * robot.torque_limits)


def test_tx40_couples_its_wrist() -> None:
    matrix = load_robot("tx40").transmission_matrix

    expected = np.diag([32.0, 32, 45, -48, 45, 32])
    expected[5, 4] = 32
    np.testing.assert_array_equal(matrix, expected)


def test_tx40_reports_the_link_whose_inertia_is_rounded_to_nothing() -> None:
    (warning,) = load_robot("tx40").warnings

    assert warning == "link 'link_6' of 'tx40': smallest principal inertia 0 kg·m² is not positive"


def test_robots_are_equal_when_their_files_are() -> None:
    assert load_robot("cobot6") == load_robot("cobot6")
    assert load_robot("cobot6") != load_robot("tx40")


def test_joint_index_names_the_alternatives() -> None:
    robot = load_robot("cobot6")

    assert robot.joint_index("j3") == 2
    with pytest.raises(RobotError, match=r"^robot 'cobot6' has no joint 'elbow'; its joints: j1, .*, j6$"):
        robot.joint_index("elbow")


def test_unknown_name_names_the_library() -> None:
    words = r"^robot 'cobot7': not in the library \(did you mean cobot6\?\); the library has cobot6, .*\.toml"
    with pytest.raises(RobotError, match=words):
        load_robot("cobot7")


def test_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(RobotError, match=r"there is no such file; the library has cobot6"):
        load_robot(tmp_path / "arm.toml")


JOINT = """
[[joints]]
name = "j1"
alpha_deg = 90
a_mm = 100
d_mm = 20
theta_deg = 30
position_deg = [-90, 180]
home_deg = 45
velocity_deg_s = 90
acceleration_deg_s2 = 180
torque_Nm = 10
[joints.link]
name = "arm"
mass_kg = 2
center_of_mass_mm = [100, 0, 0]
inertia_kg_m2 = { xx = 0.01, yy = 0.02, zz = 0.025, xy = 0.001 }
[joints.drive]
kind = "harmonic"
ratio = 100
torque_constant_Nm_A = 0.1
current_limit_A = 1
rotor_inertia_kg_m2 = 1e-5
stiffness_Nm_rad = 1e4

[[joints]]
name = "j2"
kind = "prismatic"
alpha_deg = 0
a_mm = 0
d_mm = 5
position_mm = [-100, 300]
home_mm = 50
velocity_mm_s = 200
acceleration_mm_s2 = 1000
force_N = 40
[joints.drive]
name = "spindle"
kind = "direct"
ratio = -500
torque_constant_Nm_A = 0.1
current_limit_A = 2
"""
HEAD = 'version = 1\nname = "arm"\nsource = "made up"\ndescription = "two joints"\n'
COUPLING = '\n[[couplings]]\nname = "pair"\njoints = ["j1", "j2"]\nmatrix = [[10, 1], [-1, 10]]\n'
WHOLE = HEAD + JOINT + COUPLING.replace("10", "1000")


def load(tmp_path: Path, text: str):
    path = tmp_path / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_everything_arrives_in_si(tmp_path: Path) -> None:
    robot = load(tmp_path, WHOLE)
    arm, slide = robot.joints

    assert (arm.kind, arm.parent, slide.kind, slide.parent) == ("revolute", -1, "prismatic", 0)
    turn = Rotation.from_euler("x", 90, degrees=True) * Rotation.from_euler("z", 30, degrees=True)
    np.testing.assert_allclose(arm.rotation, turn.as_matrix(), atol=1e-15)
    assert arm.origin == pytest.approx((0.1, -0.02, 0.0))
    assert arm.position_limits == pytest.approx((-np.pi / 2, np.pi))
    assert (arm.velocity_limit, arm.acceleration_limit) == pytest.approx((np.pi / 2, np.pi))
    assert slide.position_limits == pytest.approx((-0.1, 0.3))
    assert (slide.velocity_limit, slide.acceleration_limit, slide.torque_limit) == pytest.approx((0.2, 1.0, 40.0))
    assert robot.home == pytest.approx((np.pi / 4, 0.05))
    assert robot.gravity == (0.0, 0.0, -9.80665)
    assert robot.couplings[0].matrix == ((1000.0, 1.0), (-1.0, 1000.0))
    assert (robot.drives[0].rotor_inertia, robot.drives[0].stiffness) == (1e-5, 1e4)
    assert (robot.drives[1].name, robot.drives[1].joint) == ("spindle", "j2")


def test_inertia_moves_to_the_link_frame(tmp_path: Path) -> None:
    parameters = load(tmp_path, WHOLE).joints[0].link.standard_parameters
    assert parameters is not None

    # m c² = 2 kg (0.1 m)² = 0.02 kg·m² is added about y and z.
    np.testing.assert_allclose(parameters, [2, 0.2, 0, 0, 0.01, 0.001, 0, 0.04, 0, 0.045], atol=1e-15)


def test_a_robot_without_inertias_has_no_standard_parameters(tmp_path: Path) -> None:
    robot = load(tmp_path, WHOLE)

    assert robot.joints[1].link.name == "j2"
    assert robot.joints[1].link.standard_parameters is None
    assert robot.standard_parameters is None


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("zz = 0.025", "zz = 0.04", "link 'arm' of 'arm': principal inertias .* break the triangle inequality"),
        ("xx = 0.01", "xx = -0.01", "link 'arm' of 'arm': smallest principal inertia .* is not positive"),
        ("mass_kg = 2", "mass_kg = -2", "link 'arm' of 'arm': mass -2 kg is not positive"),
    ],
)
def test_impossible_inertias_are_warnings(tmp_path: Path, old: str, new: str, warning: str) -> None:
    (found,) = load(tmp_path, WHOLE.replace(old, new)).warnings

    assert re.match(warning, found)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "arm.toml: version = 2 is not known; this release reads version 1"),
        ("a_mm = 100", "a_m = 0.1", "arm.toml: joint 'j1': 'a_mm' is missing; is 'a_m' meant for it?"),
        ("velocity_deg_s = 90", "velocity = 1.5", "'velocity_deg_s' is missing; is 'velocity' meant for it?"),
        ("a_mm = 100", "", "arm.toml: joint 'j1': 'a_mm' is missing; add it to this table"),
        ("theta_deg = 30", "theta_dge = 30", "joint 'j1': unknown key 'theta_dge'; did you mean 'theta_deg'? allowed"),
        ('name = "arm"\nmass', 'nam = "arm"\nmass', "joint 'j1', link: unknown key 'nam'; did you mean 'name'?"),
        ("a_mm = 100", 'a_mm = "100"', "joint 'j1': a_mm = '100' must be a finite number"),
        ("a_mm = 100", "a_mm = true", "joint 'j1': a_mm = True must be a finite number"),
        ("a_mm = 100", f"a_mm = 1{'0' * 400}", "000 must be a finite number"),
        ("a_mm = 100", "a_mm = nan", "joint 'j1': a_mm = nan must be a finite number"),
        ('kind = "prismatic"', 'kind = "slider"', "kind = 'slider' must be one of 'revolute', 'prismatic'"),
        ('kind = "harmonic"', 'kind = "belt"', "joint 'j1', drive: kind = 'belt' must be one of 'direct', 'harmonic'"),
        ("position_deg = [-90, 180]", "position_deg = [90]", "position_deg = [90] must be a list of 2 numbers"),
        ("position_deg = [-90, 180]", "position_deg = [180, -90]", "with lowest below highest"),
        ("home_deg = 45", "home_deg = 200", "joint 'j1': home_deg = 200 must lie inside position_deg"),
        ("velocity_deg_s = 90", "velocity_deg_s = 0", "joint 'j1': velocity_deg_s = 0 must be above 0"),
        ("velocity_mm_s = 200", "velocity_deg_s = 200", "joint 'j2': 'velocity_mm_s' is missing"),
        (
            "mass_kg = 2\n",
            "",
            "link 'arm' has center_of_mass_mm, inertia_kg_m2 but not mass_kg; give all three or none",
        ),
        ("yy = 0.02, ", "", "joint 'j1', link, inertia_kg_m2: 'yy' is missing"),
        ("ratio = 100\n", "ratio = 0\n", "ratio = 0 drives nothing; give motor turns per joint turn"),
        ("torque_Nm = 10", "torque_Nm = 900", "joint 'j1': torque limit 900 is beyond its motors, which reach 100."),
        ('name = "j2"', 'name = "j1"', "joint 'j1' is named 2 times; names must differ"),
        ('name = "j1"', 'name = ""', "joints[0]: name = '' is no name; a name is 1 to 64 letters, digits"),
        ('name = "j1"', 'name = "x/../../ESCAPED"', "joints[0]: name = 'x/../../ESCAPED' is no name"),
        ('name = "j1"', 'name = ".."', "joints[0]: name = '..' is no name"),
        ('name = "j1"', f'name = "{65 * "j"}"', "is no name"),
        ('name = "arm"\nmass', 'name = "up per"\nmass', "name = 'up per' is no name"),
        ('name = "j1"', 'name = "base"', "joint 'base' has the name of what the robot stands on; choose another"),
        ('name = "arm"\nmass', 'name = "base"\nmass', "link 'base' has the name of what the robot stands on"),
        ("[joints.link]", "[joints.body]", "joint 'j1': unknown key 'body'"),
        ("[joints.drive]\nkind", "[joints.motor]\nkind", "joint 'j1': 'drive' is missing"),
        ('joints = ["j1", "j2"]', 'joints = ["j1", "j3"]', "coupling 'pair': no joint 'j3'; the joints are j1, j2"),
        ('joints = ["j1", "j2"]', 'joints = ["j1", "j1"]', "joint 'j1' is coupled twice"),
        ('["j1", "j2"]\nmatrix = [[1000, 1], [-1, 1000]]', "[]\nmatrix = []", "joints = [] couples nothing"),
        ("[[1000, 1], [-1, 1000]]", "[[1000, 1]]", "matrix = [[1000, 1]] must be a list of 2 rows"),
        ("[[1000, 1], [-1, 1000]]", "[[1000, 1000], [1000, 1000]]", "matrix is singular"),
        ("[[1000, 1], [-1, 1000]]", "[[0, 1], [-1, 1000]]", "the diagonal of matrix must not be 0"),
        ("[[couplings]]", "[couplings]", "couplings must be a list of tables, each written [[couplings]]"),
        ('source = "made up"\n', "", "arm.toml: 'source' is missing"),
        ("version = 1", "version = ", "robot file .*arm.toml is not TOML"),
        ("version = 1", f"version = {'[' * 5000}{']' * 5000}", "robot file .*arm.toml is not TOML"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WHOLE
    pattern = message if ".*" in message else re.escape(message)

    with pytest.raises(FileError, match=pattern):
        load(tmp_path, WHOLE.replace(old, new, 1))


def test_a_robot_needs_a_joint(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"0 tables \[\[joints\]\]; a robot has 1 to 40"):
        load(tmp_path, HEAD)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "arm.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(FileError, match=r"robot file .*arm\.toml cannot be read"):
        load_robot(path)


DH = "alpha_deg = 90\na_mm = 100\nd_mm = 20\n"
LIMITS = "position_deg = [-90, 180]\nvelocity_deg_s = 90\nacceleration_deg_s2 = 180\ntorque_Nm = 10\n"
DRIVE = '[joints.drive]\nkind = "direct"\nratio = 100\ntorque_constant_Nm_A = 0.1\ncurrent_limit_A = 1\n'
INERTIA = "center_of_mass_mm = [100, 0, 30]\ninertia_kg_m2 = { xx = 0.01, yy = 0.02, zz = 0.025, xy = 0.001 }\n"
BODY = f"[joints.link]\nmass_kg = 2\n{INERTIA}"


def joint(name: str, extra: str = "") -> str:
    return f'[[joints]]\nname = "{name}"\n{DH}{LIMITS}{extra}\n{BODY}{DRIVE}'


MIMIC = (
    f'[[joints]]\nname = "tip"\nkind = "prismatic"\n{DH}mimic = {{ joint = "a", factor = -0.5, offset_mm = 3 }}\n{BODY}'
)
TREE = (
    'version = 1\nname = "tree"\nsource = "made up"\ndescription = "a tree"\n'
    + joint("trunk") + joint("a") + MIMIC + joint("b", 'parent = "trunk"') + joint("other", 'parent = "base"')
)  # fmt: skip
BOX = f'[[fixed]]\nname = "box"\nparent = "b"\n{DH}[fixed.link]\nmass_kg = 0.5\n{INERTIA}'
LOAD = '[[payloads]]\nname = "tool"\non = "box"\nmass_kg = 0.25\ncenter_of_mass_mm = [0, 10, 20]\n'


def load_tree(tmp_path: Path, text: str) -> Robot:
    path = tmp_path / "tree.toml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_branches_and_followers(tmp_path: Path) -> None:
    robot = load_tree(tmp_path, TREE)
    assert [joint.parent for joint in robot.joints] == [-1, 0, 1, 0, -1]
    assert robot.joint_names == ("trunk", "a", "b", "other")
    assert len(robot.drives) == robot.n_joints == 4
    assert robot.n_links == 5
    positions = robot.all_positions(np.array([[0.1, 0.2, 0.3, 0.4]]))
    np.testing.assert_allclose(positions, [[0.1, 0.2, 0.003 - 0.1, 0.3, 0.4]])
    assert robot.joint_index("b") == 2


def test_what_is_fixed_weighs_as_much_on_its_link(tmp_path: Path) -> None:
    """As energetic as where the box sits on a joint of its own that stands still."""
    hinged = joint("box").replace("mass_kg = 2", "mass_kg = 0.5").replace("[[joints]]", '[[joints]]\nparent = "b"', 1)
    apart, together = load_tree(tmp_path, TREE + hinged), load_tree(tmp_path, TREE + BOX)
    rng = np.random.default_rng(0)
    q, dq = rng.normal(size=(2, 5, 4))
    still = np.zeros((5, 1))
    one = energy(together, q, dq, parameters_of(together))
    other = energy(apart, np.hstack([q, still]), np.hstack([dq, still]), parameters_of(apart))
    np.testing.assert_allclose(one, other, rtol=1e-12)  # some hundred products in double precision
    assert together.frame("box").joint == 3


def test_a_payload_adds_its_mass_where_it_is(tmp_path: Path) -> None:
    robot, loaded = load_tree(tmp_path, TREE + BOX), load_tree(tmp_path, TREE + BOX + LOAD)
    frame = robot.frame("box")
    place = np.array(frame.origin) + np.array(frame.rotation) @ [0.0, 0.01, 0.02]
    before, after = (parameters_of(each.joints[3].link) for each in (robot, loaded))
    point = np.concatenate(
        [[0.25], 0.25 * place, 0.25 * (place @ place * np.eye(3) - np.outer(place, place))[np.triu_indices(3)]]
    )
    np.testing.assert_allclose(after, before + point, atol=1e-15)
    assert loaded.warnings == ()


def test_a_model_file_keeps_trees_and_frames(tmp_path: Path) -> None:
    robot = load_tree(tmp_path, TREE + BOX)
    assert robot_from(plain(robot_values(robot))) == robot


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            'parent = "trunk"',
            'parent = "other"',
            "joint 'other' does not stand before it; there are base, trunk, a, tip",
        ),
        ('joint = "a"', 'joint = "b"', "joint 'b' does not stand before it; there are base, trunk, a"),
        ("factor = -0.5", "factr = -0.5", "unknown key 'factr'; did you mean 'factor'?"),
        ('on = "box"', 'on = "bax"', "has no frame 'bax'; there are trunk, a, tip, b, other, box"),
        ("mass_kg = 0.25", "mass_kg = 0", "mass_kg = 0 must be above 0"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in TREE + BOX + LOAD
    with pytest.raises(FileError) as caught:
        load_tree(tmp_path, (TREE + BOX + LOAD).replace(before, after, 1))
    assert message in str(caught.value)


def test_a_payload_needs_a_link_that_moves_and_has_a_mass(tmp_path: Path) -> None:
    robot = load_tree(tmp_path, TREE + BOX.replace('parent = "b"', 'parent = "base"'))
    with pytest.raises(FileError, match="frame 'box' is the base's, which does not move"):
        with_payload(robot, "tool", "box", 1.0, (0.0, 0.0, 0.0))
    bare = load_tree(tmp_path, TREE.replace(BODY, ""))
    with pytest.raises(FileError, match="link 'b' has no inertia to add it to"):
        with_payload(bare, "tool", "b", 1.0, (0.0, 0.0, 0.0))
    with pytest.raises(FileError, match=r"payload 'tool' of 'tree': principal inertias .* triangle"):
        with_payload(robot, "tool", "b", 1.0, (0.0, 0.0, 0.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 9.0)))
