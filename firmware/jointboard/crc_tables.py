"""Tables of the CRC-32 for framing.queue(): what a byte with none, one, two and three bytes behind it does.

Four of 256 words, 4 kB; they never change, so two motors share them. Filled at boot from the interpreter's own CRC.
"""

from array import array
from binascii import crc32

tables = array("i", bytes(4096))

_piece = bytearray(4)
for _k in range(1024):
    _piece[0] = _k & 255
    _crc = crc32(memoryview(_piece)[: 1 + _k // 256], 0xFFFFFFFF) ^ 0xFFFFFFFF
    tables[_k] = ((_crc + 0x80000000) & 0xFFFFFFFF) - 0x80000000
