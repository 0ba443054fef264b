"""The tick: all that must happen between two samples, as one viper pass over one array of 32-bit cells.

ADC sums -> biquad -> encoders -> velocity -> playback -> limits -> servo -> packed sample, in that order, so that the
command, the reference and the sample of a tick belong together. One function, because on a microcontroller calling a
second one costs as much as its work; one argument, because each costs a conversion. About 0.5 us on the unix port.

It must not allocate, raise, call anything or look up a global name: all numbers are int32 within bounds that registers
and LOAD guarantee. firmware/tests/twin.py computes the same in unbounded integers; tests compare them bit for bit.

Units: positions in motor counts, velocities in counts/tick Q8, currents in centred sums of 16 ADC samples ("counts") as
measured and in mA as commanded, times in ticks.
"""

from micropython import const

# Cells 0..63 are the register table by id (wire.py); these are the ones a tick needs.
ENCODER_LINK_ZERO = const(10)
CURRENT_ZERO = const(5)
FILTER_B0 = const(16)
FILTER_B1 = const(17)
FILTER_B2 = const(18)
FILTER_A1 = const(19)
FILTER_A2 = const(20)
SERVO_KP = const(24)
SERVO_KD = const(25)
SERVO_VELOCITY_FEEDFORWARD = const(26)
LIMIT_CURRENT = const(32)
LIMIT_POSITION_MIN = const(33)
LIMIT_POSITION_MAX = const(34)
LIMIT_VELOCITY = const(35)
LIMIT_FOLLOWING = const(36)
STREAM_ALWAYS = const(42)

# Addresses: the Hal's input and output blocks (boards/__init__.py), the knot being played, where the next sample goes.
INPUTS = const(64)
OUTPUTS = const(65)
KNOT = const(66)
SAMPLE = const(67)
# Time and state.
TICK = const(68)
STATE = const(69)
STATUS_IN = const(70)  # ticks to the next STATUS
EDGES = const(71)  # SYNC edges seen
# Limits in the units the tick compares, and the trip that happened.
TRIP_COUNTS = const(72)  # largest |measured current|, ADC counts
TIMEOUT = const(73)  # ticks without a valid frame
SILENCE = const(74)  # ticks since the last valid frame, at most TIMEOUT
TRIP = const(75)
TRIP_VALUE = const(76)
TRIP_LIMIT = const(77)
# Sensors.
X1 = const(78)
X2 = const(79)
Y1 = const(80)
Y2 = const(81)
REMAINDER = const(82)  # of the biquad's last shift, fed back so that rounding leaves no bias
COUNTER = const(83)  # last reading of the 16-bit motor counter
POSITION = const(84)
VELOCITY = const(85)  # counts/tick, Q12
INNOVATION = const(86)  # measured minus estimated position, counts Q8
# Playback.
REFERENCE = const(87)
REFERENCE_VELOCITY = const(88)
WAIT = const(89)  # ticks until the trajectory starts
STEP = const(90)  # ticks since the last knot
INTERVAL = const(91)  # intervals left in this repeat
INTERVALS = const(92)  # intervals of the trajectory
REPEATS = const(93)  # repeats left, this one included; 0: done
PLAY = const(94)  # trajectory tick of this sample, -1 when nothing plays
PLAYED = const(95)  # trajectory ticks played so far
# The DATA block being filled, and how it is to be filled (sampling.py).
COUNT = const(96)
FIRST_TICK = const(97)
FIRST_PLAY = const(98)
BLOCK = const(99)  # ticks in a full block
DIVIDERS = const(100)  # as a DATA head has them
DUE = const(101)  # 64 cells: mask of the channels due at a tick, by its lowest six bits
CELLS = const(165)

# What a tick returns: bits of what the main loop has to see to.
EVENT_GAP = const(1)  # ticks were missed: nothing has been done yet; note them, set TICK, call again
EVENT_BLOCK = const(2)  # the DATA block must be closed: it is full, or playing begins or ends
EVENT_STATUS = const(4)
EVENT_TRIP = const(8)
EVENT_DONE = const(16)
EVENT_SYNC = const(32)

STATUS_TICKS = const(1000)
KNOT_TICKS = const(32)
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


@micropython.viper
def tick(cells: ptr32) -> int:
    inputs = ptr32(cells[INPUTS])
    if inputs[0] - cells[TICK] != 1:
        return EVENT_GAP
    cells[TICK] = inputs[0]
    events = 0
    if inputs[2] != cells[EDGES]:
        cells[EDGES] = inputs[2]
        events = EVENT_SYNC

    # Decimate: two 12-bit samples to a word; eight of them sum in each half without a carry.
    word = inputs[8] + inputs[9] + inputs[10] + inputs[11] + inputs[12] + inputs[13] + inputs[14] + inputs[15]
    current = (word & 0xFFFF) + (word >> 16) - 32768
    word = inputs[16] + inputs[17] + inputs[18] + inputs[19] + inputs[20] + inputs[21] + inputs[22] + inputs[23]
    torque = (word & 0xFFFF) + (word >> 16) - 32768

    # Biquad, direct form I, Q14. Products may wrap; the sum is exact while the output is below 4 x full scale.
    y1 = cells[Y1]
    word = cells[FILTER_B0] * current + cells[FILTER_B1] * cells[X1] + cells[FILTER_B2] * cells[X2]
    word = word - cells[FILTER_A1] * y1 - cells[FILTER_A2] * cells[Y2] + cells[REMAINDER]
    cells[REMAINDER] = word & 0x3FFF
    filtered = word >> 14
    if filtered > 32767:
        filtered = 32767
    if filtered < -32768:
        filtered = -32768
    cells[X2] = cells[X1]
    cells[X1] = current
    cells[Y2] = y1
    cells[Y1] = filtered

    # Encoder: 16-bit counter unwrapped; velocity by a tracking observer (gains 1/2 and 1/8, 350 rad/s at 1 kHz).
    delta = ((inputs[4] - cells[COUNTER] + 32768) & 0xFFFF) - 32768
    cells[COUNTER] = inputs[4]
    position = cells[POSITION] + delta
    cells[POSITION] = position
    innovation = cells[INNOVATION] + (delta << 8) - (cells[VELOCITY] >> 4)
    cells[INNOVATION] = innovation - (innovation >> 1)
    cells[VELOCITY] = cells[VELOCITY] + (innovation << 1)
    velocity = cells[VELOCITY] >> 4

    state = cells[STATE]
    driven = 0
    if state == STATE_ARMED or state == STATE_RUNNING:
        driven = 1
    taken = driven
    play = -1
    if cells[SILENCE] < cells[TIMEOUT]:
        cells[SILENCE] = cells[SILENCE] + 1

    # Playback: cubic Hermite between knots 32 ticks apart; with i = 0..31 all its weights are whole numbers / 2^15.
    if state == STATE_RUNNING:
        if cells[WAIT] > 0:
            cells[WAIT] = cells[WAIT] - 1
            if cells[WAIT] == 0:
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
            span = knot[2] - knot[0]
            v0 = knot[1]
            v1 = knot[3]
            word = (span * i * i * (48 - i)) >> 2
            word = word + ((i * w * ((v0 >> 3) * w - (v1 >> 3) * i)) >> 3)
            cells[REFERENCE] = knot[0] + ((word + 2048) >> 12)
            word = (3 * span * i * w) >> 6
            word = word + ((v0 * w * (32 - 3 * i) + v1 * i * (3 * i - 64)) >> 10)
            if word > 0x100000:
                word = 0x100000
            if word < -0x100000:
                word = -0x100000
            cells[REFERENCE_VELOCITY] = word
            play = cells[PLAYED]
            cells[PLAYED] = play + 1
            i = i + 1
            if i == KNOT_TICKS:
                i = 0
                cells[KNOT] = cells[KNOT] + 8
                cells[INTERVAL] = cells[INTERVAL] - 1
                if cells[INTERVAL] == 0:
                    cells[INTERVAL] = cells[INTERVALS]
                    cells[KNOT] = cells[KNOT] - 8 * cells[INTERVALS]
                    cells[REPEATS] = cells[REPEATS] - 1
                    if cells[REPEATS] == 0:
                        events |= EVENT_BLOCK
            cells[STEP] = i
    cells[PLAY] = play

    # Limits: the first one passed is the trip; outputs are off in this same tick.
    command = 0
    if driven:
        trip = 0
        value = current - cells[CURRENT_ZERO]
        if value < 0:
            value = 0 - value
        limit = cells[TRIP_COUNTS]
        if value > limit:
            trip = TRIP_OVER_CURRENT
        elif position < cells[LIMIT_POSITION_MIN] or position > cells[LIMIT_POSITION_MAX]:
            trip = TRIP_POSITION
            value = position
            limit = cells[LIMIT_POSITION_MIN]
            if position > cells[LIMIT_POSITION_MAX]:
                limit = cells[LIMIT_POSITION_MAX]
        elif velocity > cells[LIMIT_VELOCITY] or velocity < 0 - cells[LIMIT_VELOCITY]:
            trip = TRIP_VELOCITY
            value = velocity
            limit = cells[LIMIT_VELOCITY]
        elif cells[SILENCE] >= cells[TIMEOUT]:
            trip = TRIP_LINK_LOSS
            value = cells[SILENCE]
            limit = cells[TIMEOUT]
        else:
            error = cells[REFERENCE] - position
            limit = cells[LIMIT_FOLLOWING]
            if error > limit or error < 0 - limit:
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
            # Servo: position and velocity error, and the planned velocity, to a current.
            damping = cells[REFERENCE_VELOCITY] - velocity
            if damping > 65536:
                damping = 65536
            if damping < -65536:
                damping = -65536
            command = (error * cells[SERVO_KP]) >> 8
            command = command + ((damping * cells[SERVO_KD]) >> 12)
            command = command + (((cells[REFERENCE_VELOCITY] >> 4) * cells[SERVO_VELOCITY_FEEDFORWARD]) >> 8)
            limit = cells[LIMIT_CURRENT]
            if command > limit:
                command = limit
            if command < 0 - limit:
                command = 0 - limit
    outputs = ptr32(cells[OUTPUTS])
    outputs[0] = inputs[0]
    outputs[1] = driven
    outputs[2] = command

    # Sample: the channels due at this tick, packed; halfwords, since a Cortex-M0 cannot store a word at an odd one.
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
            word = inputs[5] - cells[ENCODER_LINK_ZERO]
            sample[i] = word
            sample[i + 1] = word >> 16
            i = i + 2
        if mask & 8:
            sample[i] = torque
            i = i + 1
        if mask & 16:
            sample[i] = command
            i = i + 1
        if mask & 0x7E0:
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
        cells[SAMPLE] = cells[SAMPLE] + (i << 1)
        cells[COUNT] = cells[COUNT] + 1
        if cells[COUNT] == cells[BLOCK]:
            events |= EVENT_BLOCK

    cells[STATUS_IN] = cells[STATUS_IN] - 1
    if cells[STATUS_IN] == 0:
        cells[STATUS_IN] = STATUS_TICKS
        events |= EVENT_STATUS
    return events
