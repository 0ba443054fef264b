"""Samples of DATA frames as arrays: of a block, of many, or of a whole stream of bytes such as a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwire.channels import CHANNEL_BY_NAME, divider
from jointwire.errors import FrameError
from jointwire.framing import HEAD, Chunk, Found, Frame, chunk_at, find_chunks, reason, unpack_columns
from jointwire.kernel import AT, CHECK, END, HEADER_SIZE, LENGTH, NODE, SEQ, START, TIME_US, TYPE, WHOLE
from jointwire.messages import MessageType
from jointwire.schema import schema_hash


@dataclass(frozen=True)
class Block:
    """The samples of one DATA frame.

    Attributes:
        first_tick, count: its ticks are first_tick … first_tick + count - 1.
        columns: raw values of each channel in the mask, at the ticks where it was due.
        dividers, channels, play_tick, missed, state: as in the head.
    """

    first_tick: int
    count: int
    columns: dict[str, NDArray[np.int32]]
    dividers: int
    channels: int
    play_tick: int
    missed: int
    state: int

    def ticks(self, name: str) -> NDArray[np.int64]:
        """Ticks of the values of a channel."""
        spacing = divider(self.dividers, CHANNEL_BY_NAME[name].kind)
        return np.arange(
            -(-self.first_tick // spacing) * spacing, self.first_tick + self.count, spacing, dtype=np.int64
        )


def decode_samples(frame: Frame) -> Block:
    """The block of a DATA frame.

    Raises:
        FrameError: the body's length is not that of `count` samples of these channels.
    """
    head = frame.body
    columns = stack_samples([frame])
    return Block(
        head.first_tick, head.count, columns, head.dividers, head.channels, head.play_tick, head.missed, head.state
    )


def stack_samples(frames: Sequence[Frame]) -> dict[str, NDArray[np.int32]]:
    """Raw values of each channel in the blocks of DATA frames, one after the other: many cost little more than one.

    Raises:
        FrameError: the length of a body is not that of `count` samples of its channels.
    """
    payloads = [frame.payload for frame in frames]
    for frame in frames:
        if len(frame.payload) < HEAD.itemsize:
            raise _wrong_length(frame)
    heads = np.frombuffer(b"".join([payload[: HEAD.itemsize] for payload in payloads]), HEAD)
    lengths = np.array([len(payload) for payload in payloads])
    starts = np.cumsum(lengths) - lengths + HEAD.itemsize
    raw = np.frombuffer(b"".join(payloads), np.uint8)
    columns = unpack_columns(raw, starts, lengths - HEAD.itemsize, heads)
    if isinstance(columns, int):
        raise _wrong_length(frames[columns])
    return columns


def _wrong_length(frame: Frame) -> FrameError:
    head = frame.body
    return FrameError(
        f"DATA frame {frame.seq} of node {frame.node} says {head.count} ticks of channels {head.channels:#x} with "
        f"dividers {head.dividers:#x}, which {len(frame.payload)} bytes with the head are not"
    )


_Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """All blocks of samples of one node, in the order they came.

    Attributes:
        heads: of the blocks; fields as in a DATA body.
        time_us: the board's clock at the tick that closed each block, 32 bit.
        columns: raw values of each channel that is in any block, one block after the other.
    """

    heads: NDArray[np.void]
    time_us: _Integers
    columns: dict[str, NDArray[np.int32]]

    def ticks(self, name: str) -> _Integers:
        """Ticks of the values of a channel; like first_tick they wrap between blocks."""
        channel = CHANNEL_BY_NAME[name]
        heads = self.heads[self.heads["channels"] >> channel.bit & 1 == 1]
        spacing = 1 << (heads["dividers"].astype(np.int64) >> 4 * channel.kind & 0xF)
        first = heads["first_tick"].astype(np.int64)
        due = -(-first // spacing) * spacing
        counts = np.maximum(0, -((due - first - heads["count"]) // spacing))
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(due, counts) + within * np.repeat(spacing, counts)


@dataclass(frozen=True)
class Stream:
    """Chunks of a stream of bytes: a row for each between two delimiters.

    Attributes:
        data: the stream.
        rows, raw: as the decoder found them (kernel.py names the columns).
        pending: bytes after the last delimiter.
    """

    data: bytes
    rows: _Integers
    raw: NDArray[np.uint8]
    pending: bytes

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Chunk:
        return chunk_at(self.rows[index].tolist(), self.data, self.raw)

    def __iter__(self) -> Iterator[Chunk]:
        return (self[index] for index in range(len(self)))

    @property
    def is_frame(self) -> NDArray[np.bool_]:
        """Mask of the chunks that are frames."""
        return self.rows[:, CHECK] == WHOLE

    @property
    def start(self) -> _Integers:
        """Offset of each chunk in the stream."""
        return self.rows[:, START]

    @property
    def end(self) -> _Integers:
        """Offset of the delimiter after each chunk."""
        return self.rows[:, END]

    @property
    def type(self) -> _Integers:
        """Message type of each chunk that is a frame."""
        return self.rows[:, TYPE]

    @property
    def node(self) -> _Integers:
        """Node of each chunk that is a frame."""
        return self.rows[:, NODE]

    @property
    def seq(self) -> _Integers:
        """Sequence number of each chunk that is a frame."""
        return self.rows[:, SEQ]

    @property
    def time_us(self) -> _Integers:
        """Sender's clock of each chunk that is a frame, 32 bit."""
        return self.rows[:, TIME_US]

    def noise(self) -> dict[str, int]:
        """Reasons why chunks are no frames, with how often."""
        return dict(Counter(reason(row.tolist()) for row in self.rows[~self.is_frame]))

    def frames(self, kind: MessageType) -> Iterator[Frame]:
        """Frames of one type, in order."""
        for row in self.rows[self.is_frame & (self.type == kind)]:
            content = chunk_at(row.tolist(), self.data, self.raw).content
            if isinstance(content, Frame):
                yield content

    def samples(self, node: int) -> Blocks:
        """All samples of a node.

        Raises:
            FrameError: the body of a DATA frame has not the length its head says.
        """
        rows = self.rows[self.is_frame & (self.type == MessageType.DATA) & (self.node == node)]
        short = np.flatnonzero(rows[:, LENGTH] < HEAD.itemsize)
        starts = rows[:, AT] + HEADER_SIZE
        if len(short):
            raise self._wrong_length(rows[short[0]])
        heads = self.raw[starts[:, None] + np.arange(HEAD.itemsize)].view(HEAD)[:, 0]
        columns = unpack_columns(self.raw, starts + HEAD.itemsize, rows[:, LENGTH] - HEAD.itemsize, heads)
        if isinstance(columns, int):
            raise self._wrong_length(rows[columns])
        return Blocks(heads, rows[:, TIME_US], columns)

    def _wrong_length(self, row: _Integers) -> FrameError:
        return FrameError(
            f"DATA frame {row[SEQ]} of node {row[NODE]} at byte {row[START]} of the stream has a body of {row[LENGTH]} "
            "bytes, which is not what its head says"
        )


def decode_stream(data: bytes, schema: int | None = None) -> Stream:
    """Decode a stream of bytes, all at once.

    Args:
        data: as it came from a port.
        schema: hash of the sender's schema; None: this version's.
    """
    chunks: Found = find_chunks(data, schema_hash() if schema is None else schema)
    return Stream(data, chunks.rows, chunks.raw, data[chunks.rest :])
