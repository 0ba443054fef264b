"""frames.bin: records around the boards' bytes unaltered, and their samples in raw counts on the boards' own ticks.

A record is a 18-byte header `<IIQBB` and its payload: payload length, CRC-32 of all the rest (the length included),
host time [µs], node of the port, kind. A file that ends in the middle of a record is readable up to it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, FileBytes, map_file, release_pages
from jointbench.bench import FOOT_CHANNELS, Ledger, Tally
from jointbench.recording.board_record import BoardRecord, ClockNotes, LateSample, Ticks, TrackSpool
from jointwire import (
    CHANNEL_BY_NAME,
    Blocks,
    Frame,
    FrameError,
    MessageType,
    Stream,
    decode_frame,
    decode_samples,
    decode_stream,
)

_HEADER = struct.Struct("<IIQBB")
_CHECKED = struct.Struct("<IQBB")  # the header without its CRC
_NEXT_SIZE = 1 << 16  # bytes of a payload; a frame has some 1100, and noise is cut into pieces as it is read
_PASSED = 1 << 22  # bytes of a mapped file that may stay in memory behind the reader


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


_AGES = {"bridge_torque": "torque_age", **dict.fromkeys(FOOT_CHANNELS, "force_age")}
_TOGETHER = 2048
"""Records that are decoded together: some 2 MB, which one to six boards take some seconds to send."""


@dataclass(frozen=True)
class Recording:
    """frames.bin, decoded: boards by node in joint order, their ledger and what could not be read.

    Attributes:
        undecoded: records of frames that this schema does not decode.
    """

    boards: dict[int, BoardRecord]
    ledger: Ledger
    n_records: int
    undecoded: int
    warnings: tuple[str, ...]


def decode_recording(path: Path, joints: Mapping[int, str], schema: int | None = None) -> Recording:
    """Decode a frames.bin; damage is named in `warnings` and counted as loss, never repaired.

    Args:
        path: of the frames.bin.
        joints: joint of each node, in joint order.
        schema: hash of the schema it was recorded with; None: this version's.
    """
    warnings: list[str] = []
    boards = {node: _Heard(joint, warnings) for node, joint in joints.items()}
    tally = Tally(joints)
    strangers: set[int] = set()
    n_records = undecoded = 0
    for batch in _batches(read_records(map_file(path), warnings)):
        n_records += len(batch)
        stream, contents = _decode_batch(batch, schema)
        for record, row, content in contents:
            if isinstance(content, str):
                tally.add_noise(record.node)
                undecoded += _note(content, record.node, warnings)
            elif content.node not in boards:
                strangers.add(content.node)
            elif tally.add(content):
                boards[content.node].add(content, record.time_us, row)
        for heard in boards.values():
            heard.keep(stream)
    if strangers:
        warnings.append(f"frames of nodes {sorted(strangers)}, which are no boards of this run, are left out")
    decoded = {node: heard.record() for node, heard in boards.items()}
    again = [joints[node] for node, board in decoded.items() if board.restarted]
    warnings += [f"{joint}: the board started again during the run" for joint in again]
    return Recording(decoded, tally.ledger(), n_records, undecoded, tuple(warnings))


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Records that are decoded together."""
    while batch := list(islice(records, _TOGETHER)):
        yield batch


def _decode_batch(
    records: Sequence[Record], schema: int | None
) -> tuple[Stream, list[tuple[Record, int, Frame | str]]]:
    """Decode the frames of some records at once, as one stream.

    Returns:
        The stream, and of each record but those after the last delimiter its row of the stream and its frame, or why
        there is none (nothing for bytes recorded as noise, which have no row).
    """
    payloads = [record.payload for record in records if record.kind is RecordKind.FRAME]
    stream = _stream(payloads, schema)
    if len(stream) == len(payloads) and np.array_equal(stream.end - stream.start, [*map(len, payloads)]):
        frames = iter([(row, chunk.content) for row, chunk in enumerate(stream)])
    else:  # a payload that is no frame may hold a delimiter: decode one by one, and the frames among them again
        alone = [_decoded(payload, schema) for payload in payloads]
        is_frame = [isinstance(content, Frame) for content in alone]
        stream = _stream(list(compress(payloads, is_frame)), schema)
        frames = iter(zip((np.cumsum(is_frame) - 1).tolist(), alone, strict=True))
    contents: list[tuple[Record, int, Frame | str]] = []
    for record in records:
        if record.kind is RecordKind.FRAME:
            row, content = next(frames)
            contents.append((record, row, content if isinstance(content, Frame | str) else content.reason))
        elif record.kind is RecordKind.NOISE:
            contents.append((record, -1, ""))
    return stream, contents


def _stream(payloads: Sequence[bytes], schema: int | None) -> Stream:
    return decode_stream(b"".join(payload + b"\0" for payload in payloads), schema)


def _decoded(payload: bytes, schema: int | None) -> Frame | str:
    try:
        return decode_frame(payload, schema)
    except FrameError as error:
        return str(error)


def _note(reason: str, node: int, warnings: list[str]) -> bool:
    """Warn of a recorded frame that cannot be decoded, once for each reason; noise is none."""
    if reason and not any(reason in warning for warning in warnings):
        warnings.append(f"recorded frames of node {node} cannot be decoded by this release: {reason}")
    return bool(reason)


class _Heard:
    """One board's frames as they are read, its blocks put away batch by batch."""

    def __init__(self, joint: str, warnings: list[str]) -> None:
        self._joint, self._warnings = joint, warnings
        self._notes = ClockNotes()
        self._data: list[tuple[Frame, int, int]] = []  # frame, row of the batch's stream, tick
        self._late: list[LateSample] = []
        self._ticks = TrackSpool()
        self._channels: dict[str, TrackSpool] = {}
        self._played: dict[int, None] = {}
        self._last_play_tick = -1

    def add(self, frame: Frame, received_us: int, row: int) -> None:
        """Take a frame, which is a row of its batch's stream."""
        tick = self._notes.add(frame, received_us)
        if tick is not None and frame.type is MessageType.DATA:
            if frame.body.late_us:
                self._add_late(frame, tick)
            else:
                self._data.append((frame, row, tick))

    def _add_late(self, frame: Frame, tick: int) -> None:
        """Take the only sample of a block."""
        try:
            columns = decode_samples(frame).columns
        except FrameError as error:
            self._warnings.append(f"{self._joint}: {error}; the frame is left out")
            return
        if frame.body.count != 1:
            said = f"a block of {frame.body.count} samples says that its only one was late"
            self._warnings.append(f"{self._joint}: {said}; the frame is left out")
            return
        self._note_played(frame, tick)
        values = {name: int(column[0]) for name, column in columns.items() if len(column)}
        self._late.append(LateSample(tick, frame.body.late_us, values))

    def keep(self, stream: Stream) -> None:
        """Put the blocks of a batch away."""
        if not self._data:
            return
        blocks = self._blocks(stream)
        first = np.array([tick for _, _, tick in self._data], dtype=np.int64)
        for frame, _, tick in self._data:
            self._note_played(frame, tick)
        # A block's ticks follow its first one, which stands in the frame without what was above its 32 bits.
        over = first - blocks.heads["first_tick"].astype(np.int64)
        self._ticks.append(Ticks(first, blocks.heads["count"].astype(np.int64), np.ones_like(first)))
        for name, raw in blocks.columns.items():
            values = _new_values(blocks, name, raw)
            self._channels.setdefault(name, TrackSpool()).append(_ticks(blocks, name, over), values)
        self._data.clear()

    def _note_played(self, frame: Frame, tick: int) -> None:
        if frame.body.play_tick >= 0:
            self._played[tick - frame.body.play_tick] = None
            self._last_play_tick = max(self._last_play_tick, frame.body.play_tick + frame.body.count - 1)

    def record(self) -> BoardRecord:
        """Everything it said."""
        if self._late:
            latest_us = max(sample.late_us for sample in self._late)
            self._warnings.append(
                f"{self._joint}: {len(self._late)} samples were taken late, by up to {latest_us} µs after their ticks, "
                "and are put where they were taken; stream fewer channels, or lengthen board.tick_period"
            )
        return BoardRecord(
            ticks=self._ticks.ticks(),
            channels={name: spool.track() for name, spool in self._channels.items()},
            played=tuple(self._played),
            last_play_tick=self._last_play_tick,
            exchanges=self._notes.exchanges,
            stamps=self._notes.stamps,
            pulses=tuple(self._notes.pulses),
            restarted=self._notes.restarted,
            late=tuple(self._late),
        )

    def _blocks(self, stream: Stream) -> Blocks:
        """The blocks; one whose length is not what its head says is left out."""
        rows = stream.rows[[row for _, row, _ in self._data]]
        try:
            return replace(stream, rows=rows).samples(self._data[0][0].node if self._data else 0)
        except FrameError:
            good: list[tuple[Frame, int, int]] = []
            for frame, row, tick in self._data:
                try:
                    decode_samples(frame)
                    good.append((frame, row, tick))
                except FrameError as error:
                    self._warnings.append(f"{self._joint}: {error}; the frame is left out")
            self._data = good
            return self._blocks(stream)


def _new_values(blocks: Blocks, name: str, raw: NDArray[np.int32]) -> NDArray[np.int32] | Array:
    """Values of a channel, NaN where its converter had nothing new since the value that was sent before.

    A board says for how many ticks it has held a value: one that is as old as the last sample was told with that.
    """
    age = blocks.columns.get(_AGES.get(name, ""))
    if age is None or len(age) != len(raw):  # all are new, or some blocks say nothing of their age
        return raw
    spaced = _ticks(blocks, name, np.zeros(len(blocks.heads), dtype=np.int64))
    return np.where(age < np.repeat(spaced.steps, spaced.counts), raw, np.nan)


def _ticks(blocks: Blocks, name: str, over: NDArray[np.int64]) -> Ticks:
    """Ticks of a channel in all blocks that have it, moved by what stands above their 32 bits."""
    channel = CHANNEL_BY_NAME[name]
    has = blocks.heads["channels"] >> channel.bit & 1 == 1
    heads = blocks.heads[has]
    every = 1 << (heads["dividers"].astype(np.int64) >> 4 * channel.kind & 0xF)
    first = heads["first_tick"].astype(np.int64)
    due = -(-first // every) * every
    counts = (first + heads["count"] - 1) // every - (first - 1) // every
    return Ticks(due + over[has], counts, every)
