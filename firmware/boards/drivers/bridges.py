"""Strain-gauge bridges on converters with a clock of their own: one for a joint's torque, four for a foot's corners.

A tick looks at one converter, so that it takes no longer where there are four: 0.15 ms of interpreter when there is
something to read, on an RP2040 (measured on the emulated chip). What was read goes into the Hal's inputs together with
its age: ticks since then, 0 for a new value. So DATA tells held values from measured ones (channels torque_age and
force_age), however slow the converters are. A foot's four are put in together, once each was read anew.

A count is 2^`shift` of a converter's 24 bits, so that it fits 16 bits; torque.scale and force.scale say what it means.
"""

from array import array
from time import ticks_diff, ticks_us

import micropython
from machine import Pin
from micropython import const

from drivers.configuration import choice, item, whole
from drivers.errors import SensorFault, WiringError
from drivers.failures import Failures
from drivers.joint import put

KINDS = ("hx711", "ads1220")
TORQUE = const(24)  # word of the Hal's inputs, and that of its age
TORQUE_AGE = const(25)
FORCES = const(24)
FORCE_AGE = const(7)
OLDEST = const(32767)
PATIENCE = const(3)  # periods of a converter without a conversion until it counts as a failure
CORNERS = const(4)
FIRST_US = const(2000000)  # within which each has converted after its reset, also where another gain has to settle
TORQUE_CHANNELS = const(0x3000)  # bits of the fact board.channels: bridge_torque, torque_age
ANALOG_TORQUE = const(0x8)  # joint_torque
FOOT_CHANNELS = const(0x4780)  # foot_force_1 … 4, force_age
JOINT_CHANNELS = const(0x87F)  # as registers.py has them where config.json says nothing


class Bridges:
    """read(inputs), once a tick.

    Args: the converters; the words of the inputs where their counts begin and where the age stands; bits to leave out;
    the tick in us.
    """

    def __init__(self, converters, at, age_at, shift, period_us):
        self._converters = converters
        self._count = len(converters)
        self._place, self._age_at, self._next = shift << 16 | self._count << 8 | at, age_at, 0
        self._values = array("i", [0] * self._count)
        self._missing = self._all = (1 << self._count) - 1  # bit mask of those that have not converted since
        self._age = OLDEST
        slowest = max(converter.period_us for converter in converters)
        self._patience = PATIENCE * slowest // period_us + 1
        for converter in converters:
            if 0 < converter.look_us < self._count * period_us:
                raise WiringError(
                    "config.json: %d converters at %d conversions a second, of which a tick of %d us looks at one: "
                    "each must be looked at every %d us; take a shorter board.tick_period or a lower rate"
                    % (self._count, 1000000 // converter.period_us, period_us, converter.look_us)
                )
        self._waited = 0
        self.failures = Failures("bridge converters")

    def start(self):
        """Wait until all have converted once; SensorFault where one does not."""
        begin = ticks_us()
        while self._missing:
            self._look()
            if ticks_diff(ticks_us(), begin) > FIRST_US and self._missing:
                names = ", ".join(str(k + 1) for k in range(self._count) if self._missing >> k & 1)
                raise SensorFault("bridge converter %s: no conversion in 2 s; check its supply and wiring" % names)
        self._missing = self._all

    def read(self, inputs):
        """Allocates nothing."""
        self._look()
        age = self._age
        if self._missing:
            if age < OLDEST:
                age += 1
            self._waited += 1
            if self._waited > self._patience:
                self._waited = 0
                self.failures.one("no conversion from those of mask", self._missing)
        else:
            self._missing = self._all
            self._waited = age = 0
            self.failures.none()
            publish(self._values, inputs, self._place)
        self._age = age
        put(inputs, self._age_at, age)

    def _look(self):
        """Read the next converter, if it has converted."""
        k = self._next
        converter = self._converters[k]
        if converter.ready():
            value = converter.read()
            if converter.fresh:
                self._values[k] = value
                self._missing &= ~(1 << k)
        k += 1
        self._next = 0 if k == self._count else k


@micropython.viper
def publish(_values, _inputs, place: int):
    """Counts of 16 bits, clipped, into the inputs. place: shift << 16 | values << 8 | the first one's word."""
    values = ptr32(_values)
    at = ptr32(int(ptr32(_inputs)) + 4 * (place & 0xFF))
    count = (place >> 8) & 0xFF
    shift = place >> 16
    k = 0
    while k < count:
        value = values[k] >> shift
        if value > 32767:
            value = 32767
        if value < -32768:
            value = -32768
        at[k] = value
        k += 1


def torque_bridge(config, registers, clock_Hz, period_us):
    """What stands in "torque" of config.json."""
    if "torque" in config.get("analog", {}):
        raise WiringError("config.json: torque and analog.torque are given; a joint has one torque sensor")
    converters = _make(config, "torque", ["torque"], registers, clock_Hz)
    return Bridges(converters, TORQUE, TORQUE_AGE, whole(config, "torque.shift", 0, 16, 8), period_us)


def foot_bridges(config, registers, clock_Hz, period_us):
    """What stands in "foot" of config.json: four cells, front left, front right, rear right, rear left."""
    cells = item(config, "foot", "cells")
    if not isinstance(cells, list) or len(cells) != CORNERS or not all(isinstance(cell, dict) for cell in cells):
        raise WiringError(
            "config.json: foot.cells must be a list of four objects with pins: front left, front right, rear right, "
            "rear left"
        )
    pins = [pin for cell in cells for pin in cell.values()]
    if len(set(pins)) < len(pins):
        raise WiringError("config.json: foot.cells has a pin twice; each cell has pins of its own")
    named = dict(config)
    for k in range(CORNERS):  # so that an error names the cell
        named["foot.cells[%d]" % k] = cells[k]
    converters = _make(named, "foot", ["foot.cells[%d]" % k for k in range(CORNERS)], registers, clock_Hz)
    return Bridges(converters, FORCES, FORCE_AGE, whole(config, "foot.shift", 0, 16, 8), period_us)


def _make(config, common, names, registers, clock_Hz):
    """Converters with these entries of pins; what they have in common, kind, settings and bus, stands in `common`."""
    if choice(config, common + ".kind", KINDS) == "hx711":
        from drivers.hx711 import Hx711

        return [Hx711(config, name, common, registers, clock_Hz) for name in names]
    from drivers import ads1220
    from drivers.spi_bus import spi_bus

    spi = spi_bus(config, common, ads1220)
    selects = [Pin(item(config, name, "select"), Pin.OUT, value=1) for name in names]  # all, before one is spoken to
    readies = [Pin(item(config, name, "ready"), Pin.IN, Pin.PULL_UP) for name in names]
    return [ads1220.Ads1220(config, common, spi, select, ready) for select, ready in zip(selects, readies)]
