"""Runs that have everything a format must keep: gaps, slow channels, feet, filters, events."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mcap.reader import make_reader
from pyarrow import parquet
from rerun.chunk import RrdReader
from rosbags.highlevel import AnyReader

from jointbench.cli.main import main
from jointbench.errors import FileError, FileNotWritten, FitError, MissingExtra
from jointbench.model import library_names, load_robot
from jointbench.model.kinematics import forward_kinematics
from jointbench.recording import Run, Samples, open_run, save_samples
from jointbench.results import convert, import_converted, is_converted
from jointbench.results.robot_description import moving_urdf
from jointbench.signals import BoardFilter
from jointbench.tests.recording import simulated_run

ROWS = 300


def recorded(directory: Path) -> Run:
    """Two boards of cobot6, of which one lost a frame and so 64 samples."""
    streams = simulated_run.boards()
    lost = next(k for k, sent in enumerate(streams[2].sent) if sent.samples and k > 3)
    del streams[2].sent[lost]
    return open_run(simulated_run.record(directory, streams))


def imported(directory: Path) -> Run:
    """A biped with feet, values of every size and missing ones among them, and times that do not begin at 0."""
    robot = load_robot("gorobot2")
    random = np.random.default_rng(5)
    shape = (ROWS, robot.n_joints)
    valid = random.random(shape) > 0.1

    def measured(scale: float) -> np.ndarray:
        return np.where(valid, scale * random.standard_normal(shape) * 10.0 ** random.integers(-9, 9, shape), np.nan)

    slow = np.full(shape, np.nan)
    slow[::64] = 300.0 + random.random((len(slow[::64]), robot.n_joints))
    board = BoardFilter(sections=(((0.1, 0.2, 0.1), (1.0, -0.7, 0.1)),), cic_order=2, window=1e-4, sample_period=1e-3)
    samples = Samples(
        time=17.3 + 1e-3 * np.arange(ROWS, dtype=np.float64),
        joint_names=robot.joint_names,
        motor_position=measured(1.0),
        link_position=None,
        motor_current=measured(2.0),
        motor_torque=measured(3.0),
        joint_torque=measured(4.0),
        play_tick=np.arange(ROWS, dtype=np.int64) - 10,
        valid=valid,
        board_filters=(board,) * robot.n_joints,
        sample_period=1e-3,
        temperature=slow,
        foot_force=random.standard_normal((ROWS, 2, 4)),
        joint_velocity=measured(5.0),
        foot_names=("left_foot", "right_foot"),
    )
    save_samples(directory, samples, {"robot": "gorobot2", "source": "made up", "repeats": 3})
    return open_run(directory)


def assert_same_bits(one: Samples, other: Samples) -> None:
    """Every array has the same bytes, everything else is equal."""
    for name in Samples.__dataclass_fields__:
        here, there = getattr(one, name), getattr(other, name)
        if isinstance(here, np.ndarray):
            assert here.dtype == there.dtype, name
            assert here.tobytes() == there.tobytes(), name
        else:
            assert here == there, name


BACK = ("csv", "parquet", "mcap")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {"recorded": recorded(folder / "recorded"), "imported": imported(folder / "imported")}


@pytest.mark.parametrize("of", ["recorded", "imported"])
@pytest.mark.parametrize("ending", BACK)
def test_a_run_comes_back_bit_for_bit(runs: dict[str, Run], of: str, ending: str, tmp_path: Path) -> None:
    run = runs[of]
    path = convert(run.path, tmp_path / f"out.{ending}")[0]
    assert is_converted(path)
    back = import_converted(path, tmp_path / "back")
    assert_same_bits(run.samples, back.samples)
    assert back.robot.joint_names == run.robot.joint_names
    assert back.warnings == run.warnings
    assert back.repeats == run.repeats
    assert back.sha256 == run.sha256  # the same recording: a model fitted to the one is not held out from the other
    again = import_converted(convert(back, tmp_path / f"again.{ending}")[0], tmp_path / "back2")
    assert_same_bits(run.samples, again.samples)
    assert again.ledger == run.ledger
    assert again.sha256 == run.sha256


@pytest.mark.parametrize("ending", BACK)
def test_a_loss_stays_a_loss_and_an_invalid_run_invalid(runs: dict[str, Run], ending: str, tmp_path: Path) -> None:
    run = runs["recorded"]
    assert not run.is_valid
    assert (~run.samples.valid[:, 1]).sum() == 64
    back = import_converted(convert(run, tmp_path / f"out.{ending}")[0], tmp_path / "back")
    assert not back.is_valid
    assert back.ledger == run.ledger
    assert run.sha256 in (tmp_path / "back" / "converted.json").read_text()


@pytest.mark.parametrize("ending", BACK)
def test_a_damaged_file_is_refused_by_name(runs: dict[str, Run], ending: str, tmp_path: Path) -> None:
    path = convert(runs["recorded"], tmp_path / f"out.{ending}")[0]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FileError, match=r"out\."):
        import_converted(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("ending", ["mcap", "parquet"])
def test_what_is_no_such_file_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{ending}"
    for content in (b"", b"hello", b"hello" * 1000):
        path.write_bytes(content)
        with pytest.raises(FileError, match=f"is no {'MCAP' if ending == 'mcap' else 'Parquet'}"):
            import_converted(path)


def test_a_csv_of_others_needs_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="is no run that Jointbench converted; a mapping says"):
        import_converted(tmp_path / "log.csv")


def test_a_changed_csv_is_told(runs: dict[str, Run], tmp_path: Path) -> None:
    path, beside = convert(runs["recorded"], tmp_path / "out.csv")
    assert json.loads(beside.read_text())["url"] == "out.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(FileError, match=f"ends after {len(lines) - 2} of the {len(lines) - 1} rows"):
        import_converted(path)
    path.write_text("".join([lines[0].replace("j1.valid", "valid"), *lines[1:]]))
    with pytest.raises(FileError, match="its columns are not those that out"):
        import_converted(path)


def test_a_filter_that_lacks_a_coefficient_leaves_nothing_half_made(runs: dict[str, Run], tmp_path: Path) -> None:
    path, beside = convert(runs["recorded"], tmp_path / "out.csv")
    document = json.loads(beside.read_text())
    document["tableSchema"]["jointbench:about"]["board_filters"][0]["sections"][0][0].pop()
    beside.write_text(json.dumps(document))
    with pytest.raises(FileError, match="a section of a filter has not three coefficients on either side"):
        import_converted(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_changed_values_do_not_come_back_as_the_run(runs: dict[str, Run], tmp_path: Path) -> None:
    text = convert(runs["recorded"], tmp_path / "out.csv")[0]
    lines = text.read_text().splitlines(keepends=True)
    cells = lines[300].split(",")
    assert lines[0].split(",")[3] == "j1.motor_position_rad"
    cells[3] = repr(float(cells[3]) + 1e-9)
    text.write_text("".join([*lines[:300], ",".join(cells), *lines[301:]]))
    table = convert(runs["recorded"], tmp_path / "out.parquet")[0]
    read = parquet.read_table(table)
    valid = read.column("j1.valid").to_pylist()
    valid[300] = not valid[300]
    place = read.schema.get_field_index("j1.valid")
    parquet.write_table(read.set_column(place, read.schema.field(place), pa.array(valid)), table)
    for path in (text, table):
        with pytest.raises(FileError, match=r"values are no longer those of run recorded, .*by a mapping"):
            import_converted(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_what_another_program_writes_anew_unchanged_comes_back(runs: dict[str, Run], tmp_path: Path) -> None:
    path = convert(runs["imported"], tmp_path / "out.parquet")[0]
    parquet.write_table(parquet.read_table(path), path, compression="gzip", row_group_size=77)
    assert_same_bits(import_converted(path, tmp_path / "back").samples, runs["imported"].samples)


def test_a_file_that_is_not_there_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "run.csv")]) == 2
    assert f"{tmp_path / 'run.csv'} cannot be read: there is no such file" in capsys.readouterr().err


def test_nothing_is_written_over_or_left_half_done(runs: dict[str, Run], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(FileNotWritten, match="exists; a file is never overwritten"):
        convert(runs["recorded"], tmp_path / "a.csv")
    with pytest.raises(FitError, match=r"its ending tells no format; give one of mcap \(.mcap\); parquet"):
        convert(runs["recorded"], tmp_path / "a.xlsx")
    with pytest.raises(FitError, match="format 'xlsx' is not known; the formats are mcap"):
        convert(runs["recorded"], tmp_path / "a.xlsx", "xlsx")
    with pytest.raises(FitError, match=r"b\.csv: its ending is that of csv, .* is to be mcap; name it b\.mcap, or"):
        convert(runs["recorded"], tmp_path / "b.csv", "mcap")
    (tmp_path / "b.csv-metadata.json").write_text("mine")
    with pytest.raises(FileNotWritten, match=r"b\.csv-metadata\.json exists; a file"):
        convert(runs["recorded"], tmp_path / "b.csv")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.csv": "mine", "b.csv-metadata.json": "mine",
    }  # fmt: skip


@pytest.mark.parametrize(("ending", "package"), [("parquet", "pyarrow"), ("mcap", "mcap"), ("rrd", "rerun")])
def test_a_missing_extra_says_what_to_type(
    runs: dict[str, Run], ending: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jointbench.extras as extras

    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == package else name)
    extra = "rerun" if ending == "rrd" else "convert"
    with pytest.raises(MissingExtra, match=rf"needs {package}, .*pip install 'jointbench\[{extra}\]'"):
        convert(runs["recorded"], tmp_path / f"out.{ending}")


def test_on_the_command_line(runs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, back = tmp_path / "run.parquet", tmp_path / "back"
    assert main(["convert", str(runs["recorded"].path), "-o", str(out), "--json", str(tmp_path / "said.json")]) == 0
    assert "657 samples of 2 joints, 64 of them missing for a joint and kept so" in capsys.readouterr().out
    assert json.loads((tmp_path / "said.json").read_text())["files"] == [str(out)]
    assert main(["import", str(out), "--out", str(back)]) == 1  # the run is invalid, as it was
    assert "invalid: 64 of" in capsys.readouterr().out
    assert_same_bits(open_run(back).samples, runs["recorded"].samples)
    assert main(["convert", str(back)]) == 2
    assert "give a format, --to mcap|parquet|csv|rerun" in capsys.readouterr().err


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
