"""Logs in Parquet, MCAP and rosbag2, written by each format's own writer, imported by a mapping."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mcap.writer import Writer as McapWriter
from pyarrow import parquet
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from jointbench.cli.main import main
from jointbench.errors import FileError, MissingExtra
from jointbench.model import load_robot
from jointbench.recording import import_csv, open_run
from jointbench.recording.mapping import LogFile
from jointbench.recording.parquet_log import read_parquet_table

ROWS = 200
JOINTS = load_robot("cobot6").joint_names
STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
START = 1_700_000_000_000_000_000

MAPPING = """
version = 1
robot = "cobot6"

[[files]]
path = "{path}"
{more}
[time]
column = "{time}"
unit = "s"

[position]
columns = {position}
unit = "rad"
side = "joint"

[velocity]
columns = {velocity}
unit = "rad/s"
side = "joint"

[torque]
columns = {effort}
unit = "N·m"
side = "joint"
"""


@pytest.fixture(scope="module")
def log() -> dict[str, np.ndarray]:
    """A motion whose velocities are its positions' own."""
    t = 0.004 * np.arange(ROWS)
    rate = 2.0 * np.pi * (0.5 + 0.1 * np.arange(6))
    phase = np.outer(t, rate)
    low, high = load_robot("cobot6").position_limits.T
    reach = 0.3 * (high - low)
    noise = np.random.default_rng(2).standard_normal((ROWS, 6))
    return {
        "time": t,
        "position": (low + high) / 2.0 + reach * np.sin(phase),
        "velocity": reach * rate * np.cos(phase),
        "effort": 20.0 * noise,
    }


def joint_state(log: dict[str, np.ndarray], row: int, order: list[int], **fields: Any) -> bytes:
    seconds, nanoseconds = divmod(START + round(log["time"][row] * 1e9), 10**9)
    stamp = STORE.types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=nanoseconds)
    values = {name: log[name][row, order] for name in ("position", "velocity", "effort")} | fields
    header = STORE.types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    message = STORE.types[JOINT_STATE](header=header, name=[JOINTS[k] for k in order], **values)
    return bytes(STORE.serialize_cdr(message, JOINT_STATE))


def messages(log: dict[str, np.ndarray], **fields: Any) -> list[tuple[int, bytes]]:
    """One a row; the order of joints changes from message to message, as a message may have it."""
    orders = [list(range(6)), [5, 0, 1, 2, 3, 4]]
    return [
        (START + 7 + round(t * 1e9), joint_state(log, k, orders[k % 2], **fields)) for k, t in enumerate(log["time"])
    ]


def write_rosbag2(
    folder: Path, plugin: StoragePlugin, sent: list[tuple[int, bytes]], topic: str = "/joint_states"
) -> Path:
    path = folder / "bag"
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        states = writer.add_connection(topic, JOINT_STATE, typestore=STORE)
        words = writer.add_connection("/words", "std_msgs/msg/String", typestore=STORE)
        said = STORE.types["std_msgs/msg/String"](data="hello")
        writer.write(words, START, STORE.serialize_cdr(said, "std_msgs/msg/String"))
        for time, data in sent:
            writer.write(states, time, data)
    return path


def write_sqlite(folder: Path, sent: list[tuple[int, bytes]]) -> Path:
    return write_rosbag2(folder, StoragePlugin.SQLITE3, sent)


def write_rosbag2_mcap(folder: Path, sent: list[tuple[int, bytes]]) -> Path:
    return write_rosbag2(folder, StoragePlugin.MCAP, sent)


def write_mcap(folder: Path, sent: list[tuple[int, bytes]]) -> Path:
    path = folder / "log.mcap"
    with path.open("wb") as file:
        writer = McapWriter(file)
        writer.start(profile="ros2")
        text = STORE.generate_msgdef(JOINT_STATE, ros_version=2)[0].encode()
        channel = writer.register_channel("/joint_states", "cdr", writer.register_schema(JOINT_STATE, "ros2msg", text))
        for time, data in sent:
            writer.add_message(channel, time, data, time)
        writer.finish()
    return path


def write_parquet(folder: Path, log: dict[str, np.ndarray]) -> Path:
    path = folder / "log.parquet"
    columns = {"time_s": log["time"]}
    for name in ("position", "velocity", "effort"):
        columns |= {f"{name}_{k + 1}": values for k, values in enumerate(log[name].T)}
    parquet.write_table(pa.table(columns | {"note": ["x"] * ROWS}), path)
    return path


def write_mapping(log: Path, time: str = "stamp", more: str = "", column: str = "{joint}.{name}") -> Path:
    columns = {
        name: str([column.format(joint=joint, name=name, k=k + 1) for k, joint in enumerate(JOINTS)])
        for name in ("position", "velocity", "effort")
    }
    path = log.parent / "mapping.toml"
    path.write_text(MAPPING.format(path=log.name, time=time, more=more, **columns), encoding="utf-8")
    return path


@pytest.mark.parametrize("write", [write_sqlite, write_rosbag2_mcap, write_mcap])
@pytest.mark.parametrize("time", ["stamp", "log_time"])
def test_joint_states_become_a_run(
    write: Callable[..., Path], time: str, log: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = write(tmp_path, messages(log))
    samples = import_csv(write_mapping(path, time), tmp_path / "run").samples
    assert samples.motor_position.tobytes() == log["position"].tobytes()
    assert samples.motor_torque is not None
    assert samples.motor_torque.tobytes() == log["effort"].tobytes()
    assert samples.sample_period == pytest.approx(0.004, rel=1e-6)
    assert samples.time[0] == 0.0
    assert samples.valid.all()


@pytest.mark.parametrize("write", [write_sqlite, write_mcap])
def test_a_bag_is_proposed_imported_and_taken_in_the_place_of_another(
    write: Callable[..., Path], log: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mapping = write(tmp_path, messages(log)), tmp_path / "m.toml"
    assert main(["import", "--robot", "cobot6", "--log", str(path), "--propose", str(mapping)]) == 0
    assert 'topic = "/joint_states"' in mapping.read_text()
    assert tomllib.loads(mapping.read_text())["position"]["columns"] == [f"{joint}.position" for joint in JOINTS]
    capsys.readouterr()
    assert main(["import", str(mapping), "--out", str(tmp_path / "run")]) in (0, 1)  # its torques are noise
    assert "200 samples of 6 joints over 0.796 s, 0 marked invalid" in capsys.readouterr().out
    assert main(["import", str(mapping), "--data", str(path), "--out", str(tmp_path / "run2")]) in (0, 1)


def test_joints_that_a_bag_lacks_are_held_still(
    log: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = [(START + round(t * 1e9), joint_state(log, k, [4, 0, 1, 2, 3])) for k, t in enumerate(log["time"])]
    path = write_sqlite(tmp_path, sent)
    assert main(["import", "--robot", "cobot6", str(path), "--out", str(tmp_path / "run")]) in (0, 1)
    assert "lock = j6: no column names them, so they are taken to stand still: j6 at 0" in capsys.readouterr().out
    run = open_run(tmp_path / "run")
    assert run.robot.locked == (("j6", 0.0),)
    assert run.samples.joint_names == JOINTS[:5]
    assert run.samples.motor_position.tobytes() == log["position"][:, :5].tobytes()


def test_a_parquet_is_proposed_and_imported(
    log: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mapping = write_parquet(tmp_path, log), tmp_path / "m.toml"
    assert main(["import", "--robot", "cobot6", "--log", str(path), "--propose", str(mapping)]) == 0
    assert "position.columns = position_1 … position_6" in capsys.readouterr().out
    samples = import_csv(mapping, tmp_path / "run").samples
    assert samples.motor_position.tobytes() == log["position"].tobytes()


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["ns", "us"])
def test_timestamps_of_a_parquet_tell_the_time(
    zone: str | None, unit: str, log: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path, mapping = write_parquet(tmp_path, log), tmp_path / "m.toml"
    moments = (np.int64(START) + np.round(1e9 * log["time"]).astype(np.int64)).astype("datetime64[ns]")
    table = parquet.read_table(path).drop_columns(["time_s"])
    index = pa.array(moments.astype(f"datetime64[{unit}]"), pa.timestamp(unit, zone))
    parquet.write_table(table.append_column("__index_level_0__", index), path)  # as pandas names it
    assert main(["import", "--robot", "cobot6", "--log", str(path), "--propose", str(mapping)]) == 0
    assert tomllib.loads(mapping.read_text())["time"] == {"column": "__index_level_0__", "unit": "s"}
    samples = import_csv(mapping, tmp_path / "run").samples
    assert samples.time[0] == 0.0
    assert samples.time == pytest.approx(log["time"], rel=1e-12)


def test_a_missing_timestamp_is_a_row_without_a_time(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = write_parquet(tmp_path, log)
    moments = np.datetime64(START, "ns") + np.round(1e9 * log["time"]).astype("timedelta64[ns]")
    moments[0] = moments[5] = np.datetime64("NaT")
    parquet.write_table(parquet.read_table(path).append_column("moment", pa.array(moments)), path)
    values = read_parquet_table(path, LogFile("log.parquet"), ["moment"]).column("moment")
    assert np.flatnonzero(np.isnan(values)).tolist() == [0, 5]
    assert values[1:5] == pytest.approx([0.0, 0.004, 0.008, 0.012], abs=1e-15)


def test_a_topic_may_tell_nothing_but_the_time(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    write_mcap(tmp_path, messages(log))
    mapping = write_mapping(write_parquet(tmp_path, log), column="{name}_{k}")
    text = mapping.read_text().replace("[time]\n", '[[files]]\npath = "log.mcap"\n\n[time]\nfile = "log.mcap"\n')
    for name in ("position", "velocity", "torque"):
        text = text.replace(f"[{name}]\n", f'[{name}]\nfile = "log.parquet"\n')
    mapping.write_text(text, encoding="utf-8")
    samples = import_csv(mapping, tmp_path / "run").samples
    assert samples.motor_position.tobytes() == log["position"].tobytes()
    assert samples.time == pytest.approx(log["time"], abs=1e-9)


def test_a_folder_of_a_bag_and_the_files_in_it_are_told_apart(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    bag = write_rosbag2_mcap(tmp_path, messages(log))
    inside = next(bag.glob("*.mcap"))
    mapping = write_mapping(inside)  # beside the bag's own metadata.yaml
    assert import_csv(mapping, tmp_path / "one").samples.n_samples == ROWS
    assert import_csv(mapping, tmp_path / "two", data=bag).samples.n_samples == ROWS
    other = tmp_path / "other"
    bag.rename(other)
    mapping = write_mapping(tmp_path / "bag")
    run = import_csv(mapping, tmp_path / "three", data=other)  # takes the place of a bag that is gone
    assert run.provenance["files"][0]["path"] == "other, topic /joint_states"


def test_lost_messages_stay_lost(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    sent = messages(log)
    path = write_mcap(tmp_path, sent[:50] + sent[60:])
    with pytest.raises(FileError, match=r"10 rows are missing in 1 gap; .* \(message 49\).*allow_gaps = true"):
        import_csv(write_mapping(path))
    mapping = write_mapping(path)
    mapping.write_text("allow_gaps = true\n" + mapping.read_text(), encoding="utf-8")
    samples = import_csv(mapping, tmp_path / "run").samples
    assert samples.valid.all(axis=1).tolist() == [True] * 50 + [False] * 10 + [True] * 140
    assert np.isnan(samples.motor_position[50:60]).all()


def test_what_is_missing_is_named_with_what_there_is(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = write_sqlite(tmp_path, messages(log, effort=np.empty(0)))
    with pytest.raises(FileError, match=r"has no column 'j1\.effort'; its columns are log_time, stamp, j1\.position"):
        import_csv(write_mapping(path))
    with pytest.raises(FileError, match=r"has no topic '/states'; its topics: /joint_states \(sensor_msgs/msg"):
        import_csv(write_mapping(path, more='topic = "/states"'))
    with pytest.raises(FileError, match=r"has no column 'data\[0\]\.position'"):
        import_csv(write_mapping(path, more='topic = "/words"', column="data[0].{name}"))


def test_a_bag_without_joint_states_asks_for_the_topic(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = write_rosbag2(tmp_path, StoragePlugin.SQLITE3, messages(log), topic="/arm")
    assert import_csv(write_mapping(path), tmp_path / "run").samples.n_samples == ROWS  # the only one
    with Writer(tmp_path / "two", version=9) as writer:
        for topic in ("/left", "/right"):
            states = writer.add_connection(topic, JOINT_STATE, typestore=STORE)
            for time, data in messages(log):
                writer.write(states, time, data)
    with pytest.raises(FileError, match="has 2 topics of joint states; name one by topic"):
        import_csv(write_mapping(tmp_path / "two"))


def test_time_that_goes_back_is_refused_by_message(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    sent = messages(log)
    back = [(sent[k][0], sent[k - 1 if k == 80 else k][1]) for k in range(ROWS)]
    with pytest.raises(FileError, match=r"message 80: time .* is there twice"):
        import_csv(write_mapping(write_mcap(tmp_path, back)))


def test_positions_that_are_none_are_refused(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    sent = messages(log)
    sent[30] = (sent[30][0], joint_state(log, 30, [0, 1, 2]))
    with pytest.raises(FileError, match=r"message 30, column 'j4\.position': nan is not a measurement"):
        import_csv(write_mapping(write_mcap(tmp_path, sent)))


def test_parquet_errors(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = write_parquet(tmp_path, log)
    by_number = "{name}_{k}"
    with pytest.raises(FileError, match="has no column 'time'; its columns are time_s, position_1"):
        import_csv(write_mapping(path, "time", column=by_number))
    with pytest.raises(FileError, match=r"'note' holds string; only numbers and moments .*: name another"):
        import_csv(write_mapping(path, "note", column=by_number))


@pytest.mark.parametrize("name", ["log.mcap", "log.db3", "log.bag", "log.parquet"])
def test_what_is_no_such_file_is_refused(name: str, tmp_path: Path) -> None:
    for content in (b"", b"hello" * 100):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError, match=f"{name} is no (bag of ROS|Parquet file), or damaged"):
            import_csv(write_mapping(tmp_path / name))


def test_a_missing_extra_says_what_to_type(
    log: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jointbench.extras as extras

    path = write_mcap(tmp_path, messages(log))
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"a bag needs rosbags, .*pip install 'jointbench\[convert\]'"):
        import_csv(write_mapping(path))
