"""Frames in and out: what describes a frame for framing.py, the buffers, and turns on a shared line.

A frame that finds no room takes no sequence number: the host tells what the board dropped from what the line lost.
Neither DATA, STATUS, SYNC nor the answer to a PING allocates, nor what others say to each other on a shared line. Any
other frame sent or received is an errand: it takes 100 to 200 bytes of heap, collected by app.py.
"""

from array import array

import uctypes
from micropython import const

from jointboard import rooms, framing, tick, wire
from jointboard.crc_tables import tables
from jointboard.framing import (
    ASKED, BLOCK_AT, BODY, BODY_LENGTH, CLOCK_AT, CODE, CUT_AT, DESCRIBED, ENCODED, ENCODED_AT, END, FRAME, GIVEN,
    GONE, KIND, LARGEST, LEFT_BY_REPORTS, NEXT, NODE, PONG_AT, PROTOCOL, RECEIVED_AT, RECEIVED_MASK, REPORT_AT,
    REQUEST, RESERVE, RING, RING_AT, SAMPLES, SCHEMA, SEED, SHARED, SOURCE, SPILL, TABLES_AT, TAIL, TARGET,
    TARGET_SIZE, TIME, drain, hear, post,
)  # fmt: skip
from jointboard.registers import cells, word

BUDGET = const(1024)  # bytes encoded in a turn, where the Hal does not say
FIRST_ANSWER = const(0x40)

received = rooms.buffer(LARGEST)
reply = rooms.buffer(LARGEST)  # frames are built here; DATA, STATUS, SYNC and PONG have their own buffers
_report = rooms.buffer(68)
_pong = rooms.buffer(24)
_block = rooms.buffer(LARGEST)
_ring = rooms.rings.pop()
errands = 0  # since memory was last collected, as app.py counts
line = array("i", bytes(4 * framing.LINE_CELLS))

assert len(_ring) == RING + SPILL
assert (BODY, LARGEST) == (wire.HEADER_SIZE, BODY + wire.MAX_BODY + 4)
assert min(SPILL, LEFT_BY_REPORTS) >= framing.HEAD_SIZE + LARGEST
assert (SAMPLES, FIRST_ANSWER) == (BODY + wire.BODIES[wire.MESSAGE_DATA][1], wire.MESSAGE_ACK)
assert (wire.BODIES[wire.MESSAGE_STATUS][1], wire.BODIES[wire.MESSAGE_SYNC][1]) == (52, 8)
for _name in ("STOP", "PING", "DATA", "STATUS", "SYNC", "YIELD", "PONG"):
    assert getattr(framing, "MESSAGE_" + _name) == getattr(wire, "MESSAGE_" + _name)
for _name in ("BOARD_NODE", "STREAM_CHANNELS"):
    assert getattr(framing, _name) == getattr(wire, "REGISTER_" + _name)
for _name in ("INPUTS", "SAMPLE", "STATE", "SILENCE", "TRIP", "COUNT", "FIRST_TICK", "FIRST_PLAY", "DIVIDERS"):
    assert getattr(framing, _name) == getattr(tick, _name)
for _kind in range(96):
    _masks = (framing.FROZEN, 0x10, framing.FROZEN_ANSWERS)  # YIELD alone of what boards say by themselves
    assert (_masks[_kind >> 5] >> (_kind & 31)) & 1 == (_kind in wire.FROZEN), _kind
assert (framing.BLOCK, framing.STATUS, framing.SYNC) == (tick.EVENT_BLOCK, tick.EVENT_STATUS, tick.EVENT_SYNC)
assert (framing.FIRST_FROM_BOARD, framing.BROADCAST_NODE) == (wire.MESSAGE_DATA, wire.BROADCAST_NODE)


def address(buffer):
    """Address of a buffer as a cell holds it."""
    return word(uctypes.addressof(buffer))


def aligned(memory, size):
    """Where in memory of twice the size a ring of a power of two may begin that a DMA can go round."""
    return word((uctypes.addressof(memory) + size - 1) & -size)


_encoded = rooms.buffer(2 * ENCODED)
line[ENCODED_AT] = aligned(_encoded, ENCODED)
line[FRAME] = address(received)
line[BLOCK_AT] = address(_block)
line[REPORT_AT] = address(_report)
line[PONG_AT] = address(_pong)
line[RING_AT] = address(_ring)
line[TABLES_AT] = address(tables)
line[SCHEMA] = word(wire.SCHEMA_HASH)
line[PROTOCOL] = wire.PROTOCOL_MAJOR
first_sample = line[BLOCK_AT] + SAMPLES
line[CUT_AT] = address(line) + 4 * framing.NOWHERE
line_at, cells_at = address(line), address(cells)  # kernels take them quicker than the arrays


def seed(kind):
    return 0 if kind in wire.FROZEN else wire.SCHEMA_HASH


shared = False  # the line has other boards: speak only when it is given
_answering = True  # nobody answers a frame to every board of a shared line


def share(line_is_shared):
    global shared
    shared = line_is_shared
    line[SHARED] = line_is_shared


def attach(board):
    """Take the Hal's buffers: what it receives stands in `incoming`, what it shall send in `outgoing`."""
    line[TARGET] = address(board.outgoing) + board.OUTGOING_AT
    line[TARGET_SIZE] = len(board.outgoing) - board.OUTGOING_AT
    line[RECEIVED_AT] = address(board.incoming) + board.INCOMING_AT
    line[RECEIVED_MASK] = -1
    line[CLOCK_AT] = word(board.clock_at)
    if hasattr(board, "join"):
        board.join(line)


def send(kind, node, time_us, buffer, length, left):
    """Queue the frame whose body of `length` bytes stands in `buffer`; `left` bytes of the ring stay free.

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
    return post(line_at, cells_at, DESCRIBED) == 0


def transmit(room):
    """Give the Hal up to `room` bytes that may be sent now; returns how many."""
    return drain(line_at, room)


def silent():
    """Nothing is left that may be sent now."""
    return line[TAIL] == line[GIVEN] and line[CODE] == line[GONE]


def arrived(count):
    """So many bytes stand in the Hal's buffer; a Hal with a ring has told it by itself."""
    if line[RECEIVED_MASK] < 0:
        line[NEXT] = 0
        line[END] = count


def receive(found=framing.NOTHING):
    """The next request to this node among the bytes that have arrived: in `received`, its body's length; -1: none.

    A PING is answered without anybody's help. `found`: what hear() has found already.
    """
    global errands, _answering
    while True:
        found = found or hear(line_at, cells_at)
        if found == ASKED:
            errands += 1
            _answering = not shared or received[2] == cells[wire.REGISTER_BOARD_NODE]
            return line[REQUEST]
        if not found:
            return -1
        post(line_at, cells_at, DESCRIBED | framing.YIELD if shared else DESCRIBED)
        found = framing.NOTHING


def turn():
    """On a shared line: the frame in `received` gives it to this board."""
    return shared and _answering
