"""The one decoder: compiled loops (kernel.py), what they need to know of the wire, and the words for what they find."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointwire import kernel
from jointwire.channels import CHANNELS
from jointwire.messages import BODIES, FROZEN, MAX_BODY, PROTOCOL_MAJOR, MessageType
from jointwire.schema import struct_fields

MAX_FRAME = kernel.HEADER_SIZE + MAX_BODY + kernel.CRC_SIZE
MAX_ENCODED = MAX_FRAME + MAX_FRAME // 254 + 1  # COBS adds one byte for each 254 and one more

_NUMPY_CODES = {"B": "u1", "H": "<u2", "L": "<u4", "l": "<i4"}
HEAD = np.dtype([(name, _NUMPY_CODES[code]) for name, code in struct_fields(BODIES[MessageType.DATA])])
"""The head of a DATA body."""

_KINDS = np.zeros(256, np.uint8)
_KINDS[list(MessageType)] = kernel.SEEDED_KIND
_KINDS[list(FROZEN)] = kernel.FROZEN_KIND
_CHANNEL_KINDS = np.array([channel.kind for channel in CHANNELS], np.uint8)
_CHANNEL_SIZES = np.array([{"h": 2, "i": 4}[channel.format] for channel in CHANNELS], np.uint8)


def _crc_table() -> NDArray[np.uint32]:
    """CRC-32 of each byte value with 0 to 7 zeros after it."""
    table = np.zeros((8, 256), np.uint32)
    value = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        value = (value >> 1) ^ np.where(value & 1, np.uint32(0xEDB88320), np.uint32(0))
    table[0] = value
    for zeros in range(1, 8):
        table[zeros] = (table[zeros - 1] >> 8) ^ table[0, table[zeros - 1] & 0xFF]
    return table


_CRC_TABLE = _crc_table()


class Found(NamedTuple):
    """What stands in some bytes.

    Attributes:
        rows: a row for each chunk, columns as in kernel.py, shape (n, kernel.COLUMNS).
        raw: the decoded bytes of all chunks.
        rest: where the unfinished chunk begins.
        endless: whether that one goes on from a chunk that was cut for its length.
    """

    rows: NDArray[np.int64]
    raw: NDArray[np.uint8]
    rest: int
    endless: bool


@lru_cache(maxsize=1)
def prepare() -> None:
    """Have everything compiled before time matters: the first sample comes when motors move already."""
    nothing = np.empty(0, np.int64)
    unpack_columns(find_chunks(b"", 0).raw, nothing, nothing, np.empty(0, HEAD))


class Room(threading.local):
    """Arrays for what is found, each thread's own: new ones cost more than to find a frame or two."""

    def __init__(self, size: int) -> None:
        """Take as many bytes as `size` at once."""
        self.size = size
        shape = (size // 2 + 1, kernel.COLUMNS)  # rows of a byte each, and its delimiter
        self.rows: NDArray[np.int64] = np.empty(shape, np.int64)
        self.raw: NDArray[np.uint8] = np.empty(size, np.uint8)


def find_chunks(data: bytes, seed: int, endless: bool = False, room: Room | None = None) -> Found:
    """Cut bytes at their delimiters and check what stands between them.

    Args:
        data: as they came.
        seed: hash of the sender's schema.
        endless: whether they go on in a chunk that was cut for its length.
        room: for what is found, until it is used again; None: for good.
    """
    if room is None or room.size < len(data):
        kernel.load()
        rows = np.empty((data.count(0) + len(data) // MAX_ENCODED + 1, kernel.COLUMNS), np.int64)
        raw = np.empty(len(data), np.uint8)
    else:
        rows, raw = room.rows, room.raw
    found, rest, endless = kernel.find_chunks(
        np.frombuffer(data, np.uint8), _KINDS, seed, _CRC_TABLE, PROTOCOL_MAJOR, MAX_FRAME, endless, raw, rows
    )
    return Found(rows[:found], raw, rest, endless)


def reason(row: Sequence[int]) -> str:
    """Why a chunk is no frame, in plain words, from its row."""
    holds = row[kernel.SIZE] - kernel.HEADER_SIZE - kernel.CRC_SIZE
    size = row[kernel.END] - row[kernel.START]
    return {
        kernel.ENDLESS: f"{size} bytes without a delimiter; a frame has at most {MAX_ENCODED}",
        kernel.REST_OF_ENDLESS: f"the rest of more than {MAX_ENCODED} bytes without a delimiter",
        kernel.NOT_COBS: "not COBS: a group is longer than what is left of the bytes",
        kernel.TOO_SHORT: f"{row[kernel.SIZE]} bytes are too few for a frame",
        kernel.TOO_LONG: f"a body of {holds} bytes; at most {MAX_BODY} fit a frame",
        kernel.WRONG_LENGTH: f"header says {row[kernel.LENGTH]} body bytes, the frame holds {holds}",
        kernel.WRONG_CRC: "CRC-32 differs: damaged, or from a board with another schema",
        kernel.OTHER_PROTOCOL: f"protocol {row[kernel.PROTOCOL]}, this host speaks {PROTOCOL_MAJOR}",
        kernel.UNKNOWN_TYPE: f"unknown message type 0x{row[kernel.TYPE]:02x}",
    }[row[kernel.CHECK]]


def unpack_columns(
    raw: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], heads: NDArray[np.void]
) -> dict[str, NDArray[np.int32]] | int:
    """Packed samples of blocks as columns.

    Args:
        raw: bytes that hold the blocks.
        starts, lengths: where each block's samples begin, and their bytes.
        heads: of the blocks, dtype HEAD.

    Returns:
        Raw values of each channel that is in any block; or the first block that has not the length its head says.
    """
    kernel.load()
    first_ticks, counts, channels, dividers = (
        heads[name].astype(np.int64) for name in ("first_tick", "count", "channels", "dividers")
    )
    totals = np.zeros(len(CHANNELS), np.int64)
    wrong = kernel.count_values(
        first_ticks, counts, channels, dividers, _CHANNEL_KINDS, _CHANNEL_SIZES, lengths, totals
    )
    if wrong >= 0:
        return int(wrong)
    values = np.empty(totals.sum(), np.int32)
    ends = np.cumsum(totals)
    kernel.unpack_values(
        raw, starts, first_ticks, counts, channels, dividers, _CHANNEL_KINDS, _CHANNEL_SIZES, ends - totals, values
    )
    present = int(np.bitwise_or.reduce(channels))
    return {
        channel.name: values[ends[channel.bit] - totals[channel.bit] : ends[channel.bit]]
        for channel in CHANNELS
        if present >> channel.bit & 1
    }
