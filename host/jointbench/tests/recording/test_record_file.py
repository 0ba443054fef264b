"""frames.bin: whatever is written comes back, whatever is damaged is named, and nothing is guessed."""

from __future__ import annotations

import os
import resource
import time
from itertools import islice
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.recording.record_file import (
    Damage,
    Record,
    RecordKind,
    RecordWriter,
    encode_record,
    read_records,
    scan_records,
)

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
    for record in records:
        if position + record.size <= start or position >= end:
            intact.append(record)
        position += record.size
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
