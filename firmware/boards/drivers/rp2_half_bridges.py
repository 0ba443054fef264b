"""Complementary PWM with dead time for a full bridge of four switches, its current closed by drivers/current_loop.

Each leg is one PWM slice: its even pin the high switch, the odd pin after it the low one, inverted. The slices count up
and down, so a low switch whose level lies `dead` counts above its high switch's leaves the dead time on both sides. The
two are written one after the other, and the slice may take one over before the other comes: so whichever widens the
gap between them goes first. Output +-full is one leg at (1 + u) / 2 and the other at (1 - u) / 2. Off is all four
switches open.
"""

from machine import PWM, Pin, mem32
from micropython import const

from drivers import rp2_chip
from drivers.errors import WiringError

HIGH = const(0)  # of a leg: its two PWMs, and the high one's level
LOW = const(1)
LEVEL = const(2)
SLICE = const(0x14)
CENTRED = const(2)  # PH_CORRECT of CSR: up and down, at half the frequency


class HalfBridges:
    """command(mA) and off().

    Args: the high switches' two pin numbers; switching frequency; dead time in ns; a CurrentLoop.
    """

    def __init__(self, high_pins, frequency_Hz, dead_ns, loop):
        self._loop = loop
        # In counts of duty_u16 over the half period in which it counts up.
        self._dead = (dead_ns * frequency_Hz * 2 * 65535 + 999999999) // 1000000000
        if not 0 < self._dead < 6553:
            raise WiringError("config.json: drive.dead_time_ns %d is no dead time at %d Hz" % (dead_ns, frequency_Hz))
        self._legs = []
        for pin in high_pins:
            if pin & 1:
                raise WiringError("config.json: drive.high has pin %d; a leg's high switch is on an even pin" % pin)
            high = PWM(Pin(pin), freq=2 * frequency_Hz, duty_u16=0)
            low = PWM(Pin(pin + 1), freq=2 * frequency_Hz, duty_u16=65535, invert=True)
            mem32[rp2_chip.PWM + (pin >> 1 & 7) * SLICE] |= CENTRED
            self._legs.append([high, low, 0])

    def command(self, current_mA):
        half = self._loop(current_mA)  # of 65535: half the duty, as the legs go opposite ways
        for leg in self._legs:
            # The low switch's edge is dead counts above the high switch's, so both lie within the range.
            level = 32768 + half - (self._dead >> 1)
            level = 0 if level < 0 else 65535 - self._dead if level > 65535 - self._dead else level
            high, low, before = leg
            if level < before:
                high.duty_u16(level)
                low.duty_u16(level + self._dead)
            else:
                low.duty_u16(level + self._dead)
                high.duty_u16(level)
            leg[LEVEL] = level
            half = -half

    def off(self):
        for leg in self._legs:
            leg[HIGH].duty_u16(0)
            leg[LOW].duty_u16(65535)
            leg[LEVEL] = 0
        self._loop.reset()
