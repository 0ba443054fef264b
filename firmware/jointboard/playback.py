"""The trajectory store: knots as they are uploaded, their checks, and the tick's playback cells.

A knot is two int32 (motor counts; counts/tick Q8), `tick.KNOT_TICKS` apart. 8 bytes a knot, preallocated. The
feed-forward currents (int16, mA), where a motion has them, lie behind its last knot, so that one without is as long as
the memory allows. A trajectory is played only after its CRC and every knot have been checked against the limits as they
are at LOAD and again at ARM.
"""

import struct
from binascii import crc32

from micropython import const

from jointboard import rooms, tick, wire
from jointboard.link import address
from jointboard.registers import word

# As tick.py has them: what another file says is looked up whenever it is used, which takes an RP2040 2 to 16 us.
POSITION = const(206)
KNOT = const(130)
WAIT = const(220)
STEP = const(221)
INTERVAL = const(222)
INTERVALS = const(241)
REPEATS = const(224)
PLAYED = const(226)
FEEDFORWARD_AT = const(245)
FEEDFORWARD = const(246)
FEEDFORWARD_SHARE = const(247)
FEEDBACK = const(248)
FLOATING = const(249)
FLOAT_SILENCE = const(250)
REST_CURRENT = const(252)
TABLE_AT = const(255)
TABLE_FIRST = const(256)
TABLE_SHIFT = const(257)
FINEST = const(8)  # positions between two currents of a table are powers of two from 2^8 to 2^20
COARSEST = const(20)
CURRENT_SIZE = const(2)  # bytes of a knot's feed-forward current
for _name in (
    "POSITION", "KNOT", "WAIT", "STEP", "INTERVAL", "INTERVALS", "REPEATS", "PLAYED", "FEEDFORWARD_AT", "FEEDFORWARD",
    "FEEDFORWARD_SHARE", "FEEDBACK", "FLOATING", "FLOAT_SILENCE", "REST_CURRENT", "TABLE_AT", "TABLE_FIRST",
    "TABLE_SHIFT",
):  # fmt: skip
    assert globals()[_name] == getattr(tick, _name)


class Playback:
    """A motor's trajectory, played by these cells."""

    def __init__(self, cells):
        self._cells = cells
        self._knots = rooms.knots.pop()
        self.max_knots = len(self._knots) // wire.KNOT_SIZE
        self._start = address(self._knots)
        self._filled = 0  # knots uploaded without a gap from 0
        self._fed = 0  # of them those whose feed-forward is uploaded: none, or all
        self._count = 0  # knots of the loaded trajectory, 0 when none is
        self._repeats = 0  # of a table 0
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
        self._fed = 0
        size = wire.KNOT_SIZE
        memoryview(self._knots)[offset * size : (offset + count) * size] = memoryview(source)[at : at + count * size]
        self._filled = max(self._filled, offset + count)
        return wire.REFUSAL_OK, self._filled

    def store_feedforward(self, offset, count, source, at):
        """Take the feed-forward currents of `count` knots from source[at:], once all knots are uploaded."""
        size, first = CURRENT_SIZE, wire.KNOT_SIZE * self._filled
        most = len(self._knots) // (wire.KNOT_SIZE + size)
        if self._filled > most:
            return wire.REFUSAL_TOO_LONG, most
        if offset + count > self._filled:
            return wire.REFUSAL_INCOMPLETE, self._filled
        if offset == 0:
            self._fed = 0
        if offset > self._fed:
            return wire.REFUSAL_INCOMPLETE, self._fed
        start = first + size * offset
        memoryview(self._knots)[start : start + size * count] = memoryview(source)[at : at + size * count]
        self._fed = max(self._fed, offset + count)
        return wire.REFUSAL_OK, self._fed

    def load(self, count, repeats, crc):
        """Make the uploaded knots the trajectory, once they are whole and within the limits."""
        self._count = 0
        if count < 2:
            return wire.REFUSAL_OUT_OF_RANGE, count
        if count > self._filled:
            return wire.REFUSAL_INCOMPLETE, self._filled
        if self._fed and not count == self._fed == self._filled:
            return wire.REFUSAL_INCOMPLETE, self._fed
        if (count - 1) * repeats * tick.KNOT_TICKS >= 1 << 30:
            return wire.REFUSAL_TOO_LONG, ((1 << 30) - 1) // ((count - 1) * tick.KNOT_TICKS)
        size = count * wire.KNOT_SIZE + self._fed * CURRENT_SIZE
        if crc32(memoryview(self._knots)[:size]) != crc:
            return wire.REFUSAL_BAD_CRC, count
        if repeats == 0:
            bad = self._not_a_table(count)
            if bad >= 0:
                return wire.REFUSAL_TABLE, bad
        bad = self._outside_limits(count, repeats)
        if bad >= 0:
            return wire.REFUSAL_OUTSIDE_LIMITS, bad
        bad = self._feedforward_beyond_limit(repeats)
        if bad >= 0:
            return wire.REFUSAL_FEEDFORWARD, bad
        self._count = count
        self._repeats = repeats
        self.identity = crc32(struct.pack("<HHI", count, repeats, crc))
        return wire.REFUSAL_OK, count

    def recheck(self):
        """Index of the first knot that is outside the limits as they are now, or its feed-forward, or -1."""
        bad = self._outside_limits(self._count, self._repeats)
        return self._feedforward_beyond_limit(self._repeats) if bad < 0 else bad

    def _feedforward_beyond_limit(self, repeats):
        """Index of the first knot whose current is beyond limit.feedforward, of a table limit.float, or -1."""
        cells = self._cells
        limit = cells[wire.REGISTER_LIMIT_FEEDFORWARD if repeats else wire.REGISTER_LIMIT_FLOAT]
        limit = min(limit, cells[wire.REGISTER_HARD_CURRENT])
        return _first_beyond(self._knots, 4 * self._filled, self._fed, limit)

    def _outside_limits(self, count, repeats):
        """Index of the first knot outside the limits, or whose interval is too fast, or -1."""
        if repeats == 0:  # a table goes on to beyond them, so that the tick never looks behind its end
            cells = self._cells
            if _position(self._knots, 0) > cells[wire.REGISTER_LIMIT_POSITION_MIN]:
                return 0
            return -1 if _position(self._knots, count - 1) > cells[wire.REGISTER_LIMIT_POSITION_MAX] else count - 1
        bad = _first_outside(self._knots, self._cells, count)
        if bad < 0 and repeats > 1:
            # From the last knot back to the first: no jump of more than one tick at the velocity limit.
            if abs(_position(self._knots, count - 1) - _position(self._knots, 0)) > self._cells[tick.FASTEST] >> 8:
                return count - 1
        return bad

    def _not_a_table(self, count):
        """Index of the first knot that keeps the motor from floating by these currents, or -1."""
        if not self._fed or not self._cells[wire.REGISTER_LIMIT_FLOAT]:
            return 0
        step = word(_position(self._knots, 1) - _position(self._knots, 0))
        if step & (step - 1) or not 1 << FINEST <= step <= 1 << COARSEST:
            return 1
        return _first_uneven(self._knots, count, step)

    def distance_to_start(self):
        return _position(self._knots, 0) - self._cells[POSITION]

    def feed_forward(self):
        """Let the feed-forward of knot 0 come in, where there is one: the motor is armed."""
        cells = self._cells
        cells[FEEDFORWARD_SHARE] = cells[FEEDFORWARD] = cells[FEEDFORWARD_AT] = cells[FEEDBACK] = 0
        cells[FLOATING] = cells[FLOAT_SILENCE] = cells[REST_CURRENT] = 0
        if self._repeats == 0:
            cells[FLOATING] = 1
            cells[TABLE_AT] = word(self._start + wire.KNOT_SIZE * self._filled)
            cells[TABLE_FIRST] = first = _position(self._knots, 0)
            step, shift = _position(self._knots, 1) - first, 0
            while step > 1 << shift:
                shift += 1
            cells[TABLE_SHIFT] = shift
        elif self._fed:
            cells[FEEDFORWARD_AT] = word(self._start + wire.KNOT_SIZE * self._filled)
            cells[FEEDFORWARD] = _current(self._knots, 4 * self._filled)

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
def _first_uneven(knots: ptr32, count: int, step: int) -> int:
    k = 1
    while k < count:
        if knots[2 * k] - knots[2 * k - 2] != step or knots[2 * k] < knots[2 * k - 2]:
            return k
        k += 1
    return -1


@micropython.viper
def _current(knots: ptr16, at: int) -> int:
    return (int(knots[at]) ^ 32768) - 32768


@micropython.viper
def _first_beyond(knots: ptr16, at: int, count: int, limit: int) -> int:
    k = 0
    while k < count:
        current = (int(knots[at + k]) ^ 32768) - 32768
        if current > limit or current < 0 - limit:
            return k
        k += 1
    return -1


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
