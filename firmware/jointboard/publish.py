"""What a board says: its DATA blocks, STATUS, FAULT and SYNC, and the answers to requests.

The tick packs samples straight into the DATA frame's body; closing a block adds head, CRC and COBS, and allocates
nothing. All other frames allocate.
"""

import struct

from micropython import const

from jointboard import image, link, tick, wire
from jointboard.bounds import in_register_units
from jointboard.registers import cells, word

DICT_HEAD = const(6)
SCHEMA_PART = const(512)

samples_taken = 0
samples_dropped = 0
ticks_missed = 0
longest_tick_us = 0  # of app.py, where the board has a clock that runs within a tick
longest_gc_us = 0
heap_free = 0  # of app.py, too: to count it takes a slow board 18 ms

_cells_at = link.address(cells)
_missed = 0  # since the last block that was sent
_board = None

assert DICT_HEAD == wire.BODIES[wire.MESSAGE_DICT_PART][1]


def attach(board):
    global _board
    _board = board
    cells[tick.SAMPLE] = link.first_sample
    link.attach(board.outgoing, board.OUTGOING_AT)


def now_us():
    """The board's clock at its last tick."""
    return struct.unpack_from("<I", _board.inputs, 4)[0]


def now_tick():
    return struct.unpack_from("<I", _board.inputs, 0)[0]


def note_gap():
    """Ticks went by unseen: close the block, whose ticks must follow each other, and count them."""
    global ticks_missed, _missed
    close_block()
    missed = (now_tick() - cells[tick.TICK] - 1) & 0xFFFFFFFF
    ticks_missed += missed
    _missed = min(_missed + missed, 0xFFFF)
    cells[tick.MISSED] = min(missed, 0xFFFF)
    cells[tick.TICK] = word(now_tick() - 1)


def close_block():
    """Send the samples collected so far, or drop and count them when the line is full."""
    global samples_taken, samples_dropped, _missed
    if cells[tick.COUNT]:
        count = link.send_block(_cells_at, _missed)
        if count > 0:
            samples_taken += count
            _missed = 0
        else:
            samples_taken -= count
            samples_dropped -= count


def report(kind, *fields):
    """Send a message that nobody asked for."""
    wire.pack(kind, link.reply, link.BODY, *fields)
    _send(kind, link.reply, wire.BODIES[kind][1], link.LEFT_BY_REPORTS)


def answer(kind, *fields, items=0):
    """Answer a request; repeated items already stand behind the head, `items` bytes of them."""
    wire.pack(kind, link.reply, link.BODY, *fields)
    _send(kind, link.reply, wire.BODIES[kind][1] + items, link.LEFT_BY_ANSWERS)


def answer_ping(nonce):
    """PONG, with the board's clock as it is now."""
    wire.pack(wire.MESSAGE_PONG, link.reply, link.BODY, nonce, now_tick())
    size = wire.BODIES[wire.MESSAGE_PONG][1]
    node = cells[wire.REGISTER_BOARD_NODE]
    link.send(wire.MESSAGE_PONG, node, _board.now_us(), link.reply, size, link.LEFT_BY_ANSWERS)


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
    report(
        wire.MESSAGE_STATUS, cells[tick.STATE], cells[tick.TRIP], 0, now_tick(), samples_taken, samples_dropped,
        link.frames_sent(), link.frames_dropped(), ticks_missed, link.frames_received, link.bad_frames, heap_free,
        longest_tick_us, longest_gc_us,
    )  # fmt: skip


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


def send_sync():
    """An edge of the SYNC line came since the last tick."""
    edge, edge_us = struct.unpack_from("<II", _board.inputs, 8)
    report(wire.MESSAGE_SYNC, edge, edge_us)


def give_back_the_line():
    """End the board's turn on a shared line."""
    _send(wire.MESSAGE_YIELD, link.reply, 0, 0)


def _send(kind, buffer, length, left):
    return link.send(kind, cells[wire.REGISTER_BOARD_NODE], now_us(), buffer, length, left)
