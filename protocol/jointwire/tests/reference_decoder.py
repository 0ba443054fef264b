"""A second decoder, in plain Python on the cobs and zlib packages: what the compiled one is judged against."""

from __future__ import annotations

import struct
import zlib

from cobs import cobs

from jointwire.messages import FROZEN, MAX_BODY, PROTOCOL_MAJOR, MessageType

LONGEST = 1125  # of COBS of a frame with the longest body: 12 + 1104 + 4 bytes, and one for each 254 and one more

Fields = tuple[int, int, int, int, int, bytes]
"""Type, node, flags, seq, time_us, body."""


def decode(encoded: bytes, seed: int) -> Fields | None:
    """A frame's fields; None when the bytes are none."""
    try:
        raw = cobs.decode(encoded)
    except cobs.DecodeError:
        return None
    if not 16 <= len(raw) <= 16 + MAX_BODY:
        return None
    protocol, kind, node, flags, seq, length, time_us = struct.unpack("<BBBBHHI", raw[:12])
    frozen = kind in FROZEN
    right = (
        length == len(raw) - 16
        and zlib.crc32(raw[:-4], 0 if frozen else seed) == int.from_bytes(raw[-4:], "little")
        and (frozen or protocol == PROTOCOL_MAJOR)
        and kind in set(MessageType)
    )
    return (kind, node, flags, seq, time_us, raw[12:-4]) if right else None


def decode_stream(data: bytes, seed: int) -> tuple[list[tuple[bytes, Fields | None]], bytes]:
    """All chunks of a stream with what they are, and what comes after the last of them."""
    chunks: list[tuple[bytes, Fields | None]] = []
    *complete, rest = data.split(b"\0")
    for encoded in complete:
        if len(encoded) > LONGEST:
            chunks += [(encoded[k : k + LONGEST + 1], None) for k in range(0, len(encoded), LONGEST + 1)]
        elif encoded:
            chunks.append((encoded, decode(encoded, seed)))
    while len(rest) > LONGEST:
        chunks.append((rest[: LONGEST + 1], None))
        rest = rest[LONGEST + 1 :]
    return chunks, rest
