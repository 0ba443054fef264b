"""The trajectory store: knots as they are uploaded, their checks, and the tick's playback cells.

A knot is two int32 (motor counts; counts/tick Q8), `tick.KNOT_TICKS` apart. 8 bytes a knot, preallocated. A
trajectory is played only after its CRC and every knot have been checked against the limits as they are at LOAD and
again at ARM.
"""

import struct
from binascii import crc32

from micropython import const

from jointboard import rooms, tick, wire
from jointboard.link import address

# As tick.py has them: what another file says is looked up whenever it is used, which takes an RP2040 2 to 16 us.
POSITION = const(206)
KNOT = const(130)
WAIT = const(220)
STEP = const(221)
INTERVAL = const(222)
INTERVALS = const(241)
REPEATS = const(224)
PLAYED = const(226)
for _name in ("POSITION", "KNOT", "WAIT", "STEP", "INTERVAL", "INTERVALS", "REPEATS", "PLAYED"):
    assert globals()[_name] == getattr(tick, _name)


class Playback:
    """A motor's trajectory, played by these cells."""

    def __init__(self, cells):
        self._cells = cells
        self._knots = rooms.knots.pop()
        self.max_knots = len(self._knots) // wire.KNOT_SIZE
        self._start = address(self._knots)
        self._filled = 0  # knots uploaded without a gap from 0
        self._count = 0  # knots of the loaded trajectory, 0 when none is
        self._repeats = 0
        self.identity = 0  # CRC-32 of what the last LOAD said; ARM's CRC goes on from it

    def loaded(self):
        return self._count > 0

    def unload(self):
        self._count = 0

    def store(self, offset, count, source, at):
        """Take `count` knots from source[at:]; an upload begins at offset 0 and leaves no gap."""
        if offset + count > self.max_knots:
            return wire.REFUSAL_TOO_LONG, self.max_knots
        if offset == 0:
            self._filled = 0
        if offset > self._filled:
            return wire.REFUSAL_INCOMPLETE, self._filled
        size = wire.KNOT_SIZE
        memoryview(self._knots)[offset * size : (offset + count) * size] = memoryview(source)[at : at + count * size]
        self._filled = max(self._filled, offset + count)
        return wire.REFUSAL_OK, self._filled

    def load(self, count, repeats, crc):
        """Make the uploaded knots the trajectory, once they are whole and within the limits."""
        self._count = 0
        if count < 2 or repeats < 1:
            return wire.REFUSAL_OUT_OF_RANGE, count
        if count > self._filled:
            return wire.REFUSAL_INCOMPLETE, self._filled
        if (count - 1) * repeats * tick.KNOT_TICKS >= 1 << 30:
            return wire.REFUSAL_TOO_LONG, ((1 << 30) - 1) // ((count - 1) * tick.KNOT_TICKS)
        if crc32(memoryview(self._knots)[: count * wire.KNOT_SIZE]) != crc:
            return wire.REFUSAL_BAD_CRC, count
        bad = self._outside_limits(count, repeats)
        if bad >= 0:
            return wire.REFUSAL_OUTSIDE_LIMITS, bad
        self._count = count
        self._repeats = repeats
        self.identity = crc32(struct.pack("<HHI", count, repeats, crc))
        return wire.REFUSAL_OK, count

    def recheck(self):
        """Index of the first knot outside the limits as they are now, or -1."""
        return self._outside_limits(self._count, self._repeats)

    def _outside_limits(self, count, repeats):
        """Index of the first knot outside the limits, or whose interval is too fast, or -1."""
        bad = _first_outside(self._knots, self._cells, count)
        if bad < 0 and repeats > 1:
            # From the last knot back to the first: no jump of more than one tick at the velocity limit.
            if abs(_position(self._knots, count - 1) - _position(self._knots, 0)) > self._cells[tick.FASTEST] >> 8:
                return count - 1
        return bad

    def distance_to_start(self):
        return _position(self._knots, 0) - self._cells[POSITION]

    def begin(self, wait):
        """Let the next tick play, or the one after `wait` more."""
        cells = self._cells
        cells[KNOT] = self._start
        cells[WAIT] = wait
        cells[STEP] = 0
        cells[INTERVAL] = cells[INTERVALS] = self._count - 1
        cells[REPEATS] = self._repeats
        cells[PLAYED] = 0


@micropython.viper
def _position(knots: ptr32, k: int) -> int:
    return knots[2 * k]


@micropython.viper
def _first_outside(knots: ptr32, limits: ptr32, count: int) -> int:
    minimum = limits[int(tick.LIMIT_POSITION_MIN)]
    maximum = limits[int(tick.LIMIT_POSITION_MAX)]
    fastest = limits[int(tick.FASTEST)]
    longest = fastest >> 3  # counts between knots: the mean velocity is 256/32 of that in Q8
    k = 0
    while k < count:
        position = knots[2 * k]
        velocity = knots[2 * k + 1]
        if position < minimum or position > maximum or velocity > fastest or velocity < 0 - fastest:
            return k
        if k > 0:
            span = position - knots[2 * k - 2]
            if span > longest or span < 0 - longest:
                return k
        k += 1
    return -1
