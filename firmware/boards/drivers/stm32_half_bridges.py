"""Complementary PWM with dead time by an advanced timer (TIM1, TIM8), its current closed by drivers/current_loop.

The timer counts up and down and inserts the dead time itself; legs are its channels 1 and 2. One leg is at
(1 + u) / 2, the other at (1 - u) / 2. Off is the timer's main output switched off: all four switches open.

Gates never float: their pins are driven low before the timer gets them; OSSI and OSSR have the timer drive them when
its main output or a channel is off (RM0090, table 94: with both at 0 it lets go of its pins), to the idle level, which
must be cleared first (MicroPython sets it to 1 for both switches of a leg); and each pin keeps the chip's pull-down
besides. From reset to here only resistors at the gate driver's inputs hold them.
"""

import stm
import micropython
from micropython import const
from pyb import Pin, Timer

from drivers.errors import WiringError

FULL = const(32767)
MAIN_OUTPUT = const(0x8000)  # MOE of BDTR
DRIVEN_WHEN_OFF = const(0x0C00)  # OSSR and OSSI
IDLE_LEVELS = const(0x7F00)  # OIS1 to OIS4 of CR2
LONGEST = const(1008)
BREAK = const(0x1000)  # BKE of BDTR
BREAK_HIGH_OR_FOR_A_WHILE = const(0x6000)  # BKP, AOE
STATUS = const(0x10)  # SR, of which BIF says that the break has been
BROKEN = const(0x80)


class HalfBridges:
    """command(mA) and off().

    Args: timer 1 or 8; pins of the high and of the low switches; their alternate function; frequency; dead time in ns;
    a CurrentLoop.
    """

    def __init__(self, number, high_pins, low_pins, function, frequency_Hz, dead_ns, loop):
        if number not in (1, 8):
            raise WiringError("config.json: drive.timer is %r; only timers 1 and 8 have dead time" % number)
        gates = list(high_pins) + list(low_pins)
        for pin in gates:
            Pin(pin, Pin.OUT, value=0)
        self._loop = loop
        registers = stm.TIM1 if number == 1 else stm.TIM8
        self._control, self._status = registers + stm.TIM_BDTR, registers + STATUS
        self._break_bit = 0
        # Counting up and down halves the frequency.
        timer = Timer(number, freq=2 * frequency_Hz, mode=Timer.CENTER)
        dead = (dead_ns * (timer.source_freq() // 1000000) + 999) // 1000
        if not 0 < dead <= LONGEST:
            raise WiringError("config.json: drive.dead_time_ns %d is %d clocks; 1 to %d fit" % (dead_ns, dead, LONGEST))
        timer.init(freq=2 * frequency_Hz, mode=Timer.CENTER, deadtime=dead)
        self._period = timer.period()
        self._legs = [timer.channel(k + 1, Timer.PWM, pulse_width=0) for k in range(len(high_pins))]
        self.off()
        switch_off(registers + stm.TIM_CR2, IDLE_LEVELS)
        switch_on(self._control, DRIVEN_WHEN_OFF)
        for pin in gates:
            Pin(pin, Pin.ALT, pull=Pin.PULL_DOWN, alt=function)

    def break_at(self, pin, function, pull, bit):
        """Let the timer's break input, low, switch the main output off; read_break() then gives `bit` once.

        The main output stays off until command(), which the tick's trip keeps from coming (RM0090, 17.3.12).
        """
        self._break_bit = bit
        Pin(pin, Pin.ALT, pull=pull, alt=function)
        switch_off(self._control, BREAK_HIGH_OR_FOR_A_WHILE)
        switch_on(self._control, BREAK)
        self.read_break()

    def read_break(self):
        return self._break_bit if taken(self._status, BROKEN) else 0

    def command(self, current_mA):
        half = self._loop(current_mA)
        for leg in self._legs:
            leg.pulse_width((32768 + half >> 2) * self._period >> 14)  # 14 bits of duty: products fit a small int
            half = -half
        switch_on(self._control, MAIN_OUTPUT)

    def off(self):
        switch_off(self._control, MAIN_OUTPUT)
        self._loop.reset()


@micropython.viper
def switch_on(address: int, bits: int):
    register = ptr32(address)
    register[0] = register[0] | bits


@micropython.viper
def switch_off(address: int, bits: int):
    register = ptr32(address)
    register[0] = register[0] & (0 - bits - 1)


@micropython.viper
def taken(address: int, bits: int) -> int:
    """Those of the bits that are set; they are cleared, as a status register's are, by a 0."""
    register = ptr32(address)
    found = register[0] & bits
    if found:
        register[0] = 0 - bits - 1
    return found
