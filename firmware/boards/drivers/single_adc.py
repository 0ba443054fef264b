"""ADC read one conversion at a time, for ports without a better way (ESP32): a burst that ends at the tick.

Each takes tens of us of interpreter. So a tick takes `samples` of each fast input and puts every one in 16 / samples
places of its block: the block's sum is right, its noise that of `samples` conversions.
"""

import micropython
from micropython import const

from drivers.analog import ROLES, check_roles
from drivers.errors import WiringError

SAMPLES = const(16)


class SingleAdc:
    """Args: objects with read_u16() by role; conversions of current and torque in a tick: 1, 2, 4, 8 or 16."""

    def __init__(self, adcs, samples):
        check_roles(adcs)
        if samples not in (1, 2, 4, 8, 16):
            raise WiringError("config.json: analog_samples is %r; it must be 1, 2, 4, 8 or 16" % samples)
        self._samples = samples
        self._fast = [(16 * k, adcs[role]) for k, role in enumerate(ROLES[:2]) if role in adcs]
        self._slow = [(k, adcs[role]) for k, role in enumerate(ROLES) if k >= 2 and role in adcs]

    def measure(self, inputs):
        copies = SAMPLES // self._samples
        for sample in range(self._samples):
            for block, adc in self._fast:
                spread(inputs, 16 + block + sample * copies, copies, adc.read_u16() >> 4)
        for place, adc in self._slow:
            put(inputs, 4 + place, adc.read_u16() >> 4)


@micropython.viper
def spread(_inputs, at: int, copies: int, value: int):
    inputs = ptr16(_inputs)
    while copies > 0:
        copies -= 1
        inputs[at + copies] = value


@micropython.viper
def put(_inputs, index: int, value: int):
    inputs = ptr32(_inputs)
    inputs[index] = value
