"""Feet: where their sensors are, and what corners span no sole."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import BadFoot, RobotFileError, UnknownFoot
from jointbench.robot import Foot, chain_of, load_robot, on_free_base
from jointbench.robot.robot_file import read_robot_file
from jointbench.robot.variants import BASE_JOINTS

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
    with pytest.raises(UnknownFoot, match="no foot 'hoof'; its feet: r_foot, l_foot"):
        load_robot("gorobot2").foot("hoof")
    with pytest.raises(UnknownFoot, match=r"its file has no \[\[feet\]\]"):
        load_robot("cobot6").foot("hoof")


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 0, 1, 2), (0, 1, 1, 0)])
def test_corners_that_go_round_no_sole_are_refused(order: tuple[int, ...]) -> None:
    with pytest.raises(BadFoot, match="go round no sole; give four in the order front left"):
        Foot("paw", -1, tuple(SOLE[i] for i in order))  # type: ignore[arg-type]  # a tuple of four


def test_corners_off_a_plane_are_refused() -> None:
    lifted = ((0.13, 0.06, 0.01), (0.13, -0.06, 0.0), (-0.09, -0.06, 0.0), (-0.09, 0.06, 0.0))
    with pytest.raises(BadFoot, match=r"2\.5 mm off a plane"):
        Foot("paw", -1, lifted)


def test_a_file_with_a_bad_foot_says_which(tmp_path: Path) -> None:
    text = (
        (files("jointbench.robot") / "library" / "gorobot2.toml")
        .read_text()
        .replace("[[130, 60, 0], [130, -60, 0]", "[[130, -60, 0], [130, 60, 0]", 1)
    )
    path = tmp_path / "biped.toml"
    path.write_text(text)
    with pytest.raises(RobotFileError, match=r"biped\.toml: foot 'r_foot': .*go round no sole"):
        read_robot_file(path)
