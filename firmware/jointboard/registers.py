"""The register table. It is the first part of the tick's cells, so what the host writes is what the next tick uses.

Writing checks id, access, range and state; what the tick derives from registers follows each write. Not for the tick
path: big integers allocate.
"""

from array import array
from binascii import crc32

from micropython import const

from jointboard import sampling, tick, wire

READ_ONLY = const(1)
ALWAYS = const(2)
PERSIST = const(4)
# A trip a quarter above the clamp: noise and ripple around a clamped command are no fault.
TRIP_NUMERATOR = const(5)
TRIP_DENOMINATOR = const(4)
ADC_RAIL = const(32736)  # centred sum of 16 samples one count below full scale: beyond it the current is not known

cells = array("i", bytes(4 * tick.CELLS))
for _id in range(wire.REGISTER_COUNT):
    cells[_id] = wire.DEFAULT[_id]


def word(number):
    """The number as a cell holds it: 32 bits, signed."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def set_facts(facts):
    """Take the board's facts from its configuration; an unknown name is a mistake worth stopping for."""
    for name, value in facts.items():
        if name not in wire.FACTS:
            raise ValueError("config.json: fact %r is none of %s" % (name, ", ".join(sorted(wire.FACTS))))
        cells[wire.FACTS[name]] = value
    if cells[wire.REGISTER_KNOTS_TICKS] != tick.KNOT_TICKS or cells[wire.REGISTER_ADC_OVERSAMPLES] != 16:
        raise ValueError("config.json: this firmware has knots.ticks 32 and adc.oversamples 16")
    for name in ("board.tick_period", "current.scale", "encoder.link_counts"):
        if cells[wire.FACTS[name]] == 0:
            raise ValueError("config.json: fact '%s' must not be 0" % name)
    available, every = cells[wire.REGISTER_BOARD_CHANNELS], wire.MAXIMUM[wire.REGISTER_STREAM_CHANNELS]
    if not 0 < available <= every:
        raise ValueError("config.json: fact 'board.channels' is %d, a mask from 1 to %d" % (available, every))
    cells[wire.REGISTER_STREAM_CHANNELS] = sampling.nearest(cells[wire.REGISTER_STREAM_CHANNELS], available)
    derive()


def exists(id):
    return id < wire.REGISTER_COUNT and wire.ACCESS[id] != 0


def write(id, value, can_move):
    """Set a register; returns (refusal, the value it has now or, out of range, the nearest it may have)."""
    if not exists(id):
        return wire.REFUSAL_UNKNOWN_REGISTER, id
    if wire.ACCESS[id] == READ_ONLY:
        return wire.REFUSAL_READ_ONLY, cells[id]
    if can_move and wire.ACCESS[id] != ALWAYS:
        return wire.REFUSAL_WRONG_STATE, cells[tick.STATE]
    nearest = within(id, value)
    if nearest != value:
        return wire.REFUSAL_OUT_OF_RANGE, nearest
    cells[id] = value
    derive()
    return wire.REFUSAL_OK, value


def within(id, value):
    """The allowed value of a writable register that is nearest to this one."""
    value = max(wire.MINIMUM[id], min(wire.MAXIMUM[id], value))
    if id == wire.REGISTER_STREAM_CHANNELS:
        value = sampling.nearest(value, cells[wire.REGISTER_BOARD_CHANNELS])
    return value


def derive():
    """What the tick needs of the registers in its own terms: limits in the units it compares, channels by tick."""
    counts = cells[tick.LIMIT_CURRENT] * 1000000 * TRIP_NUMERATOR // TRIP_DENOMINATOR
    counts //= abs(cells[wire.REGISTER_CURRENT_SCALE])
    cells[tick.TRIP_COUNTS] = min(counts, ADC_RAIL - abs(cells[wire.REGISTER_CURRENT_ZERO]))
    cells[tick.TIMEOUT] = cells[wire.REGISTER_LIMIT_LINK_TIMEOUT] * 1000 // cells[wire.REGISTER_BOARD_TICK_PERIOD]
    sampling.plan(cells)


def config_crc(trajectory):
    """CRC-32 of all registers, going on from the trajectory's: a host that knows it knows what it arms."""
    return crc32(memoryview(cells)[: wire.REGISTER_COUNT], trajectory)


def in_register_units(trip, number):
    """A trip's value or limit as its limit register has it (mA, motor counts, counts/tick Q8, ms)."""
    if trip == wire.TRIP_OVER_CURRENT:
        return number * abs(cells[wire.REGISTER_CURRENT_SCALE]) // 1000000
    if trip == wire.TRIP_LINK_LOSS:
        return number * cells[wire.REGISTER_BOARD_TICK_PERIOD] // 1000
    return number
