"""The RP2 board's viper functions as compiled code, on memory laid out as the chip's."""

import random

from firmware.boards.tests.interpreter import run

# Neither chip nor port is here: what the drivers import of them at the top is given by name only.
MODULES = """
import sys
from array import array
from uctypes import addressof
class Module:
    pass
class Anything:
    def __getattr__(self, name):
        return lambda *args, **kwargs: (lambda same: same)
def module(name, **content):
    made = Module()
    for key, value in content.items():
        setattr(made, key, value)
    sys.modules[name] = made
module("machine", ADC=None, Pin=None, mem32=None, freq=None)
class PIO:
    JOIN_RX = 2
module("rp2", PIO=PIO, asm_pio=lambda **kwargs: lambda function: function, DMA=None, StateMachine=None)
"""


def test_the_adc_s_newest_rounds() -> None:
    """Every place of the write pointer in the ring, which of the two channels is at work, every set of inputs."""
    program = (
        MODULES
        + """
from drivers.rp2_adc import latest
answer = []
for slots, places, written, busy in cases:
    ring = array("H", range(32 * slots))
    dmas = [array("I", [0, addressof(ring) + 2 * (written if k == busy else 0), 0, (k == busy) << 24]) for k in (0, 1)]
    state = [addressof(ring), addressof(dmas[0]), addressof(dmas[1]), 24, slots]
    state = array("I", state + [place & 0xFFFFFFFF for place in places])
    inputs = bytearray(116)
    fcs = array("I", [0x09000800])
    flags = latest(state, inputs, addressof(fcs))
    words = array("H", inputs)
    answer.append([flags, list(words[16:48]), words[12], words[14]])
"""
    )
    cases = [
        (slots, places, written, busy)
        for slots, places in ((1, (0, -1, -1, -1)), (2, (1, 0, -1, -1)), (4, (2, 3, 0, 1)), (4, (3, -1, 0, -1)))
        for written in [*range(0, 32 * slots, 7), 32 * slots - 1]
        for busy in (0, 1)
    ]
    found = run(program, cases=cases)
    for (slots, places, written, _), (flags, halves, supply, temperature) in zip(cases, found, strict=True):
        whole = written - written % slots
        rounds = [[(whole + slots * (k - 16) + place) % (32 * slots) for k in range(16)] for place in range(slots)]
        column = [rounds[place] if place >= 0 else [0] * 16 for place in places]
        assert flags == 0x09000800
        assert halves == column[0] + column[1]
        assert (supply, temperature) == (column[2][-1], column[3][-1])


def test_the_quadrature_s_newest_pair() -> None:
    generator = random.Random(6)
    extreme = [0, 1, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    pairs = [(a, b) for a in extreme for b in extreme]
    pairs += [(generator.getrandbits(32), generator.getrandbits(32)) for _ in range(50)]
    program = (
        MODULES
        + """
from drivers.rp2_quadrature import newest
answer = []
for pair in pairs:
    ring, inputs = array("I", pair), bytearray(116)
    count = newest(addressof(ring), addressof(inputs))
    answer.append([count, array("I", inputs)[28]])
"""
    )
    assert run(program, pairs=pairs) == [[position & 0xFFFF, time] for position, time in pairs]
