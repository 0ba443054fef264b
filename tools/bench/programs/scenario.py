"""A tick with everything in it: RUNNING, playing, every trip looked at, both filters, the servo, a sample stored.

All that a tick touches lies in one block of memory, so that it can be put back before each call.
"""

import struct

import uctypes
from jointboard import registers, tick, wire
from micropython import const

INPUTS = 4 * tick.CELLS
OUTPUTS = INPUTS + 128
BLOCK = OUTPUTS + 16
KNOTS = BLOCK + 128
SIZE = KNOTS + 64

TICK = const(1005)
FACTS = {"encoder.capture_clock": 25000000}
MILLION = const(1000000)
# A Butterworth low-pass of order four, 100 Hz at 1 kHz, as two sections in Q27; any coefficients cost the same.
COEFFICIENTS = (
    (647165, 1294329, 647165, -140933222, 41424474),
    (134217728, 268435456, 134217728, -177221390, 84975520),
)  # fmt: skip


def memory(velocity_source):
    """The block of memory, ready for its tick."""
    cells = registers.new_cells()
    registers.set_facts(cells, FACTS)
    _write(cells, wire.REGISTER_LIMIT_POSITION_MIN, -MILLION)
    _write(cells, wire.REGISTER_LIMIT_POSITION_MAX, MILLION)
    _write(cells, wire.REGISTER_SERVO_KP, 300)
    _write(cells, wire.REGISTER_SERVO_KI, 20)
    _write(cells, wire.REGISTER_SERVO_KD, 150)
    _write(cells, wire.REGISTER_ADC_CIC_ORDER, 2)
    _write(cells, wire.REGISTER_VELOCITY_SOURCE, velocity_source)
    for section, values in enumerate(COEFFICIENTS):
        for k, value in enumerate(values):
            _write(cells, wire.REGISTER_FILTER_1_B0 + 5 * section + k, value)
    block = bytearray(SIZE)
    start = uctypes.addressof(block)
    cells[tick.INPUTS], cells[tick.OUTPUTS] = start + INPUTS, start + OUTPUTS
    cells[tick.KNOT], cells[tick.SAMPLE] = start + KNOTS, start + BLOCK
    cells[tick.TICK], cells[tick.STATUS_IN], cells[tick.STATE] = TICK - 1, 500, tick.STATE_RUNNING
    cells[tick.STEP], cells[tick.INTERVAL], cells[tick.INTERVALS], cells[tick.REPEATS] = 5, 7, 9, 1
    cells[tick.PLAYED], cells[tick.SILENCE], cells[tick.COUNT], cells[tick.HEAT_IN] = 69, 3, 7, 20
    cells[tick.COUNTER], cells[tick.POSITION], cells[tick.VELOCITY] = 2000, 2000, 2 << 12
    cells[tick.LINK_COUNT] = 77
    block[:INPUTS] = bytes(cells)
    samples = [2048 + 40 * k - 3 * k * k for k in range(16)]
    values = [TICK, TICK * 1000, 0, 0, 2003, 79, 1000, 300]
    struct.pack_into("<8i", block, INPUTS, *values)
    struct.pack_into("<32H", block, INPUTS + 32, *(samples + samples[::-1]))
    struct.pack_into("<i", block, INPUTS + 112, 123456)
    struct.pack_into("<4i", block, KNOTS, 1990, 700, 2090, 800)
    return block


def _write(cells, id, value):
    refusal, now = registers.write(cells, id, value, False)
    if refusal != wire.REFUSAL_OK:
        raise ValueError("register %d: %d is refused, %d would do" % (id, value, now))
