"""frames.bin: append-only records, each with its own length and CRC, around the board's bytes unaltered.

A record is a 18-byte header `<IIQBB` and its payload: payload length, CRC-32 of all the rest (the length included),
host time [µs], node of the port, kind. A file that ends in the middle of a record is readable up to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jointbench.memory_mapping import FileBytes, release_pages

if TYPE_CHECKING:
    from _hashlib import HASH

_HEADER = struct.Struct("<IIQBB")
_CHECKED = struct.Struct("<IQBB")  # the header without its CRC
_NEXT_SIZE = 1 << 16  # bytes of a payload; a frame has some 1100, and noise is cut into pieces as it is read
_PASSED = 1 << 22  # bytes of a mapped file that may stay in memory behind the reader
_FSYNC_S = 0.05  # with the time that a disk takes, less than 100 ms of the wall clock are lost when the power fails


class RecordKind(IntEnum):
    """Kinds of payloads."""

    FRAME = 0  # one frame as received, still COBS-encoded, without its delimiter
    NOISE = 1  # bytes that were no frame
    REST = 2  # bytes after the last delimiter, when listening ended


_KINDS = frozenset(RecordKind)


class Record(NamedTuple):
    """One record: when the host's clock received what from which board's port."""

    time_us: int
    node: int
    kind: RecordKind
    payload: bytes

    @property
    def size(self) -> int:
        """Bytes it takes in the file."""
        return _HEADER.size + len(self.payload)


@dataclass(frozen=True)
class Damage:
    """Bytes of a frames.bin that hold no record this release can read.

    Attributes:
        start, end: the bytes, from `start` up to but without `end`.
        torn: whether the file ends with them, as after a crash while recording.
        kind: of a whole record whose kind is unknown here, None for bytes that are no record at all.
    """

    start: int
    end: int
    torn: bool = False
    kind: int | None = None

    def __str__(self) -> str:
        if self.torn:
            return (
                f"frames.bin ends in the middle of a record: its last {self.end - self.start} bytes (from byte "
                f"{self.start}) are left out, as after a crash while recording"
            )
        if self.kind is not None:
            return f"frames.bin: record at byte {self.start} is of kind {self.kind}, which this release cannot read"
        return f"frames.bin: bytes {self.start} to {self.end - 1} are damaged and are left out"


def encode_record(record: Record) -> bytes:
    """Bytes of a record."""
    size = len(record.payload)
    crc = zlib.crc32(_CHECKED.pack(size, record.time_us, record.node, record.kind))
    crc = zlib.crc32(record.payload, crc)
    return _HEADER.pack(size, crc, record.time_us, record.node, record.kind) + record.payload


class RecordWriter:
    """Appends records to a file, each handed to the operating system at once: a killed process loses none of them.

    Attributes:
        sha256: of everything written.
    """

    def __init__(self, path: Path, *beside: int) -> None:
        """Create the file, or go on with the empty one that is there.

        Args:
            path: of the file.
            beside: descriptors of files that shall be on the disk as soon as it is.
        """
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._sync = _DiskSync(*beside, self._descriptor)
        self._size = 0
        self._closed = False
        self.sha256: HASH = hashlib.sha256()

    def write(self, *records: Record) -> None:
        """Append records, all of them or none.

        Raises:
            OSError: the file takes no more; it ends as it did before.
        """
        self._sync.raise_error()
        data = b"".join(map(encode_record, records))
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # a disk that is nearly full takes a part, and refuses the rest with the reason
                written += os.write(self._descriptor, data[written:])
        except OSError:
            with contextlib.suppress(OSError):  # the reader copes with a torn record where not even this is possible
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        self.sha256.update(data)
        self._sync.when_due()  # with what was just written: before the next block comes, it is on the disk

    def close(self) -> None:
        """Write everything to the disk; closing twice is harmless.

        Raises:
            OSError: the disk does not take it; the file is closed all the same.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._sync.finish()
        finally:
            os.close(self._descriptor)


class _DiskSync:
    """Has files written to the disk many times a second, in a thread: a slow disk must not keep the boards waiting."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors
        self._thread: threading.Thread | None = None
        self._started_s = time.monotonic()
        self._error: OSError | None = None

    def when_due(self) -> None:
        """Start writing, if that is due and the last time has ended."""
        now_s = time.monotonic()
        if now_s - self._started_s < _FSYNC_S or (self._thread and self._thread.is_alive()):
            return
        self._started_s = now_s
        self._thread = threading.Thread(target=self._write, name="disk sync")
        self._thread.start()

    def raise_error(self) -> None:
        """Say what went wrong the last time.

        Raises:
            OSError: the disk did not take what it was given.
        """
        if self._error:
            raise self._error

    def finish(self) -> None:
        """Write what is left and wait for it.

        Raises:
            OSError: the disk does not take it.
        """
        if self._thread:
            self._thread.join()
        self._write()
        self.raise_error()

    def _write(self) -> None:
        try:
            for descriptor in self._descriptors:
                os.fsync(descriptor)
        except OSError as error:
            self._error = error


def scan_records(data: FileBytes) -> Iterator[Record | Damage]:
    """Records of a file's bytes and what stands between them, in order; together they are the whole file.

    Of a mapped file (`map_file`) pages are let go of as they are passed. After damage, of a length too, reading goes
    on at the next record whose CRC holds; one of more than `_NEXT_SIZE` bytes is not looked for, or damage in a file of
    an hour would be looked through for minutes.
    """
    position = passed = 0
    while position < len(data):
        if position - passed > _PASSED:
            release_pages(data)
            passed = position
        end = _end_of_record(data, position)
        if end is None:
            following = next((p for p in range(position + 1, len(data)) if _end_of_record(data, p, _NEXT_SIZE)), None)
            yield Damage(position, len(data) if following is None else following, torn=following is None)
            position = len(data) if following is None else following
            continue
        _, _, time_us, node, kind = _HEADER.unpack_from(data, position)
        if kind in _KINDS:
            yield Record(time_us, node, RecordKind(kind), data[position + _HEADER.size : end])
        else:
            yield Damage(position, end, kind=kind)
        position = end


def read_records(data: FileBytes, warnings: list[str]) -> Iterator[Record]:
    """Records of a file's bytes, in order; what cannot be read is named in `warnings` and nothing is guessed."""
    for found in scan_records(data):
        if isinstance(found, Record):
            yield found
        else:
            warnings.append(str(found))


def _end_of_record(data: FileBytes, position: int, most: int = 1 << 32) -> int | None:
    """Return where the record at this byte ends, None if there is no whole one of at most that size whose CRC holds."""
    body = position + _HEADER.size
    if body > len(data):
        return None
    size, crc, time_us, node, kind = _HEADER.unpack_from(data, position)
    end = body + size
    if end > len(data) or size > most:
        return None
    payload = memoryview(data)[body:end]
    return end if zlib.crc32(payload, zlib.crc32(_CHECKED.pack(size, time_us, node, kind))) == crc else None
