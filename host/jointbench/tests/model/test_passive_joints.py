"""Joints that are measured but not modelled: what files say of them."""

from pathlib import Path

import pytest

from jointbench.errors import FileError, RobotError
from jointbench.model import Robot, load_robot, with_passive

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
