"""Complementary PWM with dead time by an advanced timer (TIM1, TIM8), its current closed by drivers/current_loop.

The timer counts up and down and inserts the dead time itself; legs are its channels 1 and 2. One leg is at
(1 + u) / 2, the other at (1 - u) / 2. Off is the timer's main output switched off: all four switches open.
"""

import stm
import micropython
from micropython import const
from pyb import Pin, Timer

from drivers.errors import WiringError

FULL = const(32767)
MAIN_OUTPUT = const(0x8000)  # MOE of BDTR
LONGEST = const(1008)


class HalfBridges:
    """command(mA) and off().

    Args: timer 1 or 8; pins of the high and of the low switches; their alternate function; frequency; dead time in ns;
    a CurrentLoop.
    """

    def __init__(self, number, high_pins, low_pins, function, frequency_Hz, dead_ns, loop):
        if number not in (1, 8):
            raise WiringError("config.json: drive.timer is %r; only timers 1 and 8 have dead time" % number)
        self._loop = loop
        self._control = (stm.TIM1 if number == 1 else stm.TIM8) + stm.TIM_BDTR
        # Counting up and down halves the frequency.
        timer = Timer(number, freq=2 * frequency_Hz, mode=Timer.CENTER)
        dead = (dead_ns * (timer.source_freq() // 1000000) + 999) // 1000
        if not 0 < dead <= LONGEST:
            raise WiringError("config.json: drive.dead_time_ns %d is %d clocks; 1 to %d fit" % (dead_ns, dead, LONGEST))
        timer.init(freq=2 * frequency_Hz, mode=Timer.CENTER, deadtime=dead)
        self._period = timer.period()
        self._legs = [timer.channel(k + 1, Timer.PWM, pin=Pin(pin), pulse_width=0) for k, pin in enumerate(high_pins)]
        self.off()
        for pin in low_pins:
            Pin(pin, Pin.ALT, alt=function)

    def command(self, current_mA):
        half = self._loop(current_mA)
        for leg in self._legs:
            leg.pulse_width((32768 + half >> 2) * self._period >> 14)  # 14 bits of duty: products fit a small int
            half = -half
        switch(self._control, 1)

    def off(self):
        switch(self._control, 0)
        self._loop.reset()


@micropython.viper
def switch(address: int, on: int):
    register = ptr32(address)
    if on:
        register[0] = register[0] | MAIN_OUTPUT
    else:
        register[0] = register[0] & (0 - MAIN_OUTPUT - 1)
