"""The motor's position from the joint's absolute link encoder: at boot, and when the joint's zero is calibrated."""

import struct

from micropython import const

from jointboard import tick, wire
from jointboard.registers import cells

FARTHEST = const(1 << 30)  # motor counts from zero; position limits end there


def home(inputs):
    """Set the tick's motor position by the link encoder as it is in `inputs`; it counts on from there.

    Raises ValueError, and changes nothing, when that is farther from zero than a position may be.
    """
    link_count = struct.unpack_from("<i", inputs, 20)[0]
    turns = (link_count - cells[wire.REGISTER_ENCODER_LINK_ZERO]) * cells[wire.REGISTER_DRIVE_RATIO]
    counts = 1000 * cells[wire.REGISTER_ENCODER_LINK_COUNTS]
    position = (2 * turns * cells[wire.REGISTER_ENCODER_MOTOR_COUNTS] + counts) // (2 * counts)
    if abs(position) > FARTHEST:
        raise ValueError("link encoder %d: motor position %d is beyond %d counts" % (link_count, position, FARTHEST))
    cells[tick.POSITION] = position
