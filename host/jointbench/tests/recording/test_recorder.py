"""What a recorder leaves behind: whole at every moment, also where the disk or the program gives up."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from jointbench.errors import RunError
from jointbench.link.ledger import Ledger
from jointbench.recording import Recorder, open_run
from jointbench.recording.record_file import Record, RecordKind, read_records
from jointbench.tests.recording.simulated_run import boards, feed, provenance, record
from jointwire import Schema, schema_hash


def test_the_directory_appears_with_all_that_is_known_before_the_first_frame(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", provenance(boards()))
    names = {"run.toml", "robot.toml", "schema.json", "frames.bin", "events.jsonl"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    recorder.close()
    assert {path.name for path in (tmp_path / "run").iterdir()} == names | {"result.json"}


def test_the_schema_of_its_frames_is_part_of_the_run(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    assert Schema.from_text((path / "schema.json").read_text(encoding="utf-8")).hash == schema_hash()


def test_what_arrived_together_is_in_the_file_once_it_is_flushed(tmp_path: Path) -> None:
    """Frames and events are in their files then: what a killed process leaves is all that it knew."""
    streams = boards()
    recorder = Recorder(tmp_path / "run", provenance(streams))
    recorder.holds = True
    for count in range(1, 9):
        feed(recorder, streams, 3)
        recorder.flush()
        recorder.event(count, "count")
        records = list(read_records((tmp_path / "run" / "frames.bin").read_bytes(), []))
        events = (tmp_path / "run" / "events.jsonl").read_text().splitlines()
        assert (len(records), len(events)) == (3 * count, count)
        assert json.loads(events[-1]) == {"time_us": count, "event": "count"}
    recorder.close()


def test_nothing_is_held_back_unless_it_was_asked_to(tmp_path: Path) -> None:
    streams = boards(1)
    with Recorder(tmp_path / "run", provenance(streams)) as recorder:
        for count in range(1, 9):
            feed(recorder, streams, 1)
            assert len(list(read_records((tmp_path / "run" / "frames.bin").read_bytes(), []))) == count


def test_an_unfinished_frame_is_kept_and_is_no_loss(tmp_path: Path) -> None:
    streams = boards(1)
    with Recorder(tmp_path / "run", provenance(streams)) as recorder:
        feed(recorder, streams)
        recorder.rest(7_000_000, 1, b"\x05\x01\x21")
        recorder.rest(7_000_000, 1, b"")
    records = list(read_records((tmp_path / "run" / "frames.bin").read_bytes(), []))
    assert records[-1] == Record(7_000_000, 1, RecordKind.REST, b"\x05\x01\x21")
    assert len(records) == len(streams[1].sent) + 1
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert (run.ledger.is_valid, run.ledger.boards[0].bad_frames) == (True, 0)
    assert run.warnings == ()


def test_the_result_says_how_it_ended_and_over_which_time(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    result = json.loads((path / "result.json").read_text())
    times = [each.time_us for each in read_records((path / "frames.bin").read_bytes(), [])]
    assert (result["first_us"], result["last_us"], result["records"]) == (times[0], times[-1], len(times))
    assert Ledger.from_dict(result["ledger"]).is_valid
    assert result["frames_sha256"] == open_run(path).sha256


@pytest.mark.parametrize("what", ["frames", "events"])
def test_a_full_disk_is_told_once_and_leaves_a_readable_run(tmp_path: Path, what: str) -> None:
    """The link goes on handing over frames while it stops the motors; that must not fail a second time."""
    streams = boards()
    recorder = Recorder(tmp_path / "run", provenance(streams))
    feed(recorder, streams, 12)
    recorder.flush()
    size = (tmp_path / "run" / "frames.bin").stat().st_size
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5 if what == "frames" else 50, limit[1]))
    try:
        with pytest.raises(RunError, match=r"recording stopped: .* cannot be written: File too large \(errno 27\); "):
            feed(recorder, streams) if what == "frames" else [recorder.event(1, "a" * 40) for _ in range(3)]
        feed(recorder, streams)
        recorder.event(9, "stopped")
        recorder.rest(9, 1, b"abc")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    ledger = recorder.close("stopped by RunError: disk full")
    assert not ledger.is_valid
    run = open_run(tmp_path / "run")
    assert run.samples.valid.any()
    assert run.ledger == ledger
    assert "the run was stopped by RunError: disk full" in run.warnings
    assert not any("middle of a record" in warning for warning in run.warnings)


def test_a_result_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    streams = boards()
    recorder = Recorder(tmp_path / "run", provenance(streams))
    feed(recorder, streams)
    (tmp_path / "run" / f".{os.getpid()}.result.json").mkdir()
    with pytest.raises(RunError, match=r"recording stopped: .*result\.json cannot be written: Is a directory"):
        recorder.close()
    assert recorder.close().is_valid


def test_a_directory_that_cannot_be_made_is_refused_by_name_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"run directory .*file/run cannot be written"):
        Recorder(tmp_path / "file" / "run", provenance(boards()))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
