"""The tick: all that must happen between two samples, as one viper pass over one array of 32-bit cells.

ADC samples -> decimators -> filters -> encoders -> velocity -> playback -> limits -> servo -> packed sample, in that
order, so that the command, the reference and the sample of a tick belong together. One function, because on a
microcontroller calling a second one costs as much as its work; one argument, because each costs a conversion.
Instructions, playing, as called: 2 655 on ARMv7-M, 2 779 on ARMv6-M (the same in C at -O2, without the call: 699).

It must not allocate, raise, call anything or look up a global name: all numbers are int32 within bounds that registers
and LOAD guarantee. The language is plain: int32 locals, cells, if, shifts, and // of what is not negative, so that the
same statements are C, too, and `./run bench firmware` counts both. firmware/tests/twin.py computes the same in
unbounded integers; tests compare them bit for bit.

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
LIMIT_DECELERATION = const(74)
LIMIT_UNEXPECTED = const(78)
LIMIT_FLOAT = const(79)
FLOAT_VELOCITY = const(81)
FLOAT_DEAD_BAND = const(83)
FLOAT_HOLD = const(84)
FLOAT_INERTIA = const(85)

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
STUCK = const(156)  # ticks driven without motion, of two counts at least
COMMAND = const(157)  # of the last tick, mA
TRIP = const(158)
TRIP_VALUE = const(159)
TRIP_LIMIT = const(160)
# Joint torque: the decimator's weighted sum and remainder; the filter's inputs, middles, outputs, and what rounding
# the latter two cut off.
TORQUE_WEIGHTED = const(161)
TORQUE_REST = const(162)
TORQUE_X1 = const(163)
TORQUE_X2 = const(164)
TORQUE_M1 = const(165)
TORQUE_M2 = const(166)
TORQUE_Y1 = const(167)
TORQUE_Y2 = const(168)
TORQUE_E1 = const(169)
TORQUE_E2 = const(170)
TORQUE_F1 = const(171)
TORQUE_F2 = const(172)
# Filter coefficients, Q27, as their upper 19 and lower 13 bits: b0 b1 b2 a1 a2 of both sections.
B0_1 = const(173)
B1_1 = const(174)
B2_1 = const(175)
A1_1 = const(176)
A2_1 = const(177)
B0_1_LOW = const(178)
B1_1_LOW = const(179)
B2_1_LOW = const(180)
A1_1_LOW = const(181)
A2_1_LOW = const(182)
B0_2 = const(183)
B1_2 = const(184)
B2_2 = const(185)
A1_2 = const(186)
A2_2 = const(187)
B0_2_LOW = const(188)
B1_2_LOW = const(189)
B2_2_LOW = const(190)
A1_2_LOW = const(191)
A2_2_LOW = const(192)
# Motor current: the decimator's weighted sum and remainder; the filter's inputs, middles, outputs, and what rounding
# the latter two cut off.
CURRENT_WEIGHTED = const(193)
CURRENT_REST = const(194)
CURRENT_X1 = const(195)
CURRENT_X2 = const(196)
CURRENT_M1 = const(197)
CURRENT_M2 = const(198)
CURRENT_Y1 = const(199)
CURRENT_Y2 = const(200)
CURRENT_E1 = const(201)
CURRENT_E2 = const(202)
CURRENT_F1 = const(203)
CURRENT_F2 = const(204)
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
# Of a driven motor what the Hal is told: 1 power, 3 and its brake is open; plus 4 for each tick until that is so.
POWER = const(223)
REPEATS = const(224)  # repeats left, this one included; 0: done
PLAY = const(225)  # trajectory tick of this sample, -1 when nothing plays
PLAYED = const(226)  # trajectory ticks played so far
COUNT = const(227)  # of the DATA block being filled
EXCUSED = const(228)  # limit switches that the motor stood at when it was armed, and may leave
STUCK_AT = const(229)  # position that STUCK is counted from
BLOCK = const(230)  # ticks in a full block
HALTING = const(231)  # not 0: the reference slows down to rest, the brake engages, and then the motor is off
# What the joint twists: motor counts of the motor less those that the link encoder says, since they were set alike.
TWIST = const(232)
TWIST_REST = const(233)  # of the latter, Q18
TWIST_WHOLE = const(234)  # motor counts of a count of the link encoder, and 2^18 of the rest
TWIST_PART = const(235)
TWIST_MOST = const(236)
# Reached seldom: of the DATA block being filled, and how it is to be filled (sampling.py); of a controlled stop.
FIRST_TICK = const(237)
FIRST_PLAY = const(238)
DIVIDERS = const(239)  # as a DATA head has them
REST = const(240)  # of the reference, Q8 of a count
INTERVALS = const(241)  # of the trajectory
RELEASE_TICKS = const(242)
ENGAGE_TICKS = const(243)  # 0: there is no brake
ENGAGING = const(244)  # of them still to come when the motor rests
# Feed-forward of the motion: where the current of the knot being played stands, 0: there is none; the current of this
# tick, of knot 0 before the motion, mA; and how much of it is given, Q8: it comes in from ARM on, and goes at a HALT.
FEEDFORWARD_AT = const(245)
FEEDFORWARD = const(246)
FEEDFORWARD_SHARE = const(247)
FEEDBACK = const(248)  # what the servo adds to it while it plays, behind a low-pass, mA Q3
# Zero force: whether the currents are a table by which the motor floats, 1, and 2 once it does; ticks since the last
# COMPENSATE and how many there may be; what it said, mA, and behind a low-pass, Q8; the mean velocity, Q12; where the
# table stands, position of its first current, and positions between two as a power of two; where the walls begin.
FLOATING = const(249)
FLOAT_SILENCE = const(250)
FLOAT_TICKS = const(251)
REST_CURRENT = const(252)
REST_SMOOTH = const(253)
VELOCITY_MEAN = const(254)
TABLE_AT = const(255)
TABLE_FIRST = const(256)
TABLE_SHIFT = const(257)
WALL_LOW = const(258)
WALL_HIGH = const(259)
DUE = const(260)  # 64 cells: mask of the channels due at a tick, by its lowest six bits
CELLS = const(324)

# Where cells begin that are reached by one pointer: an ARMv6-M core takes one instruction for the 32 words from it on,
# three or four to read each beyond and eight to write it; a local takes as many as a cell within reach. The filters'
# coefficients lie between what the two keep, 32 cells with either.
CONTROL = const(128)
TORQUE = const(161)
CURRENT = const(173)
MOTION = const(205)
FED = const(245)  # of feed-forward and floating

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
WHOLE_SHARE = const(256)  # of the feed-forward: as many ticks from none to all of it
WATCHED_FROM = const(1024)  # tick of the motion from which on the servo's part is watched: START is over by then
SLOWEST_EDGE_BITS = const(22)  # of counts of the capture clock from edge to edge; beyond it the motor stands
LONGEST_REST = const(257)  # ticks: an edge after so many only begins an interval, for the clock may have wrapped
# Bits of the Hal's pins, which say what keeps the motor off.
PIN_STOP = const(1)
PIN_FAULT = const(2)
PIN_LOW = const(4)
PIN_HIGH = const(8)
# What comes of a motor that was halted.
HALT_DONE = const(2)  # DONE; else LOADED
HALT_LINK_LOSS = const(4)  # a trip, whatever else
# As wire.py has them; viper folds a constant only when it stands in the same file.
STATE_LOADED = const(2)
STATE_ARMED = const(3)
STATE_RUNNING = const(4)
STATE_DONE = const(5)
DRIVING = const(24)  # bits of ARMED and RUNNING
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
TRIP_STOP_PIN = const(15)
TRIP_FAULT_PIN = const(16)
TRIP_LIMIT_PIN = const(17)
TRIP_TWIST = const(18)
TRIP_UNEXPECTED = const(20)


@micropython.viper
def tick(cells: ptr32) -> int:
    # What a stage uses most: viper keeps two locals in registers, the argument and the one assigned first.
    near = ptr32(cells[INPUTS])
    inputs = near
    control = ptr32(int(cells) + 4 * CONTROL)
    if near[0] - control[TICK - CONTROL] - 1:
        return EVENT_GAP
    events = 0
    if near[2] ^ control[EDGES - CONTROL]:
        cells[EDGES] = near[2]
        events = EVENT_SYNC
    control[TICK - CONTROL] = near[0]

    # stage: decimate
    # Two 12-bit samples to a word; eight of them sum in each half without a carry. With order 2 a triangle over this
    # tick's samples and those of the tick before.
    early = near[8] + near[9] + near[10] + near[11]
    late = near[12] + near[13] + near[14] + near[15]
    word = early + late
    low = word & 0xFFFF
    high = word >> 16
    current = low + high - 32768
    x = current
    currents = ptr32(int(cells) + 4 * CURRENT)
    if cells[ADC_CIC_ORDER] & 2:
        # Weights 1..16: sample 2k + 1 stands in the lower half of word k, 2k + 2 in the upper.
        word = near[9] + ((near[10] + near[14]) << 1) + 3 * (near[11] + near[15]) + near[13]
        word = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) + (((late & 0xFFFF) + (late >> 16)) << 2)
        word = (word << 1) + low + (high << 1)
        sum = currents[CURRENT_WEIGHTED - CURRENT] - word + (current << 4) + currents[CURRENT_REST - CURRENT]
        currents[CURRENT_WEIGHTED - CURRENT] = word
        currents[CURRENT_REST - CURRENT] = sum & 15
        x = sum >> 4

    early = near[16] + near[17] + near[18] + near[19]
    late = near[20] + near[21] + near[22] + near[23]
    word = early + late
    low = word & 0xFFFF
    high = word >> 16
    torque = low + high - 32768
    torques = ptr32(int(cells) + 4 * TORQUE)
    if cells[ADC_CIC_ORDER] & 2:
        # Weights 1..16: sample 2k + 1 stands in the lower half of word k, 2k + 2 in the upper.
        word = near[17] + ((near[18] + near[22]) << 1) + 3 * (near[19] + near[23]) + near[21]
        word = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) + (((late & 0xFFFF) + (late >> 16)) << 2)
        word = (word << 1) + low + (high << 1)
        sum = torques[TORQUE_WEIGHTED - TORQUE] - word + (torque << 4) + torques[TORQUE_REST - TORQUE]
        torques[TORQUE_WEIGHTED - TORQUE] = word
        torques[TORQUE_REST - TORQUE] = sum & 15
        torque = sum >> 4

    # stage: filter current
    # Two biquads in a row, direct form I. A sum may wrap: it is exact while the output is below 4 x full scale. What
    # rounding an output cuts off (14 bits, e) takes part in the recursion like the output itself: only then is it as
    # good as its coefficients at low cut-offs, too. An output beyond 16 bits becomes the bound on its side.
    near = currents
    word = (
        near[B0_1 - CURRENT] * x
        + near[B1_1 - CURRENT] * near[CURRENT_X1 - CURRENT]
        + near[B2_1 - CURRENT] * near[CURRENT_X2 - CURRENT]
        - near[A1_1 - CURRENT] * near[CURRENT_M1 - CURRENT]
        - near[A2_1 - CURRENT] * near[CURRENT_M2 - CURRENT]
    )
    low = (
        near[B0_1_LOW - CURRENT] * x
        + near[B1_1_LOW - CURRENT] * near[CURRENT_X1 - CURRENT]
        + near[B2_1_LOW - CURRENT] * near[CURRENT_X2 - CURRENT]
        - near[A1_1_LOW - CURRENT] * near[CURRENT_M1 - CURRENT]
        - near[A2_1_LOW - CURRENT] * near[CURRENT_M2 - CURRENT]
        + 4096
        - ((near[A1_1 - CURRENT] * near[CURRENT_E1 - CURRENT] + near[A2_1 - CURRENT] * near[CURRENT_E2 - CURRENT]) >> 1)
    )
    word = word + (low >> 13) + 8192
    near[CURRENT_E2 - CURRENT] = near[CURRENT_E1 - CURRENT]
    near[CURRENT_E1 - CURRENT] = (word & 0x3FFF) - 8192
    middle = word >> 14
    if (middle + 32768) >> 16:
        middle = 32767 ^ (middle >> 31)
    word = (
        near[B0_2 - CURRENT] * middle
        + near[B1_2 - CURRENT] * near[CURRENT_M1 - CURRENT]
        + near[B2_2 - CURRENT] * near[CURRENT_M2 - CURRENT]
        - near[A1_2 - CURRENT] * near[CURRENT_Y1 - CURRENT]
        - near[A2_2 - CURRENT] * near[CURRENT_Y2 - CURRENT]
    )
    low = (
        near[B0_2_LOW - CURRENT] * middle
        + near[B1_2_LOW - CURRENT] * near[CURRENT_M1 - CURRENT]
        + near[B2_2_LOW - CURRENT] * near[CURRENT_M2 - CURRENT]
        - near[A1_2_LOW - CURRENT] * near[CURRENT_Y1 - CURRENT]
        - near[A2_2_LOW - CURRENT] * near[CURRENT_Y2 - CURRENT]
        + 4096
        - ((near[A1_2 - CURRENT] * near[CURRENT_F1 - CURRENT] + near[A2_2 - CURRENT] * near[CURRENT_F2 - CURRENT]) >> 1)
    )
    word = word + (low >> 13) + 8192
    near[CURRENT_F2 - CURRENT] = near[CURRENT_F1 - CURRENT]
    near[CURRENT_F1 - CURRENT] = (word & 0x3FFF) - 8192
    filtered = word >> 14
    if (filtered + 32768) >> 16:
        filtered = 32767 ^ (filtered >> 31)
    near[CURRENT_X2 - CURRENT] = near[CURRENT_X1 - CURRENT]
    near[CURRENT_X1 - CURRENT] = x
    near[CURRENT_M2 - CURRENT] = near[CURRENT_M1 - CURRENT]
    near[CURRENT_M1 - CURRENT] = middle
    near[CURRENT_Y2 - CURRENT] = near[CURRENT_Y1 - CURRENT]
    near[CURRENT_Y1 - CURRENT] = filtered

    # stage: filter torque
    near = torques
    word = (
        near[B0_1 - TORQUE] * torque
        + near[B1_1 - TORQUE] * near[TORQUE_X1 - TORQUE]
        + near[B2_1 - TORQUE] * near[TORQUE_X2 - TORQUE]
        - near[A1_1 - TORQUE] * near[TORQUE_M1 - TORQUE]
        - near[A2_1 - TORQUE] * near[TORQUE_M2 - TORQUE]
    )
    low = (
        near[B0_1_LOW - TORQUE] * torque
        + near[B1_1_LOW - TORQUE] * near[TORQUE_X1 - TORQUE]
        + near[B2_1_LOW - TORQUE] * near[TORQUE_X2 - TORQUE]
        - near[A1_1_LOW - TORQUE] * near[TORQUE_M1 - TORQUE]
        - near[A2_1_LOW - TORQUE] * near[TORQUE_M2 - TORQUE]
        + 4096
        - ((near[A1_1 - TORQUE] * near[TORQUE_E1 - TORQUE] + near[A2_1 - TORQUE] * near[TORQUE_E2 - TORQUE]) >> 1)
    )
    word = word + (low >> 13) + 8192
    near[TORQUE_E2 - TORQUE] = near[TORQUE_E1 - TORQUE]
    near[TORQUE_E1 - TORQUE] = (word & 0x3FFF) - 8192
    middle = word >> 14
    if (middle + 32768) >> 16:
        middle = 32767 ^ (middle >> 31)
    word = (
        near[B0_2 - TORQUE] * middle
        + near[B1_2 - TORQUE] * near[TORQUE_M1 - TORQUE]
        + near[B2_2 - TORQUE] * near[TORQUE_M2 - TORQUE]
        - near[A1_2 - TORQUE] * near[TORQUE_Y1 - TORQUE]
        - near[A2_2 - TORQUE] * near[TORQUE_Y2 - TORQUE]
    )
    low = (
        near[B0_2_LOW - TORQUE] * middle
        + near[B1_2_LOW - TORQUE] * near[TORQUE_M1 - TORQUE]
        + near[B2_2_LOW - TORQUE] * near[TORQUE_M2 - TORQUE]
        - near[A1_2_LOW - TORQUE] * near[TORQUE_Y1 - TORQUE]
        - near[A2_2_LOW - TORQUE] * near[TORQUE_Y2 - TORQUE]
        + 4096
        - ((near[A1_2 - TORQUE] * near[TORQUE_F1 - TORQUE] + near[A2_2 - TORQUE] * near[TORQUE_F2 - TORQUE]) >> 1)
    )
    word = word + (low >> 13) + 8192
    near[TORQUE_F2 - TORQUE] = near[TORQUE_F1 - TORQUE]
    near[TORQUE_F1 - TORQUE] = (word & 0x3FFF) - 8192
    torsion = word >> 14
    if (torsion + 32768) >> 16:
        torsion = 32767 ^ (torsion >> 31)
    near[TORQUE_X2 - TORQUE] = near[TORQUE_X1 - TORQUE]
    near[TORQUE_X1 - TORQUE] = torque
    near[TORQUE_M2 - TORQUE] = near[TORQUE_M1 - TORQUE]
    near[TORQUE_M1 - TORQUE] = middle
    near[TORQUE_Y2 - TORQUE] = near[TORQUE_Y1 - TORQUE]
    near[TORQUE_Y1 - TORQUE] = torsion

    # stage: encoders
    motion = ptr32(int(cells) + 4 * MOTION)
    near = motion
    delta = ((inputs[4] - near[COUNTER - MOTION]) << 16) >> 16
    position = near[POSITION - MOTION] + delta
    near[COUNTER - MOTION] = inputs[4]
    near[POSITION - MOTION] = position
    word = inputs[5] - near[LINK_COUNT - MOTION]
    if word > near[LINK_HALF - MOTION]:
        word = word - cells[ENCODER_LINK_COUNTS]
    elif word < 0 - near[LINK_HALF - MOTION]:
        word = word + cells[ENCODER_LINK_COUNTS]
    link = near[LINK_POSITION - MOTION] + word
    near[LINK_COUNT - MOTION] = inputs[5]
    near[LINK_POSITION - MOTION] = link
    if (word + 4096) >> 13:  # what makes products of 32 bits
        word = 4095 ^ (word >> 31)
    low = near[TWIST_REST - MOTION] + word * near[TWIST_PART - MOTION]
    near[TWIST_REST - MOTION] = low & 0x3FFFF
    twist = near[TWIST - MOTION] + delta - word * near[TWIST_WHOLE - MOTION] - (low >> 18)
    near[TWIST - MOTION] = twist

    # stage: velocity
    velocity = near[VELOCITY - MOTION]
    if not cells[VELOCITY_SOURCE]:
        # Tracking observer. The bound on the innovation keeps its products within 32 bits.
        word = near[INNOVATION - MOTION] + (delta << 8) - (velocity >> 4)
        if (word + 1048576) >> 21:  # at the bound itself, too
            if word > 0:
                word = 1048576
            else:
                word = -1048576
        velocity = velocity + ((word * cells[VELOCITY_BETA]) >> 8)
        near[INNOVATION - MOTION] = word - ((word * cells[VELOCITY_ALPHA]) >> 8)
        near[VELOCITY - MOTION] = velocity
        velocity = velocity >> 4
    else:
        # M/T: counts since the last edge over the time since then, exact to 1/256; without edges less and less.
        velocity = velocity >> 4
        if delta:
            span = inputs[28] - near[EDGE_TIME - MOTION]
            still = near[STILL - MOTION]
            near[EDGE_TIME - MOTION] = inputs[28]
            near[STILL - MOTION] = 0
            if not span:
                span = 1
            word = delta
            if word < 0:
                word = 0 - word
            if word > near[EDGE_MOST - MOTION]:
                word = near[EDGE_MOST - MOTION]
            velocity = 0
            if not (span - 1) >> SLOWEST_EDGE_BITS and still < LONGEST_REST:
                word = word * near[EDGE_CLOCKS - MOTION]
                velocity = word // span
                word = word - velocity * span
                if velocity >> 15:
                    velocity = 32767
                velocity = (velocity << 8) + (word << 8) // span
            if delta < 0:
                velocity = 0 - velocity
        else:
            word = near[STILL - MOTION] + 1
            if word > LONGEST_REST:
                word = LONGEST_REST
            near[STILL - MOTION] = word
            word = 256 // word
            if velocity > word:
                velocity = word
            if velocity < 0 - word:
                velocity = 0 - word
        near[VELOCITY - MOTION] = velocity << 4

    # stage: playback
    # Cubic Hermite between knots 32 ticks apart; with i = 0..31 all its weights are whole numbers / 2^15.
    fed = ptr32(int(cells) + 4 * FED)
    state = control[STATE - CONTROL]
    driven = 0
    if (DRIVING >> state) & 1:
        driven = near[POWER - MOTION]
        if driven >> 2:  # the brake opens: first torque stands, then the pin says so, then it is open
            word = (driven >> 2) - 1
            driven = 1
            if word < cells[RELEASE_TICKS]:
                driven = 3
            near[POWER - MOTION] = driven + (word << 2)
    taken = driven
    play = -1
    if state == STATE_RUNNING:
        if motion[HALTING - MOTION]:
            word = near[REFERENCE_VELOCITY - MOTION]
            i = cells[LIMIT_DECELERATION]
            if word > i:
                word = word - i
            elif word < 0 - i:
                word = word + i
            else:
                word = 0
                if cells[ENGAGING]:  # it holds until its brake does
                    cells[ENGAGING] = cells[ENGAGING] - 1
                    cells[POWER] = 1
                    driven = 1
                elif cells[HALTING] & HALT_LINK_LOSS:
                    cells[SILENCE] = cells[TIMEOUT]
                else:
                    driven = 0
                    taken = 0
                    cells[STATE] = STATE_LOADED
                    if cells[HALTING] == HALT_DONE:
                        cells[STATE] = STATE_DONE
                    events |= EVENT_DONE
            near[REFERENCE_VELOCITY - MOTION] = word
            i = cells[REST] + word
            cells[REST] = i & 255
            near[REFERENCE - MOTION] = near[REFERENCE - MOTION] + (i >> 8)
        elif near[WAIT - MOTION]:
            word = near[WAIT - MOTION] - 1
            near[WAIT - MOTION] = word
            if not word:
                events |= EVENT_BLOCK
        elif fed[FLOATING - FED]:
            # The reference goes with the motor, but for the walls, and at rest for what little holds it there.
            if fed[FLOATING - FED] == 1:
                fed[FLOATING - FED] = 2
                fed[REST_SMOOTH - FED] = fed[REST_CURRENT - FED] << 8
                fed[VELOCITY_MEAN - FED] = near[VELOCITY - MOTION]
            word = fed[FLOAT_SILENCE - FED] + 1
            if word >= fed[FLOAT_TICKS - FED]:
                cells[HALTING] = 1  # nobody holds it
                events |= EVENT_BLOCK  # what is played ends here
            fed[FLOAT_SILENCE - FED] = word
            base = near[REFERENCE - MOTION]
            i = cells[FLOAT_DEAD_BAND]
            word = velocity
            if word > i or word < 0 - i:
                base = position
            else:
                i = cells[FLOAT_HOLD]
                if base > position + i:
                    base = position + i
                if base < position - i:
                    base = position - i
            i = cells[FLOAT_VELOCITY]
            if word > i:
                word = i
            if word < 0 - i:
                word = 0 - i
            if position > fed[WALL_HIGH - FED]:
                base = fed[WALL_HIGH - FED]
                word = 0
            if position < fed[WALL_LOW - FED]:
                base = fed[WALL_LOW - FED]
                word = 0
            near[REFERENCE - MOTION] = base
            near[REFERENCE_VELOCITY - MOTION] = word
            near[INTEGRAL - MOTION] = 0
            play = near[PLAYED - MOTION]
            near[PLAYED - MOTION] = play + 1
        elif not near[REPEATS - MOTION]:
            driven = 0
            taken = 0
            cells[STATE] = STATE_DONE
            events |= EVENT_DONE
        else:
            knot = ptr32(control[KNOT - CONTROL])
            i = near[STEP - MOTION]
            w = 32 - i
            base = knot[0]
            span = knot[2] - base
            v0 = knot[1]
            v1 = knot[3]
            word = (span * i * i * (48 - i)) >> 2
            word = word + ((i * w * ((v0 >> 3) * w - (v1 >> 3) * i)) >> 3)
            near[REFERENCE - MOTION] = base + ((word + 2048) >> 12)
            word = (3 * span * i * w) >> 6
            word = word + ((v0 * w * (32 - 3 * i) + v1 * i * (3 * i - 64)) >> 10)
            if (word + 1048576) >> 21:  # at the bound itself, too
                if word > 0:
                    word = 1048576
                else:
                    word = -1048576
            near[REFERENCE_VELOCITY - MOTION] = word
            if fed[FEEDFORWARD_AT - FED]:
                # A straight line between two halfwords, which a pointer reads without their sign: 32768 up, and down.
                sample = ptr16(fed[FEEDFORWARD_AT - FED])
                fed[FEEDFORWARD - FED] = (((sample[0] ^ 32768) * w + (sample[1] ^ 32768) * i) >> 5) - 32768
                if w == 1:
                    fed[FEEDFORWARD_AT - FED] = fed[FEEDFORWARD_AT - FED] + 2
            play = near[PLAYED - MOTION]
            near[PLAYED - MOTION] = play + 1
            i = i + 1
            if i & KNOT_TICKS:
                i = 0
                cells[KNOT] = cells[KNOT] + 8
                word = cells[INTERVAL] - 1
                if word == 0:
                    word = cells[INTERVALS]
                    cells[KNOT] = cells[KNOT] - 8 * word
                    if fed[FEEDFORWARD_AT - FED]:
                        fed[FEEDFORWARD_AT - FED] = fed[FEEDFORWARD_AT - FED] - 2 * word
                    cells[REPEATS] = cells[REPEATS] - 1
                    if cells[REPEATS] == 0:
                        events |= EVENT_BLOCK
                        if cells[ENGAGE_TICKS]:
                            cells[HALTING] = HALT_DONE
                cells[INTERVAL] = word
            near[STEP - MOTION] = i
    near[PLAY - MOTION] = play

    # stage: limits
    near = control
    silence = near[SILENCE - CONTROL]
    timeout = near[TIMEOUT - CONTROL]
    if silence < timeout:
        silence = silence + 1
        near[SILENCE - CONTROL] = silence
    value = current - cells[CURRENT_ZERO]
    if value < 0:
        value = 0 - value
    word = value
    if word > near[HARD_COUNTS - CONTROL]:
        word = near[HARD_COUNTS - CONTROL]
    word = (word * near[HEAT_GAIN - CONTROL]) >> 12
    word = near[HEAT_SUM - CONTROL] + word * word
    i = near[HEAT_IN - CONTROL] - 1
    if not i:
        i = HEAT_TICKS
        near[HEAT - CONTROL] = near[HEAT - CONTROL] + ((word - near[HEAT - CONTROL]) >> 15) * near[HEAT_RATE - CONTROL]
        word = 0
    near[HEAT_SUM - CONTROL] = word
    near[HEAT_IN - CONTROL] = i
    word = near[COMMAND - CONTROL]
    if word < 0:
        word = 0 - word
    # A count either way is no motion: with A or B cut off, an encoder that turns counts one up and one down for ever.
    stuck = 0
    if word >= near[STUCK_CURRENT - CONTROL]:
        move = position - motion[STUCK_AT - MOTION]
        if move <= 1 and move >= -1:
            stuck = near[STUCK - CONTROL] + 1
    if not stuck:
        motion[STUCK_AT - MOTION] = position
    near[STUCK - CONTROL] = stuck
    missed = near[MISSED - CONTROL]
    near[MISSED - CONTROL] = 0
    command = 0
    if driven:
        # The first one passed is the trip; outputs are off in this same tick.
        trip = 0
        error = motion[REFERENCE - MOTION] - position
        move = delta
        if move < 0:
            move = 0 - move
        limit = near[TRIP_COUNTS - CONTROL]
        pins = inputs[29]
        word = motion[EXCUSED - MOTION]
        if word:
            # A switch that was reached before ARM is left, and not gone on into.
            word = word & pins
            motion[EXCUSED - MOTION] = word
            if motion[REFERENCE_VELOCITY - MOTION] < 0:
                word = word & PIN_HIGH
            if motion[REFERENCE_VELOCITY - MOTION] > 0:
                word = word & PIN_LOW
            pins = pins ^ word
        if pins:
            value = pins
            limit = 0
            if pins & PIN_STOP:
                trip = TRIP_STOP_PIN
            elif pins & PIN_FAULT:
                trip = TRIP_FAULT_PIN
            else:
                trip = TRIP_LIMIT_PIN
        elif value > limit:
            trip = TRIP_OVER_CURRENT
        elif near[HEAT - CONTROL] > near[HEAT_LIMIT - CONTROL]:
            trip = TRIP_I2T
            value = cells[HEAT]
            limit = cells[HEAT_LIMIT]
        elif missed and missed > cells[LIMIT_MISSED_TICKS]:
            trip = TRIP_OVERRUN
            value = missed
            limit = cells[LIMIT_MISSED_TICKS]
        elif move > near[JUMP - CONTROL] * (missed + 1):
            trip = TRIP_ENCODER_JUMP
            value = delta
            limit = cells[JUMP]
        elif stuck >= near[STUCK_TICKS - CONTROL]:
            trip = TRIP_ENCODER_STUCK
            value = stuck
            limit = cells[STUCK_TICKS]
        elif (twist ^ (twist >> 31)) > motion[TWIST_MOST - MOTION]:
            trip = TRIP_TWIST
            value = twist
            limit = cells[TWIST_MOST]
        elif position < cells[LIMIT_POSITION_MIN]:
            trip = TRIP_POSITION
            value = position
            limit = cells[LIMIT_POSITION_MIN]
        elif position > cells[LIMIT_POSITION_MAX]:
            trip = TRIP_POSITION
            value = position
            limit = cells[LIMIT_POSITION_MAX]
        elif velocity > near[FASTEST - CONTROL] or velocity < 0 - near[FASTEST - CONTROL]:
            trip = TRIP_VELOCITY
            value = velocity
            limit = cells[FASTEST]
        elif silence >= timeout:
            trip = TRIP_LINK_LOSS
            value = silence
            limit = timeout
        elif inputs[6] < near[SUPPLY_LEAST - CONTROL]:
            trip = TRIP_SUPPLY
            value = inputs[6]
            limit = cells[SUPPLY_LEAST]
        elif inputs[6] > near[SUPPLY_MOST - CONTROL]:
            trip = TRIP_SUPPLY
            value = inputs[6]
            limit = cells[SUPPLY_MOST]
        elif inputs[7] > near[HOTTEST - CONTROL]:
            trip = TRIP_TEMPERATURE
            value = inputs[7]
            limit = cells[HOTTEST]
        elif motion[REFERENCE - MOTION] < cells[LIMIT_POSITION_MIN]:
            trip = TRIP_COMMAND
            value = cells[REFERENCE]
            limit = cells[LIMIT_POSITION_MIN]
        elif motion[REFERENCE - MOTION] > cells[LIMIT_POSITION_MAX]:
            trip = TRIP_COMMAND
            value = cells[REFERENCE]
            limit = cells[LIMIT_POSITION_MAX]
        else:
            limit = cells[LIMIT_FOLLOWING]
            if error > limit or error < 0 - limit:
                if silence > near[RAMP - CONTROL]:
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
            # Servo: position and velocity error, planned velocity, friction, the error's integral and the motion's
            # feed-forward, to a current.
            planned = motion[REFERENCE_VELOCITY - MOTION]
            damping = planned - velocity
            if (damping + 65536) >> 17:  # at the bound itself, too
                if damping > 0:
                    damping = 65536
                else:
                    damping = -65536
            command = (error * cells[SERVO_KP]) >> 8
            command = command + ((damping * cells[SERVO_KD]) >> 12)
            if fed[FLOATING - FED] & 2:
                word = cells[FLOAT_DEAD_BAND]
                if planned > word:
                    planned = planned - word
                elif planned < 0 - word:
                    planned = planned + word
                else:
                    planned = 0
                i = position - fed[TABLE_FIRST - FED]
                word = fed[TABLE_SHIFT - FED]
                sample = ptr16(fed[TABLE_AT - FED] + ((i >> word) << 1))
                w = (i >> (word - 8)) & 255
                value = fed[REST_SMOOTH - FED]
                value = value + (((fed[REST_CURRENT - FED] << 8) - value) >> 4)
                fed[REST_SMOOTH - FED] = value
                # A straight line between two halfwords, as above.
                value = (value >> 8) + (((sample[0] ^ 32768) * (256 - w) + (sample[1] ^ 32768) * w) >> 8) - 32768
                i = fed[VELOCITY_MEAN - FED]
                word = (motion[VELOCITY - MOTION] - i) >> 4
                fed[VELOCITY_MEAN - FED] = i + word
                if word > 65535:
                    word = 65535
                if word < -65535:
                    word = -65535
                value = value + ((word * cells[FLOAT_INERTIA]) >> 12)
                i = cells[LIMIT_FLOAT]
                if value > i:
                    value = i
                if value < 0 - i:
                    value = 0 - i
                command = command + value
            command = command + (((planned >> 4) * cells[SERVO_VELOCITY_FEEDFORWARD]) >> 8)
            word = cells[SERVO_FRICTION_BAND]
            if planned > word:
                planned = word
            if planned < 0 - word:
                planned = 0 - word
            integral = motion[INTEGRAL - MOTION]
            command = command + ((planned * motion[FRICTION_SLOPE - MOTION]) >> 12) + (integral >> 14)
            limit = near[CLAMP - CONTROL]
            if fed[FEEDFORWARD_AT - FED]:
                word = fed[FEEDFORWARD_SHARE - FED]
                if motion[HALTING - MOTION]:
                    if word > 0:
                        word = word - 1
                elif word < WHOLE_SHARE:
                    word = word + 1
                fed[FEEDFORWARD_SHARE - FED] = word
                i = cells[LIMIT_UNEXPECTED]
                if play >= WATCHED_FROM and i and silence <= near[RAMP - CONTROL]:
                    value = fed[FEEDBACK - FED]
                    value = value + command - (value >> 3)
                    fed[FEEDBACK - FED] = value
                    value = value >> 3
                    if value > i or value < 0 - i:
                        driven = 0
                        limit = 0  # of the command, which is none from here on
                        cells[TRIP] = TRIP_UNEXPECTED
                        cells[TRIP_VALUE] = value
                        cells[TRIP_LIMIT] = i
                        cells[STATE] = STATE_FAULT
                        events |= EVENT_TRIP
                command = command + ((fed[FEEDFORWARD - FED] * word) >> 8)
            # Anti-windup: no integration further into the clamp, nor while the command is being let go of.
            word = (error * cells[SERVO_KI]) >> 2
            if command > limit:
                command = limit
                if word > 0:
                    word = 0
            if command < 0 - limit:
                command = 0 - limit
                if word < 0:
                    word = 0
            if silence > near[RAMP - CONTROL]:
                # Nothing heard for half the time-out.
                if cells[ENGAGE_TICKS]:
                    # A load is left to the brake while the motor still holds it.
                    if not cells[HALTING] & HALT_LINK_LOSS:
                        cells[HALTING] = cells[HALTING] | HALT_LINK_LOSS
                        cells[STATE] = STATE_RUNNING
                        events |= EVENT_BLOCK  # what is played ends here
                else:
                    # On a straight line to zero at its end.
                    word = 0
                    span = timeout - near[RAMP - CONTROL]
                    if command < 0:
                        command = 0 - (0 - command) * (timeout - silence) // span
                    else:
                        command = command * (timeout - silence) // span
            integral = integral + word
            if integral > limit << 14:
                integral = limit << 14
            if integral < 0 - (limit << 14):
                integral = 0 - (limit << 14)
            motion[INTEGRAL - MOTION] = integral
    near[COMMAND - CONTROL] = command
    outputs = ptr32(near[OUTPUTS - CONTROL])
    outputs[0] = inputs[0]
    outputs[1] = driven
    outputs[2] = command

    # stage: store
    # The channels due at this tick, packed; halfwords, since a Cortex-M0 cannot store a word at an odd one.
    if taken or cells[STREAM_ALWAYS]:
        if not motion[COUNT - MOTION]:
            cells[FIRST_TICK] = inputs[0]
            cells[FIRST_PLAY] = play
        mask = cells[DUE + (inputs[0] & 63)]
        sample = ptr16(near[SAMPLE - CONTROL])
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
        if mask & 0x7FE0:
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
            if mask & 4096:
                sample[i] = inputs[24]
                i = i + 1
            if mask & 8192:
                sample[i] = inputs[25]
                i = i + 1
            if mask & 16384:
                sample[i] = inputs[7]
                i = i + 1
        near[SAMPLE - CONTROL] = near[SAMPLE - CONTROL] + (i << 1)
        word = motion[COUNT - MOTION] + 1
        motion[COUNT - MOTION] = word
        if word >= motion[BLOCK - MOTION]:
            events |= EVENT_BLOCK
    word = near[STATUS_IN - CONTROL] - 1
    if not word:
        word = STATUS_TICKS
        events |= EVENT_STATUS
    near[STATUS_IN - CONTROL] = word
    return events
