"""ENABLE as a retriggerable one-shot of a timer: the pin stays high only while the program keeps kicking it.

A general-purpose timer (TIM2 to TIM5) in one-pulse mode counts microseconds; its channel in PWM mode 2 is high from
count 1 on. At the end of its period the counter stops by itself at 0, and the pin is low (RM0390, 17.3.10; RM0090 has
the same). A kick sets a counter that runs back to 1, so the pin stays high, and starts one that stands from 0: a pulse
must begin below its compare value. Letting go forces the channel low at once. A program that hangs, stalls, erases
flash or has its interrupts off lets go of the motor by doing nothing. The pull-down at ENABLE stays: until here, and in
a reset, the pin floats.
"""

import stm
import micropython
from micropython import const
from pyb import Pin, Timer

from drivers.errors import WiringError

COUNT_HZ = const(1000000)
SHORTEST_US = const(4000)
LONGEST_US = const(65535)
# Words from the timer's first register.
CR1 = const(0)
CCMR1 = const(6)
CNT = const(9)
CCR1 = const(13)
RUNS = const(1)  # CEN of CR1, which its end clears
RUN = const(9)  # with OPM
FORCED_LOW = const(4)  # OCxM: the channel is low whatever is counted
HIGH_FROM_COMPARE = const(7)  # OCxM: PWM mode 2
MODE = const(7)


class Heartbeat:
    """ENABLE's pin: value(1) is a kick, value(0) lets go. `held_us` is how long a kick holds.

    Args: the pin; timer 2 to 5; channel 1 to 4; the pin's alternate function for it; the tick in us, two of which may
    be missed.
    """

    def __init__(self, pin, number, channel, function, period_us):
        self.held_us = max(SHORTEST_US, 3 * period_us)
        if self.held_us > LONGEST_US:
            raise WiringError("config.json: a tick of %d us is too long for heartbeat; take one of 21 ms" % period_us)
        timer = Timer(number, freq=1000)
        timer.init(prescaler=timer.source_freq() // COUNT_HZ - 1, period=self.held_us)
        timer.channel(channel, Timer.OC_FORCED_INACTIVE)  # drives low, before the pin is given to it
        self._at = (stm.TIM2, stm.TIM3, stm.TIM4, stm.TIM5)[number - 2]
        self._mode = CCMR1 + (channel - 1 >> 1)
        self._shift = 4 + 8 * (channel - 1 & 1)
        begin(self._at, CCR1 + channel - 1)
        Pin(pin, Pin.ALT, pull=Pin.PULL_DOWN, alt=function)

    def value(self, level):
        kick(self._at, self._mode, self._shift, level)


@micropython.viper
def begin(address: int, compare: int):
    timer = ptr32(address)
    timer[CR1] = 0
    timer[CNT] = 0
    timer[compare] = 1


@micropython.viper
def kick(address: int, mode: int, shift: int, level: int):
    timer = ptr32(address)
    others = timer[mode] & (0 - (MODE << shift) - 1)
    if level:
        timer[CNT] = timer[CR1] & RUNS
        timer[mode] = others | (HIGH_FROM_COMPARE << shift)
        timer[CR1] = RUN  # always: a counter that has just ended must not stand at 1
    else:
        timer[mode] = others | (FORCED_LOW << shift)
        timer[CR1] = 0
        timer[CNT] = 0
