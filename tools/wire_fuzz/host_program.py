"""The host's reader and ledger as a decoder under test (decoder.py says how it is spoken to).

Its answer: ``<I`` number of chunks, for each ``<II`` encoded bytes and CRC-32 of the frame found in it (0: none), then
the bytes left unread and the board's ledger as JSON.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from dataclasses import asdict
from typing import BinaryIO

from jointbench.link.tally import Tally
from jointwire import HEADER, PROTOCOL_MAJOR, Chunk, Frame, FrameReader


def main() -> None:
    """Answer batches until there are no more."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints does not answer
    reader = FrameReader()
    while head := incoming.read(8):
        answer = _answer(reader, incoming, *struct.unpack("<II", head))
        outgoing.write(struct.pack("<I", len(answer)) + answer)
        outgoing.flush()


def _answer(reader: FrameReader, incoming: BinaryIO, pieces: int, node: int) -> bytes:
    tally = Tally({node: "joint"})
    found: list[tuple[int, int]] = []
    for _ in range(pieces):
        (size,) = struct.unpack("<H", incoming.read(2))
        for chunk in reader.feed(incoming.read(size)):
            found.append((len(chunk.encoded), _checksum(chunk)))
            if isinstance(chunk.content, Frame):
                tally.add(chunk.content)
            else:
                tally.add_noise(node)
    verdicts = b"".join(struct.pack("<II", *each) for each in found)
    ledger = tally.ledger().boards[0]
    counts = {**asdict(ledger), "frames_lost": ledger.frames_lost, "bad_frames": ledger.bad_frames}
    rest = {"pending": len(reader.pending), "closes": ledger.closes, "ledger": counts}
    return struct.pack("<I", len(found)) + verdicts + json.dumps(rest).encode()


def _checksum(chunk: Chunk) -> int:
    """CRC-32 of header and body as the frame's fields say they were: what was understood, not what came."""
    frame = chunk.content
    if not isinstance(frame, Frame):
        return 0
    header = HEADER.build(
        {
            "protocol": PROTOCOL_MAJOR, "type": frame.type, "node": frame.node, "flags": frame.flags,
            "seq": frame.seq, "length": len(frame.payload), "time_us": frame.time_us,
        }
    )  # fmt: skip
    return zlib.crc32(header + frame.payload)


if __name__ == "__main__":
    main()
