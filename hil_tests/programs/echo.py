"""A board that is no joint board: it sends back what it receives and obeys three letters.

e: enable the drive with no current; d: disable it; x: end with an error.
For tests of the bench itself and of hosts that meet strange firmware.
"""

import struct

bench = open(3, "rb")
out = open(4, "wb")
block = bytearray(120)
out.write(struct.pack("<4i", 0x4A420002, 120, 0, 0))
enable = 0
while bench.readinto(block) == 120:
    count = struct.unpack_from("<i", block, 112)[0]
    received = bench.read(count) if count else b""
    for letter in received:
        if letter == 101:
            enable = 1
        elif letter == 100:
            enable = 0
        elif letter == 120:
            raise RuntimeError("told to end by the letter x")
    out.write(block[:4] + struct.pack("<3i", enable, 0, len(received)) + received)
