"""Robot files with branches, mimicking joints, fixed parts and payloads."""

from pathlib import Path

import numpy as np
import pytest

from jointbench.dynamics import energy
from jointbench.errors import RobotFileError
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.robot import Robot, load_robot, with_payload
from jointbench.tests.robot.inertia import parameters_of

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


def load(tmp_path: Path, text: str) -> Robot:
    path = tmp_path / "tree.toml"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def test_branches_and_followers(tmp_path: Path) -> None:
    robot = load(tmp_path, TREE)
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
    apart, together = load(tmp_path, TREE + hinged), load(tmp_path, TREE + BOX)
    rng = np.random.default_rng(0)
    q, dq = rng.normal(size=(2, 5, 4))
    still = np.zeros((5, 1))
    one = energy(together, q, dq, parameters_of(together))
    other = energy(apart, np.hstack([q, still]), np.hstack([dq, still]), parameters_of(apart))
    np.testing.assert_allclose(one, other, rtol=1e-12)  # some hundred products in double precision
    assert together.frame("box").joint == 3


def test_a_payload_adds_its_mass_where_it_is(tmp_path: Path) -> None:
    robot, loaded = load(tmp_path, TREE + BOX), load(tmp_path, TREE + BOX + LOAD)
    frame = robot.frame("box")
    place = np.array(frame.origin) + np.array(frame.rotation) @ [0.0, 0.01, 0.02]
    before, after = (parameters_of(each.joints[3].link) for each in (robot, loaded))
    point = np.concatenate(
        [[0.25], 0.25 * place, 0.25 * (place @ place * np.eye(3) - np.outer(place, place))[np.triu_indices(3)]]
    )
    np.testing.assert_allclose(after, before + point, atol=1e-15)
    assert loaded.warnings == ()


def test_a_model_file_keeps_trees_and_frames(tmp_path: Path) -> None:
    robot = load(tmp_path, TREE + BOX)
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
    with pytest.raises(RobotFileError) as caught:
        load(tmp_path, (TREE + BOX + LOAD).replace(before, after, 1))
    assert message in str(caught.value)


def test_a_payload_needs_a_link_that_moves_and_has_a_mass(tmp_path: Path) -> None:
    robot = load(tmp_path, TREE + BOX.replace('parent = "b"', 'parent = "base"'))
    with pytest.raises(RobotFileError, match="frame 'box' is the base's, which does not move"):
        with_payload(robot, "tool", "box", 1.0, (0.0, 0.0, 0.0))
    bare = load(tmp_path, TREE.replace(BODY, ""))
    with pytest.raises(RobotFileError, match="link 'b' has no inertia to add it to"):
        with_payload(bare, "tool", "b", 1.0, (0.0, 0.0, 0.0))
    with pytest.raises(RobotFileError, match=r"payload 'tool' of 'tree': principal inertias .* triangle"):
        with_payload(robot, "tool", "b", 1.0, (0.0, 0.0, 0.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 9.0)))
