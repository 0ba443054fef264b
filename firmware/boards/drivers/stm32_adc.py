"""ADC paced by a timer: 16 samples of current and torque in a burst that ends at the tick.

pyb.ADC.read_timed_multi() waits for it: 200 us at 80 kHz, during which nothing else runs but interrupts. Two inputs
are sampled one after the other, clean up to 210 kHz (pyb.ADC's documentation). Supply and temperature: one conversion.

An interrupt within the burst eats a slot of it: that sample is taken some us late, so it is counted and no fault. Slots
eaten in every burst are a rate that the conversions cannot keep: the board says so as it starts.
"""

from array import array

import micropython
from micropython import const
from pyb import ADC, Pin, Timer

from drivers.analog import ROLES, check_roles
from drivers.errors import WiringError

SAMPLES = const(16)
TRIES = const(16)


class TimedAdc:
    """Args: the pins by role ({"current": "A0", …}); samples a second; a timer that nothing else uses.

    `eaten` counts the bursts since boot in which an interrupt has eaten a slot.
    """

    def __init__(self, pins, rate_Hz, timer):
        check_roles(pins)
        self._timer = Timer(timer, freq=rate_Hz)
        self._fast = tuple(ADC(Pin(pins[role])) for role in ROLES[:2] if role in pins)
        self._blocks = tuple(array("H", bytes(2 * SAMPLES)) for _ in self._fast)
        self._slow = [(k, ADC(Pin(pins[role]))) for k, role in enumerate(ROLES) if k >= 2 and role in pins]
        self.eaten = 0
        for _ in range(TRIES):
            if ADC.read_timed_multi(self._fast, self._blocks, self._timer):
                break
        else:
            raise WiringError(
                "config.json: analog_rate_Hz %d is faster than this chip converts %d inputs; take a lower one"
                % (rate_Hz, len(self._fast))
            )

    def measure(self, inputs):
        if not ADC.read_timed_multi(self._fast, self._blocks, self._timer):
            self.eaten += 1
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
