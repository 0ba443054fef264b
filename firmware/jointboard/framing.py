"""Frames to bytes and back, in viper: raw frames wait in a ring, are encoded a few bytes a turn, and are found again in
whatever bytes arrive.

A turn of the main loop does a bounded share of the work: post() copies a frame into the ring, encode() adds CRC and
COBS to so many bytes, hear() decodes as many as have come. No allocation, no call. What finds no room is dropped and
counted; a chunk that is too long or broken is swallowed up to its delimiter and never written past the buffer.
"""

import micropython
from micropython import const

RING = const(8192)  # bytes of the ring of raw frames; a power of two
LARGEST = const(1120)  # header, longest body, CRC: 12 + wire.MAX_BODY + 4
SPILL = const(1128)  # the same with its head; a frame stands in one piece, beyond the ring's end if need be
HEAD_SIZE = const(8)  # before each frame: its bytes without CRC, and what its CRC begins with
ENCODED = const(2048)  # bytes of the ring of encoded ones; a power of two

# Cells of the line to the host. First the frame that post() is to queue: its address, divisible by 4, with the body
# from byte BODY on; what its header says; what its CRC begins with; how many bytes of the ring must stay free.
SOURCE = const(0)
BODY_LENGTH = const(1)
KIND = const(2)
NODE = const(3)
TIME = const(4)
SEED = const(5)
RESERVE = const(6)
# The ring of raw frames.
SEQUENCE = const(7)  # of the next frame
HEAD = const(8)  # where it goes
TAIL = const(9)  # the frame that is encoded next, or just now
GIVEN = const(10)  # up to where frames may be encoded; on a line of its own a board may send all it has
SHARED = const(11)  # not 0: only a YIELD gives what was queued
SENT = const(12)  # frames, wraps
DROPPED = const(13)
RING_AT = const(14)  # addresses
TABLES_AT = const(15)  # of the CRC, four of 256 words: what a byte with none, one, two, three bytes behind it does
BLOCK_AT = const(16)  # of the DATA frame that the tick fills
SCHEMA = const(17)  # seed of its CRC
PROTOCOL = const(18)  # in every header
CLOCK_AT = const(19)  # address of the time in us that a PONG tells
# The frame being encoded, and the ring of encoded bytes, whose places run on.
SIZE = const(20)  # of the frame without CRC; 0: none
AT = const(21)  # its next byte
CRC_AT = const(22)  # up to where the CRC has come
CRC = const(23)
PLACE = const(24)  # where the next byte goes
CODE = const(25)  # where the open group's length goes: all before is final
GONE = const(26)  # bytes that the Hal has taken
ENCODED_AT = const(27)
TARGET = const(28)  # where the Hal wants bytes to be sent, and how many fit there
TARGET_SIZE = const(29)
# What arrives. NEXT and END are places in the Hal's buffer, or in a ring, in which they run on.
RECEIVED_AT = const(30)
RECEIVED_MASK = const(31)  # its size less 1; -1: no ring
NEXT = const(32)  # first byte not yet looked at
END = const(33)
FRAME = const(34)  # address the decoded bytes go to
LEFT = const(35)  # bytes left in the COBS group
ZERO = const(36)  # a zero stands between this group and the next
BYTES = const(37)  # encoded bytes since the last delimiter
LENGTH = const(38)  # decoded so far
REQUEST = const(39)  # of the request in FRAME: bytes of its body
GOOD = const(40)  # frames that asked something of this board
BAD = const(41)
PONG_AT = const(42)  # buffer for the answer to a PING, and for an ACK
# What a STATUS tells besides.
SAMPLES_TAKEN = const(43)
SAMPLES_DROPPED = const(44)
TICKS_MISSED = const(45)
MISSED = const(46)  # since the last block that was queued, at most 0xFFFF
HEAP_FREE = const(47)
LONGEST_TICK = const(48)  # us, since the last STATUS
LONGEST_COLLECTION = const(49)  # us
REPORT_AT = const(50)  # buffer for STATUS and SYNC
SPENT = const(51)  # us of all turns since the last STATUS, and how many they were, where the Hal counts them
TURNS = const(52)
LATE_BY = const(53)  # us that this tick's sample was taken after its tick, where the Hal tells it
LATE = const(54)  # the same of the only sample of the block that is closed next
CUT_AT = const(55)  # where the Hal wants a 0 at once when a STOP is heard; of others the cell behind
NOWHERE = const(56)
COPIED_AT = const(57)  # address of the bytes that a turn has copied so far, which all lines of a board share
COPIED = const(58)
LINE_CELLS = const(59)

BODY = const(12)  # where a body begins in a frame's buffer: wire.HEADER_SIZE
SAMPLES = const(32)  # where a DATA frame's samples begin
# Bytes of the ring that a frame must leave free, by what it is: a DATA block leaves room for the board's reports, those
# for the longest answer, and answers for the YIELD that ends a turn. So a host too slow for the stream still gets its
# answers.
LEFT_BY_DATA = const(1400)
LEFT_BY_REPORTS = const(1150)  # the longest frame takes 1128 bytes
LEFT_BY_ANSWERS = const(28)  # a YIELD takes 24

# What post() is asked to queue: bits, three of them tick.py's events.
DESCRIBED = const(1)  # the frame that the cells describe
BLOCK = const(2)
STATUS = const(4)
SYNC = const(32)
YIELD = const(64)  # the end of a turn on a shared line
# What hear() has found.
NOTHING = const(0)
ASKED = const(1)  # a request that somebody has to serve
PINGED = const(2)  # a PING or a COMPENSATE, whose answer the cells describe

# As wire.py and tick.py have them; viper folds a constant only when it stands in the same file. link.py compares them.
MESSAGE_STOP = const(8)
MESSAGE_PING = const(10)
MESSAGE_COMPENSATE = const(18)
MESSAGE_DATA = const(32)
MESSAGE_STATUS = const(33)
MESSAGE_SYNC = const(35)
MESSAGE_YIELD = const(36)
MESSAGE_ACK = const(64)
MESSAGE_PONG = const(67)
FIRST_FROM_BOARD = const(32)
BROADCAST_NODE = const(255)
FROZEN = const(0x4902)  # HELLO, STOP, DICT, REPL: bits of types below 32 whose CRC begins with 0
FROZEN_ANSWERS = const(0x13)  # ACK, HELLO_ACK, DICT_PART: the same of those from 64 on
BOARD_NODE = const(0)
STREAM_CHANNELS = const(40)
INPUTS = const(128)
SAMPLE = const(131)
STATE = const(133)
SILENCE = const(154)
FLOAT_SILENCE = const(250)
REST_CURRENT = const(252)
LIMIT_FLOAT = const(79)
TRIP = const(158)
COUNT = const(227)
FIRST_TICK = const(237)
FIRST_PLAY = const(238)
DIVIDERS = const(239)


@micropython.viper
def post(line: ptr32, cells: ptr32, what: int) -> int:
    """Queue what the bits of `what` say, in this order: the samples taken so far, which begin anew, then a STATUS, a
    SYNC, the frame that the cells describe, a YIELD. Returns the bits of what found no room and was dropped.
    """
    refused = 0
    inputs = ptr32(cells[INPUTS])
    while what:
        if what & 6 and cells[COUNT]:  # BLOCK, or STATUS: that counts what the blocks before it hold
            one = BLOCK
            source = line[BLOCK_AT]
            head = ptr32(source + BODY)
            head[0] = cells[FIRST_TICK]
            head[1] = cells[DIVIDERS]
            head[2] = cells[FIRST_PLAY]
            head[3] = cells[STREAM_CHANNELS] | (line[MISSED] << 16)
            head[4] = cells[COUNT] | (cells[STATE] << 8) | (line[LATE] << 16)
            line[SOURCE] = source
            line[BODY_LENGTH] = cells[SAMPLE] - source - BODY
            line[KIND] = MESSAGE_DATA
            line[RESERVE] = LEFT_BY_DATA
        elif what & 2:
            what = what & -3
            continue
        elif what & 4:
            one = STATUS
            source = line[REPORT_AT]
            head = ptr32(source + BODY)
            head[0] = cells[STATE] | (cells[TRIP] << 8)
            head[1] = inputs[0]
            head[2] = line[SAMPLES_TAKEN]
            head[3] = line[SAMPLES_DROPPED]
            head[4] = line[SENT]
            head[5] = line[DROPPED]
            head[6] = line[TICKS_MISSED]
            head[7] = line[GOOD]
            head[8] = line[BAD]
            head[9] = line[HEAP_FREE]
            head[10] = line[LONGEST_TICK]
            head[11] = line[LONGEST_COLLECTION]
            head[12] = 0
            if line[TURNS]:
                head[12] = line[SPENT] // line[TURNS]
            line[SOURCE] = source
            line[BODY_LENGTH] = 52
            line[KIND] = MESSAGE_STATUS
            line[RESERVE] = LEFT_BY_REPORTS
        elif what & 32:
            one = SYNC
            source = line[REPORT_AT]
            head = ptr32(source + BODY)
            head[0] = inputs[2]
            head[1] = inputs[3]
            line[SOURCE] = source
            line[BODY_LENGTH] = 8
            line[KIND] = MESSAGE_SYNC
            line[RESERVE] = LEFT_BY_REPORTS
        elif what & 1:
            one = DESCRIBED
        else:
            one = YIELD
            line[SOURCE] = line[REPORT_AT]
            line[BODY_LENGTH] = 0
            line[KIND] = MESSAGE_YIELD
            line[RESERVE] = 0
        if one != DESCRIBED:
            line[NODE] = cells[BOARD_NODE]
            line[TIME] = inputs[1]
            line[SEED] = line[SCHEMA]
            if one == YIELD:
                line[SEED] = 0
        what = what & (-1 - one)

        size = line[BODY_LENGTH] + BODY
        step = HEAD_SIZE + ((size + 7) & -4)  # with its CRC, up to a whole word
        at = line[HEAD]
        fits = 0
        if RING - 4 - ((at - line[TAIL]) & (RING - 1)) >= step + line[RESERVE]:
            fits = 1
            source = line[SOURCE]
            words = ptr32(source)
            words[0] = line[PROTOCOL] | (line[KIND] << 8) | (line[NODE] << 16)
            words[1] = line[SEQUENCE] | (line[BODY_LENGTH] << 16)
            words[2] = line[TIME]
            head = ptr32(line[RING_AT] + at)
            head[0] = size
            head[1] = line[SEED]
            head = ptr32(int(head) + HEAD_SIZE)
            left = (size + 3) >> 2  # the last one may go beyond the frame, where its CRC will stand
            while left > 3:
                head[0] = words[0]
                head[1] = words[1]
                head[2] = words[2]
                head[3] = words[3]
                head = ptr32(int(head) + 16)
                words = ptr32(int(words) + 16)
                left -= 4
            while left > 0:
                left -= 1
                head[left] = words[left]
            line[HEAD] = (at + step) & (RING - 1)
            ptr32(line[COPIED_AT])[0] = ptr32(line[COPIED_AT])[0] + step
            if line[SHARED] == 0 or line[KIND] == MESSAGE_YIELD:
                line[GIVEN] = line[HEAD]
            line[SEQUENCE] = (line[SEQUENCE] + 1) & 0xFFFF
            line[SENT] = line[SENT] + 1
        else:
            line[DROPPED] = line[DROPPED] + 1
            refused |= one
        if one == STATUS and fits:
            line[LONGEST_TICK] = 0
            line[SPENT] = 0
            line[TURNS] = 0
        if one == BLOCK:
            line[SAMPLES_TAKEN] = line[SAMPLES_TAKEN] + cells[COUNT]
            if fits == 0:
                line[SAMPLES_DROPPED] = line[SAMPLES_DROPPED] + cells[COUNT]
            else:
                line[MISSED] = 0
            line[LATE] = 0
            cells[COUNT] = 0
            cells[SAMPLE] = line[BLOCK_AT] + SAMPLES
    return refused


@micropython.viper
def describe(line: ptr32, cells: ptr32, buffer: ptr8, what: int):
    """Describe for post() a frame that is told as of this tick, whose body stands in a buffer from byte BODY on.

    `what`: its type, and the body's length above the lowest byte.
    """
    kind = what & 255
    line[SOURCE] = int(buffer)
    line[BODY_LENGTH] = what >> 8
    line[KIND] = kind
    line[NODE] = cells[BOARD_NODE]
    line[TIME] = ptr32(cells[INPUTS])[1]
    frozen = 0
    line[RESERVE] = LEFT_BY_REPORTS
    if kind < FIRST_FROM_BOARD:
        frozen = FROZEN >> kind
    elif kind == MESSAGE_YIELD:
        frozen = 1
    elif kind >= MESSAGE_ACK:
        frozen = FROZEN_ANSWERS >> (kind - MESSAGE_ACK)
        line[RESERVE] = LEFT_BY_ANSWERS
    line[SEED] = line[SCHEMA]
    if frozen & 1:
        line[SEED] = 0


@micropython.viper
def acknowledge(line: ptr32, cells: ptr32, answer: int, value: int):
    """Describe for post() the ACK of the request in FRAME; `answer`: its type, and a refusal above the lowest byte."""
    frame = ptr32(line[FRAME])
    ack = ptr32(line[PONG_AT])
    ack[3] = answer | (frame[1] << 16)
    ack[4] = value
    line[SOURCE] = line[PONG_AT]
    line[BODY_LENGTH] = 8
    line[KIND] = MESSAGE_ACK
    line[NODE] = cells[BOARD_NODE]
    line[TIME] = ptr32(cells[INPUTS])[1]
    line[SEED] = 0
    line[RESERVE] = LEFT_BY_ANSWERS


@micropython.viper
def recall(line: ptr32, last: ptr32) -> int:
    """Whether the request in FRAME is that of the three words `last`, by type, sequence number, node and body; they are
    its own afterwards. A PING may come between a request and its repetition.
    """
    frame = ptr32(line[FRAME])
    kind = (frame[0] >> 8) & 0xFF
    one = frame[0] & 0xFFFF00
    two = frame[1]
    end = line[REQUEST]
    crc = -1
    none = ptr32(line[TABLES_AT])
    near = ptr32(line[TABLES_AT] + 1024)
    far = ptr32(line[TABLES_AT] + 2048)
    farthest = ptr32(line[TABLES_AT] + 3072)
    words = ptr32(int(frame) + BODY)
    k = 0
    while k < end >> 2:
        crc = crc ^ words[k]
        k += 1
        crc = farthest[crc & 255] ^ far[(crc >> 8) & 255] ^ near[(crc >> 16) & 255] ^ none[(crc >> 24) & 255]
    k = k << 2
    rest = ptr8(words)
    while k < end:
        crc = none[(crc ^ rest[k]) & 255] ^ ((crc >> 8) & 0xFFFFFF)
        k += 1
    if last[0] == one and last[1] == two and last[2] == crc:
        return 1
    if kind != MESSAGE_PING:
        last[0] = one
        last[1] = two
        last[2] = crc
    return 0


@micropython.viper
def encode(line: ptr32, most: int) -> int:
    """Encode up to `most` bytes of the frames that may be sent, a multiple of 4, as far as there is room for them.

    Fewer by a sixteenth of what post() has copied in this turn, so that no turn does twice the work of others. Returns
    how many encoded bytes wait for the Hal.
    """
    at = 0
    copied = ptr32(line[COPIED_AT])
    most = most - ((copied[0] >> 6) << 2)
    copied[0] = 0
    place = line[PLACE]
    code = line[CODE]
    ring = ptr8(line[ENCODED_AT])
    end_of_room = line[GONE] + ENCODED
    while most > 3:  # the CRC goes by words
        size = line[SIZE]
        if size == 0:
            if line[TAIL] == line[GIVEN] or place == end_of_room:
                break
            head = ptr32(line[RING_AT] + line[TAIL])
            size = head[0]
            line[SIZE] = size
            line[CRC] = head[1] ^ -1
            line[CRC_AT] = 0
            line[AT] = 0
            if (head[2] >> 8) & 255 == MESSAGE_PONG:
                head[4] = ptr32(line[CLOCK_AT])[0]  # now that nothing holds it up any more
            place += 1  # for the first group's length
        frame = ptr8(line[RING_AT] + line[TAIL] + HEAD_SIZE)

        # CRC, by words, then the bytes that are left at the end.
        at = line[CRC_AT]
        if at < size:
            end = at + most
            if end > size:
                end = size
            crc = line[CRC]
            words = ptr32(frame)
            none = ptr32(line[TABLES_AT])
            one = ptr32(line[TABLES_AT] + 1024)
            two = ptr32(line[TABLES_AT] + 2048)
            three = ptr32(line[TABLES_AT] + 3072)
            at = at >> 2
            while at < end >> 2:
                crc = crc ^ words[at]
                at += 1
                crc = three[crc & 255] ^ two[(crc >> 8) & 255] ^ one[(crc >> 16) & 255] ^ none[(crc >> 24) & 255]
            at = at << 2
            if end == size:
                while at < size:
                    crc = none[(crc ^ frame[at]) & 255] ^ ((crc >> 8) & 0xFFFFFF)
                    at += 1
                frame[size] = crc ^ -1
                frame[size + 1] = (crc ^ -1) >> 8
                frame[size + 2] = (crc ^ -1) >> 16
                frame[size + 3] = (crc ^ -1) >> 24
            line[CRC] = crc
            line[CRC_AT] = at
        last = at  # COBS may go as far as the CRC has
        if at >= size:
            last = size + 4

        # COBS, in runs that neither the group's end nor the ring's nor that of the room interrupts.
        at = line[AT]
        if last > at + most:
            last = at + most
        most -= last - at
        while at < last:
            if place - code == 255:  # a group without a zero
                if place == end_of_room:
                    break
                ring[code & (ENCODED - 1)] = 255
                code = place
                place += 1
            run = 255 - (place - code)
            if run > last - at:
                run = last - at
            if run > end_of_room - place:
                run = end_of_room - place
            if run > ENCODED - (place & (ENCODED - 1)):
                run = ENCODED - (place & (ENCODED - 1))
            if run == 0:
                break
            out = ptr8(int(ring) + (place & (ENCODED - 1)) - at)
            shift = place - at
            place += run
            run += at
            while at < run:
                byte = frame[at]
                out[at] = byte
                if byte == 0:
                    ring[code & (ENCODED - 1)] = at + shift - code
                    code = at + shift
                at += 1
        line[AT] = at
        if at < last:  # no room
            break
        if at == size + 4:
            if place == end_of_room:
                break
            ring[code & (ENCODED - 1)] = place - code
            ring[place & (ENCODED - 1)] = 0
            place += 1
            code = place
            line[SIZE] = 0
            line[TAIL] = (line[TAIL] + HEAD_SIZE + ((size + 7) & -4)) & (RING - 1)
            most -= 4  # of itself a frame costs something, too
    line[PLACE] = place
    line[CODE] = code
    return code - line[GONE]


@micropython.viper
def drain(line: ptr32, most: int) -> int:
    """Copy up to `most` encoded bytes to where the Hal wants them, never more than fit there; returns how many."""
    at = 0
    gone = line[GONE]
    count = line[CODE] - gone
    if count > most:
        count = most
    if count > line[TARGET_SIZE]:
        count = line[TARGET_SIZE]
    target = ptr8(line[TARGET])
    start = gone & (ENCODED - 1)
    source = ptr8(line[ENCODED_AT] + start)
    end = ENCODED - start
    if end > count:
        end = count
    while at < end:
        target[at] = source[at]
        at += 1
    source = ptr8(line[ENCODED_AT] + start - ENCODED)
    while at < count:
        target[at] = source[at]
        at += 1
    line[GONE] = gone + at
    return at


@micropython.viper
def hear(line: ptr32, cells: ptr32) -> int:
    """Look at the bytes from NEXT to END for a frame to this board: NOTHING when all are looked at, else what it is.

    The answer of a PING or COMPENSATE is described for post(); one to every board of a shared line has none.
    """
    at = line[NEXT]
    frame = ptr8(line[FRAME])
    source = ptr8(line[RECEIVED_AT])
    mask = line[RECEIVED_MASK]
    end = line[END]
    left = line[LEFT]
    zero = line[ZERO]
    seen = line[BYTES]
    length = line[LENGTH]
    found = NOTHING
    while at != end and found == NOTHING:
        byte = source[at & mask]
        at += 1
        if byte != 0:
            seen += 1
            if left > 0:
                left -= 1
            else:
                left = byte - 1
                byte = 0
                if zero == 0:
                    byte = -1
                zero = 1
                if left == 254:
                    zero = 0
            if byte >= 0:
                if length < LARGEST:
                    frame[length] = byte
                if length <= LARGEST:
                    length += 1
        elif seen > 0:  # delimiters in a row mark a pause
            kind = frame[1]
            if left > 0 or length > LARGEST or length < BODY + 4:
                line[BAD] = line[BAD] + 1
            else:
                asked = 0
                if kind < FIRST_FROM_BOARD and (frame[2] == cells[BOARD_NODE] or frame[2] == BROADCAST_NODE):
                    asked = 1
                # On a shared line most frames are between others: whether those are whole is not this board's business.
                if asked or line[SHARED] == 0:
                    words = ptr32(frame)
                    frozen = 0
                    if kind < 32:
                        frozen = (FROZEN >> kind) & 1
                    elif kind == MESSAGE_YIELD:
                        frozen = 1
                    elif kind >= 64 and kind < 96:
                        frozen = (FROZEN_ANSWERS >> (kind - 64)) & 1
                    good = 0
                    if ((words[1] >> 16) & 0xFFFF) == length - BODY - 4 and (frozen or frame[0] == line[PROTOCOL]):
                        crc = -1
                        if frozen == 0:
                            crc = line[SCHEMA] ^ -1
                        none = ptr32(line[TABLES_AT])
                        one = ptr32(line[TABLES_AT] + 1024)
                        two = ptr32(line[TABLES_AT] + 2048)
                        three = ptr32(line[TABLES_AT] + 3072)
                        last = (length - 4) >> 2
                        k = 0
                        while k < last:
                            crc = crc ^ words[k]
                            k += 1
                            near = three[crc & 255] ^ two[(crc >> 8) & 255]
                            crc = near ^ one[(crc >> 16) & 255] ^ none[(crc >> 24) & 255]
                        k = k << 2
                        while k < length:  # over its own CRC, too: the rest is then always the same
                            crc = none[(crc ^ frame[k]) & 255] ^ ((crc >> 8) & 0xFFFFFF)
                            k += 1
                        if crc == -558161693:  # 0xDEBB20E3
                            good = 1
                    if good == 0:
                        line[BAD] = line[BAD] + 1
                    elif asked:
                        line[GOOD] = line[GOOD] + 1
                        cells[SILENCE] = 0
                        line[REQUEST] = length - BODY - 4
                        found = ASKED
                        if kind == MESSAGE_STOP:
                            ptr32(line[CUT_AT])[0] = 0  # the power now; whoever serves it sees to the rest
                        pinged = 0
                        if kind == MESSAGE_PING and length == BODY + 8:
                            pinged = 1
                        if kind == MESSAGE_COMPENSATE and length == BODY + 12:
                            pinged = 1
                            if frame[2] == cells[BOARD_NODE]:
                                k = cells[LIMIT_FLOAT]
                                crc = words[4]
                                if crc > k:
                                    crc = k
                                if crc < 0 - k:
                                    crc = 0 - k
                                cells[REST_CURRENT] = crc
                                cells[FLOAT_SILENCE] = 0
                        if pinged:
                            found = PINGED
                            if line[SHARED] and frame[2] == BROADCAST_NODE:
                                found = NOTHING
                            pong = ptr32(line[PONG_AT])
                            pong[3] = words[3]
                            pong[4] = ptr32(cells[INPUTS])[0]
                            line[SOURCE] = line[PONG_AT]
                            line[BODY_LENGTH] = 8
                            line[KIND] = MESSAGE_PONG
                            line[TIME] = 0  # until it is encoded
                            line[NODE] = cells[BOARD_NODE]
                            line[SEED] = line[SCHEMA]
                            line[RESERVE] = LEFT_BY_ANSWERS
            left = 0
            zero = 0
            seen = 0
            length = 0
    line[NEXT] = at
    line[LEFT] = left
    line[ZERO] = zero
    line[BYTES] = seen
    line[LENGTH] = length
    return found
