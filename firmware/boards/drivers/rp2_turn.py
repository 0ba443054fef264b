"""The Hal's part of a turn on an RP2040 or RP2350, as two kernels: before() the tick and after() it.

    before(t)   keep the line busy and wait for the tick; clock, SYNC, ADC, encoder, received bytes -> the inputs
    after(t)    current loop, PWM, direction, ENABLE and brake

Both do so for each motor of the board, whose cells name the next motor's: one call for all. Of two motors each has a
line's cells of its own, and what the one says goes out when the other has said all it may.

All registers are reached by address: nothing is allocated, called or looked up. The line goes by DMA both ways, which
reads the ring of encoded frames itself. Python's drivers around a tick took ten times as long as the tick.

Time is the chip's microsecond counter. Cells of `t`, of which the first 32 are reached in one instruction.
"""

import micropython
from micropython import const

INPUTS = const(0)  # addresses: the Hal's inputs
TIMER = const(1)  # TIMERAWL
DOG = const(2)  # the watchdog's LOAD, and what feeds it; this, time, SYNC, RX and TX are the first motor's alone
DOG_LOAD = const(3)
DUE = const(4)  # when the coming tick is due [us], and its number
TICK = const(5)
PERIOD = const(6)
EDGES = const(7)  # of the SYNC line, and the time of the last one
EDGE_US = const(8)
ADC_RING = const(9)
ADC_DMA = const(10)  # two channels that start each other
ADC_DMA_2 = const(11)
ADC_FCS = const(12)
SLOTS = const(13)  # inputs converted in a round; then the place of each role in it, -1 where it has none
CURRENT_SLOT = const(14)
TORQUE_SLOT = const(15)
SUPPLY_SLOT = const(16)
TEMPERATURE_SLOT = const(17)
ENCODER = const(18)  # two words that DMA keeps: position, time of the newest edge
ENCODER_FLAGS = const(19)  # of its PIO, of which its own is ENCODER_BIT
RX_DMA = const(20)  # two channels, the ring they fill and its size less 1
RX_DMA_2 = const(21)
RX_RING = const(22)
RX_MASK = const(23)
TX_DMA = const(24)
GIVEN = const(25)  # bytes that it was given
LINE = const(26)  # cells of framing.py, of this motor
BUSY = const(27)  # mask of a DMA channel's flag
LINK = const(28)  # SPI of an AS5047P at the link, or I2C of an AS5600, 0: none; bad readings in a row, and the last
SELECT = const(29)  # bit of its pin, 0 of an AS5600
BAD = const(30)
BAD_WORD = const(31)
OUT = const(32)  # what after() needs begins here
OUTPUTS = const(0)
LOOP = const(1)  # cells of current_loop.py
PWM_COMPARE = const(2)
PWM_TOP = const(3)
PIN_SET = const(4)  # SIO
PIN_CLEAR = const(5)
DIRECTION = const(6)  # bit
KICK_AT = const(7)  # of the heartbeat
KICK = const(8)
SHIFT = const(9)  # of the compare value: channel B stands in the upper half
BRAKE_AT = const(22)  # of its heartbeat, which opens it; 0: there is none
BRAKE_KICK = const(23)
DEAD = const(24)  # of half bridges: counts that the low switch's level is above the high one's; 0: PWM and direction
PWM_COMPARE_2 = const(25)  # of the second leg
ENCODER_BIT = const(42)
NEXT_MOTOR = const(43)  # address of its cells, 0: none
SPEAKER = const(44)  # cells of the line that is being sent, and those of the other one, 0 where there is none
LISTENER = const(45)
PINS = const(46)  # that keep the motor off: bits of all; where they are read; flags of those that were low; bit of each
LOOK = const(47)
FLAGS_AT = const(48)
STOP = const(49)
FAULT = const(50)
LOW = const(51)
HIGH = const(52)
NO_FLAGS = const(53)
DRIVER_AT = const(58)  # one-shot of an RS-485 driver, 0: none; until when bits are on the line [us, Q4]
DRIVER_UNTIL = const(59)
BYTE_TIME = const(60)  # of a byte on the line, us Q8
CELLS = const(64)

OVERFLOW = const(0x800)  # of the ADC's FIFO
DATA = const(2)  # registers of an SPI, as words, and what tells that it is at work
FLAGS = const(3)
SPI_BUSY = const(16)
COMMAND = const(4)  # registers of an I2C, as words: what is to be done and what was read; why not
ABORTS = const(13)
CLEAR_ABORT = const(21)
I2C_STATUS = const(28)
COME = const(30)
I2C_BUSY = const(32)
ABORTED = const(64)
RAW_ANGLE = const(0x0C)  # register of an AS5600
READ = const(0x100)
LAST = const(0x200)
AGAIN = const(0x400)
ANSWERED_IN = const(150)  # us: 5 bytes at 400 kHz and what begins and ends them take 120
MOST_BAD = const(3)  # as drivers/failures.py has it; whoever is told begins to count anew
LOST_SAMPLE = const(0x10000)  # what before() returns beside the bytes that have arrived
LOST_EDGE = const(0x20000)
LOST_LINK = const(0x80000)
LATE = const(0x40000)  # the sample was taken so much later than its tick that it must be told
IN_TIME = const(20)  # us
DRIVER_LEAD = const(4)  # us from when an RS-485 driver is told to be on until the first bit: its turn-on and a kick
# As framing.py has them; viper folds a constant only when it stands in the same file. rp2.py compares them.
TAIL = const(9)
GIVEN_UP_TO = const(10)
CODE = const(25)
GONE = const(26)
ENCODED_AT = const(27)
ENCODED = const(2048)
NEXT = const(32)
END = const(33)
LONGEST_TICK = const(48)
SPENT = const(51)
TURNS = const(52)
LATE_BY = const(53)


@micropython.viper
def before(_t) -> int:
    t = ptr32(_t)
    timer = ptr32(t[TIMER])
    line = ptr32(t[SPEAKER])
    due = t[DUE]
    period = t[PERIOD]
    spent = timer[0] - due + period
    dma = ptr32(t[TX_DMA])
    busy = t[BUSY]
    given = t[GIVEN]
    late = -1
    span = 0
    first = 0
    while late < 0:
        if not dma[3] & busy:
            count = line[CODE] - given
            if count > 0:
                if t[DRIVER_AT]:
                    late = timer[0]
                    span = t[DRIVER_UNTIL] - (late << 4)  # of what is still on its way
                    first = 0
                    if span <= 0:
                        span = DRIVER_LEAD << 4
                        first = 1
                    span += ((count * t[BYTE_TIME]) >> 4) + 1
                    t[DRIVER_UNTIL] = (late << 4) + span
                    ptr32(t[DRIVER_AT])[0] = (span >> 4) + 1
                    while first and timer[0] - late < DRIVER_LEAD:
                        pass
                given = given + count
                dma[7] = count  # it goes on where it stopped
        late = timer[0] - due
    t[GIVEN] = given
    next = given - dma[2]
    line[GONE] = next
    if t[LISTENER] and line[TAIL] == line[GIVEN_UP_TO] and line[CODE] == next:
        one = t[LISTENER]
        line = ptr32(one)
        if line[TAIL] != line[GIVEN_UP_TO] or line[CODE] != line[GONE]:
            t[LISTENER] = t[SPEAKER]
            t[SPEAKER] = one
            next = line[GONE]
            t[GIVEN] = next
            dma[0] = line[ENCODED_AT] + (next & (ENCODED - 1))
    missed = 0
    if late >= period:
        missed = late // period
        late -= missed * period
    found = 0
    if late > IN_TIME:
        found = LATE
    number = t[TICK] + missed
    due += missed * period
    t[TICK] = number + 1
    t[DUE] = due + period
    ptr32(t[DOG])[0] = t[DOG_LOAD]
    edges = 0
    edge_us = 0
    while edges != t[EDGES]:  # again when the interrupt came in between
        edges = t[EDGES]
        edge_us = t[EDGE_US]
    dma = ptr32(t[RX_DMA])
    if not dma[3] & busy:
        dma = ptr32(t[RX_DMA_2])
    come = dma[1] - t[RX_RING]
    rx_mask = t[RX_MASK]
    received = 0

    first = int(t)
    while int(t):  # all motors' positions before anything that takes time
        inputs = ptr32(t[INPUTS])
        pair = ptr32(t[ENCODER])
        one = 0
        two = 0
        again = 1
        while again:  # DMA writes the two words some cycles apart
            one = pair[0]
            two = pair[1]
            again = (one ^ pair[0]) | (two ^ pair[1])
        inputs[4] = one & 0xFFFF
        inputs[28] = two
        t = ptr32(t[NEXT_MOTOR])

    t = ptr32(first)
    while int(t):
        # An AS5047P tells in a frame of 16 bits what it was asked for in the one before: the first asks for the angle.
        # It is selected 350 ns before its clock may begin (data sheet: tL): what is done meanwhile takes longer.
        # An AS5600's pointer stays at its angle; it is set anew after a bad reading.
        spi = ptr32(t[LINK])
        if t[SELECT]:
            ptr32(t[OUT + PIN_CLEAR])[0] = t[SELECT]
        elif t[LINK] and not spi[I2C_STATUS] & I2C_BUSY:
            one = spi[CLEAR_ABORT]  # without this it takes no command
            while spi[COME]:
                one = spi[COMMAND]
            if t[BAD]:
                spi[COMMAND] = RAW_ANGLE
                spi[COMMAND] = READ | AGAIN
            else:
                spi[COMMAND] = READ
            spi[COMMAND] = READ | LAST

        inputs = ptr32(t[INPUTS])
        inputs[0] = number
        inputs[1] = due
        inputs[2] = edges
        inputs[3] = edge_us
        line = ptr32(t[LINE])
        line[SPENT] = line[SPENT] + spent
        line[TURNS] = line[TURNS] + 1
        if t[SELECT]:
            spi[DATA] = 0xFF
            spi[DATA] = 0xFF
        if spent > line[LONGEST_TICK]:
            line[LONGEST_TICK] = spent
        line[LATE_BY] = late
        if ptr32(t[ENCODER_FLAGS])[0] & t[ENCODER_BIT]:
            found |= LOST_EDGE

        if t[SELECT]:
            while spi[FLAGS] & SPI_BUSY:
                pass
            ptr32(t[OUT + PIN_SET])[0] = t[SELECT]
            one = spi[DATA]
            one = spi[DATA]

        # The last 16 whole rounds of the ADC: two samples to a word.
        dma = ptr32(t[ADC_DMA])
        if not dma[3] & busy:
            dma = ptr32(t[ADC_DMA_2])
        ring = ptr16(t[ADC_RING])
        slots = t[SLOTS]
        mask = (slots << 5) - 1  # samples in the ring, less 1
        written = (dma[1] - t[ADC_RING]) >> 1
        at = written - written % slots - (slots << 4)
        one = at + t[CURRENT_SLOT]
        two = at + t[TORQUE_SLOT]
        pair = ptr32(int(inputs) + 32)
        twice = slots << 1
        if t[SELECT]:
            ptr32(t[OUT + PIN_CLEAR])[0] = t[SELECT]
        k = 0
        if t[TORQUE_SLOT] < 0:
            while k < 8:
                pair[k] = ring[one & mask] | (ring[(one + slots) & mask] << 16)
                one += twice
                k += 1
        else:
            while k < 8:
                pair[k] = ring[one & mask] | (ring[(one + slots) & mask] << 16)
                pair[k + 8] = ring[two & mask] | (ring[(two + slots) & mask] << 16)
                one += twice
                two += twice
                k += 1
        at += 15 * slots
        if t[SUPPLY_SLOT] >= 0:
            inputs[6] = ring[(at + t[SUPPLY_SLOT]) & mask]
        if t[TEMPERATURE_SLOT] >= 0:
            inputs[7] = ring[(at + t[TEMPERATURE_SLOT]) & mask]
        if ptr32(t[ADC_FCS])[0] & OVERFLOW:
            found |= LOST_SAMPLE

        if t[SELECT]:
            spi[DATA] = 0xC0  # nothing more is asked for
            spi[DATA] = 0x00

        if t[PINS]:
            pair = ptr32(t[FLAGS_AT])
            one = pair[0] & 7
            pair[0] = one  # taken back
            if one > 3:  # the third machine watches fault
                one = one ^ 6
            word = t[PINS] & (ptr32(t[LOOK])[0] ^ -1)
            if word:
                if word & t[STOP]:
                    one |= 1
                if word & t[FAULT]:
                    one |= 2
                if word & t[LOW]:
                    one |= 4
                if word & t[HIGH]:
                    one |= 8
            inputs[29] = one

        next = line[NEXT]
        count = (come - next) & rx_mask
        line[END] = next + count
        received |= count

        if t[LINK]:
            if t[SELECT]:
                while spi[FLAGS] & SPI_BUSY:
                    pass
                ptr32(t[OUT + PIN_SET])[0] = t[SELECT]
                word = spi[DATA] << 8
                word |= spi[DATA]
                one = word ^ (word >> 8)
                one ^= one >> 4
                one ^= one >> 2
                one ^= one >> 1
                one = (one & 1) | (word & 0x4000)  # parity, or the sensor's error flag
            else:
                two = timer[0]
                while spi[COME] < 2 and not spi[ABORTS] & ABORTED and timer[0] - two < ANSWERED_IN:
                    pass
                word = 0xF000
                if spi[COME] == 2:
                    word = (spi[COMMAND] & 0xFF) << 8
                    word |= spi[COMMAND] & 0xFF
                one = word & 0xF000  # of an angle always 0
            if one:  # the angle stays as it was
                t[BAD_WORD] = word
                t[BAD] = t[BAD] + 1
                if t[BAD] >= MOST_BAD:
                    found |= LOST_LINK
            else:
                t[BAD] = 0
                inputs[5] = word & 0x3FFF
        t = ptr32(t[NEXT_MOTOR])
    return found | received


@micropython.viper
def after(_t):
    t = ptr32(_t)
    while int(t):
        near = ptr32(int(t) + 4 * OUT)
        outputs = ptr32(near[OUTPUTS])
        loop = ptr32(near[LOOP])
        if outputs[1]:
            # As current_loop.step().
            inputs = ptr32(t[INPUTS])
            word = inputs[8] + inputs[9] + inputs[10] + inputs[11] + inputs[12] + inputs[13] + inputs[14] + inputs[15]
            count = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) - 32768 - loop[3]
            if count > 32767:
                count = 32767
            if count < -32767:
                count = -32767
            error = outputs[2] - ((count * loop[4]) >> 12)
            if error > 65535:
                error = 65535
            if error < -65535:
                error = -65535
            integral = loop[5]
            growth = error * loop[1]
            limit = loop[2]
            duty = (error * loop[0] + integral) >> 8
            if (duty < limit or growth < 0) and (duty > 0 - limit or growth > 0):
                integral = integral + growth
                if integral > limit << 8:
                    integral = limit << 8
                if integral < 0 - (limit << 8):
                    integral = 0 - (limit << 8)
                loop[5] = integral
                duty = (error * loop[0] + integral) >> 8
            if duty > limit:
                duty = limit
            if duty < 0 - limit:
                duty = 0 - limit
            period = near[PWM_TOP] + 1
            dead = near[DEAD]
            if dead:
                # As HalfBridges.command(); both levels of a leg are one word, so that no order can close the gap.
                half = (duty * period) >> 16
                middle = (period - dead) >> 1
                count = middle + half
                if count < 0:
                    count = 0
                if count > period - dead:
                    count = period - dead
                ptr32(near[PWM_COMPARE])[0] = count | ((count + dead) << 16)
                count = middle - half
                if count < 0:
                    count = 0
                if count > period - dead:
                    count = period - dead
                ptr32(near[PWM_COMPARE_2])[0] = count | ((count + dead) << 16)
            else:
                if duty < 0:
                    ptr32(near[PIN_CLEAR])[0] = near[DIRECTION]
                    duty = 0 - duty
                else:
                    ptr32(near[PIN_SET])[0] = near[DIRECTION]
                ptr32(near[PWM_COMPARE])[0] = ((duty * period) >> 15) << near[SHIFT]
            # After the command: the power stage never acts on an old one.
            ptr32(near[KICK_AT])[0] = near[KICK]
        else:
            ptr32(near[KICK_AT])[0] = 0
            if near[DEAD]:  # all four switches open
                ptr32(near[PWM_COMPARE])[0] = (near[PWM_TOP] + 1) << 16
                ptr32(near[PWM_COMPARE_2])[0] = (near[PWM_TOP] + 1) << 16
            else:
                ptr32(near[PWM_COMPARE])[0] = 0
            loop[5] = 0
        if near[BRAKE_AT]:
            if outputs[1] == 3:
                ptr32(near[BRAKE_AT])[0] = near[BRAKE_KICK]
            else:
                ptr32(near[BRAKE_AT])[0] = 0
        t = ptr32(t[NEXT_MOTOR])


@micropython.viper
def note_edge(_t):
    """The SYNC line's interrupt."""
    t = ptr32(_t)
    t[EDGE_US] = ptr32(t[TIMER])[0]
    t[EDGES] = t[EDGES] + 1
