"""Proposals for logs as drivers, scripts and spreadsheets write them; each can be imported once it is complete."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.model import load_robot
from jointbench.recording import import_csv
from jointbench.recording.log_table import read_column_name
from jointbench.recording.mapping_inference import Proposal
from jointbench.recording.proposal import propose_mapping
from jointbench.tests.identification.log_check.logs import data_folder

JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")
ROWS, PERIOD_S = 1500, 2e-3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_arm(tmp_path)


def write_arm(folder: Path) -> Path:
    """A folder with a URDF of three joints in it."""
    links = "".join(
        f'<link name="l{k}"/><joint name="{name}" type="revolute"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="0 0 .3"/><axis xyz="0 {k % 2} {1 - k % 2}"/>'
        f'<limit lower="-3" upper="3" velocity="6" effort="100"/></joint>'
        for k, name in enumerate(JOINTS)
    )
    (folder / "arm.urdf").write_text(f'<robot name="arm"><link name="base"/>{links}</robot>', encoding="utf-8")
    return folder


TIME = PERIOD_S * np.arange(ROWS)
ANGULAR = 2.0 * np.pi * np.array([0.4, 0.7, 1.0])
Q = 0.9 * np.sin(TIME[:, None] * ANGULAR)
DQ = 0.9 * ANGULAR * np.cos(TIME[:, None] * ANGULAR)
TAU = 20.0 * np.cos(Q) + 3.0 * np.sign(DQ) + 0.1 * np.random.default_rng(1).standard_normal(Q.shape)


def write(folder: Path, name: str, header: Sequence[str] | None, *columns: ArrayLike, delimiter: str = ",") -> Path:
    path = folder / name
    rows = np.column_stack(columns)
    assert header is None or len(header) == rows.shape[1]
    lines = [delimiter.join(header)] if header else []
    lines += [delimiter.join(f"{value:.9g}" for value in row) for row in rows.tolist()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def numbered(stem: str, first: int = 1, after: str = "") -> list[str]:
    return [f"{stem}{k}{after}" for k in range(first, first + 3)]


def proposed(folder: Path, *logs: Path) -> tuple[Proposal, dict[str, Any]]:
    proposal = propose_mapping(folder / "arm.urdf", logs, folder)
    return proposal, tomllib.loads(proposal.text)


def imported(folder: Path, proposal: Proposal) -> Array:
    """Positions of the run that the mapping makes."""
    (folder / "mapping.toml").write_text(proposal.text, encoding="utf-8")
    return np.array(import_csv(folder / "mapping.toml", folder / "run").samples.motor_position)


def unwrapped(proposal: Proposal) -> str:
    return proposal.text.replace("\n# ", " ")


def states(proposal: Proposal) -> dict[str, str]:
    return {f"{entry.table}.{entry.key}": entry.state for entry in proposal.entries}


def test_joint_states_by_joint_names_in_another_order(folder: Path) -> None:
    order = [2, 0, 1]  # by the alphabet, as bags have them
    header = [
        "time",
        *(f"/joint_states/{JOINTS[k]}/{kind}" for kind in ("position", "velocity", "effort") for k in order),
    ]
    log = write(folder, "bag.csv", header, 5.0 + TIME, Q[:, order], DQ[:, order], TAU[:, order])
    proposal, mapping = proposed(folder, log)
    assert mapping["robot"] == "arm.urdf"
    assert mapping["position"]["columns"] == [f"/joint_states/{name}/position" for name in JOINTS]
    assert mapping["velocity"]["columns"] == [f"/joint_states/{name}/velocity" for name in JOINTS]
    assert mapping["torque"]["columns"] == [f"/joint_states/{name}/effort" for name in JOINTS]
    assert mapping["time"] == {"column": "time", "unit": "s"}
    assert (mapping["position"]["unit"], mapping["velocity"]["unit"], mapping["torque"]["unit"]) == (
        "rad",
        "rad/s",
        "N·m",
    )
    assert states(proposal)["torque.columns"] == "guessed"  # an effort may be a sensor's
    assert imported(folder, proposal) == pytest.approx(Q, abs=1e-8)


def test_degrees_milliseconds_and_semicolons_named_and_unnamed(folder: Path) -> None:
    for name, header in {
        "named": [
            "t_ms",
            *numbered("q", after=" [deg]"),
            *numbered("qd", after=" [deg/s]"),
            *numbered("tau", after=" (Nm)"),
        ],
        "unnamed": ["stamp", *numbered("q"), *numbered("qd"), *numbered("tau")],
    }.items():
        columns = 1e3 * TIME, np.rad2deg(Q), np.rad2deg(DQ), TAU
        log = write(folder, f"{name}.csv", header, *columns, delimiter=";")
        proposal, mapping = proposed(folder, log)
        assert mapping["files"] == [{"path": f"{name}.csv", "delimiter": ";"}]
        assert mapping["time"]["unit"] == "ms"
        assert mapping["position"]["unit"] == "deg"
        assert mapping["velocity"]["unit"] == "deg/s"
        (folder / "mapping.toml").write_text(proposal.text, encoding="utf-8")
        run = import_csv(folder / "mapping.toml", folder / name)
        assert np.array(run.samples.motor_position) == pytest.approx(Q, abs=1e-7)
        assert run.samples.sample_period == pytest.approx(PERIOD_S)


def test_currents_of_a_robot_without_motors_ask_for_torque_constants(folder: Path) -> None:
    header = ["timestamp", *numbered("actual_q_", 0), *numbered("target_q_", 0), *numbered("actual_current_", 0)]
    proposal, mapping = proposed(folder, write(folder, "rtde.csv", header, TIME, Q, Q, TAU / 10.0))
    assert mapping["position"]["columns"] == numbered("actual_q_", 0)
    assert mapping["torque"] == {
        "columns": numbered("actual_current_", 0), "unit": "N·m", "gain": ["?", "?", "?"], "side": "joint"
    }  # fmt: skip
    assert [entry.key for entry in proposal.to_fill_in] == ["gain"]
    asked = unwrapped(proposal).split("FILL IN: ")[1]
    assert f"a list of 3 numbers, one for each of {JOINTS[0]} (actual_current_0), {JOINTS[1]} (" in asked
    assert any(reason.startswith("target_q_0 … target_q_2: commanded") for reason in proposal.left_out)
    with pytest.raises(FileError, match=r"still to be filled in: torque.gain"):
        imported(folder, proposal)
    (folder / "mapping.toml").write_text(proposal.text.replace('"?"', "10"), encoding="utf-8")
    run = import_csv(folder / "mapping.toml", folder / "run2")
    assert np.array(run.samples.motor_torque) == pytest.approx(TAU, abs=1e-6)


def test_currents_of_a_robot_with_motors(tmp_path: Path) -> None:
    robot, rng = load_robot("cobot6"), np.random.default_rng(2)
    wave = np.sin(TIME[:, None] * np.linspace(1.0, 3.0, 6))
    header = ["t", *(f"motor_position_{k}" for k in range(6)), *(f"motor_current_mA_{k}" for k in range(6))]
    motors = (np.array(robot.home) + 0.3 * wave) @ robot.transmission_matrix.T
    log = write(tmp_path, "log.csv", header, TIME, motors, 900.0 * wave + rng.standard_normal(wave.shape))
    mapping = tomllib.loads(propose_mapping("cobot6", [log], tmp_path).text)
    assert mapping["robot"] == "cobot6"
    assert (mapping["position"]["side"], mapping["position"]["unit"]) == ("motor", "rad")
    assert mapping["torque"] == {
        "columns": [f"motor_current_mA_{k}" for k in range(6)], "unit": "mA", "side": "motor"
    }  # fmt: skip


def test_sensors_beside_motors_torque(folder: Path) -> None:
    header = ["t", *numbered("pos"), *numbered("TorqueSensor"), *numbered("TorqueCur"), *numbered("temp")]
    proposal, mapping = proposed(folder, write(folder, "log.csv", header, TIME, Q, TAU, 1.1 * TAU, 30.0 + 0.0 * Q))
    assert mapping["joint_torque"]["columns"] == numbered("TorqueSensor")
    assert mapping["torque"]["columns"] == numbered("TorqueCur")
    assert mapping["fit"] == {"torque": "joint"}
    assert states(proposal)["fit.torque"] == "guessed"
    silent, mapping = proposed(folder, write(folder, "silent.csv", header, TIME, Q, 0.0 * TAU, TAU, 0.0 * Q))
    assert "joint_torque" not in mapping
    assert "fit" not in mapping
    assert "TorqueSensor1 … TorqueSensor3: they never change" in silent.left_out


def test_without_a_header_figures_tell_what_they_can(folder: Path) -> None:
    proposal, mapping = proposed(folder, write(folder, "log.csv", None, TIME, Q, DQ, TAU))
    assert mapping["files"] == [{"path": "log.csv", "header": False}]
    assert mapping["time"] == {"column": "1", "unit": "s"}
    assert mapping["position"]["columns"] == ["2", "3", "4"]
    assert mapping["velocity"]["columns"] == ["5", "6", "7"]
    assert mapping["torque"] == {"columns": ["8", "9", "10"], "unit": "?", "side": "joint"}  # a URDF has no gears
    assert states(proposal)["position.columns"] == states(proposal)["torque.columns"] == "guessed"
    _, mapping = proposed(folder, write(folder, "swapped.csv", None, TIME, Q, TAU, DQ))
    assert mapping["velocity"]["columns"] == ["8", "9", "10"]
    assert mapping["torque"]["columns"] == ["5", "6", "7"]
    proposal, mapping = proposed(folder, write(folder, "two.csv", None, Q, TAU))
    assert mapping["sample_rate_Hz"] == "?"
    assert "no column tells the time" in proposal.text


def test_the_sample_rate_by_motion_where_there_is_no_time(folder: Path) -> None:
    header = [*numbered("q"), *numbered("dq"), *numbered("tau")]
    proposal, mapping = proposed(folder, write(folder, "log.csv", header, Q, DQ, TAU))
    assert mapping["sample_rate_Hz"] == 500.0
    assert states(proposal)[".sample_rate_Hz"] == "guessed"


def test_a_count_of_rows_is_told_by_motion_and_else_doubted(folder: Path) -> None:
    count = np.arange(ROWS, dtype=np.float64)
    header = ["time", *numbered("q"), *numbered("dq"), *numbered("tau")]
    _, mapping = proposed(folder, write(folder, "log.csv", header, count, Q, 2.0 * DQ, TAU))  # a row each millisecond
    assert mapping["time"]["unit"] == "ms"
    proposal, mapping = proposed(folder, write(folder, "slow.csv", header, count, Q, DQ, TAU))  # each two
    assert "time" not in mapping
    assert mapping["sample_rate_Hz"] == 500.0
    assert "time only counts rows" in unwrapped(proposal)
    without = ["time", *numbered("q"), *numbered("tau")]
    proposal, mapping = proposed(folder, write(folder, "bare.csv", without, count, Q, TAU))
    assert (mapping["time"]["unit"], states(proposal)["time.unit"]) == ("ms", "guessed")
    assert "if it only counts rows" in unwrapped(proposal)


def test_uneven_and_missing_times(folder: Path) -> None:
    header = ["t", *numbered("q"), *numbered("tau")]
    uneven = TIME + 0.3 * PERIOD_S * np.sin(np.arange(ROWS))
    proposal, mapping = proposed(folder, write(folder, "uneven.csv", header, uneven, Q, TAU))
    assert mapping["time"]["resample"] is True
    assert len(imported(folder, proposal)) == pytest.approx(ROWS, abs=2)
    kept = np.delete(np.arange(ROWS), slice(300, 320))
    _, mapping = proposed(folder, write(folder, "gap.csv", header, TIME[kept], Q[kept], TAU[kept]))
    assert mapping["allow_gaps"] is True
    assert "resample" not in mapping["time"]
    proposal, mapping = proposed(folder, write(folder, "repeated.csv", header, np.repeat(TIME[::2], 2), Q, TAU))
    assert "time" not in mapping
    assert mapping["sample_rate_Hz"] == pytest.approx(1.0 / PERIOD_S, rel=5e-3)
    assert "750 times of t repeat the one before" in unwrapped(proposal)


def test_several_files_of_one_recording_and_of_several(folder: Path) -> None:
    position = write(folder, "pos_log.csv", numbered("Joint_"), Q)
    torque = write(folder, "torque_log.csv", numbered("Joint_"), TAU)
    proposal, mapping = proposed(folder, position, torque)
    assert [file["path"] for file in mapping["files"]] == ["pos_log.csv", "torque_log.csv"]
    assert (mapping["position"]["file"], mapping["torque"]["file"]) == ("pos_log.csv", "torque_log.csv")
    assert proposal.alike == ()
    header = ["t", *numbered("q"), *numbered("tau")]
    logs = [write(folder, f"{name}.csv", header, TIME, Q, TAU) for name in ("first", "second")]
    proposal, mapping = proposed(folder, *logs)
    assert [file["path"] for file in mapping["files"]] == ["first.csv"]
    assert proposal.alike == ("second.csv",)


def test_files_of_one_recording_have_as_many_rows(folder: Path) -> None:
    position = write(folder, "pos_log.csv", numbered("Joint_"), Q)
    velocity = write(folder, "vel_log.csv", numbered("v"), DQ[:-1])
    with pytest.raises(FileError, match=r"pos_log.csv has 1500 rows .*vel_log.csv 1499; rows of all files"):
        proposed(folder, position, velocity)


def test_more_columns_than_joints_are_said(folder: Path) -> None:
    header = ["t", *numbered("q"), "q4", *numbered("tau"), "tau4"]
    log = write(folder, "log.csv", header, TIME, Q, Q[:, 0], TAU, TAU[:, 0])
    proposal, mapping = proposed(folder, log)
    assert mapping["position"]["columns"] == numbered("q")
    assert "the first 3 of 4: is this the log of this robot?" in unwrapped(proposal)
    assert "q4, tau4: not one for each joint" in proposal.left_out


def test_paths_are_as_seen_from_the_mapping(folder: Path) -> None:
    log = write(folder, "log.csv", ["t", *numbered("q"), *numbered("tau")], TIME, Q, TAU)
    (folder / "maps").mkdir()
    proposal = propose_mapping(folder / "arm.urdf", [log], folder / "maps")
    (folder / "maps" / "m.toml").write_text(proposal.text, encoding="utf-8")
    assert str(folder) not in proposal.text
    assert import_csv(folder / "maps" / "m.toml", folder / "run").robot.name == "arm"


def test_positions_that_no_unit_explains(folder: Path) -> None:
    log = write(folder, "log.csv", ["t", *numbered("q"), *numbered("tau")], TIME, 1e4 * Q, TAU)
    proposal, mapping = proposed(folder, log)
    assert (mapping["position"]["unit"], mapping["position"]["side"]) == ("?", "joint")
    assert "none keeps the positions inside the robot's limits (they go " in unwrapped(proposal)


def test_words_and_gaps_between_the_numbers(folder: Path) -> None:
    log = write(folder, "log.csv", ["t", *numbered("q"), *numbered("tau")], TIME, Q, TAU)
    lines = [f"{line},{line.count('-')}x" for line in log.read_text().splitlines()]
    lines[0] = lines[0].rpartition(",")[0] + ",remark"
    cells = lines[70].split(",")
    lines[70] = ",".join([cells[0], "nan", *cells[2:]])
    log.write_text("\n".join(lines), encoding="utf-8")
    proposal, mapping = proposed(folder, log)
    assert mapping["position"]["columns"] == numbered("q")
    assert mapping["position"]["unit"] == "rad"
    assert "remark: not one for each joint" in proposal.left_out


def test_what_is_no_log_is_said(folder: Path) -> None:
    for name, text, message in (
        ("empty.csv", "", r"holds no table: 0 lines"),
        ("return.csv", "q1,q2\rq3\n1,2\n", r"return.csv(, line 1)?.*"),
        ("quote.csv", 'q1,"q2\n' + 200_000 * "1", r"holds no table \(field larger .*is there a stray quote in it"),
        ("one.csv", "a\nb\nc\n", r"cells must be separated by one of"),
        ("few.csv", "a\n1\n2\n", r"has 2 rows of numbers; 20 at least"),
        ("comma.csv", "a;b\n1,5;2,5\n", r"decimal commas"),
        ("short.csv", "q1,q2,q3,tau1,tau2,tau3\n" + "1,2,3,4,5,6\n" * 5, r"has 5 rows of numbers; 20 at least"),
        (
            "ends.csv",
            "q1,q2,q3\n" + "1,2,3,\n" * 30,
            r"the first line has 3 cells and no other line as many; the second has 4,",
        ),
        ("other.csv", "x;y\n" + "1;2\n3;5\n" * 20, r"no columns of positions .* its columns are x, y;"),
    ):
        (folder / name).write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=message):
            proposed(folder, folder / name)
    (folder / "logs").mkdir()
    with pytest.raises(FileError, match=r"logs is a folder, and neither of a rosbag2 .* nor of a LeRobot dataset"):
        proposed(folder, folder / "logs")
    with pytest.raises(FileError, match=r"nowhere.csv cannot be read"):
        proposed(folder, folder / "nowhere.csv")


@pytest.mark.parametrize(
    ("name", "quantity", "number", "unit"),
    [
        ("Position1", "position", 1, None),
        ("q_0", "position", 0, None),
        ("position[5]", "position", 5, None),
        ("dq3 (rad/s)", "velocity", 3, "rad/s"),
        ("joint2_vel_deg", "velocity", 2, "deg"),
        ("TorqueCmptd4", "other", 4, None),
        ("tau_J1", "torque", 1, None),
        ("tau_ext_1", "other", 1, None),
        ("motor_current_A6", "current", 6, None),
        ("I2 [A]", "current", 2, "A"),
        ("Temperature_3", "other", 3, None),
        ("Joint_1", "unknown", 1, None),
        ("header.stamp.nsecs", "time", None, "ns"),
    ],
)
def test_names_as_they_are_in_the_wild(name: str, quantity: str, number: int | None, unit: str | None) -> None:
    read = read_column_name(name, ["joint_1", "joint_2"])
    assert (read.quantity, read.number, read.unit) == (quantity, number, unit)


def test_the_tx40_recording() -> None:
    data = data_folder("staubli_tx40")
    proposal = propose_mapping("tx40", [data / "pos_read_data.csv", data / "curr_data.csv"], data)
    mapping = tomllib.loads(proposal.text)
    assert (mapping["position"]["file"], mapping["torque"]["file"]) == ("pos_read_data.csv", "curr_data.csv")
    assert (mapping["position"]["unit"], mapping["position"]["side"]) == ("rad", "motor")
    assert (mapping["torque"]["unit"], mapping["torque"]["side"]) == ("A", "motor")  # its constants are 1 N·m/A
    assert [entry.key for entry in proposal.to_fill_in] == ["sample_rate_Hz"]


def test_the_tiago_recording_locks_what_it_lacks_and_takes_units_joint_by_joint() -> None:
    data = data_folder("tiago")
    logs = [data / f"tiago_{name}.csv" for name in ("effort", "position", "velocity")]
    proposal = propose_mapping(data / "tiago_48_schunk.urdf", logs, data)
    mapping = tomllib.loads(proposal.text)
    assert proposal.to_fill_in == ()
    assert len(mapping["lock"]) == 15  # wheels, casters, head and fingers; of these one mimics the other
    assert {"wheel_left_joint", "caster_back_right_2_joint", "gripper_finger_joint"} < set(mapping["lock"])
    assert mapping["position"]["columns"][:2] == ["- torso_lift_joint_position", "- arm_1_joint_position"]
    assert mapping["position"]["unit"] == ["m"] + 7 * ["rad"]
    assert states(proposal)["position.unit"] == "read"
    assert mapping["velocity"]["unit"] == ["m/s"] + 7 * ["rad/s"]
    assert mapping["torque"]["unit"] == ["N"] + 7 * ["N·m"]
    asked = propose_mapping(data / "tiago_48_schunk.urdf", logs, data, {"head_1_joint": 0.2})
    assert tomllib.loads(asked.text)["lock"][0] == "head_1_joint=0.2"


def test_units_are_asked_joint_by_joint_where_some_slide(folder: Path) -> None:
    text = (folder / "arm.urdf").read_text(encoding="utf-8")
    (folder / "arm.urdf").write_text(text.replace('"revolute"', '"prismatic"', 1), encoding="utf-8")
    header = [*numbered("q"), *numbered("tau")]
    proposal, mapping = proposed(folder, write(folder, "log.csv", header, 1e4 * Q, TAU))
    assert mapping["position"]["unit"] == ["?", "?", "?"]
    assert mapping["torque"]["unit"] == ["N", "N·m", "N·m"]
    assert f"one for each of {JOINTS[0]} (slides), {JOINTS[1]} (turns), {JOINTS[2]} (turns)" in unwrapped(proposal)
    with pytest.raises(FileError, match=r"still to be filled in: sample_rate_Hz, position\.unit;"):
        imported(folder, proposal)


def test_joints_called_by_numbers_are_known_by_the_word_beside_them(folder: Path) -> None:
    text = (folder / "arm.urdf").read_text(encoding="utf-8")
    for k, name in enumerate(JOINTS):
        text = text.replace(f'"{name}"', f'"joint_{k + 1}"')
    (folder / "arm.urdf").write_text(text, encoding="utf-8")
    header = ["t", *(f"joint_{k}.{kind}" for kind in ("position", "effort") for k in (3, 2))]
    proposal, mapping = proposed(folder, write(folder, "log.csv", header, TIME, Q[:, [2, 1]], TAU[:, [2, 1]]))
    assert mapping["lock"] == ["joint_1"]
    assert mapping["position"]["columns"] == ["joint_2.position", "joint_3.position"]
    assert imported(folder, proposal) == pytest.approx(Q[:, 1:], abs=1e-8)


def test_degrees_may_be_angles_of_motors_that_the_file_lacks(folder: Path) -> None:
    header = ["t", *numbered("q"), *numbered("tau")]
    proposal, mapping = proposed(folder, write(folder, "log.csv", header, TIME, 60.0 * Q, TAU))
    assert mapping["position"]["unit"] == "deg"
    assert states(proposal)["position.unit"] == "guessed"
    assert "or angles of motors before gears that the file lacks" in unwrapped(proposal)


def test_joints_that_no_number_tells_must_be_locked(folder: Path) -> None:
    columns = ["t", "q1", "q2", "tau1", "tau2"]
    log = write(folder, "log.csv", columns, TIME, Q[:, :2], TAU[:, :2])
    message = rf"one for each of the robot's 3 joints \({', '.join(JOINTS)}\); .*; lock the joints that the log lacks"
    with pytest.raises(FileError, match=message):
        proposed(folder, log)
    proposal = propose_mapping(folder / "arm.urdf", [log], folder, {JOINTS[2]: 0.5})
    (folder / "mapping.toml").write_text(proposal.text, encoding="utf-8")
    run = import_csv(folder / "mapping.toml", folder / "run")
    assert run.robot.joint_names == JOINTS[:2]
    assert run.robot.locked == ((JOINTS[2], 0.5),)


def test_the_kinova_recording() -> None:
    data = data_folder("kinova_gen3")
    logs = [data / "opti_traj_testing1.csv", data / "opti_traj_testing2.csv"]
    proposal = propose_mapping(data / "gen3.urdf", logs, data)
    mapping = tomllib.loads(proposal.text)
    assert mapping["time"] == {"column": "Time", "unit": "ms"}
    assert mapping["position"]["columns"][6] == "Position7"
    assert mapping["joint_torque"]["columns"][0] == "TorqueSm1"
    assert mapping["torque"]["columns"][0] == "TorqueCur1"
    assert (mapping["position"]["unit"], mapping["velocity"]["unit"]) == ("rad", "rad/s")
    assert proposal.to_fill_in == ()
    assert proposal.alike == ("opti_traj_testing2.csv",)
