"""Frames in and out: header, CRC, sequence, and the transmit ring that drops and counts instead of waiting.

The last `RESERVE` bytes of the ring are kept for answers and faults, so that a host too slow for the stream still gets
them. A frame that finds no room takes no sequence number: the host tells what the board dropped from what the line
lost. An idle line allocates nothing; a frame sent or received takes 100 to 200 bytes of heap, collected by app.py.
"""

import struct
from array import array
from binascii import crc32

import uctypes
from micropython import const

from jointboard import wire
from jointboard.framing import FRAME, LARGEST, NEXT, RESULT, RING, decode, drain, encode
from jointboard.framing import CELLS as DECODER_CELLS
from jointboard.registers import word

RESERVE = const(512)
BODY = const(12)  # where a body begins in a frame's buffer; wire.HEADER_SIZE, checked below

received = bytearray(LARGEST)
reply = bytearray(LARGEST)  # frames are built here; DATA alone has its own buffer (publish.py)
frames_sent = 0
frames_dropped = 0
bad_frames = 0

_ring = bytearray(RING)
_decoder = array("i", bytes(4 * DECODER_CELLS))
_head = 0
_tail = 0
_sequence = 0

assert BODY == wire.HEADER_SIZE


def address(buffer):
    """Address of a buffer as a cell holds it."""
    return word(uctypes.addressof(buffer))


_decoder[FRAME] = address(received)


def seed(kind):
    return 0 if kind in wire.UNSEEDED else wire.SCHEMA_HASH


def send(kind, node, time_us, buffer, length, reserve=0):
    """Complete the frame whose body of `length` bytes stands in `buffer`, and queue it. False: no room, dropped."""
    global _head, _sequence, frames_sent, frames_dropped
    end = BODY + length
    if RING - 1 - ((_head - _tail) & (RING - 1)) < end + 4 + (end + 4) // 254 + 2 + reserve:
        frames_dropped += 1
        return False
    time_us &= 0xFFFFFFFF
    struct.pack_into(wire.HEADER, buffer, 0, wire.PROTOCOL_MAJOR, kind, node, 0, _sequence, length, time_us)
    struct.pack_into("<I", buffer, end, crc32(memoryview(buffer)[:end], seed(kind)))
    _head = encode(buffer, end + 4, _ring, _head)
    _sequence = (_sequence + 1) & 0xFFFF
    frames_sent += 1
    return True


def transmit(target, at, room):
    """Move up to `room` queued bytes to target[at:]; returns how many."""
    global _tail
    count = (_head - _tail) & (RING - 1)
    if count > room:
        count = room
    if count:
        drain(_ring, _tail, target, at, count)
        _tail = (_tail + count) & (RING - 1)
    return count


def receive(source, start, count, node):
    """Look at source[start:count] for a frame to this node.

    Returns where to go on, `count` when all is looked at; `received` holds a frame when `frame_length` is not negative.
    """
    global frame_length, bad_frames
    frame_length = -1
    _decoder[NEXT] = start
    if decode(_decoder, source, count):
        length = _decoder[RESULT] - BODY - 4
        if not _valid(length):
            bad_frames += 1
        elif received[2] == node or received[2] == wire.BROADCAST_NODE:
            frame_length = length
    return _decoder[NEXT]


frame_length = -1  # body bytes of the frame in `received`; its type is received[1], its body starts at BODY


def _valid(length):
    if length < 0 or received[0] != wire.PROTOCOL_MAJOR or struct.unpack_from("<H", received, 6)[0] != length:
        return False
    expected = struct.unpack_from("<I", received, BODY + length)[0]
    return crc32(memoryview(received)[: BODY + length], seed(received[1])) == expected
