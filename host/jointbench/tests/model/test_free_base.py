"""Bases that are free to move: what robot files and URDF say of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from jointbench.errors import FileError, RobotError
from jointbench.model import Link, Robot, load_robot, on_free_base, with_payload

HEAD = 'version = 1\nname = "arm"\nsource = "made up"\ndescription = "three joints"\n'
LIMITS = "position_deg = [-90, 180]\nvelocity_deg_s = 90\nacceleration_deg_s2 = 180\ntorque_Nm = 10\n"
PLACE = "alpha_deg = 90\na_mm = 100\nd_mm = 20\n"
DRIVE = '[joints.drive]\nkind = "direct"\nratio = 100\ntorque_constant_Nm_A = 0.1\ncurrent_limit_A = 1\n'
BODY = "mass_kg = 2\ncenter_of_mass_mm = [10, 0, 0]\ninertia_kg_m2 = { xx = 0.01, yy = 0.02, zz = 0.025 }\n"
LINK = f"[joints.link]\n{BODY}"
WHOLE = HEAD + "".join(f'[[joints]]\nname = "{name}"\n{PLACE}{LIMITS}{LINK}{DRIVE}' for name in ("a", "b"))


def load(tmp_path: Path, text: str, name: str = "arm.toml") -> Robot:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


FLOATING = WHOLE.replace("version = 1", "version = 1\nfloating_base = true") + f"[base_link]\nname = 'trunk'\n{BODY}"


def test_a_base_that_moves_has_a_link(tmp_path: Path) -> None:
    robot = load(tmp_path, FLOATING)
    assert robot.base_link is not None
    assert (robot.base_link.name, robot.base_link.mass) == ("trunk", 2.0)
    box = f'[[fixed]]\nname = "box"\nparent = "base"\n{PLACE}[fixed.link]\n{BODY}'
    boxed = load(tmp_path, FLOATING + box)
    loaded = with_payload(boxed, "tool", "box", 0.5, (0.0, 0.0, 0.0))
    assert boxed.base_link is not None
    assert loaded.base_link is not None
    assert (boxed.base_link.mass, loaded.base_link.mass) == (4.0, 4.5)
    assert load(tmp_path, WHOLE + box).base_link is None
    assert load(tmp_path, FLOATING.replace("[base_link]\nname = 'trunk'\n" + BODY, "")).base_link == Link("base")


def test_a_base_link_of_a_base_that_stands_still_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\[base_link\] is of a base that moves; set floating_base = true, or"):
        load(tmp_path, FLOATING.replace("floating_base = true", "floating_base = false"))
    (tmp_path / "still.toml").write_text(WHOLE, encoding="utf-8")
    with pytest.raises(FileError, match=r"still.toml: the robot's base is fixed; write floating_base = true"):
        load_robot(tmp_path / "still.toml", floating_base=True)


def inertial(xx: float, mass: float = 2.0) -> str:
    return (
        f'<inertial><origin xyz="0.1 0 0"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.025"/></inertial>'
    )


def urdf(**inertias: str) -> str:
    links = "".join(f'<link name="{name}">{inertias.get(name, inertial(0.01))}</link>' for name in "wxyz")
    ends = '<parent link="x"/><child link="y"/>'
    turn = f'<joint name="turn" type="continuous">{ends}<limit velocity="1" effort="1"/></joint>'
    fixed = "".join(
        f'<joint name="{a}{b}" type="fixed"><parent link="{a}"/><child link="{b}"/></joint>' for a, b in ("wx", "yz")
    )
    return f'<robot name="arm">{links}{turn}{fixed}</robot>'


def test_a_urdf_is_on_a_free_base_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(urdf(), encoding="utf-8")
    still, free = load_robot(path), load_robot(path, floating_base=True)
    assert still.base_link is None
    assert free.base_link is not None
    assert (free.base_link.name, free.base_link.mass) == ("w", 4.0)
    assert free.joints == still.joints


def test_six_joints_that_nothing_drives_carry_it(tmp_path: Path) -> None:
    robot = load(tmp_path, FLOATING)
    freed = on_free_base(robot)
    assert freed is on_free_base(robot)
    assert freed.joint_names == ("trunk.x", "trunk.y", "trunk.z", "trunk.roll", "trunk.pitch", "trunk", "a", "b")
    assert [drive.kind for drive in freed.drives] == ["none"] * 6 + ["direct"] * 2
    assert freed.neglected_links == (0, 1, 2, 3, 4)
    assert freed.joints[5].link == robot.base_link
    assert [joint.parent for joint in freed.joints[6:]] == [5, 6]
    with pytest.raises(RobotError, match="the base of robot 'arm' does not move"):
        on_free_base(freed)


def test_a_joint_may_have_the_name_of_the_base_link(tmp_path: Path) -> None:
    """Its row and its parameters must stay its own."""
    freed = on_free_base(replace(load(tmp_path, FLOATING), base_link=Link("a")))
    assert freed.joint_names[5:] == ("link a", "a", "b")
