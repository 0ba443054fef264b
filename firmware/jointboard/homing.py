"""Where the joint is, from its absolute link encoder: at boot, and when the joint's zero is calibrated.

The encoder is absolute within a turn, so the joint is taken to be within half a turn of its zero; from there the tick
counts on over any number of turns.
"""

import struct

from micropython import const

from jointboard import tick, wire

FARTHEST = const(1 << 30)  # motor counts from zero; position limits end there


def home(cells, inputs):
    """Set the tick's positions by the link encoder as it is in `inputs`; they count on from there.

    Raises ValueError, and changes nothing, when that is farther from zero than a position may be.
    """
    link_count = struct.unpack_from("<i", inputs, 20)[0]
    turn = cells[wire.REGISTER_ENCODER_LINK_COUNTS]
    half = turn // 2
    link = (link_count - cells[wire.REGISTER_ENCODER_LINK_ZERO] + half) % turn - half
    turns = link * cells[wire.REGISTER_DRIVE_RATIO]
    counts = 1000 * turn
    position = (2 * turns * cells[wire.REGISTER_ENCODER_MOTOR_COUNTS] + counts) // (2 * counts)
    if abs(position) > FARTHEST:
        raise ValueError("link encoder %d: motor position %d is beyond %d counts" % (link_count, position, FARTHEST))
    cells[tick.POSITION] = position
    cells[tick.LINK_COUNT] = link_count
    cells[tick.LINK_POSITION] = link
    cells[tick.TWIST] = cells[tick.TWIST_REST] = 0
