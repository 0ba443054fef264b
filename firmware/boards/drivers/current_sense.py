"""The zero of an INA240-like current sensor: its output at rest, which reference and ADC put beside mid-scale.

Measured at boot with the outputs off, as the mean of BLOCKS blocks (about 64 ms). Only a resting motor shows it: one
turned by hand generates current. A reading far from mid-scale, or a restless one, is no zero but a wrong wiring.
"""

import micropython
from micropython import const

from drivers.errors import ZeroFault

BLOCKS = const(64)
ATTEMPTS = const(20)
FARTHEST = const(3277)  # decimated counts from mid-scale, a tenth of it: INA240 and its reference stay far within
RESTLESS = const(1638)  # largest less smallest block, a twentieth of mid-scale


def zero_offset(block, motor_count):
    """The decimated, centred count at no current, for the register current.zero.

    Args: block() measures for a tick and gives the sum of its 16 samples - 32768; motor_count() the motor's counter.
    Raises ZeroFault.
    """
    for _ in range(ATTEMPTS):
        start = motor_count()
        total, lowest, highest = 0, 32767, -32768
        for _ in range(BLOCKS):
            value = block()
            total += value
            lowest, highest = min(lowest, value), max(highest, value)
        if (motor_count() - start + 1) & 0xFFFF <= 2:  # at an edge an encoder at rest may flicker by one
            break
    else:
        raise ZeroFault("the motor moves: hold the joint still while the board starts, its current sensor needs that")
    mean = (2 * total + BLOCKS) // (2 * BLOCKS)
    if abs(mean) > FARTHEST:
        raise ZeroFault(
            "current sensor reads %d counts with the motor off, more than ±%d: is it wired, supplied, its reference at "
            "half the ADC's?" % (mean, FARTHEST)
        )
    if highest - lowest > RESTLESS:
        raise ZeroFault(
            "current sensor moves by %d counts with the motor off, more than %d: is its input open?"
            % (highest - lowest, RESTLESS)
        )
    return mean


@micropython.viper
def block_sum(_inputs) -> int:
    """The motor current of the Hal's inputs: 16 samples, two to a word, less their mid-scale."""
    inputs = ptr32(_inputs)
    word = inputs[8] + inputs[9] + inputs[10] + inputs[11] + inputs[12] + inputs[13] + inputs[14] + inputs[15]
    return (word & 0xFFFF) + ((word >> 16) & 0xFFFF) - 32768
