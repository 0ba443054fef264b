"""Frames in and out: what describes a frame for framing.py, the buffers, and turns on a shared line.

A frame that finds no room takes no sequence number: the host tells what the board dropped from what the line lost.
Neither DATA, STATUS, SYNC, ACK nor the answer to a PING allocates, nor what others say to each other on a shared line.
Any other frame sent or received is an errand: it takes 100 to 200 bytes of heap, collected by app.py.
"""

from array import array

import uctypes
from micropython import const

from jointboard import rooms, framing, tick, wire
from jointboard.crc_tables import tables
from jointboard.framing import (
    ASKED, BLOCK_AT, BODY, CLOCK_AT, CODE, CUT_AT, DESCRIBED, ENCODED, ENCODED_AT, END, FRAME, GIVEN, GONE, LARGEST,
    LEFT_BY_REPORTS, NEXT, PONG_AT, PROTOCOL, RECEIVED_AT, RECEIVED_MASK, REPORT_AT, REQUEST, RING, RING_AT, SAMPLES,
    SCHEMA, SHARED, SPILL, TABLES_AT, TAIL, TARGET, TARGET_SIZE, acknowledge, describe, drain, hear, post,
)  # fmt: skip
from jointboard.registers import word

BUDGET = const(1024)  # bytes encoded in a turn, where the Hal does not say
FIRST_ANSWER = const(0x40)
# As framing.py has them: what another file says is looked up whenever it is used, which takes an RP2040 2 to 16 us.
FRAME_DESCRIBED = const(1)
REQUESTED = const(1)
REQUEST_LENGTH = const(39)

assert (rooms.RING, rooms.ENCODED, rooms.FRAME) == (RING + SPILL, 2 * ENCODED, LARGEST)
assert (BODY, LARGEST) == (wire.HEADER_SIZE, BODY + wire.MAX_BODY + 4)
assert min(SPILL, LEFT_BY_REPORTS) >= framing.HEAD_SIZE + LARGEST
assert (SAMPLES, FIRST_ANSWER) == (BODY + wire.BODIES[wire.MESSAGE_DATA][1], wire.MESSAGE_ACK)
assert (wire.BODIES[wire.MESSAGE_STATUS][1], wire.BODIES[wire.MESSAGE_SYNC][1]) == (52, 8)
assert (FRAME_DESCRIBED, REQUESTED, REQUEST_LENGTH) == (DESCRIBED, ASKED, REQUEST)
assert (framing.NOTHING, wire.BODIES[wire.MESSAGE_ACK][1]) == (0, 8)
for _name in (
    "MESSAGE_STOP", "MESSAGE_PING", "MESSAGE_COMPENSATE", "MESSAGE_DATA", "MESSAGE_STATUS", "MESSAGE_SYNC",
    "MESSAGE_YIELD", "MESSAGE_ACK", "MESSAGE_PONG",
):  # fmt: skip
    assert getattr(framing, _name) == getattr(wire, _name)
assert framing.BOARD_NODE == wire.REGISTER_BOARD_NODE
assert framing.STREAM_CHANNELS == wire.REGISTER_STREAM_CHANNELS
assert framing.LIMIT_FLOAT == wire.REGISTER_LIMIT_FLOAT
for _name in (
    "INPUTS", "SAMPLE", "STATE", "SILENCE", "TRIP", "COUNT", "FIRST_TICK", "FIRST_PLAY", "DIVIDERS", "FLOAT_SILENCE",
    "REST_CURRENT",
):  # fmt: skip
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


class Link:
    """What a motor's node says and hears: `line`, the cells of framing.py, their buffers, and whose turn it is."""

    def __init__(self, cells):
        self.cells = cells
        self.received = rooms.frames.pop()
        self.reply = rooms.frames.pop()  # frames are built here; DATA, STATUS, SYNC and PONG have their own buffers
        self.errands = 0  # since memory was last collected, as app.py counts
        self.shared = False  # the line has other boards: speak only when it is given
        self._answering = True  # nobody answers a frame to every board of a shared line
        self.line = line = array("i", bytes(4 * framing.LINE_CELLS))
        line[ENCODED_AT] = aligned(rooms.encoded.pop(), ENCODED)
        line[FRAME] = address(self.received)
        line[BLOCK_AT] = address(rooms.frames.pop())
        line[REPORT_AT] = address(rooms.buffer(68))
        line[PONG_AT] = address(rooms.buffer(24))
        line[RING_AT] = address(rooms.rings.pop())
        line[TABLES_AT] = address(tables)
        line[SCHEMA] = word(wire.SCHEMA_HASH)
        line[PROTOCOL] = wire.PROTOCOL_MAJOR
        line[CUT_AT] = address(line) + 4 * framing.NOWHERE
        line[framing.COPIED_AT] = address(line) + 4 * framing.COPIED
        self.first_sample = line[BLOCK_AT] + SAMPLES
        self.line_at, self.cells_at = address(line), address(cells)  # kernels take them quicker than the arrays

    def share(self, line_is_shared):
        self.shared = line_is_shared
        self.line[SHARED] = line_is_shared

    def attach(self, board):
        """Take the Hal's buffers: what it receives stands in `incoming`, what it shall send in `outgoing`."""
        line = self.line
        line[TARGET] = address(board.outgoing) + board.OUTGOING_AT
        line[TARGET_SIZE] = len(board.outgoing) - board.OUTGOING_AT
        line[RECEIVED_AT] = address(board.incoming) + board.INCOMING_AT
        line[RECEIVED_MASK] = -1
        line[CLOCK_AT] = word(board.clock_at)
        if hasattr(board, "join"):
            board.join(line)

    def send(self, kind, buffer, length):
        """Queue the frame whose body of `length` bytes stands in `buffer` from byte BODY on, which has room for a CRC.

        False: there was no room, it is dropped.
        """
        if kind >= FIRST_ANSWER and not self._answering:
            return True
        self.errands += 1
        describe(self.line_at, self.cells_at, buffer, kind | length << 8)
        return post(self.line_at, self.cells_at, DESCRIBED) == 0

    def transmit(self, room):
        """Give the Hal up to `room` bytes that may be sent now; returns how many."""
        return drain(self.line_at, room)

    def silent(self):
        """Nothing is left that may be sent now."""
        line = self.line
        return line[TAIL] == line[GIVEN] and line[CODE] == line[GONE]

    def arrived(self, count):
        """So many bytes stand in the Hal's buffer; a Hal with a ring has told it by itself."""
        if self.line[RECEIVED_MASK] < 0:
            self.line[NEXT] = 0
            self.line[END] = count

    def acknowledge(self, kind, refusal, value):
        """Answer the request in `received` by an ACK."""
        if self._answering:
            acknowledge(self.line_at, self.cells_at, kind | refusal << 8, value)
            post(self.line_at, self.cells_at, FRAME_DESCRIBED)

    def receive(self, found=0):
        """The next request to this node among the bytes that have arrived: in `received`, its body's length; -1: none.

        A PING is answered without anybody's help. `found`: what hear() has found already.
        """
        while True:
            found = found or hear(self.line_at, self.cells_at)
            if found == REQUESTED:
                self.errands += 1
                if self.shared:
                    self._answering = self.received[2] == self.cells[wire.REGISTER_BOARD_NODE]
                return self.line[REQUEST_LENGTH]
            if not found:
                return -1
            post(self.line_at, self.cells_at, DESCRIBED | framing.YIELD if self.shared else DESCRIBED)
            found = 0

    def turn(self):
        """On a self.shared self.line: the frame in `received` gives it to this board."""
        return self.shared and self._answering
