"""What is written as TOML reads back as what it was."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointbench.errors import RobotError, RunError
from jointbench.recording import Samples, examine, open_run, save_samples
from jointbench.recording.run_directory import toml_text
from jointbench.tests.recording.simulated_run import without_seal

# TOML has no characters of UTF-16's surrogate range, and its integers have 64 bits.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALAR = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


def _plain(value: object) -> bool:
    """Whether TOML can hold it as written here: no tables inside lists that hold other things, too."""
    if isinstance(value, dict):
        return all(_plain(item) for item in value.values())
    if isinstance(value, list):
        tables = [isinstance(item, dict) for item in value]
        return all(_plain(item) for item in value) and (not any(tables) or all(tables))
    return True


def _no_nested_tables(value: object, inside: bool = False) -> bool:
    """Tables in lists in lists have no form here; nothing in a run has them."""
    if isinstance(value, dict):
        return not inside and all(_no_nested_tables(item) for item in value.values())
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value) and not inside:
            return all(_no_nested_tables(item) for item in value)
        return all(_no_nested_tables(item, True) for item in value)
    return True


@given(st.dictionaries(TEXT, VALUE.filter(_plain).filter(_no_nested_tables), max_size=4))
def test_everything_comes_back(values: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(values)) == values


def test_numbers_of_numpy_are_numbers() -> None:
    values = {"a": np.float64(0.5), "b": np.array([[1, 2], [3, 4]]), "c": np.bool_(True), "d": None}
    assert tomllib.loads(toml_text(values)) == {"a": 0.5, "b": [[1, 2], [3, 4]], "c": True}


def test_what_has_no_form_is_named() -> None:
    with pytest.raises(RunError, match=r"bench\.port = .* cannot be written to run\.toml"):
        toml_text({"bench": {"port": Path("x")}})


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
    with pytest.raises(RunError, match=r"robot\.urdf is gone, which was there when it was imported"):
        open_run(path)
    without_seal(path)
    with pytest.raises(RobotError, match=r"robot.toml': there is no such file"):
        open_run(path)
