"""Damage to a frame on its way, and frames that are whole but not right.

Each takes encoded frames without their delimiters and gives what arrives in their place, delimiters included. What it
gives always ends in a delimiter: the frame after a mutant is not harmed. A mutation of a pair harms both its frames.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from random import Random

from cobs import cobs

from jointwire import FROZEN, PROTOCOL_MAJOR, schema_hash

_LONGEST_RUN = 12  # bytes touched by one mutation, mostly


def flip_bits(random: Random, frame: bytes) -> bytes:
    """One to eight bits fall over."""
    data = bytearray(frame)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data) + b"\0"


def overwrite_bytes(random: Random, frame: bytes) -> bytes:
    """A burst of other bytes: any, or a line stuck at one level."""
    at, end = _run(random, frame)
    burst = random.choice((random.randbytes(end - at), bytes(end - at), b"\xff" * (end - at)))
    return frame[:at] + burst + frame[end:] + b"\0"


def drop_bytes(random: Random, frame: bytes) -> bytes:
    """A run of bytes never comes."""
    at, end = _run(random, frame)
    return frame[:at] + frame[end:] + b"\0"


def insert_bytes(random: Random, frame: bytes) -> bytes:
    """Bytes of something else come in between."""
    at = random.randint(0, len(frame))
    return frame[:at] + random.randbytes(random.randint(1, _LONGEST_RUN)) + frame[at:] + b"\0"


def repeat_bytes(random: Random, frame: bytes) -> bytes:
    """A run of bytes, or the whole frame, comes twice without a delimiter in between."""
    at, end = random.choice((_run(random, frame), (0, len(frame))))
    return frame[:end] + frame[at:] + b"\0"


def exchange_bytes(random: Random, frame: bytes) -> bytes:
    """Two runs of bytes change places."""
    a, b, c = sorted(random.randint(0, len(frame)) for _ in range(3))
    return frame[:a] + frame[b:c] + frame[a:b] + frame[c:] + b"\0"


def truncate(random: Random, frame: bytes) -> bytes:
    """Its end or its beginning is missing."""
    at = random.randint(1, len(frame) - 1)
    return random.choice((frame[:at], frame[at:])) + b"\0"


def insert_delimiter(random: Random, frame: bytes) -> bytes:
    """Delimiters come within the frame."""
    at = random.randint(1, len(frame) - 1)
    return frame[:at] + bytes(random.randint(1, 2)) + frame[at:] + b"\0"


def break_code(random: Random, frame: bytes) -> bytes:
    """One of COBS's own bytes is another."""
    places, at = [], 0
    while at < len(frame):
        places.append(at)
        at += frame[at]
    at = random.choice(places)
    return frame[:at] + bytes([random.randint(1, 255)]) + frame[at + 1 :] + b"\0"


def lie_about_length(random: Random, frame: bytes) -> bytes:
    """The header gives the body another length, and the CRC agrees with that."""
    raw = bytearray(cobs.decode(frame))
    length = struct.unpack_from("<H", raw, 6)[0]
    lie = random.choice((length + 1, length - 1, length + 4, 0, 0xFFFF, random.randrange(1 << 16))) & 0xFFFF
    struct.pack_into("<H", raw, 6, lie)
    return _sealed(raw, _seed(raw))


def claim_other_version(random: Random, frame: bytes) -> bytes:
    """The frame is of another protocol; in the types that are frozen that is no fault, so those have a wrong CRC."""
    raw = bytearray(cobs.decode(frame))
    raw[0] = random.choice([version for version in range(256) if version != PROTOCOL_MAJOR])
    return _sealed(raw, _other_seed(random, raw) if raw[1] in FROZEN else _seed(raw))


def use_other_schema(random: Random, frame: bytes) -> bytes:
    """The frame comes from a board with another schema."""
    raw = bytearray(cobs.decode(frame))
    return _sealed(raw, _other_seed(random, raw))


def grow(random: Random, frame: bytes) -> bytes:
    """Bytes after the CRC, which agrees with what stands before it."""
    return cobs.encode(cobs.decode(frame) + random.randbytes(random.randint(1, _LONGEST_RUN))) + b"\0"


def lose_delimiter(random: Random, first: bytes, second: bytes) -> bytes:
    """Two frames become one."""
    return first + second + b"\0"


def splice(random: Random, first: bytes, second: bytes) -> bytes:
    """The beginning of one frame and the end of another."""
    return first[: random.randint(1, len(first))] + second[random.randint(0, len(second) - 1) :] + b"\0"


ALONE: tuple[Callable[[Random, bytes], bytes], ...] = (
    flip_bits, overwrite_bytes, drop_bytes, insert_bytes, repeat_bytes, exchange_bytes, truncate, insert_delimiter,
    break_code, lie_about_length, claim_other_version, use_other_schema, grow,
)  # fmt: skip
PAIRS: tuple[Callable[[Random, bytes, bytes], bytes], ...] = (lose_delimiter, splice)


def mutate(random: Random, frame: bytes) -> tuple[str, bytes]:
    """Name of a mutation and what arrives instead of the frame; never the frame itself."""
    mutation = random.choice(ALONE)
    return mutation.__name__, _differing(lambda: mutation(random, frame), frame)


def mutate_pair(random: Random, first: bytes, second: bytes) -> tuple[str, bytes]:
    """Name of a mutation and what arrives instead of two frames that follow each other."""
    mutation = random.choice(PAIRS)
    return mutation.__name__, _differing(lambda: mutation(random, first, second), first, second)


def _differing(draw: Callable[[], bytes], *frames: bytes) -> bytes:
    """Drawn until none of the frames stands in it whole between delimiters: that would be no mutant of it."""
    while True:
        arrived = draw()
        if not any(chunk in frames for chunk in arrived.split(b"\0")):
            return arrived


def _run(random: Random, frame: bytes) -> tuple[int, int]:
    at = random.randrange(len(frame))
    return at, min(len(frame), at + random.choice((1, 1, random.randint(1, _LONGEST_RUN), random.randint(1, 300))))


def _seed(raw: bytes | bytearray) -> int:
    return 0 if raw[1] in FROZEN else schema_hash()


def _other_seed(random: Random, raw: bytes | bytearray) -> int:
    """A seed that is not this frame's: the one of the other kind of type, or any other schema's hash."""
    other = schema_hash() if raw[1] in FROZEN else 0
    return random.choice((other, schema_hash() ^ 1 << random.randrange(32)))


def _sealed(raw: bytearray, seed: int) -> bytes:
    """The frame with the CRC that belongs to its header and body."""
    struct.pack_into("<I", raw, len(raw) - 4, zlib.crc32(raw[:-4], seed))
    return cobs.encode(bytes(raw)) + b"\0"
