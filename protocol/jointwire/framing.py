"""Frames: COBS(header | body | CRC-32) 0x00, and the reader that finds them again in a stream of bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cobs import cobs
from construct import Construct, ConstructError

from jointwire.errors import BodyError, FrameError
from jointwire.messages import BODIES, HEADER, MAX_BODY, PROTOCOL_MAJOR, UNSEEDED, MessageType
from jointwire.schema import schema_hash, struct_fields

DELIMITER = b"\x00"
# The header once more as a struct, derived from the construct: it is parsed for every frame of the stream.
_HEADER = struct.Struct("<" + "".join(code for _, code in struct_fields(HEADER)))
_CRC_SIZE = 4
# COBS adds one byte for each 254 and one more.
MAX_ENCODED = _HEADER.size + MAX_BODY + _CRC_SIZE + (_HEADER.size + MAX_BODY + _CRC_SIZE) // 254 + 1


@dataclass(frozen=True)
class Frame:
    """One frame that passed every check; `payload` is its body as bytes, `body` the same parsed by construct."""

    type: MessageType
    node: int
    seq: int
    time_us: int
    payload: bytes
    flags: int = 0

    @cached_property
    def body(self) -> Any:
        """The body's fields (of a DATA frame: its head), by name.

        Raises:
            BodyError: the payload is too short for the message type, or longer than it may be.
        """
        layout: Construct[Any, Any] = BODIES[self.type]
        try:
            body = layout.parse(self.payload)
        except ConstructError as error:
            raise BodyError(f"{self.type.name} frame {self.seq} of node {self.node}: {error}") from error
        if self.type is not MessageType.DATA and len(layout.build(body)) != len(self.payload):
            raise BodyError(f"{self.type.name} frame {self.seq} of node {self.node} has bytes after its last field")
        return body


@dataclass(frozen=True)
class Noise:
    """Bytes between two delimiters that are not a frame, kept as they came, with the check they failed."""

    reason: str


@dataclass(frozen=True)
class Chunk:
    """What stood between two delimiters: the encoded bytes unaltered, and what they are."""

    encoded: bytes
    content: Frame | Noise


def crc_seed(message_type: int) -> int:
    """Seed of the CRC: the schema hash, but zero for HELLO and HELLO_ACK."""
    return 0 if message_type in UNSEEDED else schema_hash()


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
    raw = _HEADER.pack(
        PROTOCOL_MAJOR, message_type, node, flags, seq & 0xFFFF, len(body), time_us & 0xFFFFFFFF
    ) + body
    raw += struct.pack("<I", zlib.crc32(raw, crc_seed(message_type)))
    return cobs.encode(raw) + DELIMITER


def decode_frame(encoded: bytes) -> Frame:
    """The frame between two delimiters.

    Raises:
        FrameError: COBS, length, protocol, type or CRC is wrong.
    """
    if len(encoded) > MAX_ENCODED:
        raise FrameError(f"{len(encoded)} bytes without a delimiter; a frame has at most {MAX_ENCODED}")
    try:
        raw = cobs.decode(encoded)
    except cobs.DecodeError as error:
        raise FrameError(f"not COBS: {error}") from error
    if len(raw) < _HEADER.size + _CRC_SIZE:
        raise FrameError(f"{len(raw)} bytes are too few for a frame")
    protocol, kind, node, flags, seq, length, time_us = _HEADER.unpack_from(raw)
    if length != len(raw) - _HEADER.size - _CRC_SIZE:
        raise FrameError(f"header says {length} body bytes, the frame holds {len(raw) - _HEADER.size - _CRC_SIZE}")
    if zlib.crc32(raw[:-_CRC_SIZE], crc_seed(kind)) != int.from_bytes(raw[-_CRC_SIZE:], "little"):
        raise FrameError("CRC-32 differs: damaged, or from a board with another schema")
    if protocol != PROTOCOL_MAJOR:
        raise FrameError(f"protocol {protocol}, this host speaks {PROTOCOL_MAJOR}")
    try:
        message_type = MessageType(kind)
    except ValueError as error:
        raise FrameError(f"unknown message type 0x{kind:02x}") from error
    return Frame(message_type, node, seq, time_us, raw[_HEADER.size : -_CRC_SIZE], flags)


class FrameReader:
    """Cuts a stream of bytes at its delimiters; whatever is not a frame comes back as Noise, never as nothing."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """Chunks completed by `data`, in order; an unfinished one waits for its delimiter."""
        self._pending += data
        *complete, rest = bytes(self._pending).split(DELIMITER)
        if len(rest) > MAX_ENCODED:  # a board that babbles without delimiters must not fill the host's memory
            complete.append(rest)
            rest = b""
        self._pending = bytearray(rest)
        for encoded in complete:
            if encoded:  # two delimiters in a row are how a sender marks a pause
                yield Chunk(encoded, _content(encoded))


def _content(encoded: bytes) -> Frame | Noise:
    try:
        return decode_frame(encoded)
    except FrameError as error:
        return Noise(str(error))
