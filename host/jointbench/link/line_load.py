"""How much of a shared line its boards need while they stream."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from jointbench.errors import BenchFileError
from jointbench.link.bench_file import BoardEntry
from jointbench.link.identity import Facts
from jointbench.link.shared_line import BITS, POLL_US
from jointwire import BODIES, CHANNELS, MessageType, encode_frame

# The rest is silence between words: boards answer in their next tick, and adapters take their time.
USABLE = 0.9


def check_load(entries: Iterable[BoardEntry], facts: Iterable[Facts]) -> None:
    """Refuse a line that cannot carry what its boards will stream.

    Raises:
        BenchFileError: says what is needed and what the line carries.
    """
    entries = tuple(entries)
    needed = sum(bytes_per_second(each) for each in facts)
    carried = entries[0].baud / BITS
    if needed > USABLE * carried:
        joints = ", ".join(entry.joint for entry in entries)
        raise BenchFileError(
            f"line {entries[0].url!r} of {joints}: its boards stream {needed / 1e3:.1f} kB/s, {entries[0].baud} baud "
            f"carry {carried / 1e3:.1f} kB/s, of which {USABLE:.0%} are usable; raise the baud rate of boards and "
            "file, or give some of them another line"
        )


def bytes_per_second(facts: Facts) -> float:
    """What a board sends and is sent while it streams: its DATA, and its turns."""
    registers = facts.registers
    tick = 0.0
    for channel in CHANNELS:
        if registers["stream.channels"] >> channel.bit & 1:
            size = struct.calcsize(f"<{channel.format}")
            tick += size / (1 << registers[f"stream.every_{channel.kind.name.lower()}"])
    ticks = registers["stream.block"]
    body = b"\1" * (BODIES[MessageType.DATA].sizeof() + round(ticks * tick))  # without zeros COBS is longest
    block = len(encode_frame(MessageType.DATA, 0, 0, payload=body))
    turn = sum(len(frame) for frame in (
        encode_frame(MessageType.PING, 0, 0, nonce=0),
        encode_frame(MessageType.PONG, 0, 0, nonce=0, tick=0),
        encode_frame(MessageType.YIELD, 0, 0),
    ))  # fmt: skip
    return block / (ticks * facts.tick_period) + turn / (POLL_US * 1e-6)
