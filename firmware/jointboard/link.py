"""Frames in and out: header, CRC, sequence, turns on a shared line, and the transmit ring that drops and counts instead
of waiting.

What the ring keeps free for whom: a DATA block leaves room for the board's reports, those for the longest answer, and
answers for the YIELD that ends a turn. So a host too slow for the stream still gets its answers. A frame that finds no
room takes no sequence number: the host tells what the board dropped from what the line lost. An idle line allocates
nothing, nor does a DATA frame, nor what others say to each other on a shared line. Any other frame sent or received
is an errand: it takes 100 to 200 bytes of heap, collected by app.py.
"""

import struct
from array import array
from binascii import crc32

import uctypes
from micropython import const

from jointboard import rooms, framing, tick, wire
from jointboard.crc_tables import tables
from jointboard.framing import (
    BLOCK_AT, BODY, BODY_LENGTH, DROPPED, FRAME, KIND, LARGEST, NEXT, NODE, PROTOCOL, READY, RESERVE, RESULT, RING,
    RING_AT, SAMPLES, SCHEMA, SEED, SENT, SHARED, SOURCE, SPILL, TABLES_AT, TARGET, TIME, decode, drain, queue,
    take_block,
)  # fmt: skip
from jointboard.registers import word

# Bytes of the ring a frame must leave free, by what it is; DATA leaves framing.LEFT_BY_DATA.
LEFT_BY_REPORTS = const(1150)  # the longest frame is 1126 bytes encoded
LEFT_BY_ANSWERS = const(20)  # a YIELD is 18
FIRST_FROM_BOARD = const(0x20)
FIRST_ANSWER = const(0x40)

received = bytearray(LARGEST)
reply = bytearray(LARGEST)  # frames are built here; DATA alone has its own buffer
frames_received = 0
bad_frames = 0
errands = 0  # since memory was last collected, as app.py counts

line = array("i", bytes(4 * framing.LINE_CELLS))
_block = bytearray(LARGEST)
_ring = rooms.rings.pop()
_decoder = array("i", bytes(4 * framing.CELLS))

assert len(_ring) == RING + SPILL
assert (BODY, LARGEST) == (wire.HEADER_SIZE, BODY + wire.MAX_BODY + 4)
assert (SAMPLES, SPILL) == (BODY + wire.BODIES[wire.MESSAGE_DATA][1], LARGEST + LARGEST // 254 + 2)
assert (FIRST_FROM_BOARD, FIRST_ANSWER) == (wire.MESSAGE_DATA, wire.MESSAGE_ACK)
for _name in ("MESSAGE_DATA", "MESSAGE_YIELD"):
    assert getattr(framing, _name) == getattr(wire, _name)
for _name in ("BOARD_NODE", "STREAM_CHANNELS"):
    assert getattr(framing, _name) == getattr(wire, "REGISTER_" + _name)
for _name in ("INPUTS", "SAMPLE", "STATE", "COUNT", "FIRST_TICK", "FIRST_PLAY", "DIVIDERS"):
    assert getattr(framing, _name) == getattr(tick, _name)


def address(buffer):
    """Address of a buffer as a cell holds it."""
    return word(uctypes.addressof(buffer))


_decoder[FRAME] = address(received)
line[BLOCK_AT] = address(_block)
line[RING_AT] = address(_ring)
line[TABLES_AT] = address(tables)
line[SCHEMA] = word(wire.SCHEMA_HASH)
line[PROTOCOL] = wire.PROTOCOL_MAJOR
first_sample = line[BLOCK_AT] + SAMPLES
_line_at = address(line)  # kernels take it quicker than the array


def seed(kind):
    return 0 if kind in wire.FROZEN else wire.SCHEMA_HASH


shared = False  # the line has other boards: speak only when it is given
_answering = True  # nobody answers a frame to every board of a shared line


def share(line_is_shared):
    global shared
    shared = line_is_shared
    line[SHARED] = line_is_shared


def attach(outgoing, at):
    """The Hal sends what stands in `outgoing` from byte `at` on."""
    line[TARGET] = address(outgoing) + at


def send(kind, node, time_us, buffer, length, left):
    """Complete the frame whose body of `length` bytes stands in `buffer`, and queue it; `left` bytes stay free.

    False: there was no room, it is dropped.
    """
    global errands
    if kind >= FIRST_ANSWER and not _answering:
        return True
    errands += 1
    line[SOURCE] = address(buffer)
    line[BODY_LENGTH] = length
    line[KIND] = kind
    line[NODE] = node
    line[TIME] = word(time_us)
    line[SEED] = word(seed(kind))
    line[RESERVE] = left
    return queue(_line_at) != 0


def send_block(cells_at, missed):
    """The same for the tick's DATA block, which begins anew; its samples, negative when they are dropped."""
    count = take_block(_line_at, cells_at, missed)
    return count if queue(_line_at) else -count


def transmit(room):
    """Give the Hal up to `room` bytes that may be sent now; returns how many."""
    return drain(_line_at, room)


def frames_sent():
    return line[SENT] & 0xFFFFFFFF


def frames_dropped():
    return line[DROPPED] & 0xFFFFFFFF


def silent():
    """Nothing is left that may be sent now."""
    return line[READY] == 0


def receive(source, start, count, node):
    """Look at source[start:count] for a request to this node.

    Returns where to go on, `count` when all is looked at; `received` holds a frame when `frame_length` is not negative.
    On a shared line most frames are between others: whether those are whole is not this board's business.
    """
    global frame_length, frames_received, bad_frames, errands, _answering
    frame_length = -1
    _decoder[NEXT] = start
    if decode(_decoder, source, count):
        length = _decoder[RESULT] - BODY - 4
        asked = received[1] < FIRST_FROM_BOARD and (received[2] == node or received[2] == wire.BROADCAST_NODE)
        if asked or length < 0 or not shared:
            errands += 1
            if not _valid(length):
                bad_frames += 1
            elif asked:
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
