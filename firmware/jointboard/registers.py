"""The register table. It is the first part of a motor's cells, so what the host writes is what its next tick uses.

Writing checks id, access, range and state; what the tick needs in its own terms follows each write (bounds.py). Not for
the tick path: big integers allocate.
"""

from micropython import const

from jointboard import rooms, bounds, sampling, tick, wire

READ_ONLY = const(1)
ALWAYS = const(2)
PERSIST = const(4)
MOTOR_CURRENT = const(1)  # bit of the channel that every board with a motor has
LONGEST_BRAKE_MS = const(2000)
# Registers that a hard bound holds, whatever their own range.
CURRENTS = (
    wire.REGISTER_LIMIT_CURRENT, wire.REGISTER_LIMIT_CONTINUOUS_CURRENT, wire.REGISTER_LIMIT_STUCK_CURRENT,
    wire.REGISTER_SERVO_FRICTION, wire.REGISTER_LIMIT_FEEDFORWARD, wire.REGISTER_LIMIT_FLOAT,
)  # fmt: skip
POSITIVE = (
    "board.tick_period", "encoder.link_counts", "voltage.scale", "temperature.scale", "hard.current", "hard.velocity"
)  # fmt: skip

assert rooms.CELLS == tick.CELLS


def new_cells():
    """The cells of a motor, all registers as they are by default."""
    cells = rooms.cells.pop()
    for id in range(wire.REGISTER_COUNT):
        cells[id] = wire.DEFAULT[id]
    cells[tick.POWER] = 1
    return cells


def word(number):
    """The number as a cell holds it: 32 bits, signed."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def set_facts(cells, facts):
    """Take the board's facts from its configuration; an unknown name is a mistake worth stopping for."""
    for name, value in facts.items():
        if name not in wire.FACTS:
            raise ValueError("config.json: fact %r is none of %s" % (name, ", ".join(sorted(wire.FACTS))))
        cells[wire.FACTS[name]] = value
    if cells[wire.REGISTER_HARD_MISSED_TICKS] < 0:
        raise ValueError("config.json: fact 'hard.missed_ticks' must not be below 0")
    if cells[wire.REGISTER_KNOTS_TICKS] != tick.KNOT_TICKS or cells[wire.REGISTER_ADC_OVERSAMPLES] != 16:
        raise ValueError("config.json: this firmware has knots.ticks 32 and adc.oversamples 16")
    if cells[wire.REGISTER_CURRENT_SCALE] == 0:
        raise ValueError("config.json: fact 'current.scale' must not be 0")
    for name in POSITIVE:
        if cells[wire.FACTS[name]] <= 0:
            raise ValueError("config.json: fact '%s' is %d, must be above 0" % (name, cells[wire.FACTS[name]]))
    for name in ("brake.engage_time", "brake.release_time"):
        if not 0 <= cells[wire.FACTS[name]] <= LONGEST_BRAKE_MS:
            found = name, cells[wire.FACTS[name]], LONGEST_BRAKE_MS
            raise ValueError("config.json: fact '%s' is %d ms, must be from 0 to %d" % found)
    if cells[wire.REGISTER_BRAKE_RELEASE_TIME] and not cells[wire.REGISTER_BRAKE_ENGAGE_TIME]:
        raise ValueError("config.json: fact 'brake.release_time' is given, so 'brake.engage_time' must be above 0")
    available, every = cells[wire.REGISTER_BOARD_CHANNELS], wire.MAXIMUM[wire.REGISTER_STREAM_CHANNELS]
    if not 0 < available <= every:
        raise ValueError("config.json: fact 'board.channels' is %d, a mask from 1 to %d" % (available, every))
    asked = cells[wire.REGISTER_STREAM_CHANNELS] if has_motor(cells) else available
    cells[wire.REGISTER_STREAM_CHANNELS] = sampling.nearest(asked, available)
    for id in CURRENTS + (wire.REGISTER_LIMIT_VELOCITY, wire.REGISTER_LIMIT_MISSED_TICKS):
        cells[id] = within(cells, id, cells[id])
    derive(cells)


def has_motor(cells):
    return cells[wire.REGISTER_BOARD_CHANNELS] & MOTOR_CURRENT


def exists(id):
    return id < wire.REGISTER_COUNT and wire.ACCESS[id] != 0


def write(cells, id, value, can_move):
    """Set a register; returns (refusal, the value it has now or, out of range, the nearest it may have)."""
    if not exists(id):
        return wire.REFUSAL_UNKNOWN_REGISTER, id
    if wire.ACCESS[id] == READ_ONLY:
        return wire.REFUSAL_READ_ONLY, cells[id]
    if can_move and wire.ACCESS[id] != ALWAYS:
        return wire.REFUSAL_WRONG_STATE, cells[tick.STATE]
    nearest = within(cells, id, value)
    if nearest != value:
        return wire.REFUSAL_OUT_OF_RANGE, nearest
    cells[id] = value
    derive(cells)
    return wire.REFUSAL_OK, value


def within(cells, id, value):
    """The allowed value of a writable register that is nearest to this one."""
    value = max(wire.MINIMUM[id], min(wire.MAXIMUM[id], value))
    if id == wire.REGISTER_STREAM_CHANNELS:
        return sampling.nearest(value, cells[wire.REGISTER_BOARD_CHANNELS])
    if id in CURRENTS:
        return min(value, cells[wire.REGISTER_HARD_CURRENT])
    if id == wire.REGISTER_LIMIT_VELOCITY:
        return min(value, cells[wire.REGISTER_HARD_VELOCITY])
    if id == wire.REGISTER_LIMIT_MISSED_TICKS:
        return min(value, cells[wire.REGISTER_HARD_MISSED_TICKS])
    if id == wire.REGISTER_LIMIT_TWIST and not bounds.has_link(cells):
        return 0
    if id == wire.REGISTER_VELOCITY_SOURCE and not cells[wire.REGISTER_ENCODER_CAPTURE_CLOCK]:
        return 0
    return value


def derive(cells):
    """What the tick needs of the registers in its own terms: limits in the units it compares, channels by tick."""
    bounds.derive(cells)
    sampling.plan(cells)
