"""What a board says: its DATA blocks, STATUS, FAULT and SYNC, and the answers to requests.

The tick packs samples straight into the DATA frame's body; what it reports is queued by framing.post() and allocates
nothing. FAULT and answers allocate.
"""

import struct

from micropython import const

from jointboard import framing, image, tick, wire
from jointboard.bounds import in_register_units
from jointboard.framing import BODY, LONGEST_TICK, MISSED, TICKS_MISSED, post
from jointboard.registers import word

DICT_HEAD = const(6)
SCHEMA_PART = const(512)

assert DICT_HEAD == wire.BODIES[wire.MESSAGE_DICT_PART][1]


class Publisher:
    """What a motor's node says by this link, with times as the board tells them in the motor's inputs."""

    def __init__(self, link, inputs):
        self._link, self._inputs, self._cells, self._line = link, inputs, link.cells, link.line
        self._line_at, self._cells_at = link.line_at, link.cells_at
        self._reply, self._received = link.reply, link.received
        self._excused = None  # tick after which ticks may have gone by unseen
        self._fault_tick = 0
        self._cells[tick.SAMPLE] = link.first_sample

    def now_us(self):
        """The board's clock at its last tick."""
        return struct.unpack_from("<I", self._inputs, 4)[0]

    def now_tick(self):
        return struct.unpack_from("<I", self._inputs, 0)[0]

    def note_gap(self):
        """Ticks went by unseen: close the block, whose ticks must follow each other, and count them."""
        line, cells = self._line, self._cells
        self.close_block()
        missed = (self.now_tick() - cells[tick.TICK] - 1) & 0xFFFFFFFF
        line[TICKS_MISSED] = word(line[TICKS_MISSED] + missed)
        line[MISSED] = min(line[MISSED] + missed, 0xFFFF)
        cells[tick.MISSED] = min(missed, 0xFFFF)
        if cells[tick.TICK] == self._excused:
            cells[tick.MISSED] = line[LONGEST_TICK] = 0
        cells[tick.TICK] = word(self.now_tick() - 1)

    def excuse_gap(self):
        """The ticks that this one holds up are told, and trip no motor: it had no power before them."""
        self._excused = self._cells[tick.TICK]

    def close_block(self):
        """Queue the samples collected so far, or drop and count them when the line is full."""
        post(self._line_at, self._cells_at, tick.EVENT_BLOCK)

    def report(self, kind, *fields):
        """Send a message that nobody asked for."""
        wire.pack(kind, self._reply, BODY, *fields)
        self._link.send(kind, self._reply, wire.BODIES[kind][1])

    def answer(self, kind, *fields, items=0):
        """Answer a request; repeated items already stand behind the head, `items` bytes of them."""
        wire.pack(kind, self._reply, BODY, *fields)
        self._link.send(kind, self._reply, wire.BODIES[kind][1] + items)

    def answer_values(self, first, count):
        for k in range(count):
            struct.pack_into("<i", self._reply, BODY + 4 + 4 * k, self._cells[first + k])
        self.answer(wire.MESSAGE_VALUES, first, count, items=4 * count)

    def answer_dict(self, offset):
        """The schema from byte `offset` on, as much as goes into a part; returns its size when that is not beyond."""
        with image.schema() as file:
            total = file.seek(0, 2)
            if offset < total:
                file.seek(offset)
                part = memoryview(self._reply)[BODY + DICT_HEAD :][:SCHEMA_PART]
                count = file.readinto(part)
                self.answer(wire.MESSAGE_DICT_PART, offset, total, count, items=count)
        return total

    def answer_echo(self, count):
        at = BODY + wire.BODIES[wire.MESSAGE_ECHO][1]
        self._reply[at : at + count] = memoryview(self._received)[at : at + count]
        self.answer(wire.MESSAGE_ECHO_REPLY, count, items=count)

    def send_status(self):
        """STATUS, once the block is closed: it counts what the DATA frames before it hold. A fault comes first."""
        self.close_block()
        if self._cells[tick.STATE] == wire.STATE_FAULT:
            self.send_fault()
        post(self._line_at, self._cells_at, tick.EVENT_STATUS)

    def send_fault(self):
        cells = self._cells
        trip = cells[tick.TRIP]
        value = in_register_units(cells, trip, cells[tick.TRIP_VALUE])
        limit = in_register_units(cells, trip, cells[tick.TRIP_LIMIT])
        self.report(wire.MESSAGE_FAULT, trip, cells[tick.STATE], 0, self._fault_tick & 0xFFFFFFFF, value, limit)

    def announce(self, at):
        """The tick has left RUNNING or ARMED by itself: tell at once, with the tick it happened at."""
        self._fault_tick = at
        self.send_status()

    def give_back_the_line(self):
        """End the board's turn on a shared line."""
        post(self._line_at, self._cells_at, framing.YIELD)
