"""Robot files about a URDF: its bodies, and drives and limits of the file."""

from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import FileError
from jointbench.model import inverse_dynamics, load_robot
from jointbench.recording.run_directory import create_run_directory, read_robot
from jointbench.results import export

DRIVE = """
[joints.drive]
kind = "direct"
ratio = {ratio}
torque_constant_Nm_A = 0.5
current_limit_A = 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    export(load_robot("cobot6:3"), tmp_path / "arm.urdf")
    return tmp_path


def robot_file(folder: Path, joints: str, more: str = "") -> Path:
    path = folder / "arm.toml"
    path.write_text(f'version = 1\nurdf = "arm.urdf"\n{more}\n{joints}')
    return path


def joint(name: str, limits: str = "", ratio: float = 50.0) -> str:
    return f'[[joints]]\nname = "{name}"\n{limits}{DRIVE.format(ratio=ratio)}'


def test_bodies_are_the_urdfs_and_drives_the_files(folder: Path) -> None:
    drawn = load_robot(folder / "arm.urdf")
    robot = load_robot(robot_file(folder, joint("j2", "torque_Nm = 90\nposition_deg = [-60, 45]\n", -50.0)))
    assert robot.name == drawn.name
    assert [drive.ratio for drive in robot.drives] == [1.0, -50.0, 1.0]  # of the others torque is measured at the joint
    assert robot.joints[1].torque_limit == 90.0
    np.testing.assert_allclose(robot.position_limits[1], np.radians([-60, 45]), rtol=1e-12)
    np.testing.assert_array_equal(robot.position_limits[[0, 2]], drawn.position_limits[[0, 2]])
    q = np.random.default_rng(0).uniform(-0.5, 0.5, (4, 3))
    assert drawn.standard_parameters is not None
    torque = inverse_dynamics(robot, q, q, q, drawn.standard_parameters)
    np.testing.assert_array_equal(torque, inverse_dynamics(drawn, q, q, q, drawn.standard_parameters))


def test_what_the_file_says_is_no_longer_assumed(folder: Path) -> None:
    assumed = "joint 'turn': acceleration limit"
    (folder / "arm.urdf").write_text(
        '<robot name="arm"><link name="base"/><link name="tube"/><joint name="turn" type="revolute">'
        '<parent link="base"/><child link="tube"/><limit lower="-1" upper="1" velocity="2" effort="30"/></joint>'
        "</robot>"
    )
    without, with_it = (
        load_robot(robot_file(folder, joint("turn", limits))).assumptions
        for limits in ("", "acceleration_deg_s2 = 100\n")
    )
    assert any(line.startswith(assumed) for line in without)
    assert not any(line.startswith(assumed) for line in with_it)


@pytest.mark.parametrize(
    ("joints", "more", "message"),
    [
        (
            joint("j9"),
            "",
            r"arm\.toml: joint 'j9': moves by itself in no joint of arm\.urdf; its joints are j1, j2, j3$",
        ),
        (joint("j1", "alpha_deg = 90\n"), "", r"joint 'j1': unknown key 'alpha_deg'"),
        (joint("j1", "torque_Nm = 900\n"), "", r"joint 'j1': torque limit 900 is beyond its motors, which reach 500"),
        (joint("j1") + joint("j1"), "", "joint 'j1'"),
        (joint("j1"), "[[fixed]]\nname = 'tool'", r"\[\[fixed\]\] and \[base_link\] are of a robot without a urdf"),
    ],
)
def test_a_wrong_entry_is_named(folder: Path, joints: str, more: str, message: str) -> None:
    path = robot_file(folder, joints + more)
    with pytest.raises(FileError, match=message):
        load_robot(path)


def test_a_urdf_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"arm\.urdf"):
        load_robot(robot_file(tmp_path, joint("j1")))


def test_a_run_keeps_a_copy_of_both_files(folder: Path, tmp_path: Path) -> None:
    path = robot_file(folder, joint("j1") + joint("j2") + joint("j3"))
    run = create_run_directory(tmp_path / "run", {"robot": str(path)})
    path.unlink()
    (folder / "arm.urdf").unlink()
    robot = read_robot(run)
    assert [drive.ratio for drive in robot.drives] == [50.0, 50.0, 50.0]
    assert robot.joint_names == ("j1", "j2", "j3")
