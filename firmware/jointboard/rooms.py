"""The large buffers of the board's motors, taken while the heap is in one piece. Imported before all else.

Whoever needs one takes it out; compiling what is imported afterwards leaves no hole that would hold them.
"""

import json

from micropython import const

KNOTS = const(24576)  # bytes of the trajectory of a board's only motor: playback.py
KNOTS_OF_TWO = const(16384)  # of each of two motors, for which there is no more room
RING = const(9318)  # bytes of the transmit ring and what may spill over it: link.py


def _motors():
    try:
        with open("config.json") as file:
            return 2 if "partner" in json.load(file) else 1
    except OSError:  # no board's program
        return 1


knots = [bytearray(KNOTS_OF_TWO) for _ in range(2)] if _motors() == 2 else [bytearray(KNOTS)]
rings = [bytearray(RING) for _ in knots]
