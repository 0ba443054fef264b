"""What a board says: its DATA blocks, STATUS, FAULT and SYNC, and the answers to requests.

The tick packs samples straight into the DATA frame's body; what it reports is queued by framing.post() and allocates
nothing. FAULT and answers allocate.
"""

import struct

from micropython import const

from jointboard import framing, image, link, tick, wire
from jointboard.bounds import in_register_units
from jointboard.framing import LEFT_BY_ANSWERS, LEFT_BY_REPORTS, LONGEST_TICK, MISSED, TICKS_MISSED, post
from jointboard.link import cells_at, line, line_at
from jointboard.registers import cells, word

DICT_HEAD = const(6)
SCHEMA_PART = const(512)

_board = None
_excused = None  # tick after which ticks may have gone by unseen

assert DICT_HEAD == wire.BODIES[wire.MESSAGE_DICT_PART][1]


def attach(board):
    global _board
    _board = board
    cells[tick.SAMPLE] = link.first_sample
    link.attach(board)


def now_us():
    """The board's clock at its last tick."""
    return struct.unpack_from("<I", _board.inputs, 4)[0]


def now_tick():
    return struct.unpack_from("<I", _board.inputs, 0)[0]


def note_gap():
    """Ticks went by unseen: close the block, whose ticks must follow each other, and count them."""
    close_block()
    missed = (now_tick() - cells[tick.TICK] - 1) & 0xFFFFFFFF
    line[TICKS_MISSED] = word(line[TICKS_MISSED] + missed)
    line[MISSED] = min(line[MISSED] + missed, 0xFFFF)
    cells[tick.MISSED] = min(missed, 0xFFFF)
    if cells[tick.TICK] == _excused:
        cells[tick.MISSED] = line[LONGEST_TICK] = 0
    cells[tick.TICK] = word(now_tick() - 1)


def excuse_gap():
    """The ticks that this one holds up are told, and trip no motor: it had no power before them."""
    global _excused
    _excused = cells[tick.TICK]


def close_block():
    """Queue the samples collected so far, or drop and count them when the line is full."""
    post(line_at, cells_at, tick.EVENT_BLOCK)


def report(kind, *fields):
    """Send a message that nobody asked for."""
    wire.pack(kind, link.reply, link.BODY, *fields)
    _send(kind, link.reply, wire.BODIES[kind][1], LEFT_BY_REPORTS)


def answer(kind, *fields, items=0):
    """Answer a request; repeated items already stand behind the head, `items` bytes of them."""
    wire.pack(kind, link.reply, link.BODY, *fields)
    _send(kind, link.reply, wire.BODIES[kind][1] + items, LEFT_BY_ANSWERS)


def answer_values(first, count):
    for k in range(count):
        struct.pack_into("<i", link.reply, link.BODY + 4 + 4 * k, cells[first + k])
    answer(wire.MESSAGE_VALUES, first, count, items=4 * count)


def answer_dict(offset):
    """The schema from byte `offset` on, as much as goes into a part; returns its size when that is not beyond."""
    with image.schema() as file:
        total = file.seek(0, 2)
        if offset < total:
            file.seek(offset)
            part = memoryview(link.reply)[link.BODY + DICT_HEAD :][:SCHEMA_PART]
            count = file.readinto(part)
            answer(wire.MESSAGE_DICT_PART, offset, total, count, items=count)
    return total


def answer_echo(count):
    at = link.BODY + wire.BODIES[wire.MESSAGE_ECHO][1]
    link.reply[at : at + count] = memoryview(link.received)[at : at + count]
    answer(wire.MESSAGE_ECHO_REPLY, count, items=count)


def send_status():
    """STATUS, after closing the block, so that it counts what the DATA frames before it hold; a fault comes first."""
    close_block()
    if cells[tick.STATE] == wire.STATE_FAULT:
        send_fault()
    post(line_at, cells_at, tick.EVENT_STATUS)


def send_fault():
    trip = cells[tick.TRIP]
    value = in_register_units(cells, trip, cells[tick.TRIP_VALUE])
    limit = in_register_units(cells, trip, cells[tick.TRIP_LIMIT])
    report(wire.MESSAGE_FAULT, trip, cells[tick.STATE], 0, _fault_tick & 0xFFFFFFFF, value, limit)


_fault_tick = 0


def announce(at):
    """The tick has left RUNNING or ARMED by itself: tell at once, with the tick it happened at."""
    global _fault_tick
    _fault_tick = at
    send_status()


def give_back_the_line():
    """End the board's turn on a shared line."""
    post(line_at, cells_at, framing.YIELD)


def _send(kind, buffer, length, left):
    return link.send(kind, cells[wire.REGISTER_BOARD_NODE], now_us(), buffer, length, left)
