"""A board that is no joint board: it answers when it is called, and sends all that it has heard since.

Node 1 is called by the letter a, node 2 by b, and so on. The answer is the number of bytes heard, up to and with the
last tick, and their CRC-32, each as eight capital letters from K to Z (one for four bits), between < and >.
"""

import binascii
import json
import struct

with open("config.json") as file:
    NODE = json.load(file)["node"]
NAME = 96 + NODE


def letters(number):
    """Eight letters for a 32-bit number, lowest bits first."""
    return bytes(75 + (number >> 4 * place & 15) for place in range(8))


bench = open(3, "rb")
out = open(4, "wb")
block = bytearray(120)
out.write(struct.pack("<4i", 0x4A420002, 120, 0, 0))
count = crc = 0
while bench.readinto(block) == 120:
    size = struct.unpack_from("<i", block, 112)[0]
    heard = bench.read(size) if size else b""
    count += size
    crc = binascii.crc32(heard, crc)
    answer = b"<" + letters(count) + letters(crc) + b">" if NAME in heard else b""
    out.write(block[:4] + struct.pack("<3i", 0, 0, len(answer)) + answer)
