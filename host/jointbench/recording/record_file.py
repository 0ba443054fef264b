"""frames.bin: append-only records, each with its own length and CRC, around the board's bytes unaltered.

A record is a 18-byte header `<IIQBB` and its payload: payload length, CRC-32 of all the rest (the length included),
host time [µs], node of the port, kind. A file that ends in the middle of a record is readable up to it.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

_HEADER = struct.Struct("<IIQBB")
_CHECKED = struct.Struct("<IQBB")  # the header without its CRC
_FLUSH_US = 100_000  # at most this much of the target's time is lost when the process is killed
_FSYNC_S = 1.0  # at most this much of the wall clock's time is lost when the power fails


class RecordKind(IntEnum):
    """What a payload is."""

    FRAME = 0  # one frame as received, still COBS-encoded, without its delimiter
    NOISE = 1  # bytes that were no frame


_KINDS = frozenset(RecordKind)


@dataclass(frozen=True)
class Record:
    """One record: when the host's clock received what from which board's port."""

    time_us: int
    node: int
    kind: RecordKind
    payload: bytes


def encode_record(record: Record) -> bytes:
    """Bytes of a record."""
    size = len(record.payload)
    crc = zlib.crc32(_CHECKED.pack(size, record.time_us, record.node, record.kind))
    crc = zlib.crc32(record.payload, crc)
    return _HEADER.pack(size, crc, record.time_us, record.node, record.kind) + record.payload


class RecordWriter:
    """Appends records to a file; holds back at most 100 ms of the target's time."""

    def __init__(self, path: Path) -> None:
        """Create the file, which must not exist."""
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._waiting = bytearray()
        self._flushed_us = 0
        self._synced_s = time.monotonic()

    def write(self, record: Record) -> None:
        """Append a record."""
        self._waiting += encode_record(record)
        if record.time_us - self._flushed_us >= _FLUSH_US:
            self.flush()
            self._flushed_us = record.time_us

    def flush(self) -> None:
        """Hand everything to the operating system, and to the disk if that was a second ago."""
        while self._waiting:
            del self._waiting[: os.write(self._descriptor, self._waiting)]
        if time.monotonic() - self._synced_s >= _FSYNC_S:
            os.fsync(self._descriptor)
            self._synced_s = time.monotonic()

    def close(self) -> None:
        """Write the rest to the disk; closing twice is harmless."""
        if self._descriptor >= 0:
            self.flush()
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


def read_records(data: bytes, warnings: list[str]) -> Iterator[Record]:
    """Records of a file's bytes, in order; what cannot be read is named in `warnings` and nothing is guessed.

    After damage, of a length too, reading goes on at the next record whose CRC holds.
    """
    position = 0
    while position < len(data):
        end = _end_of_record(data, position)
        if end is None:
            following = next((p for p in range(position + 1, len(data)) if _end_of_record(data, p)), None)
            if following is None:
                warnings.append(_torn(data, position))
                return
            warnings.append(f"frames.bin: bytes {position} to {following - 1} are damaged and are left out")
            position = following
            continue
        _, _, time_us, node, kind = _HEADER.unpack_from(data, position)
        if kind in _KINDS:
            yield Record(time_us, node, RecordKind(kind), data[position + _HEADER.size : end])
        else:
            warnings.append(f"frames.bin: record at byte {position} is of kind {kind}, which this release cannot read")
        position = end


def _end_of_record(data: bytes, position: int) -> int | None:
    """Where the record at this byte ends, None if there is no whole one whose CRC holds."""
    body = position + _HEADER.size
    if body > len(data):
        return None
    size, crc, time_us, node, kind = _HEADER.unpack_from(data, position)
    end = body + size
    if end > len(data):
        return None
    payload = memoryview(data)[body:end]
    return end if zlib.crc32(payload, zlib.crc32(_CHECKED.pack(size, time_us, node, kind))) == crc else None


def _torn(data: bytes, position: int) -> str:
    return (
        f"frames.bin ends in the middle of a record: its last {len(data) - position} bytes (from byte {position}) "
        "are left out, as after a crash while recording"
    )
