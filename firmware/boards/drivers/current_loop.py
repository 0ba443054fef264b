"""Current to duty for drives that take a voltage: a PI loop in fixed point, run once a tick.

    duty = (kp e + integral) >> 8,  integral += ki e  unless the duty is at its limit and e would drive it further

e = command - measured current in mA; duty +-32767 is the supply's full voltage either way, and more than the limit is
never asked for. Discrete pole cancellation: with the motor's a = exp(-R T / L) and a loop gain g a tick,
ki = g R / U and kp = ki a / (1 - a), so that without delay the current would follow as a first-order lag of T / g.
Measuring (mean of the last tick) and acting take a tick each, so g is at most 0.25: at 1 kHz a bandwidth of 40 Hz. That
is slow beside a drive with a current loop of its own; an identification uses the measured current and does not mind.
"""

from array import array
from math import exp

import micropython
from micropython import const

from drivers.configuration import number
from drivers.errors import WiringError

FULL = const(32767)
KP = const(0)  # duty for 1 mA, Q8
KI = const(1)  # duty for 1 mA and tick, Q8
LIMIT = const(2)  # largest duty
ZERO = const(3)  # decimated, centred count at no current
SCALE = const(4)  # mA for one count, Q12
INTEGRAL = const(5)  # duty, Q8
LARGEST_GAIN = const(16383)  # products with an error of 65535 mA fit 31 bits; so they do with FULL << 8 in sum


class CurrentLoop:
    """duty = loop(command_mA), by the motor current in the Hal's inputs.

    Args: config.json (drive.loop); the Hal's inputs; the tick in us; current.scale in nA a count; count at no current.
    """

    def __init__(self, config, inputs, period_us, scale_nA, zero):
        self._inputs = inputs
        kp, ki = gains(config, period_us)
        scale = (scale_nA * 4096 + 500000) // 1000000
        if not 0 < scale <= 65535:
            raise WiringError("config.json: fact current.scale is %d nA; 1000 to 15999000 fit here" % scale_nA)
        limit = int(number(config, "drive.loop.duty_limit", 0.0, 1.0, 0.95) * FULL)
        self._state = array("i", [kp, ki, limit, zero, scale, 0])

    def __call__(self, command_mA):
        return step(self._state, self._inputs, command_mA)

    def cells(self):
        """Its state, for a kernel that does the same."""
        return self._state

    def reset(self):
        self._state[INTEGRAL] = 0


def gains(config, period_us):
    """kp and ki in duty for 1 mA, Q8, from the motor's data."""
    resistance = number(config, "drive.loop.resistance_ohm", 0.001, 1000)
    inductance = number(config, "drive.loop.inductance_mH", 0.001, 1000)
    supply = number(config, "drive.loop.supply_V", 1, 100)
    gain = number(config, "drive.loop.gain", 0.01, 0.25, 0.15)
    pole = exp(-resistance * period_us / (1000 * inductance))
    ki = gain * resistance / supply * FULL * 256 / 1000
    kp = ki * pole / (1 - pole)
    kp, ki = int(kp + 0.5), int(ki + 0.5)
    if not (kp <= LARGEST_GAIN and 0 < ki <= LARGEST_GAIN):
        raise WiringError("config.json: drive.loop gives gains kp %d, ki %d; 1 to %d fit" % (kp, ki, LARGEST_GAIN))
    return kp, ki


@micropython.viper
def step(_state, _inputs, command: int) -> int:
    state = ptr32(_state)
    inputs = ptr32(_inputs)
    word = inputs[8] + inputs[9] + inputs[10] + inputs[11] + inputs[12] + inputs[13] + inputs[14] + inputs[15]
    count = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) - 32768 - state[ZERO]
    if count > 32767:
        count = 32767
    if count < -32767:
        count = -32767
    error = command - ((count * state[SCALE]) >> 12)
    if error > 65535:
        error = 65535
    if error < -65535:
        error = -65535
    integral = state[INTEGRAL]
    growth = error * state[KI]
    limit = state[LIMIT]
    duty = (error * state[KP] + integral) >> 8
    if (duty < limit or growth < 0) and (duty > 0 - limit or growth > 0):
        integral = integral + growth
        if integral > limit << 8:
            integral = limit << 8
        if integral < 0 - (limit << 8):
            integral = 0 - (limit << 8)
        state[INTEGRAL] = integral
        duty = (error * state[KP] + integral) >> 8
    if duty > limit:
        duty = limit
    if duty < 0 - limit:
        duty = 0 - limit
    return duty
