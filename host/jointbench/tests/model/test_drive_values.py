"""Values of drives written into a robot file: these alone change, or nothing does."""

import tomllib
from pathlib import Path

import pytest

from jointbench.errors import FileError
from jointbench.model import load_robot
from jointbench.model.catalogue import robot_file_text, with_drive_values


def test_values_are_replaced_and_added_and_all_else_stays() -> None:
    path, text = robot_file_text("cobot6:2")
    assert path is None
    changed = with_drive_values(text, {"j2": {"ratio": -81.5, "link_coulomb_Nm": 4.3}})
    before, after = tomllib.loads(text), tomllib.loads(changed)
    assert after["joints"][1]["drive"] == {**before["joints"][1]["drive"], "ratio": -81.5, "link_coulomb_Nm": 4.3}
    after["joints"][1]["drive"] = before["joints"][1]["drive"]
    assert after == before
    assert [line for line in text.splitlines() if "#" in line] == [line for line in changed.splitlines() if "#" in line]


def test_the_last_table_of_a_file_is_added_to() -> None:
    text = '[[joints]]\nname = "j1"\n[joints.drive]\nratio = 5 # turns'
    assert with_drive_values(text, {"j1": {"ratio": 6.0, "link_viscous_Nms_rad": 0.1}}) == (
        '[[joints]]\nname = "j1"\n[joints.drive]\nratio = 6.0 # turns\nlink_viscous_Nms_rad = 0.1'
    )


def test_a_drive_written_in_another_way_is_left_to_its_author() -> None:
    with pytest.raises(FileError, match="the drives of j1 are not written as tables"):
        with_drive_values('[[joints]]\nname = "j1"\ndrive = { ratio = 5 }\n', {"j1": {"ratio": 6.0}})
    with pytest.raises(FileError, match="has no place for values of drives"):
        robot_file_text("arm.urdf")


def test_a_torque_limit_is_lowered_with_the_ratio_that_asks_for_it(tmp_path: Path) -> None:
    _, text = robot_file_text("cobot6")
    path = tmp_path / "arm.toml"
    path.write_text(with_drive_values(text, {"j2": {"ratio": -80.9}}, {"j2": 100.2, "j3": 60.5}))
    before, now = load_robot("cobot6"), load_robot(path)
    assert [joint.torque_limit for joint in now.joints[1:3]] == [100.2, 60.5]
    assert [joint.torque_limit for joint in now.joints[3:]] == [joint.torque_limit for joint in before.joints[3:]]
    assert [drive.ratio for drive in now.drives] == [101.0, -80.9, *[101.0] * 4]
