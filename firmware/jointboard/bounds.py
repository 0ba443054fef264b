"""What registers mean for the tick: limits in the units it compares, gains and coefficients as it multiplies them.

Registers say what a trip is set to; the hard facts say what it can be set to at most, and are applied here once more,
so that a trip holds whatever a register reads. After a write only: big integers allocate.
"""

from micropython import const

from jointboard import tick, wire

# A trip a quarter above the clamp: noise and ripple around a clamped command are no fault.
TRIP_NUMERATOR = const(5)
TRIP_DENOMINATOR = const(4)
ADC_RAIL = const(32736)  # centred sum of 16 samples one count below full scale: beyond it the current is not known
HEAT_ONE = const(4096)  # of a current at HARD_COUNTS
INT32_MAX = const(0x7FFFFFFF)
LONGEST_TIMEOUT = const(65535)  # ticks: times the largest current it fits 32 bits
MOST_WHOLE = const(1 << 18)  # motor counts of a count of the link encoder, of which 4096 fit 32 bits
COEFFICIENTS = const(5)  # of a section of the filter
LINK_POSITION = const(4)  # bits of channels
BUS_VOLTAGE = const(32)
TEMPERATURE = const(64)


def derive(cells):
    """Fill the tick's cells of limits, gains and coefficients from the registers."""
    _currents(cells)
    _motion(cells)
    _times(cells)
    _surroundings(cells)
    for section in range(2):
        for k in range(COEFFICIENTS):
            value = cells[wire.REGISTER_FILTER_1_B0 + COEFFICIENTS * section + k]
            at = 2 * COEFFICIENTS * section + k
            cells[tick.B0_1 + at] = value >> 13
            cells[tick.B0_1_LOW + at] = value & 0x1FFF
    cells[tick.FRICTION_SLOPE] = (cells[wire.REGISTER_SERVO_FRICTION] << 12) // cells[tick.SERVO_FRICTION_BAND]


def _currents(cells):
    hard = cells[wire.REGISTER_HARD_CURRENT]
    limit = min(cells[wire.REGISTER_LIMIT_CURRENT], hard)
    cells[tick.CLAMP] = limit
    cells[tick.STUCK_CURRENT] = max(1, min(cells[wire.REGISTER_LIMIT_STUCK_CURRENT], limit))
    cells[tick.TRIP_COUNTS] = _trip_counts(cells, limit)
    most = cells[tick.HARD_COUNTS] = max(1, _trip_counts(cells, hard))
    gain = cells[tick.HEAT_GAIN] = HEAT_ONE * 4096 // most
    counts = cells[wire.REGISTER_LIMIT_CONTINUOUS_CURRENT] * 1000000 // abs(cells[wire.REGISTER_CURRENT_SCALE])
    cells[tick.HEAT_LIMIT] = (min(counts, most) * gain >> 12) ** 2 * tick.HEAT_TICKS
    span = tick.HEAT_TICKS * cells[wire.REGISTER_BOARD_TICK_PERIOD] * 32768
    time = cells[wire.REGISTER_LIMIT_THERMAL_TIME] * 1000
    cells[tick.HEAT_RATE] = max(1, min(32768, (2 * span + time) // (2 * time)))


def _trip_counts(cells, current):
    counts = current * 1000000 * TRIP_NUMERATOR // TRIP_DENOMINATOR // abs(cells[wire.REGISTER_CURRENT_SCALE])
    return min(counts, ADC_RAIL - abs(cells[wire.REGISTER_CURRENT_ZERO]))


def _motion(cells):
    fastest = cells[wire.REGISTER_HARD_VELOCITY]
    cells[tick.FASTEST] = min(cells[wire.REGISTER_LIMIT_VELOCITY], fastest)
    cells[tick.JUMP] = max(1, min(cells[wire.REGISTER_LIMIT_JUMP], fastest >> 8))
    turn = cells[tick.ENCODER_LINK_COUNTS]
    cells[tick.LINK_HALF] = turn >> 1
    counts = cells[wire.REGISTER_DRIVE_RATIO] * cells[wire.REGISTER_ENCODER_MOTOR_COUNTS]
    whole = counts // (1000 * turn)
    cells[tick.TWIST_WHOLE] = max(-MOST_WHOLE, min(MOST_WHOLE, whole))
    cells[tick.TWIST_PART] = (counts - 1000 * turn * whole << 18) // (1000 * turn)
    twist = cells[wire.REGISTER_LIMIT_TWIST]
    cells[tick.TWIST_MOST] = twist if twist and has_link(cells) else INT32_MAX
    clocks = cells[wire.REGISTER_ENCODER_CAPTURE_CLOCK] * cells[wire.REGISTER_BOARD_TICK_PERIOD] // 1000000
    cells[tick.EDGE_CLOCKS] = clocks
    cells[tick.EDGE_MOST] = min(32768, INT32_MAX // max(1, clocks))
    cells[tick.WALL_LOW] = cells[wire.REGISTER_LIMIT_POSITION_MIN] + cells[wire.REGISTER_FLOAT_WALL]
    cells[tick.WALL_HIGH] = cells[wire.REGISTER_LIMIT_POSITION_MAX] - cells[wire.REGISTER_FLOAT_WALL]


def has_link(cells):
    """There is an encoder at the link."""
    return cells[wire.REGISTER_BOARD_CHANNELS] & LINK_POSITION


def _times(cells):
    timeout = min(LONGEST_TIMEOUT, _ticks(cells, wire.REGISTER_LIMIT_LINK_TIMEOUT))
    cells[tick.TIMEOUT] = timeout
    cells[tick.RAMP] = timeout >> 1
    cells[tick.STUCK_TICKS] = max(1, _ticks(cells, wire.REGISTER_LIMIT_STUCK_TIME))
    cells[tick.FLOAT_TICKS] = max(1, _ticks(cells, wire.REGISTER_FLOAT_TIMEOUT))
    cells[tick.ENGAGE_TICKS] = _whole_ticks(cells, wire.REGISTER_BRAKE_ENGAGE_TIME)
    cells[tick.RELEASE_TICKS] = max(1, _whole_ticks(cells, wire.REGISTER_BRAKE_RELEASE_TIME))


def _ticks(cells, register):
    return cells[register] * 1000 // cells[wire.REGISTER_BOARD_TICK_PERIOD]


def _whole_ticks(cells, register):
    """Ticks that no shorter time lies between, however late in theirs the outputs of two are given; 0 stays 0."""
    return -(-cells[register] * 1000 // cells[wire.REGISTER_BOARD_TICK_PERIOD]) + 1 if cells[register] else 0


def _surroundings(cells):
    """Supply and temperature: a board that does not measure them has no trip of them."""
    has = cells[wire.REGISTER_BOARD_CHANNELS]
    cells[tick.SUPPLY_LEAST] = -INT32_MAX
    cells[tick.SUPPLY_MOST] = INT32_MAX
    if has & BUS_VOLTAGE:
        scale = cells[wire.REGISTER_VOLTAGE_SCALE]
        cells[tick.SUPPLY_LEAST] = cells[wire.REGISTER_LIMIT_SUPPLY_MIN] * 1000 // scale
        cells[tick.SUPPLY_MOST] = cells[wire.REGISTER_LIMIT_SUPPLY_MAX] * 1000 // scale
    counts = cells[wire.REGISTER_LIMIT_TEMPERATURE] * 10000 // cells[wire.REGISTER_TEMPERATURE_SCALE]
    counts += cells[wire.REGISTER_TEMPERATURE_ZERO]
    cells[tick.HOTTEST] = min(counts, INT32_MAX) if has & TEMPERATURE else INT32_MAX


def in_register_units(cells, trip, number):
    """A trip's value or limit as its limit register has it (mA, mV, 0.01 K, ms, motor counts, counts/tick Q8)."""
    if trip == wire.TRIP_OVER_CURRENT:
        return number * abs(cells[wire.REGISTER_CURRENT_SCALE]) // 1000000
    if trip == wire.TRIP_I2T:
        counts = (number / tick.HEAT_TICKS) ** 0.5 * cells[tick.HARD_COUNTS] / HEAT_ONE
        return int(counts * abs(cells[wire.REGISTER_CURRENT_SCALE]) / 1000000)
    if trip == wire.TRIP_LINK_LOSS or trip == wire.TRIP_ENCODER_STUCK:
        return number * cells[wire.REGISTER_BOARD_TICK_PERIOD] // 1000
    if trip == wire.TRIP_SUPPLY:
        return number * cells[wire.REGISTER_VOLTAGE_SCALE] // 1000
    if trip == wire.TRIP_TEMPERATURE:
        return (number - cells[wire.REGISTER_TEMPERATURE_ZERO]) * cells[wire.REGISTER_TEMPERATURE_SCALE] // 10000
    return number
