"""What a recorder leaves behind: whole at every moment, also where the disk or the program gives up."""

from __future__ import annotations

import json
import os
import resource
import shutil
import threading
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.bench import Ledger
from jointbench.errors import RunError
from jointbench.recording import Recorder, RecordWriter, open_run
from jointbench.recording import recorder as recorder_module
from jointbench.recording.decode import (
    Damage,
    Record,
    RecordKind,
    encode_record,
    read_records,
    scan_records,
)
from jointbench.tests.recording.simulated_run import boards, feed, provenance, record
from jointwire import Schema, schema_hash


def test_the_directory_appears_with_all_that_is_known_before_the_first_frame(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", provenance(boards()))
    names = {"run.toml", "robot.toml", "schema.json", "frames.bin", "events.jsonl"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    recorder.close()
    assert {path.name for path in (tmp_path / "run").iterdir()} == names | {"result.json"}


def test_a_run_says_when_it_was_recorded(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    about = tomllib.loads((record(tmp_path / "run") / "run.toml").read_text(encoding="utf-8"))
    assert before <= datetime.fromisoformat(about["recorded"]) <= datetime.now(UTC)


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


TIMES, NODES = st.integers(0, 2**64 - 1), st.integers(0, 255)
RECORDS = st.lists(
    st.builds(Record, TIMES, NODES, st.sampled_from(RecordKind), st.binary(max_size=80)), max_size=12
)  # fmt: skip


def whole(records: list[Record]) -> bytes:
    return b"".join(encode_record(record) for record in records)


@given(RECORDS)
def test_what_is_written_comes_back(records: list[Record]) -> None:
    warnings: list[str] = []
    assert list(read_records(whole(records), warnings)) == records
    assert warnings == []


@given(RECORDS.filter(bool), st.data())
def test_cut_anywhere_it_is_readable_up_to_the_last_whole_record(records: list[Record], data: st.DataObject) -> None:
    file = whole(records)
    length = data.draw(st.integers(0, len(file)))
    found = list(scan_records(file[:length]))
    kept = [each for each in found if isinstance(each, Record)]
    assert kept == records[: len(kept)]
    end = sum(record.size for record in kept)
    assert length < end + (records[len(kept)].size if len(kept) < len(records) else 1)
    torn = [Damage(end, length, torn=True)] if end < length else []
    assert [each for each in found if isinstance(each, Damage)] == torn


@settings(max_examples=300)
@given(RECORDS.filter(bool), st.data())
def test_damage_costs_no_more_than_the_records_it_stands_in(records: list[Record], data: st.DataObject) -> None:
    """Any burst of altered bytes; found places and records together are the whole file, in order."""
    file = bytearray(whole(records))
    start = data.draw(st.integers(0, len(file) - 1))
    end = data.draw(st.integers(start + 1, min(start + 40, len(file))))
    for position in range(start, end):
        file[position] ^= data.draw(st.integers(1, 255))
    found = list(scan_records(bytes(file)))
    kept = [each for each in found if isinstance(each, Record)]
    position, intact = 0, list[Record]()
    for written in records:
        if position + written.size <= start or position >= end:
            intact.append(written)
        position += written.size
    assert kept == intact
    position = 0
    for each in found:
        if isinstance(each, Damage):
            assert each.start == position
        position = each.end if isinstance(each, Damage) else position + each.size
    assert position == len(file)


def test_a_kind_of_a_later_release_is_named_and_left_out() -> None:
    first, last = (Record(time_us, 1, RecordKind.FRAME, b"x") for time_us in (1, 3))
    strange = Record(2, 1, cast(RecordKind, 9), b"what")
    warnings: list[str] = []
    assert list(read_records(whole([first, strange, last]), warnings)) == [first, last]
    assert warnings == ["frames.bin: record at byte 19 is of kind 9, which this release cannot read"]


def test_a_record_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    """So that a killed process loses nothing it had received."""
    path, record = tmp_path / "frames.bin", Record(5, 1, RecordKind.FRAME, b"abc")
    writer = RecordWriter(path)
    for count in (1, 2, 3):
        writer.write(record)
        assert path.read_bytes() == whole([record] * count)
    writer.close()
    writer.close()


@pytest.mark.parametrize("room", [0, 1, 17, 50, 78, 100])
def test_a_full_disk_leaves_what_was_written_before(tmp_path: Path, room: int) -> None:
    """The operating system itself takes a part of the records and refuses the rest."""
    path, record = tmp_path / "frames.bin", Record(5, 1, RecordKind.FRAME, bytes(60))
    writer = RecordWriter(path)
    writer.write(record)
    _, hard = limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (record.size + room, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.write(record, record)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    writer.close()
    assert path.read_bytes() == whole([record])
    assert os.stat(path).st_size == record.size


def test_a_disk_that_does_not_take_the_file_is_an_error(tmp_path: Path) -> None:
    """A pipe is a file that cannot be written to a disk: the error of the thread that tries comes out."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = RecordWriter(fifo)
    writer.write(Record(5, 1, RecordKind.FRAME, b"abc"))
    with pytest.raises(OSError, match="Invalid argument"):
        writer.close()
    writer.close()
    os.close(reader)


def test_looking_for_the_next_record_does_not_read_the_whole_file_again_and_again() -> None:
    """Sizes in damaged bytes may be anything up to that of the file: their CRC is not computed over hundreds of MB."""
    after = encode_record(Record(1, 1, RecordKind.FRAME, b"after"))
    # Each of these bytes could begin a header that names a payload of 16 MiB and some; all of them would be 16 GiB.
    damage = b"\0\0\0\1" * 1024
    data = damage + after + bytes(32 << 20)
    started = time.process_time()
    first, second = islice(scan_records(data), 2)
    assert time.process_time() - started < 2.0  # 0.1 s; 16 GiB would take several seconds at the very best
    assert (first, second) == (Damage(0, len(damage)), Record(1, 1, RecordKind.FRAME, b"after"))


BLOCK = 512  # bytes, the least that disks write; many write 4096
N_BOARDS = 2
FILES = ("events.jsonl", "frames.bin")


@dataclass
class WriteLog:
    """What a recording did to its files.

    Attributes:
        barriers: lengths of both files that were on the disk, by barrier.
        content: of the files in the end.
    """

    barriers: list[dict[str, int]] = field(default_factory=list)
    content: dict[str, bytes] = field(default_factory=dict)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteLog:
    """Record a run whose disk is asked to keep everything at each write, and note what it had promised."""
    log, fsync = WriteLog(), os.fsync
    kept: dict[str, int] = dict.fromkeys(FILES, 0)

    def noted(descriptor: int) -> None:
        size = os.fstat(descriptor).st_size  # what was written before; more may come meanwhile
        fsync(descriptor)
        if (name := Path(os.readlink(f"/proc/self/fd/{descriptor}")).name) in kept:
            kept[name] = size
            log.barriers.append(dict(kept))

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(recorder_module, "_FSYNC_S", 0.0)
    streams = boards(N_BOARDS)
    with Recorder(tmp_path / "run", provenance(streams)) as recorder:
        chunk = recorder.chunk

        def paced(*what: Any) -> None:
            chunk(*what)
            recorder.event(what[0], "chunk")
            time.sleep(0.005)  # as between the blocks of boards: the disk has had its turn

        monkeypatch.setattr(recorder, "chunk", paced)
        feed(recorder, streams)
    log.content = {name: (tmp_path / "run" / name).read_bytes() for name in FILES}
    return log


def after_the_cut(rng: np.random.Generator, content: bytes, kept: int, written: int) -> bytes:
    """Content of a file: all that was kept, and of what was written since then some blocks."""
    found = bytearray(content[:kept] + bytes(written - kept))
    for start in range(kept - kept % BLOCK, written, BLOCK):
        if rng.random() < 0.5:
            here = slice(max(start, kept), min(start + BLOCK, written))
            found[here] = content[here]
    ends = [kept, int(rng.integers(kept, written + 1)), written]
    return bytes(found[: rng.choice(ends)])


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_disk_has_can_be_read(log: WriteLog, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = list(read_records(log.content["frames.bin"], []))
    opened = 0
    for number, kept in enumerate(log.barriers):
        following = log.barriers[min(number + 2, len(log.barriers) - 1)]
        path = tmp_path / f"cut-{number}"
        shutil.copytree(tmp_path / "run", path)
        (path / "result.json").unlink()
        for name in FILES:
            written = max(following[name], kept[name])
            (path / name).write_bytes(after_the_cut(rng, log.content[name], kept[name], written))
        promised = list(read_records(log.content["frames.bin"][: kept["frames.bin"]], []))
        found = list(read_records((path / "frames.bin").read_bytes(), []))
        assert found[: len(promised)] == promised == whole[: len(promised)]
        assert set(found) <= set(whole)  # and nothing is made up
        frames = Counter(record.node for record in promised)
        if len(frames) < N_BOARDS or min(frames.values()) < 4:  # the first ones hold no samples
            continue
        run = open_run(path)
        assert any("unfinished run" in warning for warning in run.warnings)
        assert len(run.samples.time)
        opened += 1
    assert opened >= 3


def test_a_block_is_on_the_disk_before_the_next_one_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of boards that send one each 64 ms a power cut takes the newest, never two."""
    now_s, kept, fsync = [0.0], [0], os.fsync
    monkeypatch.setattr(recorder_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def noted(descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        fsync(descriptor)
        kept.append(size)

    monkeypatch.setattr(os, "fsync", noted)
    writer = RecordWriter(tmp_path / "frames.bin")
    block = Record(0, 1, RecordKind.FRAME, bytes(1000))
    for number in range(1, 6):
        now_s[0] += 0.064
        writer.write(block)
        for thread in threading.enumerate():
            if thread.name == "disk sync":
                thread.join()
        assert kept[-1] == number * block.size
    writer.close()


def test_the_disk_is_asked_soon_enough() -> None:
    """Half of the 100 ms that may be lost; the other half is the disk's."""
    assert recorder_module._FSYNC_S <= 0.05
