"""Bridge converters on MicroPython: what the tick is given, held values and their age, and what is no value.

HX711's pulses and ADS1220's bus are met on the emulated chip (hil_tests/test_rp2040_sensors.py).
"""

from typing import Any

import pytest

from firmware.boards.tests.interpreter import run

MACHINE = """
import sys
class Module:
    pass
class Pin:
    IN, OUT, PULL_UP = range(3)
    def __init__(self, name, mode=None, pull=None, value=None):
        self.name = name
    def value(self, level=None):
        return 1
for name, content in (("machine", {"Pin": Pin, "SPI": None, "disable_irq": lambda: 0, "enable_irq": lambda state: 0}),):
    module = Module()
    for key, value in content.items():
        setattr(module, key, value)
    sys.modules[name] = module
module = Module()
module.ticks_us = lambda: 0
module.ticks_diff = lambda a, b: a - b
module.sleep_us = module.sleep_ms = lambda time: None
sys.modules["time"] = module
import struct
from drivers.errors import SensorFault, WiringError
def tell(function, *args):
    try:
        return function(*args)
    except (SensorFault, WiringError) as error:
        return str(error)
"""
CONVERTERS = """
from drivers.bridges import Bridges
class Converter:
    # Converts at each `period`-th look.
    fresh, look_us = True, 0
    def __init__(self, period, value=0):
        self.period, self.value, self.looks, self.period_us = period, value, 0, 1000 * period
    def ready(self):
        self.looks += 1
        return self.period and self.looks % self.period == 0
    def read(self):
        self.value += 256
        return self.value
inputs = bytearray(116)
def words(first, count):
    return list(struct.unpack_from("<%di" % count, inputs, 4 * first))
"""


def test_a_torque_is_new_once_and_then_tells_its_age() -> None:
    program = (
        MACHINE
        + CONVERTERS
        + """
bridges = Bridges([Converter(12)], 24, 25, 8, 1000)
answer = []
for tick in range(40):
    bridges.read(inputs)
    answer.append(words(24, 2))
"""
    )
    told = run(program)
    assert [value for value, _ in told] == [tick // 12 if tick >= 11 else 0 for tick in range(1, 41)]
    assert [age for _, age in told[11:]] == [tick % 12 for tick in range(12, 41)]
    assert all(age == 32767 for _, age in told[:11])  # nothing was ever converted


def test_a_foots_four_are_put_in_together() -> None:
    """Each converter is looked at every fourth tick; the set is new when the slowest has converted."""
    program = (
        MACHINE
        + CONVERTERS
        + """
cells = [Converter(period, 1000 * period) for period in (1, 2, 3, 5)]
bridges = Bridges(cells, 24, 7, 0, 1000)
answer = []
for tick in range(80):
    bridges.read(inputs)
    answer.append(words(24, 4) + words(7, 1))
"""
    )
    told = run(program)
    fresh = [tick for tick, row in enumerate(told) if row[4] == 0]
    assert fresh == [19, 39, 59, 79]  # 5 looks of the slowest, 4 ticks each
    for before, row in zip(told, told[1:], strict=False):
        assert row[:4] == before[:4] or row[4] == 0  # nothing changes but together


@pytest.mark.parametrize(("raw", "shift", "told"), [
    (0x7FFFFE, 8, 32767), (-0x7FFFFE, 8, -32768), (-1, 8, -1), (100_000, 0, 32767), (-100_000, 0, -32768),
    (12_800, 4, 800),
])  # fmt: skip
def test_counts_are_clipped_to_16_bits(raw: int, shift: int, told: int) -> None:
    program = MACHINE + CONVERTERS + "bridges = Bridges([Converter(1, raw - 256)], 24, 25, shift, 1000)\n"
    assert run(program + "bridges.read(inputs)\nanswer = words(24, 1)", raw=raw, shift=shift) == [told]


def test_a_converter_that_falls_silent_is_a_fault_after_three_times_its_patience() -> None:
    program = (
        MACHINE
        + CONVERTERS
        + """
converter = Converter(10)
bridges = Bridges([converter], 24, 25, 8, 1000)
for _ in range(10):
    bridges.read(inputs)
converter.period = 0
answer = []
for tick in range(200):
    said = tell(bridges.read, inputs)
    if said:
        answer.append([tick, said])
"""
    )
    told = run(program)
    assert [tick for tick, _ in told] == [3 * 32 - 1, 6 * 32 - 1]  # each time 3 periods of 10 ticks, and some
    assert told[0][1].startswith("bridge converters: 3 bad readings in a row, the last: no conversion")


def test_a_converter_that_never_converts_keeps_a_board_from_starting() -> None:
    program = (
        MACHINE
        + CONVERTERS
        + """
import drivers.bridges as module
clock = iter(range(0, 1 << 30, 100000))
module.ticks_us = lambda: next(clock)
answer = tell(Bridges([Converter(1), Converter(0)], 24, 7, 8, 1000).start)
"""
    )
    assert run(program) == "bridge converter 2: no conversion in 2 s; check its supply and wiring"


def test_a_tick_too_slow_for_its_converters_is_refused() -> None:
    program = (
        MACHINE
        + CONVERTERS
        + """
cells = [Converter(12) for _ in range(4)]
for cell in cells:
    cell.look_us = 6250
Bridges(cells, 24, 7, 8, 1000)
answer = tell(Bridges, cells, 24, 7, 8, 2000)
"""
    )
    assert "each must be looked at every 6250 us; take a shorter board.tick_period or a lower rate" in run(program)


BUS = """
from drivers.ads1220 import Ads1220
class Bus:
    # Registers and conversion of an ADS1220, as its data sheet has them.
    def __init__(self):
        self.registers, self.value, self.deaf = bytearray(4), 0, False
    def write(self, data):
        if data[0] == 0x43 and not self.deaf:
            self.registers[:] = data[1:]
    def write_readinto(self, data, into):
        into[1:] = self.registers
    def readinto(self, into):
        raw = self.value & 0xFFFFFF
        into[0], into[1], into[2] = raw >> 16, raw >> 8 & 255, raw & 255
pin = Pin(0)
bus = Bus()
"""


@pytest.mark.parametrize(
    ("settings", "registers"),
    [
        ({}, [0x0E, 0xC4, 0x40, 0]),  # AIN0 to AIN1, gain 128, 1000 a second, continuous, REFP0
        ({"gain": 1, "rate": 20, "inputs": "23", "reference": "supply"}, [0x50, 0x04, 0xC0, 0]),
        ({"gain": 32, "rate": 2000, "reference": "internal"}, [0x0A, 0xD4, 0, 0]),
    ],
)
def test_ads1220_is_set_up_as_configured(settings: dict[str, Any], registers: list[int]) -> None:
    program = MACHINE + BUS + "Ads1220({'torque': settings}, 'torque', bus, pin, pin)\nanswer = list(bus.registers)"
    assert run(program, settings=settings) == registers


def test_ads1220_knows_what_is_no_value() -> None:
    program = (
        MACHINE
        + BUS
        + """
converter = Ads1220({"torque": {}}, "torque", bus, pin, pin)
answer = []
for bus.value in (-5, 0x7FFFFE, -0x7FFFFF, 123, 0x7FFFFF, -0x800000):
    answer.append(converter.read())
bus.value = -1  # a cut line
answer += [tell(converter.read), converter.failures.total]
bus.deaf = True
answer.append(tell(Ads1220, {"torque": {"gain": 1}}, "torque", bus, pin, pin))
"""
    )
    *read, third, total, deaf = run(program)
    assert read == [-5, 0x7FFFFE, -0x7FFFFF, 123, 123, 123]
    assert third.startswith("ADS1220: 3 bad readings in a row, the last: out of range, or cut (0xffffff)")
    assert total == 3
    assert "its registers read 0e c4 40 00, not 00 c4 40 00 as written" in deaf


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"torque": {"kind": "ad7190"}}, "torque.kind is 'ad7190'; known are hx711, ads1220"),
        ({"torque": {"kind": "hx711", "data": 3}}, "torque.clock is missing"),
        ({"torque": {"kind": "hx711", "clock": 3, "data": 3}}, "clock and data are both 3"),
        ({"torque": {"kind": "hx711", "clock": 2, "data": 3, "gain": 100}}, "gain is 100; an HX711 has"),
        ({"torque": {"kind": "hx711", "clock": 2, "data": 3, "rate": 40}}, "rate is 40; an HX711 has 10 and 80"),
        ({"torque": {"kind": "hx711", "clock": 2, "data": 3}, "analog": {"torque": 27}}, "has one torque sensor"),
        ({"foot": {"kind": "hx711", "cells": [{"clock": 2, "data": 3}]}}, "foot.cells must be a list of four objects"),
        (
            {"foot": {"kind": "hx711", "cells": [{"clock": 2, "data": 3 + k} for k in range(4)]}},
            "foot.cells has a pin twice",
        ),
        (
            {"foot": {"kind": "hx711", "cells": [{"clock": 2 * k, "data": 2 * k + 1} for k in range(3)] + [{}]}},
            "foot.cells[3].clock is missing",
        ),
    ],
)
def test_a_wrong_entry_is_refused_by_name(config: dict[str, Any], what: str) -> None:
    program = (
        MACHINE
        + """
from drivers import bridges
def registers(pin, name):
    return 0, 1, 0, 1, 0, 1
make = bridges.foot_bridges if "foot" in config else bridges.torque_bridge
answer = tell(make, config, registers, 125000000, 1000)
"""
    )
    assert what in run(program, config=config)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"gain": 3}, "torque.gain is 3; 1, 2, 4"),
        ({"rate": 100}, "torque.rate is 100; an ADS1220 has 20, 45, 90, 175, 330, 600, 1000, 2000"),
        ({"inputs": "00"}, "torque.inputs is '00'; known are 01"),
        ({"reference": "4.096 V"}, "torque.reference is '4.096 V'; known are internal, external"),
    ],
)
def test_a_wrong_setting_of_an_ads1220_is_refused_by_name(settings: dict[str, Any], what: str) -> None:
    program = MACHINE + BUS + "answer = tell(Ads1220, {'torque': settings}, 'torque', bus, pin, pin)"
    assert what in run(program, settings=settings)
