"""Memory that the firmware takes once, while the heap is in one piece. Imported before all else.

Viper stores through addresses, and nothing stops it at a buffer's end. So behind each buffer stands a canary, which
`intact` looks for: the tests do after each run of the real loop, and a board does before it is armed.
"""

from array import array
import gc
import json

from micropython import const

KNOTS = const(24576)  # bytes of the trajectory of a board's only motor: playback.py
KNOTS_OF_TWO = const(12288)  # of each of two motors, for which there is no more room
RING = const(9320)  # bytes of the ring of raw frames and what may spill over it: link.py
CELLS = const(309)  # of a motor: tick.py
FRAME = const(1120)  # bytes of the longest frame
FRAMES = const(3)  # of a motor: the request that was heard, the answer that is built, the block that is filled
ENCODED = const(4096)  # bytes in which the ring of encoded ones lies
CANARY = b"\xca\x5e\x1a\x7e\xca\x5e\x1a\x7e"

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
