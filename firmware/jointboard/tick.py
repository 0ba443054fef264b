"""The tick: all that must happen between two samples, as one viper pass over one array of 32-bit cells.

ADC samples -> decimators -> filters -> encoders -> velocity -> playback -> limits -> servo -> packed sample, in that
order, so that the command, the reference and the sample of a tick belong together. One function, because on a
microcontroller calling a second one costs as much as its work; one argument, because each costs a conversion. On a
Cortex-M3, playing, as called: 1 064 instructions compiled, some 3 000 by viper.

It must not allocate, raise, call anything or look up a global name: all numbers are int32 within bounds that registers
and LOAD guarantee. On boards with an ARMv7-M core tick_thumb.py runs instead, compiled from this source; the language
is therefore plain: int32 locals, cells, if, shifts, and // of what is not negative. firmware/tests/twin.py computes the
same in unbounded integers; tests compare them bit for bit.

Units: positions in motor counts, velocities in counts/tick Q8, currents in centred sums of 16 ADC samples ("counts") as
measured and in mA as commanded, times in ticks.
"""

from micropython import const

# Cells 0..127 are the register table by id (wire.py); these are the ones a tick needs.
CURRENT_ZERO = const(5)
ENCODER_LINK_COUNTS = const(9)
ADC_CIC_ORDER = const(16)
VELOCITY_SOURCE = const(17)
VELOCITY_ALPHA = const(18)
VELOCITY_BETA = const(19)
SERVO_KI = const(20)
SERVO_KP = const(24)
SERVO_KD = const(25)
SERVO_VELOCITY_FEEDFORWARD = const(26)
LIMIT_POSITION_MIN = const(33)
LIMIT_POSITION_MAX = const(34)
LIMIT_FOLLOWING = const(36)
STREAM_ALWAYS = const(42)
SERVO_FRICTION_BAND = const(52)
LIMIT_MISSED_TICKS = const(61)

# Addresses: the Hal's input and output blocks (boards/__init__.py), the knot being played, where the next sample goes.
INPUTS = const(128)
OUTPUTS = const(129)
KNOT = const(130)
SAMPLE = const(131)
# Time and state.
TICK = const(132)
STATE = const(133)
STATUS_IN = const(134)  # ticks to the next STATUS
EDGES = const(135)  # SYNC edges seen
# Bounds in the units the tick compares; registers.derive() fills them and keeps the hard ones.
TRIP_COUNTS = const(136)  # largest |measured current|, ADC counts
JUMP = const(137)  # largest |move| of the motor counter in a tick
FASTEST = const(138)  # largest |velocity|
CLAMP = const(139)  # largest |command|, mA
STUCK_CURRENT = const(140)  # |command| at which the encoder must move, mA
STUCK_TICKS = const(141)
TIMEOUT = const(142)  # ticks without a valid frame
RAMP = const(143)  # the same after which the command goes down to zero
SUPPLY_LEAST = const(144)
SUPPLY_MOST = const(145)
HOTTEST = const(146)
# Heat of the winding: a mean square of the current over a time constant, in squares of 1/4096 of HARD_COUNTS times 64.
HARD_COUNTS = const(147)  # current beyond which it is not counted, ADC counts
HEAT_GAIN = const(148)  # (counts to 1/4096), Q12
HEAT_RATE = const(149)  # 64 ticks over the time constant, Q15
HEAT_LIMIT = const(150)
HEAT = const(151)
HEAT_SUM = const(152)  # of squares since HEAT was brought up to date
HEAT_IN = const(153)  # ticks until it is again
# What the trips count, and the trip that happened.
SILENCE = const(154)  # ticks since the last valid frame, at most TIMEOUT
MISSED = const(155)  # ticks missed just before this one
STUCK = const(156)  # ticks driven without motion
COMMAND = const(157)  # of the last tick, mA
TRIP = const(158)
TRIP_VALUE = const(159)
TRIP_LIMIT = const(160)
# Filter coefficients, Q27, as their upper 19 and lower 13 bits: b0 b1 b2 a1 a2 of both sections.
B0_1 = const(161)
B1_1 = const(162)
B2_1 = const(163)
A1_1 = const(164)
A2_1 = const(165)
B0_1_LOW = const(166)
B1_1_LOW = const(167)
B2_1_LOW = const(168)
A1_1_LOW = const(169)
A2_1_LOW = const(170)
B0_2 = const(171)
B1_2 = const(172)
B2_2 = const(173)
A1_2 = const(174)
A2_2 = const(175)
B0_2_LOW = const(176)
B1_2_LOW = const(177)
B2_2_LOW = const(178)
A1_2_LOW = const(179)
A2_2_LOW = const(180)
# Motor current: the decimator's weighted sum and remainder; the filter's inputs, middles, outputs, and what rounding
# the latter two cut off.
CURRENT_WEIGHTED = const(181)
CURRENT_REST = const(182)
CURRENT_X1 = const(183)
CURRENT_X2 = const(184)
CURRENT_M1 = const(185)
CURRENT_M2 = const(186)
CURRENT_Y1 = const(187)
CURRENT_Y2 = const(188)
CURRENT_E1 = const(189)
CURRENT_E2 = const(190)
CURRENT_F1 = const(191)
CURRENT_F2 = const(192)
# Joint torque: the decimator's weighted sum and remainder; the filter's inputs, middles, outputs, and what rounding
# the latter two cut off.
TORQUE_WEIGHTED = const(193)
TORQUE_REST = const(194)
TORQUE_X1 = const(195)
TORQUE_X2 = const(196)
TORQUE_M1 = const(197)
TORQUE_M2 = const(198)
TORQUE_Y1 = const(199)
TORQUE_Y2 = const(200)
TORQUE_E1 = const(201)
TORQUE_E2 = const(202)
TORQUE_F1 = const(203)
TORQUE_F2 = const(204)
# Encoders.
COUNTER = const(205)  # last reading of the 16-bit motor counter
POSITION = const(206)
LINK_COUNT = const(207)  # last reading of the link encoder
LINK_POSITION = const(208)
LINK_HALF = const(209)  # counts in half a turn of it
# Velocity.
VELOCITY = const(210)  # counts/tick, Q12
INNOVATION = const(211)  # measured minus estimated position, counts Q8
EDGE_TIME = const(212)  # of the edge that was newest when the counter last moved
STILL = const(213)  # ticks since then
EDGE_CLOCKS = const(214)  # counts of the capture clock in a tick
EDGE_MOST = const(215)  # largest move whose product with them fits
# Servo.
INTEGRAL = const(216)  # mA, Q14
FRICTION_SLOPE = const(217)  # servo.friction over its band, Q12
# Playback.
REFERENCE = const(218)
REFERENCE_VELOCITY = const(219)
WAIT = const(220)  # ticks until the trajectory starts
STEP = const(221)  # ticks since the last knot
INTERVAL = const(222)  # intervals left in this repeat
INTERVALS = const(223)  # intervals of the trajectory
REPEATS = const(224)  # repeats left, this one included; 0: done
PLAY = const(225)  # trajectory tick of this sample, -1 when nothing plays
PLAYED = const(226)  # trajectory ticks played so far
# The DATA block being filled, and how it is to be filled (sampling.py).
COUNT = const(227)
FIRST_TICK = const(228)
FIRST_PLAY = const(229)
BLOCK = const(230)  # ticks in a full block
DIVIDERS = const(231)  # as a DATA head has them
DUE = const(232)  # 64 cells: mask of the channels due at a tick, by its lowest six bits
CELLS = const(296)

# What a tick returns: bits of what the main loop has to see to.
EVENT_GAP = const(1)  # ticks were missed: nothing has been done yet; note them, set TICK, call again
EVENT_BLOCK = const(2)  # the DATA block must be closed: it is full, or playing begins or ends
EVENT_STATUS = const(4)
EVENT_TRIP = const(8)
EVENT_DONE = const(16)
EVENT_SYNC = const(32)

STATUS_TICKS = const(1000)
KNOT_TICKS = const(32)
HEAT_TICKS = const(64)
SLOWEST_EDGE = const(4194304)  # counts of the capture clock from edge to edge; beyond it the motor stands
LONGEST_REST = const(257)  # ticks: an edge after so many only begins an interval, for the clock may have wrapped
# As wire.py has them; viper folds a constant only when it stands in the same file.
STATE_ARMED = const(3)
STATE_RUNNING = const(4)
STATE_DONE = const(5)
STATE_FAULT = const(6)
TRIP_OVER_CURRENT = const(1)
TRIP_POSITION = const(2)
TRIP_VELOCITY = const(3)
TRIP_FOLLOWING = const(4)
TRIP_LINK_LOSS = const(5)
TRIP_I2T = const(7)
TRIP_ENCODER_JUMP = const(8)
TRIP_ENCODER_STUCK = const(9)
TRIP_SUPPLY = const(10)
TRIP_TEMPERATURE = const(11)
TRIP_OVERRUN = const(12)
TRIP_COMMAND = const(13)


@micropython.viper
def tick(cells: ptr32) -> int:
    inputs = ptr32(cells[INPUTS])
    if inputs[0] - cells[TICK] != 1:
        return EVENT_GAP
    events = 0
    if inputs[2] != cells[EDGES]:
        cells[EDGES] = inputs[2]
        events = EVENT_SYNC
    cells[TICK] = inputs[0]

    # stage: decimate
    # Two 12-bit samples to a word; eight of them sum in each half without a carry. With order 2 a triangle over this
    # tick's samples and those of the tick before.
    early = inputs[8] + inputs[9] + inputs[10] + inputs[11]
    late = inputs[12] + inputs[13] + inputs[14] + inputs[15]
    low = (early + late) & 0xFFFF
    high = (early + late) >> 16
    current = low + high - 32768
    x = current
    if cells[ADC_CIC_ORDER] == 2:
        # Weights 1..16: sample 2k + 1 stands in the lower half of word k, 2k + 2 in the upper.
        word = inputs[9] + ((inputs[10] + inputs[14]) << 1) + 3 * (inputs[11] + inputs[15]) + inputs[13]
        word = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) + (((late & 0xFFFF) + (late >> 16)) << 2)
        word = (word << 1) + low + (high << 1)
        sum = cells[CURRENT_WEIGHTED] - word + ((low + high) << 4) - 524288 + cells[CURRENT_REST]
        cells[CURRENT_WEIGHTED] = word
        cells[CURRENT_REST] = sum & 15
        x = sum >> 4

    early = inputs[16] + inputs[17] + inputs[18] + inputs[19]
    late = inputs[20] + inputs[21] + inputs[22] + inputs[23]
    low = (early + late) & 0xFFFF
    high = (early + late) >> 16
    torque = low + high - 32768
    if cells[ADC_CIC_ORDER] == 2:
        # Weights 1..16: sample 2k + 1 stands in the lower half of word k, 2k + 2 in the upper.
        word = inputs[17] + ((inputs[18] + inputs[22]) << 1) + 3 * (inputs[19] + inputs[23]) + inputs[21]
        word = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) + (((late & 0xFFFF) + (late >> 16)) << 2)
        word = (word << 1) + low + (high << 1)
        sum = cells[TORQUE_WEIGHTED] - word + ((low + high) << 4) - 524288 + cells[TORQUE_REST]
        cells[TORQUE_WEIGHTED] = word
        cells[TORQUE_REST] = sum & 15
        torque = sum >> 4

    # stage: filter current
    # Two biquads in a row, direct form I. A sum may wrap: it is exact while the output is below 4 x full scale. What
    # rounding an output cuts off (14 bits, e) takes part in the recursion like the output itself: only then is it as
    # good as its coefficients at low cut-offs, too.
    x1 = cells[CURRENT_X1]
    x2 = cells[CURRENT_X2]
    m1 = cells[CURRENT_M1]
    m2 = cells[CURRENT_M2]
    y1 = cells[CURRENT_Y1]
    y2 = cells[CURRENT_Y2]
    e1 = cells[CURRENT_E1]
    word = cells[B0_1] * x + cells[B1_1] * x1 + cells[B2_1] * x2 - cells[A1_1] * m1 - cells[A2_1] * m2
    low = cells[B0_1_LOW] * x + cells[B1_1_LOW] * x1 + cells[B2_1_LOW] * x2
    low = low - cells[A1_1_LOW] * m1 - cells[A2_1_LOW] * m2 + 4096
    low = low - ((cells[A1_1] * e1 + cells[A2_1] * cells[CURRENT_E2]) >> 1)
    word = word + (low >> 13) + 8192
    cells[CURRENT_E2] = e1
    cells[CURRENT_E1] = (word & 0x3FFF) - 8192
    middle = word >> 14
    if middle > 32767:
        middle = 32767
    if middle < -32768:
        middle = -32768
    e1 = cells[CURRENT_F1]
    word = cells[B0_2] * middle + cells[B1_2] * m1 + cells[B2_2] * m2 - cells[A1_2] * y1 - cells[A2_2] * y2
    low = cells[B0_2_LOW] * middle + cells[B1_2_LOW] * m1 + cells[B2_2_LOW] * m2
    low = low - cells[A1_2_LOW] * y1 - cells[A2_2_LOW] * y2 + 4096
    low = low - ((cells[A1_2] * e1 + cells[A2_2] * cells[CURRENT_F2]) >> 1)
    word = word + (low >> 13) + 8192
    cells[CURRENT_F2] = e1
    cells[CURRENT_F1] = (word & 0x3FFF) - 8192
    filtered = word >> 14
    if filtered > 32767:
        filtered = 32767
    if filtered < -32768:
        filtered = -32768
    cells[CURRENT_X1] = x
    cells[CURRENT_X2] = x1
    cells[CURRENT_M1] = middle
    cells[CURRENT_M2] = m1
    cells[CURRENT_Y1] = filtered
    cells[CURRENT_Y2] = y1

    # stage: filter torque
    x1 = cells[TORQUE_X1]
    x2 = cells[TORQUE_X2]
    m1 = cells[TORQUE_M1]
    m2 = cells[TORQUE_M2]
    y1 = cells[TORQUE_Y1]
    y2 = cells[TORQUE_Y2]
    e1 = cells[TORQUE_E1]
    word = cells[B0_1] * torque + cells[B1_1] * x1 + cells[B2_1] * x2 - cells[A1_1] * m1 - cells[A2_1] * m2
    low = cells[B0_1_LOW] * torque + cells[B1_1_LOW] * x1 + cells[B2_1_LOW] * x2
    low = low - cells[A1_1_LOW] * m1 - cells[A2_1_LOW] * m2 + 4096
    low = low - ((cells[A1_1] * e1 + cells[A2_1] * cells[TORQUE_E2]) >> 1)
    word = word + (low >> 13) + 8192
    cells[TORQUE_E2] = e1
    cells[TORQUE_E1] = (word & 0x3FFF) - 8192
    middle = word >> 14
    if middle > 32767:
        middle = 32767
    if middle < -32768:
        middle = -32768
    e1 = cells[TORQUE_F1]
    word = cells[B0_2] * middle + cells[B1_2] * m1 + cells[B2_2] * m2 - cells[A1_2] * y1 - cells[A2_2] * y2
    low = cells[B0_2_LOW] * middle + cells[B1_2_LOW] * m1 + cells[B2_2_LOW] * m2
    low = low - cells[A1_2_LOW] * y1 - cells[A2_2_LOW] * y2 + 4096
    low = low - ((cells[A1_2] * e1 + cells[A2_2] * cells[TORQUE_F2]) >> 1)
    word = word + (low >> 13) + 8192
    cells[TORQUE_F2] = e1
    cells[TORQUE_F1] = (word & 0x3FFF) - 8192
    torsion = word >> 14
    if torsion > 32767:
        torsion = 32767
    if torsion < -32768:
        torsion = -32768
    cells[TORQUE_X1] = torque
    cells[TORQUE_X2] = x1
    cells[TORQUE_M1] = middle
    cells[TORQUE_M2] = m1
    cells[TORQUE_Y1] = torsion
    cells[TORQUE_Y2] = y1

    # stage: encoders
    delta = ((inputs[4] - cells[COUNTER] + 32768) & 0xFFFF) - 32768
    position = cells[POSITION] + delta
    cells[COUNTER] = inputs[4]
    cells[POSITION] = position
    word = inputs[5] - cells[LINK_COUNT]
    if word > cells[LINK_HALF]:
        word = word - cells[ENCODER_LINK_COUNTS]
    elif word < 0 - cells[LINK_HALF]:
        word = word + cells[ENCODER_LINK_COUNTS]
    link = cells[LINK_POSITION] + word
    cells[LINK_COUNT] = inputs[5]
    cells[LINK_POSITION] = link

    # stage: velocity
    velocity = cells[VELOCITY]
    if cells[VELOCITY_SOURCE] == 0:
        # Tracking observer. The bound on the innovation keeps its products within 32 bits.
        word = cells[INNOVATION] + (delta << 8) - (velocity >> 4)
        if word > 1048576:
            word = 1048576
        if word < -1048576:
            word = -1048576
        velocity = velocity + ((word * cells[VELOCITY_BETA]) >> 8)
        cells[INNOVATION] = word - ((word * cells[VELOCITY_ALPHA]) >> 8)
        cells[VELOCITY] = velocity
        velocity = velocity >> 4
    else:
        # M/T: counts since the last edge over the time since then, exact to 1/256; without edges less and less.
        velocity = velocity >> 4
        if delta != 0:
            span = inputs[28] - cells[EDGE_TIME]
            still = cells[STILL]
            cells[EDGE_TIME] = inputs[28]
            cells[STILL] = 0
            if span == 0:
                span = 1
            word = delta
            if word < 0:
                word = 0 - word
            if word > cells[EDGE_MOST]:
                word = cells[EDGE_MOST]
            velocity = 0
            if span > 0 and span <= SLOWEST_EDGE and still < LONGEST_REST:
                word = word * cells[EDGE_CLOCKS]
                velocity = word // span
                word = word - velocity * span
                if velocity > 32767:
                    velocity = 32767
                velocity = (velocity << 8) + (word << 8) // span
            if delta < 0:
                velocity = 0 - velocity
        else:
            word = cells[STILL] + 1
            if word > LONGEST_REST:
                word = LONGEST_REST
            cells[STILL] = word
            word = 256 // word
            if velocity > word:
                velocity = word
            if velocity < 0 - word:
                velocity = 0 - word
        cells[VELOCITY] = velocity << 4

    # stage: playback
    # Cubic Hermite between knots 32 ticks apart; with i = 0..31 all its weights are whole numbers / 2^15.
    state = cells[STATE]
    driven = 0
    if state == STATE_ARMED or state == STATE_RUNNING:
        driven = 1
    taken = driven
    play = -1
    if state == STATE_RUNNING:
        if cells[WAIT] > 0:
            word = cells[WAIT] - 1
            cells[WAIT] = word
            if word == 0:
                events |= EVENT_BLOCK
        elif cells[REPEATS] == 0:
            driven = 0
            taken = 0
            cells[STATE] = STATE_DONE
            events |= EVENT_DONE
        else:
            knot = ptr32(cells[KNOT])
            i = cells[STEP]
            w = 32 - i
            base = knot[0]
            span = knot[2] - base
            v0 = knot[1]
            v1 = knot[3]
            word = (span * i * i * (48 - i)) >> 2
            word = word + ((i * w * ((v0 >> 3) * w - (v1 >> 3) * i)) >> 3)
            cells[REFERENCE] = base + ((word + 2048) >> 12)
            word = (3 * span * i * w) >> 6
            word = word + ((v0 * w * (32 - 3 * i) + v1 * i * (3 * i - 64)) >> 10)
            if word > 1048576:
                word = 1048576
            if word < -1048576:
                word = -1048576
            cells[REFERENCE_VELOCITY] = word
            play = cells[PLAYED]
            cells[PLAYED] = play + 1
            i = i + 1
            if i == KNOT_TICKS:
                i = 0
                cells[KNOT] = cells[KNOT] + 8
                word = cells[INTERVAL] - 1
                if word == 0:
                    word = cells[INTERVALS]
                    cells[KNOT] = cells[KNOT] - 8 * word
                    cells[REPEATS] = cells[REPEATS] - 1
                    if cells[REPEATS] == 0:
                        events |= EVENT_BLOCK
                cells[INTERVAL] = word
            cells[STEP] = i
    cells[PLAY] = play

    # stage: limits
    silence = cells[SILENCE]
    timeout = cells[TIMEOUT]
    if silence < timeout:
        silence = silence + 1
        cells[SILENCE] = silence
    value = current - cells[CURRENT_ZERO]
    if value < 0:
        value = 0 - value
    word = value
    if word > cells[HARD_COUNTS]:
        word = cells[HARD_COUNTS]
    word = (word * cells[HEAT_GAIN]) >> 12
    word = cells[HEAT_SUM] + word * word
    i = cells[HEAT_IN] - 1
    if i == 0:
        i = HEAT_TICKS
        cells[HEAT] = cells[HEAT] + ((word - cells[HEAT]) >> 15) * cells[HEAT_RATE]
        word = 0
    cells[HEAT_SUM] = word
    cells[HEAT_IN] = i
    word = cells[COMMAND]
    if word < 0:
        word = 0 - word
    stuck = 0
    if delta == 0 and word >= cells[STUCK_CURRENT]:
        stuck = cells[STUCK] + 1
    cells[STUCK] = stuck
    missed = cells[MISSED]
    cells[MISSED] = 0
    command = 0
    if driven:
        # The first one passed is the trip; outputs are off in this same tick.
        trip = 0
        error = cells[REFERENCE] - position
        move = delta
        if move < 0:
            move = 0 - move
        limit = cells[TRIP_COUNTS]
        if value > limit:
            trip = TRIP_OVER_CURRENT
        elif cells[HEAT] > cells[HEAT_LIMIT]:
            trip = TRIP_I2T
            value = cells[HEAT]
            limit = cells[HEAT_LIMIT]
        elif missed > cells[LIMIT_MISSED_TICKS]:
            trip = TRIP_OVERRUN
            value = missed
            limit = cells[LIMIT_MISSED_TICKS]
        elif move > cells[JUMP] * (missed + 1):
            trip = TRIP_ENCODER_JUMP
            value = delta
            limit = cells[JUMP]
        elif stuck >= cells[STUCK_TICKS]:
            trip = TRIP_ENCODER_STUCK
            value = stuck
            limit = cells[STUCK_TICKS]
        elif position < cells[LIMIT_POSITION_MIN]:
            trip = TRIP_POSITION
            value = position
            limit = cells[LIMIT_POSITION_MIN]
        elif position > cells[LIMIT_POSITION_MAX]:
            trip = TRIP_POSITION
            value = position
            limit = cells[LIMIT_POSITION_MAX]
        elif velocity > cells[FASTEST] or velocity < 0 - cells[FASTEST]:
            trip = TRIP_VELOCITY
            value = velocity
            limit = cells[FASTEST]
        elif silence >= timeout:
            trip = TRIP_LINK_LOSS
            value = silence
            limit = timeout
        elif inputs[6] < cells[SUPPLY_LEAST]:
            trip = TRIP_SUPPLY
            value = inputs[6]
            limit = cells[SUPPLY_LEAST]
        elif inputs[6] > cells[SUPPLY_MOST]:
            trip = TRIP_SUPPLY
            value = inputs[6]
            limit = cells[SUPPLY_MOST]
        elif inputs[7] > cells[HOTTEST]:
            trip = TRIP_TEMPERATURE
            value = inputs[7]
            limit = cells[HOTTEST]
        elif cells[REFERENCE] < cells[LIMIT_POSITION_MIN]:
            trip = TRIP_COMMAND
            value = cells[REFERENCE]
            limit = cells[LIMIT_POSITION_MIN]
        elif cells[REFERENCE] > cells[LIMIT_POSITION_MAX]:
            trip = TRIP_COMMAND
            value = cells[REFERENCE]
            limit = cells[LIMIT_POSITION_MAX]
        else:
            limit = cells[LIMIT_FOLLOWING]
            if error > limit or error < 0 - limit:
                if silence > cells[RAMP]:
                    # The drive is being let go of: that it does not follow is no fault of its own.
                    if error > 0:
                        error = limit
                    else:
                        error = 0 - limit
                else:
                    trip = TRIP_FOLLOWING
                    value = error
        if trip:
            driven = 0
            cells[TRIP] = trip
            cells[TRIP_VALUE] = value
            cells[TRIP_LIMIT] = limit
            cells[STATE] = STATE_FAULT
            events |= EVENT_TRIP
        else:
            # Servo: position and velocity error, planned velocity, friction, and the error's integral, to a current.
            planned = cells[REFERENCE_VELOCITY]
            damping = planned - velocity
            if damping > 65536:
                damping = 65536
            if damping < -65536:
                damping = -65536
            command = (error * cells[SERVO_KP]) >> 8
            command = command + ((damping * cells[SERVO_KD]) >> 12)
            command = command + (((planned >> 4) * cells[SERVO_VELOCITY_FEEDFORWARD]) >> 8)
            word = cells[SERVO_FRICTION_BAND]
            if planned > word:
                planned = word
            if planned < 0 - word:
                planned = 0 - word
            integral = cells[INTEGRAL]
            command = command + ((planned * cells[FRICTION_SLOPE]) >> 12) + (integral >> 14)
            # Anti-windup: no integration further into the clamp, nor while the command is being let go of.
            limit = cells[CLAMP]
            word = (error * cells[SERVO_KI]) >> 2
            if command > limit:
                command = limit
                if word > 0:
                    word = 0
            if command < 0 - limit:
                command = 0 - limit
                if word < 0:
                    word = 0
            if silence > cells[RAMP]:
                # Nothing heard for half the time-out: on a straight line to zero at its end.
                word = 0
                span = timeout - cells[RAMP]
                if command < 0:
                    command = 0 - (0 - command) * (timeout - silence) // span
                else:
                    command = command * (timeout - silence) // span
            integral = integral + word
            if integral > limit << 14:
                integral = limit << 14
            if integral < 0 - (limit << 14):
                integral = 0 - (limit << 14)
            cells[INTEGRAL] = integral
    cells[COMMAND] = command
    outputs = ptr32(cells[OUTPUTS])
    outputs[0] = inputs[0]
    outputs[1] = driven
    outputs[2] = command

    # stage: store
    # The channels due at this tick, packed; halfwords, since a Cortex-M0 cannot store a word at an odd one.
    if taken or cells[STREAM_ALWAYS]:
        if cells[COUNT] == 0:
            cells[FIRST_TICK] = inputs[0]
            cells[FIRST_PLAY] = play
        mask = cells[DUE + (inputs[0] & 63)]
        sample = ptr16(cells[SAMPLE])
        i = 0
        if mask & 1:
            sample[0] = filtered
            i = 1
        if mask & 2:
            sample[i] = position
            sample[i + 1] = position >> 16
            i = i + 2
        if mask & 4:
            sample[i] = link
            sample[i + 1] = link >> 16
            i = i + 2
        if mask & 8:
            sample[i] = torsion
            i = i + 1
        if mask & 16:
            sample[i] = command
            i = i + 1
        if mask & 0xFE0:
            if mask & 32:
                sample[i] = inputs[6]
                i = i + 1
            if mask & 64:
                sample[i] = inputs[7]
                i = i + 1
            if mask & 128:
                sample[i] = inputs[24]
                i = i + 1
            if mask & 256:
                sample[i] = inputs[25]
                i = i + 1
            if mask & 512:
                sample[i] = inputs[26]
                i = i + 1
            if mask & 1024:
                sample[i] = inputs[27]
                i = i + 1
            if mask & 2048:
                sample[i] = velocity
                sample[i + 1] = velocity >> 16
                i = i + 2
        cells[SAMPLE] = cells[SAMPLE] + (i << 1)
        word = cells[COUNT] + 1
        cells[COUNT] = word
        if word == cells[BLOCK]:
            events |= EVENT_BLOCK
    word = cells[STATUS_IN] - 1
    if word == 0:
        word = STATUS_TICKS
        events |= EVENT_STATUS
    cells[STATUS_IN] = word
    return events
