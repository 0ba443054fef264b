"""Frames: COBS(header | body | CRC-32) 0x00, and the reader that finds them again in a stream of bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from cobs import cobs
from construct import ConstructError
from numpy.typing import NDArray

from jointwire.decoder import MAX_ENCODED, Room, find_chunks, prepare, reason
from jointwire.errors import BodyError, FrameError
from jointwire.kernel import AT, CHECK, END, FLAGS, HEADER_SIZE, LENGTH, NODE, SEQ, START, TIME_US, TYPE, WHOLE
from jointwire.layouts import parse_body
from jointwire.messages import BODIES, FROZEN, HEADER, MAX_BODY, PROTOCOL_MAJOR, MessageType
from jointwire.schema import schema_hash, struct_fields

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
            BodyError: the payload is too short for the message type, or longer than it may be.
        """
        try:
            return parse_body(self.type, self.payload)
        except BodyError as error:
            raise BodyError(f"{self.type.name} frame {self.seq} of node {self.node} {error}") from None


@dataclass(frozen=True)
class Noise:
    """Bytes between two delimiters that are not a frame, kept as they came, with the check they failed."""

    reason: str


class Chunk(NamedTuple):
    """What stood between two delimiters: the encoded bytes unaltered, and what they are."""

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
        BodyError: the fields do not make a body of this type, or it is longer than `MAX_BODY`.
    """
    try:
        body = payload or BODIES[message_type].build(fields)
    except (ConstructError, KeyError, TypeError) as error:
        raise BodyError(f"{message_type.name} cannot be built from {fields}: {error}") from error
    if len(body) > MAX_BODY:
        raise BodyError(f"{message_type.name} body has {len(body)} bytes; at most {MAX_BODY} fit a frame")
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
        found = find_chunks(data, self._seed, self._endless, _ROOM)
        self.pending, self._endless = data[found.rest :], found.endless
        return [chunk_at(row, data, found.raw) for row in found.rows.tolist()]


def chunk_at(row: Sequence[int], data: bytes, raw: NDArray[np.uint8]) -> Chunk:
    """A chunk from its row, the bytes it stands in, and the decoded bytes."""
    encoded = data[row[START] : row[END]]
    if row[CHECK] != WHOLE:
        return Chunk(encoded, Noise(reason(row)))
    start = row[AT] + HEADER_SIZE
    payload = raw[start : start + row[LENGTH]].tobytes()
    return Chunk(encoded, Frame(_TYPES[row[TYPE]], row[NODE], row[SEQ], row[TIME_US], payload, row[FLAGS]))
