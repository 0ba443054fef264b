"""A board with broken firmware: every tick it sends 16 bytes that are never a frame, and it listens to nobody."""

import struct

bench = open(3, "rb")
out = open(4, "wb")
block = bytearray(120)
out.write(struct.pack("<4i", 0x4A420002, 120, 0, 0))
value = 1
while bench.readinto(block) == 120:
    count = struct.unpack_from("<i", block, 112)[0]
    if count:
        bench.read(count)
    noise = bytearray(16)
    for i in range(16):
        value = (value * 75 + 74) % 65537
        noise[i] = value & 0xFF
    out.write(block[:4] + struct.pack("<3i", 0, 0, 16) + noise)
