"""The index pulse Z of a quadrature encoder, once a turn: shows counts that were lost or gained between two of them.

It is no absolute reference of a joint behind a gear: which of the motor's turns it is in, the absolute encoder at the
link says at boot (jointboard/homing.py). But from its first pulse on each further one must come a whole number of turns
later, within the pulse's own width: it rises at one of its ends when the motor turns forward, at the other when back.
What is off is summed, so that slow losses show as well.
"""

from array import array

import micropython
from micropython import const

from drivers.configuration import whole
from drivers.errors import SensorFault, WiringError

TURN = const(0)  # counts
TOLERANCE = const(1)
REFERENCE = const(2)  # the last pulse's count, as it would be had nothing been lost; 16 bits
PULSES = const(3)  # judged so far
OFF = const(4)  # counts that a pulse was off by, 0 while all is well


class IndexPulse:
    """judge(count) at each pulse; complain() when is_off().

    Args: config.json, whose motor_encoder has index_width, the counts for which Z is up (1 where it is gated with A and
    B, 4 where it is not); counts in a turn.
    """

    def __init__(self, config, turn):
        width = whole(config, "motor_encoder.index_width", 1, 64, 4)
        if not 8 * width <= turn <= 32000:
            raise WiringError(
                "config.json: fact encoder.motor_counts is %d; with an index pulse %d wide it must be from %d to 32000"
                % (turn, width, 8 * width)
            )
        self.state = array("i", [turn, width + 1, 0, 0, 0])  # an edge of A or B may come together with Z's

    def judge(self, count):
        return judge(self.state, count)

    def is_off(self):
        return self.state[OFF] != 0

    def complain(self):
        """Raise what was found; the next pulse is the first again."""
        off, pulses = self.state[OFF], self.state[PULSES]
        self.state[OFF] = self.state[PULSES] = 0
        raise SensorFault(
            "motor encoder: index pulse %d came %+d counts from where it belongs; counts were lost: noise, a loose "
            "wire, or encoder.motor_counts is not %d" % (pulses, off, self.state[TURN])
        )


@micropython.viper
def judge(_state, count: int) -> int:
    """Note a pulse at a count of 16 bits; what it is off by, 0 where that is within tolerance."""
    state = ptr32(_state)
    state[PULSES] = state[PULSES] + 1
    if state[PULSES] == 1:
        state[REFERENCE] = count
        return 0
    moved = ((count - state[REFERENCE] + 32768) & 0xFFFF) - 32768
    turn = state[TURN]
    half = turn >> 1
    turns = 0
    off = moved
    while off > half:
        off -= turn
        turns += turn
    while off < 0 - half:
        off += turn
        turns -= turn
    state[REFERENCE] = (state[REFERENCE] + turns) & 0xFFFF
    if off > state[TOLERANCE] or off < 0 - state[TOLERANCE]:
        state[OFF] = off
        return off
    return 0
