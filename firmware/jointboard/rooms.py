"""The large buffers of the board's motors, taken while the heap is in one piece. Imported before all else.

Whoever needs one takes it out; compiling what is imported afterwards leaves no hole that would hold them.
"""

import json

from micropython import const

KNOTS = const(16384)  # bytes of a trajectory: playback.py
RING = const(9318)  # bytes of the transmit ring and what may spill over it: link.py


def _motors():
    try:
        with open("config.json") as file:
            return 2 if "partner" in json.load(file) else 1
    except OSError:  # no board's program
        return 1


knots = [bytearray(KNOTS) for _ in range(_motors())]
rings = [bytearray(RING) for _ in knots]
