"""Each format read by its own reader, which knows nothing of Jointbench."""

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from pyarrow import parquet
from rerun.chunk import RrdReader
from rosbags.highlevel import AnyReader

from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.recording import Run, save_samples
from jointbench.results import convert
from jointbench.results.moving_urdf import moving_urdf
from jointbench.robot import library_names, load_robot
from jointbench.tests.results.formats_runs import imported, recorded


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded(tmp_path_factory.mktemp("recorded") / "run")


@pytest.fixture(scope="module")
def biped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return imported(tmp_path_factory.mktemp("imported") / "run")


@pytest.fixture(scope="module")
def mcap(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convert(run, tmp_path_factory.mktemp("mcap") / "run.mcap")[0]


def test_rosbags_reads_the_joint_states_of_an_mcap(run: Run, mcap: Path) -> None:
    samples = run.samples
    with AnyReader([mcap]) as reader:
        kinds = {each.topic: each.msgtype for each in reader.connections}
        of_all = [each for each in reader.connections if each.topic == "/joint_states"]
        messages: list[tuple[int, Any]] = [
            (time, reader.deserialize(data, each.msgtype)) for each, time, data in reader.messages(of_all)
        ]
    assert kinds == {
        "/robot_description": "std_msgs/msg/String",
        "/joint_states": "sensor_msgs/msg/JointState",
        "/events": "rcl_interfaces/msg/Log",
        "/joints/j1": "jointbench_msgs/msg/JointSample",
        "/joints/j2": "jointbench_msgs/msg/JointSample",
    }
    assert samples.motor_torque is not None
    rows = np.flatnonzero(samples.valid.any(axis=1))
    assert len(messages) == len(rows)
    for row, (time, message) in zip(rows, messages, strict=True):
        known = samples.valid[row]
        assert message.name == [name for name, there in zip(samples.joint_names, known, strict=True) if there]
        assert message.position.tobytes() == samples.motor_position[row, known].tobytes()
        assert message.effort.tobytes() == samples.motor_torque[row, known].tobytes()
        assert not len(message.velocity)
        assert time == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
    assert {len(message.name) for _, message in messages} == {1, 2}  # the lost frame's joint is not there


def test_rosbags_reads_every_channel_of_an_mcap(run: Run, mcap: Path) -> None:
    with AnyReader([mcap]) as reader:
        of_j2 = [each for each in reader.connections if each.topic == "/joints/j2"]
        messages: list[Any] = [reader.deserialize(data, each.msgtype) for each, _, data in reader.messages(of_j2)]
    samples = run.samples
    assert [message.valid for message in messages] == samples.valid[:, 1].tolist()
    for name in ("motor_position", "link_position", "motor_current", "motor_torque", "joint_torque"):
        measured = np.array([getattr(message, name) for message in messages])
        assert measured.tobytes() == getattr(samples, name)[:, 1].tobytes(), name
    assert np.isnan([message.temperature for message in messages]).all()
    assert [message.play_tick for message in messages] == samples.play_tick.tolist()


def test_mcap_has_feet_and_times_below_zero(biped: Run, tmp_path: Path) -> None:
    from dataclasses import replace

    early = replace(biped.samples, time=biped.samples.time - 20.0)
    save_samples(tmp_path / "early", early, {"robot": "gorobot2"})
    path = convert(tmp_path / "early", tmp_path / "run.mcap")[0]
    with AnyReader([path]) as reader:
        left = [each for each in reader.connections if each.topic == "/feet/left_foot"]
        messages: list[Any] = [reader.deserialize(data, each.msgtype) for each, _, data in reader.messages(left)]
    assert biped.samples.foot_force is not None
    assert [each.rear_left for each in messages] == biped.samples.foot_force[:, 0, 3].tolist()
    assert messages[0].stamp.nanosec == pytest.approx(0.3e9, abs=2)


def test_mcap_carries_the_files_of_the_run(run: Run, mcap: Path) -> None:
    with mcap.open("rb") as file:
        reader = make_reader(file)
        attached = {each.name: each.data for each in reader.iter_attachments()}
        told = next(each.metadata for each in reader.iter_metadata() if each.name == "jointbench")
        events = [(message.log_time, message.data) for _, _, message in reader.iter_messages(topics=["/events"])]
        summary = reader.get_summary()
    for name in ("run.toml", "robot.toml", "schema.json", "events.jsonl", "result.json"):
        assert attached[name] == (run.path / name).read_bytes()
    assert told["sha256"] == hashlib.sha256((run.path / "frames.bin").read_bytes()).hexdigest()
    assert told["ledger"].startswith("invalid: 64 of")
    assert summary is not None
    assert summary.statistics is not None
    assert summary.statistics.message_count == sum(summary.statistics.channel_message_counts.values())
    # Tick 5000 is sample 0, and "armed" was noted 100 ms before it; a frame is under way for one tick.
    zero = int(told["log_time_of_run_time_0_ns"])
    assert [(time - zero) * 1e-9 for time, _ in events] == pytest.approx([-0.1, 1.0], abs=1.5e-3)
    assert b"armed node=1" in events[0][1]


def test_pyarrow_reads_units_and_nulls(run: Run, tmp_path: Path) -> None:
    path = convert(run, tmp_path / "run.parquet")[0]
    table = parquet.read_table(path)
    assert table.num_rows == run.samples.n_samples
    assert table.schema.field("j1.motor_position_rad").metadata == {b"unit": b"rad"}
    assert table.schema.field("j2.joint_torque_Nm").metadata == {b"unit": "N·m".encode()}
    assert table.column("j2.motor_current_A").null_count == 64
    assert table.column("j2.valid").to_pylist().count(False) == 64


def test_pyarrow_finds_no_value_where_none_was_due(biped: Run, tmp_path: Path) -> None:
    table = parquet.read_table(convert(biped, tmp_path / "run.parquet")[0])
    slow = table.column(f"{biped.samples.joint_names[0]}.temperature_K")
    assert slow.null_count == biped.samples.n_samples - 5  # one sample in 64 has one
    force = table.column("left_foot.rear_right_force_N")
    assert biped.samples.foot_force is not None
    assert force.to_pylist() == biped.samples.foot_force[:, 0, 2].tolist()


def test_python_reads_the_csv_to_the_last_digit(biped: Run, tmp_path: Path) -> None:
    path, beside = convert(biped, tmp_path / "run.csv")
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    joint = biped.samples.joint_names[3]
    velocity = np.array(columns[f"{joint}.joint_velocity_rad_s"], dtype=np.float64)
    assert biped.samples.joint_velocity is not None
    assert velocity.tobytes() == biped.samples.joint_velocity[:, 3].tobytes()
    assert set(columns[f"{joint}.valid"]) == {"0", "1"}
    described = json.loads(beside.read_text())
    assert described["@context"] == "http://www.w3.org/ns/csvw"
    assert [column["name"] for column in described["tableSchema"]["columns"]] == head


def test_rerun_reads_a_robot_that_moves_and_its_currents(run: Run, tmp_path: Path) -> None:
    path = convert(run, tmp_path / "run.rrd")[0]
    reader = RrdReader(path)
    assert len(reader.recordings()) == len(reader.blueprints()) == 1
    series: dict[str, list[tuple[float, Any]]] = {}
    entities: Counter[str] = Counter()
    for chunk in reader.stream().to_chunks():
        entities[chunk.entity_path] += 1
        batch = chunk.to_record_batch().to_pydict()
        for name in ("Scalars:scalars", "Transform3D:quaternion"):
            if name in batch and "run_time" in batch:
                times = [time.total_seconds() for time in batch["run_time"]]
                values = [each[0] for each in batch[name]]
                series.setdefault(f"{chunk.entity_path}|{name}", []).extend(zip(times, values, strict=True))
    assert any(name.startswith("/cobot6/visual_geometries/forearm") for name in entities)
    samples = run.samples
    assert samples.motor_current is not None
    current = sorted(series["/joints/j2/motor_current_A|Scalars:scalars"])
    known = np.isfinite(samples.motor_current[:, 1])
    assert [value for _, value in current] == samples.motor_current[known, 1].tolist()
    assert [time for time, _ in current] == pytest.approx(samples.time[known].tolist(), abs=1e-8)
    turns = np.array([value for _, value in sorted(series["/transforms/j1|Transform3D:quaternion"])])
    rotations, _ = forward_kinematics(run.robot, np.pad(samples.motor_position[:, :1], ((0, 0), (0, 5))))
    x, y, z, w = turns.T
    assert 1.0 - 2.0 * (y * y + z * z) == pytest.approx(rotations[:, 0, 0, 0], abs=1e-6)
    assert 2.0 * (x * y + z * w) == pytest.approx(rotations[:, 0, 1, 0], abs=1e-6)


@pytest.mark.parametrize("name", library_names())
def test_the_urdf_moves_as_the_robot_does(name: str, tmp_path: Path) -> None:
    robot = load_robot(name)
    (tmp_path / "robot.urdf").write_text(moving_urdf(robot), encoding="utf-8")
    read = load_robot(tmp_path / "robot.urdf")
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (5, robot.n_joints))
    assert read.joint_names == robot.joint_names
    for here, there in zip(forward_kinematics(robot, q), forward_kinematics(read, q), strict=True):
        assert here == pytest.approx(there, abs=1e-12)
