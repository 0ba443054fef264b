"""An absolute encoder on the motor's shaft in place of a counter: its turns summed to the Hal's 16-bit count.

Right as long as the shaft turns less than half a turn between two ticks.
"""

from array import array

import micropython
from micropython import const

from drivers.errors import WiringError

LAST = const(0)
COUNTER = const(1)


class Turns:
    """`read()` gives a count 0 … 65535 that goes on over the encoder's zero."""

    def __init__(self, encoder):
        self._encoder = encoder
        self._counts = encoder.COUNTS
        if self._counts & (self._counts - 1) or self._counts > 65536:
            raise WiringError("an encoder of %d counts a turn cannot be the motor's: not a power of 2" % self._counts)
        first = encoder.read()
        self._state = array("i", [first, first])

    def read(self):
        return unwrap(self._state, self._encoder.read(), self._counts)


@micropython.viper
def unwrap(_state, angle: int, counts: int) -> int:
    state = ptr32(_state)
    half = counts >> 1
    state[COUNTER] = (state[COUNTER] + ((angle - state[LAST] + half) & (counts - 1)) - half) & 0xFFFF
    state[LAST] = angle
    return state[COUNTER]
