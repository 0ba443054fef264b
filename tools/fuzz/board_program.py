"""The firmware's own decoder as a decoder under test, run by MicroPython (decoder.py says how it is spoken to).

Its answer: ``<I`` for each chunk, CRC-32 of header and body of the frame it was taken for, 0 where it was refused.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false

import struct
import sys
from binascii import crc32

sys.path.append(sys.argv[1])

from jointboard import framing
from jointboard.link import Link, address
from jointboard.registers import new_cells

MOST_CHUNKS = 8192


def main():
    """Answer batches until there are no more."""
    incoming, outgoing = open(0, "rb"), open(1, "wb")
    head, size, piece = bytearray(8), bytearray(2), bytearray(512)
    verdicts, inputs = bytearray(4 * MOST_CHUNKS), bytearray(128)
    cells = new_cells()
    link = Link(cells)
    line = link.line
    line[framing.RECEIVED_AT], line[framing.RECEIVED_MASK] = address(piece), -1
    cells[framing.INPUTS] = address(inputs)
    while incoming.readinto(head) == 8:
        pieces, node = struct.unpack("<II", head)
        cells[framing.BOARD_NODE] = node
        chunks = 0
        for _ in range(pieces):
            incoming.readinto(size)
            count = size[0] | size[1] << 8
            incoming.readinto(piece, count)
            line[framing.NEXT] = 0
            for end in ends(piece, count):
                # Chunk by chunk, so that it is known which one the counts speak of.
                waited = line[framing.BYTES] + end - line[framing.NEXT] > (1 if piece[end - 1] == 0 else 1 << 20)
                bad = line[framing.BAD]
                line[framing.END] = end
                found = framing.hear(link.line_at, link.cells_at)
                if not waited:
                    continue
                taken = 0
                if line[framing.BAD] == bad:
                    whole = struct.unpack_from("<H", link.received, 6)[0] + framing.BODY
                    if link.received[1] < 0x20 and not found and asked(link.received, node):
                        raise ValueError("a request to this node was found whole and not handed on")
                    taken = crc32(memoryview(link.received)[:whole])
                struct.pack_into("<I", verdicts, 4 * chunks, taken)
                chunks += 1
        outgoing.write(struct.pack("<I", 4 * chunks))
        outgoing.write(memoryview(verdicts)[: 4 * chunks])


def ends(piece, count):
    """Ends within a piece: behind each delimiter, and at its end."""
    for k in range(count):
        if piece[k] == 0 or k == count - 1:
            yield k + 1


def asked(received, node):
    """The frame in `received` is to this board."""
    return received[2] in (node, framing.BROADCAST_NODE)


main()
