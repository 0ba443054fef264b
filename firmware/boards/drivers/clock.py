"""Ticks told by the microsecond counter, which no interrupt and no missed tick can hold up, and the SYNC line's edges.

A tick's number is how many periods have passed since boot: when one is missed, the next shows it by a step of two or
more. ticks_us() wraps at 2^30 us; here it goes on to 2^32. Waiting is a bytecode loop, so that the interpreter sees to
USB and soft interrupts meanwhile: a tick begins some microseconds late, never early, and tells the time it was due.
"""

from array import array
from time import ticks_us
from uctypes import addressof

import micropython
from micropython import const

PERIOD = const(0)  # us
LAST = const(1)  # ticks_us() when the time was last brought up to date
NOW = const(2)  # us, wraps at 2^32
DUE = const(3)  # when the coming tick is due, on the same clock
TICK = const(4)  # the coming tick's number
EDGES = const(5)  # of the SYNC line
EDGE_TICKS = const(6)  # ticks_us() of the last one
WRAP = const(0x3FFFFFFF)


class Clock:
    """The board's time, at `address` as it was last looked at. `state` is for the viper functions below."""

    def __init__(self, period_us):
        self.state = array("i", [period_us, 0, 0, period_us, 0, 0, 0])
        due_in(self.state, ticks_us())
        self.state[NOW] = 0
        self.address = addressof(self.state) + 4 * NOW

    def wait(self, lead_us):
        """Return when the coming tick is at most `lead_us` away."""
        state = self.state
        while due_in(state, ticks_us()) > lead_us:
            pass

    def tick(self, inputs):
        """Begin the tick: its number, its time and the SYNC edges go into the Hal's inputs."""
        begin(self.state, inputs, ticks_us())

    def look(self):
        """Bring the time at `address` up to date."""
        due_in(self.state, ticks_us())

    def now_us(self):
        """The clock as it is now, 0 … 2^32 - 1."""
        due_in(self.state, ticks_us())
        return self.state[NOW] & 0xFFFFFFFF

    def edge(self, _pin):
        """The SYNC line's interrupt, hard where the port has such: allocates nothing."""
        note_edge(self.state, ticks_us())


@micropython.viper
def due_in(_state, _ticks) -> int:
    """Bring the time up to date; us until the coming tick, negative once it is late."""
    state = ptr32(_state)
    ticks = int(_ticks)
    state[NOW] = state[NOW] + ((ticks - state[LAST]) & WRAP)
    state[LAST] = ticks
    return state[DUE] - state[NOW]


@micropython.viper
def begin(_state, _inputs, _ticks):
    state = ptr32(_state)
    inputs = ptr32(_inputs)
    ticks = int(_ticks)
    state[NOW] = state[NOW] + ((ticks - state[LAST]) & WRAP)
    state[LAST] = ticks
    late = state[NOW] - state[DUE]
    period = state[PERIOD]
    missed = 0
    if late >= period:
        missed = late // period
    inputs[0] = state[TICK] + missed
    inputs[1] = state[DUE] + missed * period
    state[TICK] = inputs[0] + 1
    state[DUE] = inputs[1] + period
    edges = inputs[2]
    while edges != state[EDGES]:  # again when the interrupt came in between
        edges = state[EDGES]
        ago = (ticks - state[EDGE_TICKS]) & WRAP
        if ago > WRAP >> 1:  # it came after `ticks` was read
            ago = ago - WRAP - 1
        inputs[3] = state[NOW] - ago
    inputs[2] = edges


@micropython.viper
def note_edge(_state, _ticks):
    state = ptr32(_state)
    ticks = int(_ticks)
    state[EDGE_TICKS] = ticks
    state[EDGES] = state[EDGES] + 1
