"""The doctor finds every damage that is done to a run, names its place, and calls a sound run sound."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.bench import Facts, default_settings, motor_settings
from jointbench.cli.main import main
from jointbench.errors import RunError
from jointbench.model import Robot, load_robot
from jointbench.recording import Diagnosis, Finding, Recorder, Samples, examine, open_run, save_samples
from jointbench.recording.contents import disagreements
from jointbench.recording.decode import read_records
from jointbench.recording.run import boards_of
from jointbench.recording.timeline import RESIDUAL_LIMIT_US
from jointbench.tests.bench.wire import SimulatedBoard
from jointbench.tests.recording.simulated_run import boards, feed, provenance, record, seal_again, without_seal
from jointwire import CHANNEL_BY_NAME, JOINT_BOARD_CHANNELS, Schema, State, schema_hash, schema_text


def finding(diagnosis: Diagnosis, name: str) -> Finding:
    return next(each for each in diagnosis.findings if each.name == name)


def wrong(diagnosis: Diagnosis) -> set[str]:
    return {each.name for each in diagnosis.findings if not each.ok}


def spoil(path: Path, position: int, bits: int = 0x10) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= bits
    path.write_bytes(data)


def test_a_sound_run_is_sound(tmp_path: Path) -> None:
    diagnosis = examine(record(tmp_path / "run"))
    assert diagnosis.is_sound, diagnosis.text()
    assert diagnosis.verdict == "sound: all 11 checks passed"
    assert diagnosis.usable == "1314 of 1314 samples (100.00%) of 2 joints over 0.656 s can be read, and used"
    assert diagnosis.text().endswith("Next: nothing needs doing.")


def test_injected_faults_are_named_and_are_no_damage(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", provenance(streams := boards())) as recorder:
        feed(recorder, streams)
        recorder.event(6_000_000, "faults", nodes=(1, 2), counts={"rx.drop": 12, "rx.flip": 1, "tx.lose": 0})
        recorder.event(6_000_000, "faults", nodes=(9,), counts={"rx.stall": 2})
    diagnosis = examine(tmp_path / "run")
    assert diagnosis.is_sound
    said = "j1, j2: rx.drop 12 times, rx.flip once, tx.lose never; node 9: rx.stall 2 times"
    assert finding(diagnosis, "injected faults").what == said


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"event": "faults"}', '{"event": "faults", "nodes": 1, "counts": 2}']
)
def test_an_event_that_is_damaged_tells_of_no_faults(tmp_path: Path, line: str) -> None:
    path = record(tmp_path / "run")
    with (path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    assert "injected faults" not in {each.name for each in examine(path).findings}


def test_damage_inside_is_named_with_its_bytes_and_times(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    records = list(read_records((path / "frames.bin").read_bytes(), []))
    starts = np.cumsum([0, *(each.size for each in records)])
    for index in (6, 12):
        spoil(path / "frames.bin", int(starts[index]) + 25)
    diagnosis = examine(path)
    assert wrong(diagnosis) == {"frames.bin", "SHA-256 of frames.bin", "ledger"}
    found = finding(diagnosis, "frames.bin")
    assert "2 places are damaged" in found.what
    for index in (6, 12):
        at = [f"{(records[near].time_us - records[0].time_us) * 1e-6:.3f} s" for near in (index - 1, index + 1)]
        assert f"bytes {starts[index]} to {starts[index + 1] - 1}, {at[0]} to {at[1]}" in found.where
    assert "counted again it says: invalid: " in finding(diagnosis, "ledger").what
    assert diagnosis.usable.startswith("nothing as it is: it was changed, and is not opened; ")


@pytest.mark.parametrize("seed", range(5))
def test_a_torn_end_is_named_wherever_it_is_torn(tmp_path: Path, seed: int) -> None:
    path = record(tmp_path / "run")
    whole = (path / "frames.bin").read_bytes()
    records = list(read_records(whole, []))
    ends = np.cumsum([each.size for each in records])
    length = int(np.random.default_rng(seed).integers(ends[4], len(whole)))
    (path / "frames.bin").write_bytes(whole[:length])
    kept = int(np.searchsorted(ends, length, side="right"))
    missing_ms = (records[-1].time_us - records[kept - 1].time_us) / 1000.0
    torn = length - int(ends[kept - 1])
    assert torn > 0  # else the seed tests the cut between records, which is the next test
    diagnosis = examine(path)
    found = finding(diagnosis, "end of frames.bin")
    assert found.what.startswith(f"torn in the middle of a record: {torn} bytes are left out")
    assert found.what.endswith(f", and at most {missing_ms:.1f} ms of data are missing")
    assert f"from byte {ends[kept - 1]}" in found.where
    (path / "result.json").unlink()
    unfinished = examine(path)
    assert {"end of frames.bin", "result.json", "ledger"} <= wrong(unfinished)
    assert finding(unfinished, "end of frames.bin").what.endswith(
        "at most 100 ms of data are missing, as where the recorder was killed or the power cut"
    )
    assert "leaves the torn end out" in unfinished.text()


def test_a_file_cut_between_records_is_found_by_its_count(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    whole = (path / "frames.bin").read_bytes()
    *_, last = read_records(whole, [])
    (path / "frames.bin").write_bytes(whole[: -last.size])
    diagnosis = examine(path)
    assert finding(diagnosis, "end of frames.bin").what == "cut off: its last 1 records are missing"


@pytest.mark.parametrize("by", ["Ctrl-C", "SIGHUP: its terminal is gone", "StopAsked: stopped by bob (monitor)"])
def test_a_run_that_somebody_stopped_is_no_damage(tmp_path: Path, by: str) -> None:
    streams = boards()
    recorder = Recorder(tmp_path / "run", provenance(streams))
    feed(recorder, streams)
    recorder.close(f"stopped by {by}")
    diagnosis = examine(tmp_path / "run")
    assert diagnosis.is_sound
    what = finding(diagnosis, "result.json").what
    assert what == f"the run was stopped by {by}; what was recorded until then is here"
    assert "record the motion again" not in diagnosis.text()
    assert diagnosis.text().endswith("Next: nothing needs doing.")


def test_a_run_that_lost_samples_is_whole_but_invalid(tmp_path: Path) -> None:
    streams = boards()
    del streams[2].sent[5]
    diagnosis = examine(record(tmp_path / "run", streams))
    assert wrong(diagnosis) == {"ledger"}
    assert finding(diagnosis, "ledger").what.startswith("invalid: 64 of 1314 samples lost, 4.871% is more than")
    assert "record the motion again" in diagnosis.text()


def _event(text: str) -> Callable[[Path], object]:
    return lambda path: (path / "events.jsonl").write_text(text)


GOOD = '{"time_us": 5, "event": "a"}\n'


@pytest.mark.parametrize(
    ("spoil_it", "name", "words"),
    [
        (lambda path: (path / "run.toml").unlink(), "run.toml", "it holds no run.toml"),
        (lambda path: (path / "run.toml").write_text("version = 9"), "run.toml", "version = 9; this release reads 1"),
        (lambda path: (path / "run.toml").write_text("version = 1\nboard = [1]"), "run.toml", "lack node or joint"),
        (lambda path: (path / "robot.toml").write_text("x ="), "robot.toml", "robot.toml"),
        (lambda path: (path / "schema.json").unlink(), "schema.json", "cannot be read"),
        (lambda path: spoil(path / "schema.json", 200), "schema.json", "run.toml says|cannot be read"),
        (lambda path: (path / "frames.bin").unlink(), "frames.bin", "cannot be read: No such file"),
        (lambda path: (path / "frames.bin").write_bytes(b""), "end of frames.bin", "its last 30 records are missing"),
        (lambda path: (path / "result.json").unlink(), "result.json", "missing: the recorder was killed"),
        (lambda path: (path / "result.json").write_text("{}"), "result.json", "it lacks outcome, records"),
        (lambda path: (path / "events.jsonl").unlink(), "events.jsonl", "cannot be read: No such file"),
        (_event(GOOD + '{"time_us": 4, "event": "b"}\n'), "events.jsonl", "1 of 2 lines are damaged"),
        (_event(GOOD + '{"time_'), "events.jsonl", "1 of 2 lines are damaged"),
        (_event("7\n" + GOOD), "events.jsonl", "1 of 2 lines are damaged"),
    ],
)
def test_every_damage_is_found(tmp_path: Path, spoil_it: Callable[[Path], object], name: str, words: str) -> None:
    path = record(tmp_path / "run")
    spoil_it(path)
    diagnosis = examine(path)
    assert name in wrong(diagnosis), diagnosis.text()
    assert any(word in finding(diagnosis, name).what for word in words.split("|")), finding(diagnosis, name)


def test_a_run_that_cannot_be_opened_is_not_sound(tmp_path: Path) -> None:
    """Even where each of its files is whole."""
    path = record(tmp_path / "run")
    text = (path / "run.toml").read_text().replace("[board.registers]", "[board.words]")
    (path / "run.toml").write_text(text)
    diagnosis = examine(seal_again(path))
    assert wrong(diagnosis) == {"opening"}
    assert "lacks 'registers'" in finding(diagnosis, "opening").what


def test_a_node_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    (path / "run.toml").write_text((path / "run.toml").read_text().replace("node = ", "node = inf # ", 1))
    assert "its boards lack node or joint" in finding(examine(path), "run.toml").what


def test_a_schema_hash_that_is_none_is_named_and_the_frames_are_read(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    about = (path / "run.toml").read_text().replace(f"{schema_hash():08x}", "9" * 400)
    (path / "run.toml").write_text(about)
    diagnosis = examine(path)
    assert "run.toml says 999" in finding(diagnosis, "schema.json").what
    assert finding(diagnosis, "frames").ok


def test_frames_of_another_release_are_named_as_such(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    other = Schema.from_text(schema_text().replace('"name":"limit.following"', '"name":"limit.lag"'))
    (path / "schema.json").write_text(other.text, encoding="utf-8")
    about = (path / "run.toml").read_text().replace(f"{schema_hash():08x}", f"{other.hash:08x}")
    (path / "run.toml").write_text(about)
    diagnosis = examine(path)
    found = finding(diagnosis, "schema.json")
    assert found.ok
    assert f"{other.hash:08x}, another than this release's {schema_hash():08x}" in found.what
    assert "limit.lag is only there" in found.what
    assert "CRC-32 differs" in finding(diagnosis, "frames").what  # they were in fact made with this release's


def test_a_ledger_that_was_altered_is_found(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    result = json.loads((path / "result.json").read_text())
    result["ledger"]["boards"][0]["samples_received"] -= 1
    (path / "result.json").write_text(json.dumps(result))
    assert "was changed after it was written, in ledger" in finding(examine(path), "result.json").what
    assert wrong(examine(without_seal(path))) == {"ledger"}


@pytest.mark.parametrize("bit", range(8))
def test_no_altered_bit_of_the_frames_goes_unnoticed(tmp_path: Path, bit: int) -> None:
    path = record(tmp_path / "run", boards(1, blocks=1))
    whole = (path / "frames.bin").read_bytes()
    for position in range(bit, len(whole), 97):
        spoil(path / "frames.bin", position, 1 << bit)
        assert "SHA-256 of frames.bin" in wrong(examine(path))
        (path / "frames.bin").write_bytes(whole)


@pytest.mark.parametrize(
    ("nodes", "wrong_us", "limit"),
    [((1, 2), 10, "limit 200"), ((1, 2), 3000, "limit 200"), ((1,), 3000, "no other board to align it with")],
)
def test_clocks_that_scatter_are_found(tmp_path: Path, nodes: tuple[int, ...], wrong_us: int, limit: str) -> None:
    """They put boards beside each other: that of a single board, whose ticks are the rows, may scatter."""
    rng, streams = np.random.default_rng(7), {node: SimulatedBoard(node, tick=5000) for node in nodes}
    for board in streams.values():
        board.status(State.LOADED)
        board.state = State.RUNNING
        for _ in range(60):
            board.block()
            board.pong(int(rng.integers(-wrong_us, wrong_us + 1)))
        board.status(State.DONE)
    about = provenance(streams, clock="wall", common_ticks=False)
    with Recorder(tmp_path / "run", about) as recorder:
        feed(recorder, streams)
    found = finding(examine(tmp_path / "run"), "clocks")
    doubtful = wrong_us > RESIDUAL_LIMIT_US and len(nodes) > 1
    assert found.ok is not doubtful, found
    assert limit in found.what
    assert any("doubt on the common timeline" in warning for warning in open_run(tmp_path / "run").warnings) == doubtful


def _imported(tmp_path: Path, time: np.ndarray) -> Path:
    shape = (len(time), 6)
    samples = Samples(
        time=time, joint_names=tuple(f"j{k}" for k in range(1, 7)), motor_position=np.zeros(shape), link_position=None,
        motor_current=None, motor_torque=np.zeros(shape), joint_torque=None, play_tick=np.full(len(time), -1),
        valid=np.ones(shape, dtype=bool), board_filters=None, sample_period=0.002,
    )  # fmt: skip
    return save_samples(tmp_path / "run", samples, {"robot": "cobot6"})


def test_imports_are_examined_too(tmp_path: Path) -> None:
    path = _imported(tmp_path, np.arange(50) * 0.002)
    diagnosis = examine(path)
    assert diagnosis.is_sound, diagnosis.text()
    assert "300 of 300 samples" in diagnosis.usable
    (path / "samples.npz").write_bytes(b"PK")
    assert wrong(examine(path)) == {"samples.npz", "SHA-256 of samples.npz"}
    assert examine(path).usable.startswith("nothing: it cannot be opened")


def test_imported_times_that_do_not_rise_are_found(tmp_path: Path) -> None:
    assert finding(examine(_imported(tmp_path, np.zeros(50))), "samples.npz").where == "times do not rise"


def test_no_directory_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no such directory"):
        examine(tmp_path / "nowhere")


def test_the_verb_says_the_verdict_first_and_exits_by_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path / "run")
    assert main(["doctor", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: sound: ")
    spoil(path / "frames.bin", 3000)
    assert main(["doctor", str(path), "--json", "-"]) == 1
    said = capsys.readouterr()
    frame = json.loads(said.out)
    assert said.err.startswith(f"{path}: damaged: frames.bin, ledger, SHA-256 of frames.bin (3 of 11 checks)")
    assert frame["command"] == "doctor"
    assert [check["ok"] for check in frame["checks"]] == [each["ok"] for each in frame["findings"]]
    assert set(frame["findings"][0]) == {"name", "ok", "what", "where", "advice"}
    assert main(["doctor", str(tmp_path / "nowhere")]) == 2


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
