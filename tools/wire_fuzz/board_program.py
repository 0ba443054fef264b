"""The firmware's own decoder as a decoder under test, run by MicroPython (decoder.py says how it is spoken to).

Its answer: ``<I`` for each chunk, CRC-32 of header and body of the frame it was taken for, 0 where it was refused.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false

import struct
import sys
from binascii import crc32

sys.path.append(sys.argv[1])

from jointboard import link
from jointboard.framing import RESULT

MOST_CHUNKS = 8192
NOTHING = -2  # in RESULT: no chunk has ended yet


def main():
    """Answer batches until there are no more."""
    incoming, outgoing = open(0, "rb"), open(1, "wb")
    head, size, piece = bytearray(8), bytearray(2), bytearray(512)
    verdicts = bytearray(4 * MOST_CHUNKS)
    while incoming.readinto(head) == 8:
        pieces, node = struct.unpack("<II", head)
        chunks = 0
        for _ in range(pieces):
            incoming.readinto(size)
            count = size[0] | size[1] << 8
            incoming.readinto(piece, count)
            at = 0
            while at < count:
                link._decoder[RESULT] = NOTHING
                bad = link.bad_frames
                at = link.receive(piece, at, count, node)
                length = link._decoder[RESULT]
                if length != NOTHING:
                    taken = 0
                    if link.bad_frames == bad:
                        # A request is handed on; what other boards say is only found to be whole.
                        if link.received[1] < 0x20 and link.frame_length != length - link.BODY - 4:
                            raise ValueError("a request to this node was found whole and not handed on")
                        taken = crc32(memoryview(link.received)[: length - 4])
                    struct.pack_into("<I", verdicts, 4 * chunks, taken)
                    chunks += 1
        outgoing.write(struct.pack("<I", 4 * chunks))
        outgoing.write(memoryview(verdicts)[: 4 * chunks])


main()
