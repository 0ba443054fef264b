"""Memory that the firmware takes once, while the heap is in one piece. Imported before all else.

Viper stores through addresses, and nothing stops it at a buffer's end. So behind each buffer stands a canary, which
`intact` looks for: the tests do after each run of the real loop, and a board does before it is armed.

Also here: how memory is collected, so that the request after it takes no longer than any other.
"""

from array import array
import gc
import json

import uctypes
from micropython import const

KNOTS = const(24576)  # bytes of the trajectory of a board's only motor: playback.py
KNOTS_OF_TWO = const(12288)  # of each of two motors, for which there is no more room
RING = const(9320)  # bytes of the ring of raw frames and what may spill over it: link.py
CELLS = const(324)  # of a motor: tick.py
FRAME = const(1120)  # bytes of the longest frame
FRAMES = const(3)  # of a motor: the request that was heard, the answer that is built, the block that is filled
ENCODED = const(4096)  # bytes in which the ring of encoded ones lies
CANARY = b"\xca\x5e\x1a\x7e\xca\x5e\x1a\x7e"

BLOCK = const(16)  # bytes that the allocator gives at once
ONE_PIECE = const(512)  # bytes: more than any request of a motion takes in one piece
MOST_HOLES = const(512)  # blocks that collect() fills at most
PLENTY = const(24576)  # bytes that must be free for it

WHILE_LOADING = const(8192)  # bytes: so often is memory collected until the board has started (app.py)

if hasattr(gc, "threshold"):  # else what is loaded lies scattered among what loading it left, with no room between
    gc.threshold(WHILE_LOADING)

_rooms = []


def buffer(size):
    """Bytes, all 0, with a canary behind them."""
    memory = bytearray(size + len(CANARY))
    memory[size:] = CANARY
    _rooms.append(memory)
    return memoryview(memory)[:size]


def intact():
    """Nothing was written past any buffer's end. Allocates nothing."""
    for memory in _rooms:
        at = len(memory) - len(CANARY)
        for k in range(len(CANARY)):
            if memory[at + k] != CANARY[k]:
                return False
    return True


def collect():
    """Collect memory, and fill the holes below the first `ONE_PIECE` free bytes; returns the bytes that are free then.

    After a collection the allocator looks for free blocks from the heap's start on, and only an allocation of a single
    block moves that start (MicroPython 1.25, py/gc.c: gc_last_free_atb_index). While there are holes of a block among
    what the program keeps, each larger allocation passes over all of it, which takes an RP2040 0.1 ms, and a HELLO
    makes a dozen. What fills the holes is garbage to the next collection. A heap that is nearly full keeps its holes.
    """
    gc.collect()
    free = gc.mem_free()
    if free < PLENTY:
        return free
    try:
        end = uctypes.addressof(bytearray(ONE_PIECE)) & 0xFFFFFFFF
    except MemoryError:  # all that is free are holes
        return free
    for filled in range(MOST_HOLES):
        if id(object()) > end:
            break
    return free - BLOCK * filled


def _motors():
    try:
        with open("config.json") as file:
            return 2 if "partner" in json.load(file) else 1
    except OSError:  # no board's program
        return 1


# Each motor takes one of them out; compiling what is imported afterwards leaves no hole that would hold them.
knots = [buffer(KNOTS_OF_TWO) for _ in range(2)] if _motors() == 2 else [buffer(KNOTS)]
rings = [buffer(RING) for _ in knots]
encoded = [buffer(ENCODED) for _ in knots]
frames = [buffer(FRAME) for _ in range(FRAMES * len(knots))]
cells = [array("i", bytes(4 * CELLS)) for _ in knots]
