"""Frames: COBS(header | body | CRC-32) 0x00, and the decoder that finds them again in a stream of bytes."""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from cobs import cobs
from construct import ConstructError
from numpy.typing import NDArray

from jointwire import kernel
from jointwire.channels import CHANNELS
from jointwire.errors import FrameError
from jointwire.kernel import AT, CHECK, END, FLAGS, HEADER_SIZE, LENGTH, NODE, SEQ, START, TIME_US, TYPE, WHOLE
from jointwire.messages import APPENDED, BODIES, FROZEN, HEADER, MAX_BODY, PROTOCOL_MAJOR, MessageType
from jointwire.schema import schema_hash, struct_fields


@dataclass(frozen=True)
class Layout:
    """A body: a head, then as many items as the head's last field says.

    Attributes:
        head: struct of the head.
        item: struct codes of an item, "" where nothing repeats.
        item_size: bytes of an item.
    """

    head: struct.Struct
    item: str
    item_size: int


def _layout(kind: MessageType) -> Layout:
    codes = [code for _, code in struct_fields(BODIES[kind])]
    item = codes.pop()[1:-1] if codes and codes[-1].startswith("[") else ""
    return Layout(struct.Struct("<" + "".join(codes)), item, struct.calcsize("<" + item))


LAYOUTS: dict[MessageType, Layout] = {kind: _layout(kind) for kind in MessageType}


@lru_cache(maxsize=1)
def _classes() -> dict[MessageType, Any]:
    from jointwire.bodies import CLASSES  # which is generated: without that file the generator must still start

    return CLASSES


def parse_body(kind: MessageType, payload: bytes) -> Any:
    """The body as its dataclass of bodies.py; of DATA the head, of a frozen message the fields known here.

    Fields that an earlier version's frozen message did not have yet are zeros.

    Raises:
        FrameError: the payload is too short for the message type, or longer than it may be.
    """
    layout = LAYOUTS[kind]
    size = layout.head.size
    if 0 < size - len(payload) <= APPENDED.get(kind, 0):
        payload = payload.ljust(size, b"\0")
    if len(payload) < size:
        raise FrameError(f"has a body of {len(payload)} bytes; {size - APPENDED.get(kind, 0)} are the least")
    fields = layout.head.unpack_from(payload)
    if layout.item:
        start, size = size, size + fields[-1] * layout.item_size
        if len(payload) < size:
            raise FrameError(f"has a body of {len(payload)} bytes; its {fields[-1]} items need {size}")
        items = payload[start:size]
        # Knots and plain bytes stay bytes: who wants them as numbers has NumPy.
        fields += (struct.unpack(f"<{fields[-1]}{layout.item}", items) if layout.item in {"l", "h"} else items,)
    if len(payload) > size and kind not in FROZEN and kind is not MessageType.DATA:
        raise FrameError(f"has {len(payload) - size} bytes after its last field")
    return _classes()[kind](*fields)


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
    """Chunks found in some bytes.

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
    n_chunks, rest, endless = kernel.find_chunks(
        np.frombuffer(data, np.uint8), _KINDS, seed, _CRC_TABLE, PROTOCOL_MAJOR, MAX_FRAME, endless, raw, rows
    )
    return Found(rows[:n_chunks], raw, rest, endless)


def reason(row: Sequence[int]) -> str:
    """Reason why a chunk is no frame, in plain words, from its row."""
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


DELIMITER = b"\x00"
_ROOM = Room(4096)  # a port rarely has more bytes
_TYPES = {int(kind): kind for kind in MessageType}
# The header once more as a struct, derived from the construct.
_HEADER = struct.Struct("<" + "".join(code for _, code in struct_fields(HEADER)))


class _Fields(NamedTuple):
    type: MessageType
    node: int
    seq: int
    time_us: int
    payload: bytes
    flags: int = 0


class Frame(_Fields):
    """One frame that passed every check; `payload` is its body, `body` the same as a dataclass of bodies.py."""

    @cached_property
    def body(self) -> Any:
        """The body's fields (of a DATA frame: its head), by name.

        Raises:
            FrameError: the payload is too short for the message type, or longer than it may be.
        """
        try:
            return parse_body(self.type, self.payload)
        except FrameError as error:
            raise FrameError(f"{self.type.name} frame {self.seq} of node {self.node} {error}") from None


@dataclass(frozen=True)
class Noise:
    """Bytes between two delimiters that are not a frame, kept as they came, with the check they failed."""

    reason: str


class Chunk(NamedTuple):
    """Bytes between two delimiters, encoded and unaltered, and the frame or noise that they are."""

    encoded: bytes
    content: Frame | Noise


def encode_frame(
    message_type: MessageType,
    node: int,
    seq: int,
    time_us: int = 0,
    flags: int = 0,
    payload: bytes = b"",
    **fields: Any,
) -> bytes:
    """Bytes of one frame with its closing delimiter; the body is `payload`, or built from `fields` by construct.

    Raises:
        FrameError: the fields do not make a body of this type, or it is longer than `MAX_BODY`.
    """
    try:
        body = payload or BODIES[message_type].build(fields)
    except (ConstructError, KeyError, TypeError) as error:
        raise FrameError(f"{message_type.name} cannot be built from {fields}: {error}") from error
    if len(body) > MAX_BODY:
        raise FrameError(f"{message_type.name} body has {len(body)} bytes; at most {MAX_BODY} fit a frame")
    raw = _HEADER.pack(PROTOCOL_MAJOR, message_type, node, flags, seq & 0xFFFF, len(body), time_us & 0xFFFFFFFF) + body
    raw += struct.pack("<I", zlib.crc32(raw, 0 if message_type in FROZEN else schema_hash()))
    return cobs.encode(raw) + DELIMITER


def decode_frame(encoded: bytes, schema: int | None = None) -> Frame:
    """The frame between two delimiters.

    Args:
        encoded: the bytes, without delimiters.
        schema: hash of the sender's schema; None: this version's.

    Raises:
        FrameError: COBS, length, CRC, protocol or type is wrong.
    """
    if DELIMITER in encoded:
        raise FrameError(f"not COBS: byte {encoded.index(0)} is a delimiter")
    chunks = list(FrameReader(schema).feed(encoded + DELIMITER))
    if not chunks:
        raise FrameError("0 bytes are too few for a frame")
    match chunks[0].content:
        case Frame() as frame:
            return frame
        case Noise(reason):
            raise FrameError(reason)


class FrameReader:
    """Cuts a stream of bytes at its delimiters; whatever is not a frame comes back as Noise, never as nothing.

    Attributes:
        pending: what came after the last delimiter.
    """

    def __init__(self, schema: int | None = None) -> None:
        """Read frames of the schema with this hash; None: this version's."""
        prepare()
        self.pending: bytes = b""
        self._seed = schema_hash() if schema is None else schema
        self._endless = False

    def feed(self, data: bytes) -> list[Chunk]:
        """Chunks completed by `data`, in order; an unfinished one waits for its delimiter.

        A chunk that is too long for a frame is cut, so that a board that babbles cannot fill the host's memory; no part
        of it is a frame.
        """
        data = self.pending + data
        if len(data) <= MAX_ENCODED and DELIMITER not in data:  # a port gives a frame in pieces
            self.pending = data
            return []
        chunks = find_chunks(data, self._seed, self._endless, _ROOM)
        self.pending, self._endless = data[chunks.rest :], chunks.endless
        return [chunk_at(row, data, chunks.raw) for row in chunks.rows.tolist()]


def chunk_at(row: Sequence[int], data: bytes, raw: NDArray[np.uint8]) -> Chunk:
    """A chunk from its row, the bytes it stands in, and the decoded bytes."""
    encoded = data[row[START] : row[END]]
    if row[CHECK] != WHOLE:
        return Chunk(encoded, Noise(reason(row)))
    start = row[AT] + HEADER_SIZE
    payload = raw[start : start + row[LENGTH]].tobytes()
    return Chunk(encoded, Frame(_TYPES[row[TYPE]], row[NODE], row[SEQ], row[TIME_US], payload, row[FLAGS]))
