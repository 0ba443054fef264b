"""What boards reported disagrees with an edited robot file, by joint and with both values."""

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from jointbench.link.identity import Facts
from jointbench.link.settings import default_settings, motor_settings
from jointbench.recording import Recorder, examine
from jointbench.recording.contents import disagreements
from jointbench.recording.run import boards_of
from jointbench.robot import Robot, load_robot
from jointbench.tests.recording.simulated_run import boards, feed, provenance
from jointwire import CHANNEL_BY_NAME, JOINT_BOARD_CHANNELS


def told(**edits: Any) -> dict[str, Any]:
    """Provenance of an arm whose boards were set as a bench sets them; `edits`: registers of j2's board by name."""
    robot = load_robot("cobot6")
    settings = default_settings(robot)
    about = provenance({node: None for node in range(1, 7)})
    motors = motor_settings(settings, robot.drive_train)
    for table, motor, drive in zip(about["board"], motors, robot.drives, strict=True):
        own = {**table["registers"], "drive.ratio": round(1000 * drive.ratio)}
        own |= motor.registers(table["joint"], table["node"], Facts(own))
        table |= {"registers": own, "motor_counts": 4096, "link_counts": 524288, "adc_bits": 12}
    about["board"][1]["registers"] |= edits
    return about | {"settings": {f"j{k}": asdict(each) for k, each in enumerate(settings, 1)}}


def differ(robot: Robot, about: Mapping[str, Any]) -> list[str]:
    facts, _ = boards_of(Path(), about)
    return disagreements(robot, list(facts.values()), about)


def with_drive(**changes: Any) -> Robot:
    """The arm with another drive at j2."""
    robot = load_robot("cobot6")
    drives = list(robot.drives)
    drives[1] = replace(drives[1], **changes)
    return replace(robot, drives=tuple(drives))


def test_boards_that_were_set_for_the_robot_agree() -> None:
    assert differ(load_robot("cobot6"), told()) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ratio": 110.0}, "j2: its board's drive.ratio is 101, the robot file makes it 110"),
        ({"ratio": -101.0}, "j2: its board's drive.ratio is 101, the robot file makes it -101"),
        ({"torque_constant": 0.2}, r"j2: its board's servo.kp = \d+ was made for a torque constant of 0.124 N·m/A, "
                                   "the robot file says 0.2"),
        ({"current_limit": 8.0}, "j2: its board was set to limit.current = 10 A, the robot file allows 8 A"),
        ({"kind": "none"}, "j2: its board drives a motor, the robot file has no drive for it"),
    ],
)  # fmt: skip
def test_another_robot_file_is_named_by_joint_and_both_values(changes: dict[str, Any], text: str) -> None:
    (said,) = differ(with_drive(**changes), told())
    assert re.fullmatch(text, said), said


@pytest.mark.parametrize(
    ("registers", "text"),
    [
        ({"drive.ratio": 100000}, "j2: its board's drive.ratio is 100, the robot file makes it 101"),
        ({"current.scale": 30518}, r"j2: its board measures up to 1 A \(current.scale = 3.0518e-05 A\), and was set to "
                                   "limit.current = 10 A"),
        ({"encoder.motor_counts": 2048},
         "j2: its board greeted with 4096 motor encoder counts, its encoder.motor_counts is 2048"),
        ({"adc.cic_order": 2}, "j2: its board's adc.cic_order is 2, the settings say 1"),
        ({"filter.1.b0": 1},
         r"j2: its board's filter is not that of the settings, 100 Hz of order 2: filter.1.b0 is 1, and would be \d+"),
    ],
)  # fmt: skip
def test_what_a_board_reported_is_named(registers: dict[str, int], text: str) -> None:
    said = differ(load_robot("cobot6"), told(**registers))
    assert any(re.fullmatch(text, each) for each in said), said


def test_a_sensor_that_the_board_does_not_have_is_named() -> None:
    without = JOINT_BOARD_CHANNELS & ~(1 << CHANNEL_BY_NAME["joint_torque"].bit)
    (said,) = differ(with_drive(torque_sensor=True), told(**{"board.channels": without}))
    assert said == "j2: the robot file has torque_sensor = true, its board measures no joint_torque (board.channels)"
    assert differ(with_drive(torque_sensor=True), told()) == []


def test_the_doctor_says_it_and_what_to_do(tmp_path: Path) -> None:
    about, streams = told(**{"drive.ratio": 100000}), boards(6)
    with Recorder(tmp_path / "run", about) as recorder:
        feed(recorder, streams)
    diagnosis = examine(tmp_path / "run")
    assert diagnosis.verdict.startswith("damaged: boards and robot file")
    text = diagnosis.text()
    assert "1 differ [j2: its board's drive.ratio is 100, the robot file makes it 101]" in text
    assert "find out which is right: correct the robot file" in text
