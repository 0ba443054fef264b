"""The RP2 board's viper functions as compiled code, on memory laid out as the chip's."""

import random

import pytest

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


# The tick's kernels on memory in place of the chip's registers: a timer that stands, channels of DMA that rest.
TURN = (
    MODULES
    + """
from drivers import rp2_turn
from drivers.rp2_turn import OUT
def word(number):
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000
kept = []
def at(memory):
    kept.append(memory)
    return word(addressof(memory))
def cells(values, size=rp2_turn.CELLS):
    made = array("i", bytes(4 * size))
    for k, value in values.items():
        made[k] = word(value)
    return made
"""
)


def test_the_tick_s_kernel_reads_what_the_drivers_read() -> None:
    """ADC and encoder, wherever DMA is in its ring, and the bytes that have come; a tick in time, late, or missed."""
    program = (
        TURN
        + """
from drivers.rp2_adc import latest
from drivers.rp2_quadrature import newest
answer = []
for slots, places, written, busy, pair, late, come in cases:
    ring = array("H", [(7 * k) & 4095 for k in range(32 * slots)])
    dmas = [array("I", [0, addressof(ring) + 2 * (written if k == busy else 0), 0, (k == busy) << 24]) for k in (0, 1)]
    state = [addressof(ring), addressof(dmas[0]), addressof(dmas[1]), 24, slots]
    state = array("I", state + [place & 0xFFFFFFFF for place in places])
    inputs, again = bytearray(128), bytearray(128)
    quiet, pairs = array("I", [0] * 4), array("I", pair)
    latest(state, again, at(quiet))
    count = newest(addressof(pairs), addressof(again))
    line = cells({rp2_turn.NEXT: 2040, rp2_turn.CODE: 500, rp2_turn.GONE: 400}, 64)
    rx = array("I", [0, 1000 + (2040 + come) % 2048, 0, 1 << 24])
    tx = array("I", [0] * 8)
    timer, dog = array("I", [5000 + late]), array("I", [0])
    t = cells({
        rp2_turn.INPUTS: at(inputs), rp2_turn.TIMER: at(timer), rp2_turn.DOG: at(dog), rp2_turn.DOG_LOAD: 77,
        rp2_turn.DUE: 5000, rp2_turn.TICK: 9, rp2_turn.PERIOD: 1000, rp2_turn.EDGES: 3, rp2_turn.EDGE_US: 4321,
        rp2_turn.ADC_RING: addressof(ring), rp2_turn.ADC_DMA: addressof(dmas[0]),
        rp2_turn.ADC_DMA_2: addressof(dmas[1]), rp2_turn.ADC_FCS: at(quiet), rp2_turn.SLOTS: slots,
        rp2_turn.CURRENT_SLOT: places[0], rp2_turn.TORQUE_SLOT: places[1],
        rp2_turn.SUPPLY_SLOT: places[2], rp2_turn.TEMPERATURE_SLOT: places[3],
        rp2_turn.ENCODER: addressof(pairs), rp2_turn.ENCODER_FLAGS: at(quiet), rp2_turn.RX_DMA: at(rx),
        rp2_turn.RX_DMA_2: at(rx), rp2_turn.RX_RING: 1000, rp2_turn.RX_MASK: 2047, rp2_turn.TX_DMA: at(tx),
        rp2_turn.GIVEN: 450, rp2_turn.LINE: at(line), rp2_turn.SPEAKER: at(line),
        rp2_turn.BUSY: 1 << 24, rp2_turn.ENCODER_BIT: 1,
    })
    found = rp2_turn.before(addressof(t))
    words = array("i", inputs)
    answer.append([
        inputs[24:96] == again[24:96], words[4] == count, inputs[112:116] == again[112:116], list(words[:4]),
        found, line[rp2_turn.END] - 2040, line[rp2_turn.LATE_BY], t[rp2_turn.DUE], tx[7], line[rp2_turn.GONE], dog[0],
    ])
"""
    )
    generator = random.Random(8)
    cases = [
        (slots, places, generator.randrange(32 * slots), generator.randrange(2),
         (generator.getrandbits(32), generator.getrandbits(32)), late, generator.choice((0, 1, 92, 2047)))
        for slots, places in ((1, (0, -1, -1, -1)), (2, (1, 0, -1, -1)), (4, (2, 3, 0, 1)), (4, (3, -1, 0, -1)))
        for late in (0, 1, 20, 21, 813, 999, 1000, 1500, 3021)
    ]  # fmt: skip
    for (*_, late, come), found in zip(cases, run(program, cases=cases), strict=True):
        missed, rest = divmod(late, 1000)
        assert found[:3] == [True, True, True]
        assert found[3] == [9 + missed, 5000 + 1000 * missed, 3, 4321]
        assert found[4:] == [come | (0x40000 if rest > 20 else 0), come, rest, 6000 + 1000 * missed, 50, 500, 77]


def test_the_tick_s_kernel_drives_as_the_driver_does() -> None:
    """The current loop's duty and integral, step for step, clamped or not; then PWM, direction, and ENABLE's kick."""
    program = (
        TURN
        + """
from drivers.current_loop import step
answer = []
top = 6249
for gains, steps in cases:
    ours, theirs = array("i", gains), array("i", gains)
    inputs, outputs = bytearray(128), array("i", [0, 0, 0])
    registers = {name: array("i", [-1]) for name in ("compare", "set", "clear", "kick")}
    t = cells({rp2_turn.INPUTS: at(inputs)})
    for k, value in {
        rp2_turn.OUTPUTS: at(outputs), rp2_turn.LOOP: at(ours), rp2_turn.PWM_COMPARE: at(registers["compare"]),
        rp2_turn.PWM_TOP: top, rp2_turn.PIN_SET: at(registers["set"]), rp2_turn.PIN_CLEAR: at(registers["clear"]),
        rp2_turn.DIRECTION: 1 << 17, rp2_turn.KICK_AT: at(registers["kick"]), rp2_turn.KICK: 1333, rp2_turn.SHIFT: 16,
    }.items():
        t[OUT + k] = word(value)
    for enable, command, sample in steps:
        for k in range(16):
            inputs[32 + 2 * k], inputs[33 + 2 * k] = sample & 255, sample >> 8
        outputs[1], outputs[2] = enable, command
        registers["set"][0] = registers["clear"][0] = -1
        rp2_turn.after(addressof(t))
        duty = step(theirs, inputs, command) if enable else 0
        if not enable:
            theirs[5] = 0
        compare = registers["compare"][0]
        answer.append([
            duty, ours[5] == theirs[5], (compare >> 16) & 0xFFFF, compare & 0xFFFF, registers["set"][0],
            registers["clear"][0], registers["kick"][0],
        ])
"""
    )
    generator = random.Random(9)
    cases = [
        ((generator.randrange(16384), generator.randrange(1, 16384), generator.choice((0, 3000, 31128)),
          generator.randrange(-400, 400), generator.randrange(1, 65536), 0),
         [(int(generator.random() < 0.9), generator.choice((0, -65535, 65535, generator.randrange(-5000, 5000))),
           generator.choice((0, 4095, generator.randrange(1800, 2300)))) for _ in range(60)])
        for _ in range(20)
    ]  # fmt: skip
    found = iter(run(program, cases=cases))
    driven = 0
    for _, steps in cases:
        for enable, _, _ in steps:
            duty, same, compare, other_channel, high, low, kick = next(found)
            assert same
            assert (compare, other_channel) == ((abs(duty) * 6250) >> 15, 0)
            assert kick == (1333 if enable else 0)
            if enable:
                driven += 1
                assert (high, low) == ((-1, 1 << 17) if duty < 0 else (1 << 17, -1))
    assert driven > 900


def test_the_tick_s_kernel_drives_half_bridges_with_their_dead_time() -> None:
    """Legs go opposite ways by half the duty, and no switch is told to close within the dead time of its partner."""
    program = (
        TURN
        + """
answer = []
for top, dead, gain, steps in cases:
    loop, outputs = array("i", [gain, 0, 32440, 0, 0, 0]), array("i", [0, 0, 0])
    legs, kick = [array("i", [-1]), array("i", [-1])], array("i", [-1])
    t = cells({rp2_turn.INPUTS: at(bytearray(128))})
    for k, value in {
        rp2_turn.OUTPUTS: at(outputs), rp2_turn.LOOP: at(loop), rp2_turn.PWM_COMPARE: at(legs[0]),
        rp2_turn.PWM_COMPARE_2: at(legs[1]), rp2_turn.DEAD: dead, rp2_turn.PWM_TOP: top,
        rp2_turn.KICK_AT: at(kick), rp2_turn.KICK: 1333,
    }.items():
        t[OUT + k] = word(value)
    for enable, command in steps:
        outputs[1], outputs[2] = enable, command
        rp2_turn.after(addressof(t))
        answer.append([[leg[0] & 0xFFFF for leg in legs], [leg[0] >> 16 & 0xFFFF for leg in legs], kick[0]])
"""
    )
    generator = random.Random(10)
    commands = [0, 1, -1, 32440, -32440, 65535, -65535, *(generator.randrange(-32440, 32440) for _ in range(40))]
    cases = [
        (top, dead, 256, [(1, command) for command in commands] + [(0, 0)])
        for top, dead in ((3124, 63), (3124, 1), (624, 40), (12499, 625))
    ]
    found = iter(run(program, cases=cases))
    for top, dead, _, steps in cases:
        for enable, command in steps:
            high, low, kick = next(found)
            if not enable:
                assert (high, low, kick) == ([0, 0], [top + 1, top + 1], 0)  # all four open
                continue
            duty = min(max(command, -32440), 32440) / 32768
            assert kick == 1333
            for level, other, share in zip(high, low, ((1 + duty) / 2, (1 - duty) / 2), strict=True):
                assert other - level == dead
                assert 0 <= level
                assert other <= top + 1
                wanted = min(max(share * (top + 1) - dead / 2, 0), top + 1 - dead)
                assert level == pytest.approx(wanted, abs=1.5)  # each of three roundings less than 1


def test_one_call_does_both_motors_of_a_board_each_with_its_own() -> None:
    """Of two motors each has its ring's places, its encoder, its line's cells and its drive; time is one."""
    program = (
        TURN
        + """
from drivers.rp2_adc import latest
ring = array("H", [(7 * k) & 4095 for k in range(128)])
dma = array("I", [0, addressof(ring) + 2 * 41, 0, 1 << 24])
quiet, tx, rx = array("I", [0] * 4), array("I", [0] * 8), array("I", [0, 1030, 0, 1 << 24])
timer, flags = array("I", [5003]), array("I", [flag])
lines = [cells({rp2_turn.NEXT: at_line}, 64) for at_line in (10, 25)]
motors, inputs, outputs, kicks, again = [], [], [], [], []
for k, places in enumerate(((0, 1, -1, -1), (2, 3, -1, -1))):
    inputs.append(bytearray(128))
    again.append(bytearray(128))
    outputs.append(array("i", [0, k, 100]))
    kicks.append(array("i", [-1]))
    state = [addressof(ring), addressof(dma), addressof(dma), 24, 4] + [place & 0xFFFFFFFF for place in places]
    latest(array("I", state), again[k], at(quiet))
    t = cells({
        rp2_turn.INPUTS: at(inputs[k]), rp2_turn.ADC_RING: addressof(ring), rp2_turn.ADC_DMA: addressof(dma),
        rp2_turn.ADC_DMA_2: addressof(dma), rp2_turn.ADC_FCS: at(quiet), rp2_turn.SLOTS: 4,
        rp2_turn.CURRENT_SLOT: places[0], rp2_turn.TORQUE_SLOT: places[1], rp2_turn.SUPPLY_SLOT: -1,
        rp2_turn.TEMPERATURE_SLOT: -1, rp2_turn.ENCODER: at(array("I", [70 + k, 900 + k])),
        rp2_turn.ENCODER_FLAGS: at(flags), rp2_turn.ENCODER_BIT: 1 << k, rp2_turn.LINE: at(lines[k]),
        OUT + rp2_turn.OUTPUTS: at(outputs[k]), OUT + rp2_turn.LOOP: at(array("i", [9, 9, 32000, 0, 4096, 0])),
        OUT + rp2_turn.PWM_COMPARE: at(array("i", [0])), OUT + rp2_turn.PWM_TOP: 6249,
        OUT + rp2_turn.PIN_SET: at(array("i", [0])), OUT + rp2_turn.PIN_CLEAR: at(array("i", [0])),
        OUT + rp2_turn.KICK_AT: at(kicks[k]), OUT + rp2_turn.KICK: 1333,
    })
    motors.append(t)
first = motors[0]
for k, value in {
    rp2_turn.TIMER: at(timer), rp2_turn.DOG: at(array("I", [0])), rp2_turn.DUE: 5000, rp2_turn.TICK: 9,
    rp2_turn.PERIOD: 1000, rp2_turn.RX_DMA: at(rx), rp2_turn.RX_DMA_2: at(rx), rp2_turn.RX_RING: 1000,
    rp2_turn.RX_MASK: 2047, rp2_turn.TX_DMA: at(tx), rp2_turn.BUSY: 1 << 24, rp2_turn.SPEAKER: at(lines[0]),
    rp2_turn.LISTENER: at(lines[1]), rp2_turn.NEXT_MOTOR: at(motors[1]),
}.items():
    first[k] = word(value)
found = rp2_turn.before(addressof(first))
rp2_turn.after(addressof(first))
words = [array("i", memory) for memory in inputs]
answer = [
    found & 0xF0000, [list(one[:2]) + [one[4], one[28]] for one in words],
    [one[32:96] == other[32:96] for one, other in zip(inputs, again)],
    [line[rp2_turn.END] for line in lines], [line[rp2_turn.TURNS] for line in lines], [kick[0] for kick in kicks],
]
"""
    )
    for flag, lost in ((0, 0), (1, 0x20000), (2, 0x20000), (4, 0)):
        found = run(program, flag=flag)
        assert found[0] == lost
        assert found[1] == [[9, 5000, 70, 900], [9, 5000, 71, 901]]
        assert found[2:] == [[True, True], [30, 30], [1, 1], [0, 1333]]


def test_the_other_motor_s_line_is_sent_when_the_one_has_said_all_it_may() -> None:
    program = (
        TURN
        + """
answer = []
for given, code, tail, other_given, other_code in cases:
    one = cells({rp2_turn.CODE: code, rp2_turn.TAIL: tail, rp2_turn.GIVEN_UP_TO: 40}, 64)
    other = cells({
        rp2_turn.CODE: other_code, rp2_turn.GONE: 4100, rp2_turn.TAIL: 8, rp2_turn.GIVEN_UP_TO: other_given,
        rp2_turn.ENCODED_AT: 1 << 16,
    }, 64)
    zero, tx = array("I", [0] * 40), array("I", [0] * 8)
    inputs, ring = bytearray(128), array("H", [0] * 32)
    dma = array("I", [0, addressof(ring), 0, 1 << 24])
    t = cells({
        rp2_turn.INPUTS: at(inputs), rp2_turn.TIMER: at(array("I", [1000])), rp2_turn.DOG: at(zero),
        rp2_turn.DUE: 1000, rp2_turn.PERIOD: 1000, rp2_turn.ADC_RING: addressof(ring),
        rp2_turn.ADC_DMA: addressof(dma), rp2_turn.ADC_DMA_2: addressof(dma), rp2_turn.ADC_FCS: at(zero),
        rp2_turn.SLOTS: 1, rp2_turn.TORQUE_SLOT: -1, rp2_turn.SUPPLY_SLOT: -1, rp2_turn.TEMPERATURE_SLOT: -1,
        rp2_turn.ENCODER: at(array("I", [0, 0])), rp2_turn.ENCODER_FLAGS: at(zero), rp2_turn.RX_DMA: at(dma),
        rp2_turn.RX_DMA_2: at(dma), rp2_turn.RX_RING: addressof(ring), rp2_turn.RX_MASK: 2047,
        rp2_turn.TX_DMA: at(tx), rp2_turn.BUSY: 1 << 24, rp2_turn.GIVEN: given, rp2_turn.LINE: at(one),
        rp2_turn.SPEAKER: at(one), rp2_turn.LISTENER: at(other),
    })
    rp2_turn.before(addressof(t))
    turned = t[rp2_turn.SPEAKER] == word(addressof(other))
    assert (t[rp2_turn.LISTENER] == word(addressof(one))) == turned
    answer.append([turned, t[rp2_turn.GIVEN], tx[0]])
"""
    )
    stays, turns = [False, 300, 0], [True, 4100, (1 << 16) + 4]
    cases = {
        (300, 300, 40, 24, 4100): turns,  # all is said, and the other has a frame
        (300, 300, 40, 8, 4200): turns,  # or the rest of one
        (300, 300, 40, 8, 4100): stays,  # or nothing
        (300, 300, 12, 24, 4100): stays,  # a frame of its own waits
    }
    for case, found in zip(cases, run(program, cases=list(cases)), strict=True):
        assert found == cases[case], case
