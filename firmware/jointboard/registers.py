"""The register table. It is the first part of the tick's cells, so what the host writes is what the next tick uses.

Writing checks id, access, range and state; derived limits follow each write. Not for the tick path: big integers
allocate.
"""

from array import array

from micropython import const

from jointboard import tick, wire

READ_ONLY = const(1)
ALWAYS = const(2)
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
    derive()


def exists(id):
    return id < wire.REGISTER_COUNT and wire.ACCESS[id] != 0


def write(id, value, can_move):
    """Set a register; returns (refusal, the value it has now or, out of range, the bound it would pass)."""
    if not exists(id):
        return wire.REFUSAL_UNKNOWN_REGISTER, id
    if wire.ACCESS[id] == READ_ONLY:
        return wire.REFUSAL_READ_ONLY, cells[id]
    if can_move and wire.ACCESS[id] != ALWAYS:
        return wire.REFUSAL_WRONG_STATE, cells[tick.STATE]
    if value < wire.MINIMUM[id]:
        return wire.REFUSAL_OUT_OF_RANGE, wire.MINIMUM[id]
    if value > wire.MAXIMUM[id]:
        return wire.REFUSAL_OUT_OF_RANGE, wire.MAXIMUM[id]
    cells[id] = value
    derive()
    return wire.REFUSAL_OK, value


def derive():
    """Limits in the units the tick compares in."""
    counts = cells[tick.LIMIT_CURRENT] * 1000000 * TRIP_NUMERATOR // TRIP_DENOMINATOR
    counts //= abs(cells[wire.REGISTER_CURRENT_SCALE])
    cells[tick.TRIP_COUNTS] = min(counts, ADC_RAIL - abs(cells[wire.REGISTER_CURRENT_ZERO]))
    cells[tick.TIMEOUT] = cells[wire.REGISTER_LIMIT_LINK_TIMEOUT] * 1000 // cells[wire.REGISTER_BOARD_TICK_PERIOD]


def in_register_units(trip, number):
    """A trip's value or limit as its limit register has it (mA, motor counts, counts/tick Q8, ms)."""
    if trip == wire.TRIP_OVER_CURRENT:
        return number * abs(cells[wire.REGISTER_CURRENT_SCALE]) // 1000000
    if trip == wire.TRIP_LINK_LOSS:
        return number * cells[wire.REGISTER_BOARD_TICK_PERIOD] // 1000
    return number
