from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.errors import UnknownJoint, UnknownRobot
from jointbench.robot import library_names, load_robot


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
    from jointbench.dynamics import gravity_torques

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
    with pytest.raises(UnknownJoint, match=r"^robot 'cobot6' has no joint 'elbow'; its joints: j1, .*, j6$"):
        robot.joint_index("elbow")


def test_unknown_name_names_the_library() -> None:
    words = r"^robot 'cobot7': not in the library \(did you mean cobot6\?\); the library has cobot6, .*\.toml"
    with pytest.raises(UnknownRobot, match=words):
        load_robot("cobot7")


def test_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownRobot, match=r"there is no such file; the library has cobot6"):
        load_robot(tmp_path / "arm.toml")
