"""A whole stream of bytes at once: for recordings, benchmarks and whoever has more than a few frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwire.channels import CHANNEL_BY_NAME
from jointwire.decoder import HEAD, Found, find_chunks, reason, unpack_columns
from jointwire.errors import BodyError
from jointwire.framing import Chunk, Frame, chunk_at
from jointwire.kernel import AT, CHECK, END, HEADER_SIZE, LENGTH, NODE, SEQ, START, TIME_US, TYPE, WHOLE
from jointwire.messages import MessageType
from jointwire.schema import schema_hash

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
        every = 1 << (heads["dividers"].astype(np.int64) >> 4 * channel.kind & 0xF)
        first = heads["first_tick"].astype(np.int64)
        due = -(-first // every) * every
        counts = np.maximum(0, -((due - first - heads["count"]) // every))
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(due, counts) + within * np.repeat(every, counts)


@dataclass(frozen=True)
class Stream:
    """What stands in a stream of bytes: a row for each chunk between two delimiters.

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
        """Which chunks are frames."""
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
            BodyError: the body of a DATA frame has not the length its head says.
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

    def _wrong_length(self, row: _Integers) -> BodyError:
        return BodyError(
            f"DATA frame {row[SEQ]} of node {row[NODE]} at byte {row[START]} of the stream has a body of {row[LENGTH]} "
            "bytes, which is not what its head says"
        )


def decode_stream(data: bytes, schema: int | None = None) -> Stream:
    """Decode a stream of bytes, all at once.

    Args:
        data: as it came from a port.
        schema: hash of the sender's schema; None: this version's.
    """
    found: Found = find_chunks(data, schema_hash() if schema is None else schema)
    return Stream(data, found.rows, found.raw, data[found.rest :])
