"""Links that are alike: their axes, the file that names them, and robots that lose some."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import BadLinkKind, RobotFileError
from jointbench.robot import LinkAxis, LinkKind, chain_of, load_robot
from jointbench.robot.robot_file import read_robot_file

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
    with pytest.raises(BadLinkKind, match="axis of link 'shin' starts where it ends"):
        LinkAxis("shin", (0.1, 0.0, 0.0), (0.1, 0.0, 0.0))


def test_links_that_are_not_alike_are_no_kind() -> None:
    longer = LinkAxis("thigh", (0.0, 0.0, 0.0), (0.31, 0.0, 0.0))
    with pytest.raises(BadLinkKind, match="axis of 'thigh' is 310 mm long, that of 'shin' 300 mm"):
        LinkKind("leg", (AXIS, longer))
    with pytest.raises(BadLinkKind, match="has no links"):
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
    text = (files("jointbench.robot") / "library" / "gorobot2.toml").read_text()
    assert before in text
    path = tmp_path / "biped.toml"
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(RobotFileError, match=message):
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
