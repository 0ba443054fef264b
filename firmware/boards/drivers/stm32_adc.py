"""ADC paced by a timer: 16 samples of current and torque in a burst that ends at the tick.

pyb.ADC.read_timed_multi() waits for it: 160 us at 100 kHz, during which nothing else runs but interrupts. Two inputs
are sampled one after the other, clean up to 210 kHz (pyb.ADC's documentation). Supply and temperature: one conversion.
"""

from array import array

import micropython
from micropython import const
from pyb import ADC, Pin, Timer

from drivers.analog import ROLES, check_roles
from drivers.failures import Failures

SAMPLES = const(16)


class TimedAdc:
    """Args: the pins by role ({"current": "A0", …}); samples a second; a timer that nothing else uses."""

    def __init__(self, pins, rate_Hz, timer):
        check_roles(pins)
        self._timer = Timer(timer, freq=rate_Hz)
        self._fast = tuple(ADC(Pin(pins[role])) for role in ROLES[:2] if role in pins)
        self._blocks = tuple(array("H", bytes(2 * SAMPLES)) for _ in self._fast)
        self._slow = [(k, ADC(Pin(pins[role]))) for k, role in enumerate(ROLES) if k >= 2 and role in pins]
        self._failures = Failures("ADC")

    def measure(self, inputs):
        if ADC.read_timed_multi(self._fast, self._blocks, self._timer):
            self._failures.none()
        else:
            self._failures.one("the timer was faster than the conversions", 0)
        at = 8
        for block in self._blocks:
            copy(block, inputs, at)
            at += 8
        for place, adc in self._slow:
            put(inputs, 4 + place, adc.read())


@micropython.viper
def copy(_block, _inputs, at: int):
    block = ptr32(_block)
    inputs = ptr32(_inputs)
    k = 0
    while k < 8:
        inputs[at + k] = block[k]
        k += 1


@micropython.viper
def put(_inputs, index: int, value: int):
    inputs = ptr32(_inputs)
    inputs[index] = value
