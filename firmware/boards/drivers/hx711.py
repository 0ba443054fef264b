"""HX711 bridge converter: 24 bits, 10 or 80 conversions a second, clocked out of it pin by pin.

A reading is 25 to 27 pulses of PD_SCK, whose number chooses input and gain of the conversions after it. A pulse must be
high for 0.2 to 50 us; 60 us put the converter to sleep. So interrupts are off meanwhile, and the pins are reached by
their registers. Source: Avia Semiconductor HX711 data sheet, "Serial Interface", table 3, figure 2 (T1 0.1 us, T2 0.1
us, T3 0.2 to 50 us, T4 0.2 us), figure 3, and the settling times 400 ms at 10 Hz, 50 ms at 80 Hz.

DOUT needs no pull-up besides the chip's own: a cut line is never ready, which is told. Give DVDD 3.3 V.
"""

from array import array
from time import sleep_us, ticks_diff, ticks_us

import machine
import micropython
from machine import Pin
from micropython import const

from drivers.configuration import item, whole
from drivers.errors import WiringError
from drivers.failures import Failures

PULSES = {128: 25, 32: 26, 64: 27}  # by gain; 32 is input B
RATES = (10, 80)
SLEEPY_US = const(100)  # PD_SCK high for longer than 60 us is a reset once it falls, to input A with gain 128
SETTLING = const(5)  # conversions that are not to be used: one with the gain before, four until the new one has settled
LOWEST = const(-0x800000)  # what the converter says when its input is out of range
HIGHEST = const(0x7FFFFF)

# The words of `pins`: three registers' addresses, each with the bits of the pin in it.
RAISE = const(0)
LOWER = const(2)
LOOK = const(4)
SPIN = const(6)


class Hx711:
    """read() gives a conversion of 24 bits, signed, once ready() says that there is one.

    Args: config.json, and the name of its entry with clock and data; the name of that with gain (128, 64, or 32 for
    input B) and rate (10 or 80, as the RATE pin is wired); registers(pin, its name), the port's, which gives
    the addresses and bits that set, clear and read it; the processor's clock.
    """

    fresh = False

    def __init__(self, config, name, common, registers, clock_Hz):
        gain = whole(config, common + ".gain", 32, 128, 128)
        if gain not in PULSES:
            raise WiringError("config.json: %s.gain is %d; an HX711 has 128, 64, and 32 of input B" % (common, gain))
        rate = whole(config, common + ".rate", 1, 1000, 10)
        if rate not in RATES:
            raise WiringError("config.json: %s.rate is %d; an HX711 has 10 and 80, by its RATE pin" % (common, rate))
        clock, data = item(config, name, "clock"), item(config, name, "data")
        if clock == data:
            raise WiringError("config.json: %s.clock and data are both %r; they must differ" % (name, clock))
        reset = Pin(clock, Pin.OUT, value=1)
        sleep_us(SLEEPY_US)
        reset.value(0)
        out = registers(reset, clock)
        into = registers(Pin(data, Pin.IN, Pin.PULL_UP), data)
        self._pins = array("I", list(out[:4]) + list(into[4:]) + [clock_Hz // 80000000])
        self._pulses = PULSES[gain]
        self._settling = 0 if gain == 128 else SETTLING
        self._high_us = ticks_us()
        self.period_us = 1000000 // rate
        self.look_us = self.period_us // 2  # it must be looked at that often
        self._soon_us = self.period_us * 3 // 4
        self.failures = Failures("HX711 at %s" % data)
        self._value = 0

    def ready(self):
        if level(self._pins):
            self._high_us = ticks_us()
            return False
        return True

    def read(self):
        """The newest conversion; the one before in place of a bad one. Allocates nothing.

        `fresh` says whether it is to be used: not while the gain settles, nor when nobody has looked for so long that
        the next conversion may have ended meanwhile, which would be a mixture of two.
        """
        self.fresh = not self._settling and ticks_diff(ticks_us(), self._high_us) < self._soon_us
        state = machine.disable_irq()
        value = clock_out(self._pins, self._pulses)
        machine.enable_irq(state)
        if not level(self._pins):  # the last pulses take it up
            self.failures.one("DOUT stays low", value & 0xFFFFFF)
        elif self._settling:
            self._settling -= 1
        elif not self.fresh:
            pass
        elif value == LOWEST or value == HIGHEST:
            self.failures.one("out of range", value & 0xFFFFFF)
        else:
            self.failures.none()
            self._value = value
        return self._value


@micropython.viper
def level(_pins) -> int:
    pins = ptr32(_pins)
    return 1 if ptr32(pins[LOOK])[0] & pins[LOOK + 1] else 0


@micropython.viper
def clock_out(_pins, pulses: int) -> int:
    pins = ptr32(_pins)
    up = ptr32(pins[RAISE])
    up_bit = pins[RAISE + 1]
    down = ptr32(pins[LOWER])
    down_bit = pins[LOWER + 1]
    look = ptr32(pins[LOOK])
    bit = pins[LOOK + 1]
    spin = pins[SPIN]
    value = 0
    k = 0
    while k < pulses:
        up[0] = up_bit
        n = spin
        while n > 0:
            n -= 1
        if k < 24:
            value = value << 1
            if look[0] & bit:
                value |= 1
        down[0] = down_bit
        n = spin
        while n > 0:
            n -= 1
        k += 1
    if value & 0x800000:
        value -= 0x1000000
    return value
