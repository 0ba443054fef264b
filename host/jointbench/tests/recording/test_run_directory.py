"""A run keeps a copy of its robot's file, of whichever kind that is, and opens from that copy alone."""

from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import RunChanged, UnknownRobot
from jointbench.recording import Samples, examine, open_run, save_samples
from jointbench.tests.recording.simulated_run import without_seal

URDF = """<?xml version="1.0"?>
<robot name="lever">
  <link name="base"/>
  <link name="arm">
    <inertial>
      <origin xyz="0 0 0.25"/>
      <mass value="2"/>
      <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="base"/>
    <child link="arm"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="20"/>
  </joint>
</robot>
"""


def lever_run(folder: Path, text: str = URDF) -> Path:
    robot = folder / "lever.urdf"
    robot.write_text(text, encoding="utf-8")
    still = np.zeros((4, 1))
    samples = Samples(
        time=np.arange(4.0), joint_names=("hinge",), motor_position=still, link_position=None, motor_current=None,
        motor_torque=still, joint_torque=None, play_tick=np.full(4, -1), valid=np.ones((4, 1), dtype=np.bool_),
        board_filters=None, sample_period=1.0,
    )  # fmt: skip
    path = save_samples(folder / "run", samples, {"robot": str(robot)})
    robot.unlink()
    return path


def test_a_urdf_stays_a_urdf(tmp_path: Path) -> None:
    path = lever_run(tmp_path)
    assert (path / "robot.urdf").read_text(encoding="utf-8") == URDF
    assert not (path / "robot.toml").exists()
    robot = open_run(path).robot
    assert robot.name == "lever"
    assert robot.joints[0].link.mass == 2.0
    assert "robot.urdf" in [finding.name for finding in examine(path).findings if finding.ok]


@pytest.mark.parametrize("text", [URDF, "\ufeff" + URDF, "\n" + URDF.partition("\n")[2]])
def test_runs_whose_urdf_was_saved_as_robot_toml_still_open(tmp_path: Path, text: str) -> None:
    path = lever_run(tmp_path)
    (path / "robot.urdf").unlink()
    (path / "robot.toml").write_text(text, encoding="utf-8")
    without_seal(path)
    assert open_run(path).robot.joint_names == ("hinge",)


def test_a_copy_that_is_gone_is_named(tmp_path: Path) -> None:
    path = lever_run(tmp_path)
    (path / "robot.urdf").unlink()
    with pytest.raises(RunChanged, match=r"robot\.urdf is gone, which was there when it was imported"):
        open_run(path)
    without_seal(path)
    with pytest.raises(UnknownRobot, match=r"robot.toml': there is no such file"):
        open_run(path)
