"""Frames in and out: header, CRC, sequence, turns on a shared line, and the transmit ring that drops and counts instead
of waiting.

What the ring keeps free for whom: a DATA block leaves room for the board's reports, those for the longest answer, and
answers for the YIELD that ends a turn. So a host too slow for the stream still gets its answers. A frame that finds no
room takes no sequence number: the host tells what the board dropped from what the line lost. An idle line allocates
nothing; a frame sent or received takes 100 to 200 bytes of heap, collected by app.py.
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

BODY = const(12)  # where a body begins in a frame's buffer; wire.HEADER_SIZE, checked below
# Bytes of the ring a frame must leave free, by what it is.
LEFT_BY_DATA = const(1400)
LEFT_BY_REPORTS = const(1150)  # the longest frame is 1126 bytes encoded
LEFT_BY_ANSWERS = const(20)  # a YIELD is 18
FIRST_FROM_BOARD = const(0x20)
FIRST_ANSWER = const(0x40)

received = bytearray(LARGEST)
reply = bytearray(LARGEST)  # frames are built here; DATA alone has its own buffer (publish.py)
frames_sent = 0
frames_dropped = 0
frames_received = 0
bad_frames = 0

_ring = bytearray(RING)
_decoder = array("i", bytes(4 * DECODER_CELLS))
_head = 0
_end = 0  # of what may be sent now; on a line of its own a board may send all it has
_tail = 0
_sequence = 0

assert (BODY, LARGEST) == (wire.HEADER_SIZE, BODY + wire.MAX_BODY + 4)
assert (FIRST_FROM_BOARD, FIRST_ANSWER) == (wire.MESSAGE_DATA, wire.MESSAGE_ACK)


def address(buffer):
    """Address of a buffer as a cell holds it."""
    return word(uctypes.addressof(buffer))


_decoder[FRAME] = address(received)


def seed(kind):
    return 0 if kind in wire.FROZEN else wire.SCHEMA_HASH


shared = False  # the line has other boards: speak only when it is given
_answering = True  # nobody answers a frame to every board of a shared line


def share(line_is_shared):
    global shared
    shared = line_is_shared


def send(kind, node, time_us, buffer, length, left):
    """Complete the frame whose body of `length` bytes stands in `buffer`, and queue it; `left` bytes stay free.

    False: there was no room, it is dropped.
    """
    global _head, _end, _sequence, frames_sent, frames_dropped
    if kind >= FIRST_ANSWER and not _answering:
        return True
    end = BODY + length
    if RING - 1 - ((_head - _tail) & (RING - 1)) < end + 4 + (end + 4) // 254 + 2 + left:
        frames_dropped += 1
        return False
    time_us &= 0xFFFFFFFF
    struct.pack_into(wire.HEADER, buffer, 0, wire.PROTOCOL_MAJOR, kind, node, 0, _sequence, length, time_us)
    struct.pack_into("<I", buffer, end, crc32(memoryview(buffer)[:end], seed(kind)))
    _head = encode(buffer, end + 4, _ring, _head)
    if not shared or kind == wire.MESSAGE_YIELD:
        _end = _head
    _sequence = (_sequence + 1) & 0xFFFF
    frames_sent += 1
    return True


def transmit(target, at, room):
    """Move up to `room` bytes that may be sent now to target[at:]; returns how many."""
    global _tail
    count = (_end - _tail) & (RING - 1)
    if count > room:
        count = room
    if count:
        drain(_ring, _tail, target, at, count)
        _tail = (_tail + count) & (RING - 1)
    return count


def silent():
    """Nothing is left that may be sent now."""
    return _end == _tail


def receive(source, start, count, node):
    """Look at source[start:count] for a request to this node.

    Returns where to go on, `count` when all is looked at; `received` holds a frame when `frame_length` is not negative.
    """
    global frame_length, frames_received, bad_frames, _answering
    frame_length = -1
    _decoder[NEXT] = start
    if decode(_decoder, source, count):
        length = _decoder[RESULT] - BODY - 4
        if not _valid(length):
            bad_frames += 1
        elif received[1] < FIRST_FROM_BOARD and (received[2] == node or received[2] == wire.BROADCAST_NODE):
            frames_received += 1
            frame_length = length
            _answering = not shared or received[2] == node
    return _decoder[NEXT]


frame_length = -1  # body bytes of the frame in `received`; its type is received[1], its body starts at BODY


def turn():
    """On a shared line: the frame in `received` gives it to this board."""
    return shared and _answering


def _valid(length):
    if length < 0 or struct.unpack_from("<H", received, 6)[0] != length:
        return False
    if received[0] != wire.PROTOCOL_MAJOR and received[1] not in wire.FROZEN:
        return False
    expected = struct.unpack_from("<I", received, BODY + length)[0]
    return crc32(memoryview(received)[: BODY + length], seed(received[1])) == expected
