"""Which channels are due at which tick, and how many ticks fit a DATA frame: what registers mean for the tick's cells.

A channel is due when 2^e divides the tick, e from its kind's register stream.every_<kind>. No e is above 6, so 64 masks
say it all and the tick looks up one. About 3 us on the unix port, after a write only.
"""

from micropython import const

from jointboard import tick, wire

MAX_BLOCK = const(64)
PHASES = const(64)
ROOM = const(1084)  # bytes of samples in the longest body; checked below

assert ROOM == wire.MAX_BODY - wire.BODIES[wire.MESSAGE_DATA][1]


def plan(cells):
    """Fill the cells DUE, DIVIDERS and BLOCK from the stream registers."""
    dividers = 0
    for kind in range(wire.CHANNEL_KIND_FOOT_FORCE + 1):
        dividers |= cells[wire.REGISTER_STREAM_EVERY_MOTOR_CURRENT + kind] << 4 * kind
    cells[tick.DIVIDERS] = dividers
    fitting = _fill(cells, wire.CHANNEL_KINDS, wire.CHANNEL_SIZES)
    cells[tick.BLOCK] = min(cells[wire.REGISTER_STREAM_BLOCK], fitting)


@micropython.viper
def _fill(cells: ptr32, kinds: ptr8, sizes: ptr8) -> int:
    """Fill DUE. Returns the ticks that fit a frame wherever it begins: fewest where all channels are due at once."""
    channels = cells[int(wire.REGISTER_STREAM_CHANNELS)]
    every = int(wire.REGISTER_STREAM_EVERY_MOTOR_CURRENT)
    due_at = int(tick.DUE)
    fitting = MAX_BLOCK
    room = ROOM
    phase = 0
    while phase < PHASES:
        due = 0
        channel = 0
        while channels >> channel:
            if (channels >> channel) & 1 and phase & ((1 << cells[every + kinds[channel]]) - 1) == 0:
                due |= 1 << channel
                room -= sizes[channel]
            channel += 1
        cells[due_at + phase] = due
        if room < 0 and fitting > phase:
            fitting = phase
        phase += 1
    return fitting


def nearest(channels, available):
    """The mask of available channels that is nearest to the one asked for."""
    return channels & available or available
