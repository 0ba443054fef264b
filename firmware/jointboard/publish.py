"""What a board says: its DATA blocks, STATUS, FAULT and the answers to requests.

The tick packs samples straight into the DATA frame's body; closing a block of 64 adds head, CRC and COBS: some 15 us on
the unix port and 192 bytes of heap. Not for the tick path: frames allocate.
"""

import gc
import struct

from micropython import const

from jointboard import link, tick, wire
from jointboard.registers import cells, in_register_units, word

MAX_BLOCK = const(64)
DATA_HEAD = const(12)

samples_taken = 0
samples_dropped = 0
ticks_missed = 0

_block = bytearray(link.BODY + DATA_HEAD + MAX_BLOCK * sum(wire.CHANNEL_SIZES) + 4)
_first_sample = link.address(_block) + link.BODY + DATA_HEAD
_missed = 0  # since the last block that was sent
_board = None


def attach(board):
    global _board
    _board = board
    cells[tick.SAMPLE] = _first_sample


def now_us():
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
    cells[tick.TICK] = word(now_tick() - 1)


def close_block():
    """Send the samples collected so far, or drop and count them when the line is full."""
    global samples_taken, samples_dropped, _missed
    count = cells[tick.COUNT]
    if count == 0:
        return
    first, play = cells[tick.FIRST_TICK] & 0xFFFFFFFF, cells[tick.FIRST_PLAY]
    wire.pack(wire.MESSAGE_DATA, _block, link.BODY, first, count, cells[tick.STREAM_CHANNELS], _missed, play)
    samples_taken += count
    if _send(wire.MESSAGE_DATA, _block, cells[tick.SAMPLE] - _first_sample + DATA_HEAD, link.RESERVE):
        _missed = 0
    else:
        samples_dropped += count
    cells[tick.COUNT] = 0
    cells[tick.SAMPLE] = _first_sample


def send(kind, *fields):
    """Send a message without repeated items."""
    wire.pack(kind, link.reply, link.BODY, *fields)
    _send(kind, link.reply, wire.BODIES[kind][1])


def send_values(first, count):
    wire.pack(wire.MESSAGE_VALUES, link.reply, link.BODY, first, count)
    for k in range(count):
        struct.pack_into("<i", link.reply, link.BODY + 4 + 4 * k, cells[first + k])
    _send(wire.MESSAGE_VALUES, link.reply, 4 + 4 * count)


def send_status():
    """STATUS, after closing the block, so that it counts what the DATA frames before it hold; a fault comes first."""
    close_block()
    if cells[tick.STATE] == wire.STATE_FAULT:
        send_fault()
    send(
        wire.MESSAGE_STATUS, cells[tick.STATE], cells[tick.TRIP], 0, now_tick(), samples_taken, samples_dropped,
        link.frames_sent, link.frames_dropped, ticks_missed, link.bad_frames, gc.mem_free(),
    )  # fmt: skip


def send_fault():
    trip = cells[tick.TRIP]
    value, limit = in_register_units(trip, cells[tick.TRIP_VALUE]), in_register_units(trip, cells[tick.TRIP_LIMIT])
    send(wire.MESSAGE_FAULT, trip, cells[tick.STATE], 0, _fault_tick & 0xFFFFFFFF, value, limit)


_fault_tick = 0


def announce(at):
    """The tick has left RUNNING or ARMED by itself: tell at once, with the tick it happened at."""
    global _fault_tick
    _fault_tick = at
    send_status()


def _send(kind, buffer, length, reserve=0):
    return link.send(kind, cells[wire.REGISTER_BOARD_NODE], now_us(), buffer, length, reserve)
