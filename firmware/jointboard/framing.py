"""Frames to bytes and back, in viper: header, CRC and COBS into the transmit ring, from there to the Hal; and frames
found again in whatever bytes arrive.

No allocation, no call. A chunk that is too long or broken is swallowed up to its delimiter and reported as broken,
never written past the buffer. Sending frames of 64 samples of 14 bytes costs the main loop some 1 436 instructions a
sample.
"""

from micropython import const

RING = const(8192)  # bytes of the transmit ring; a power of two
LARGEST = const(1120)  # header, longest body, CRC: 12 + wire.MAX_BODY + 4
SPILL = const(1126)  # the same encoded. A frame is written in one piece, beyond the ring's end if need be

# Cells of a decoder.
FRAME = const(0)  # address the decoded bytes go to
NEXT = const(1)  # index of the first byte not yet looked at
LEFT = const(2)  # bytes left in the COBS group
ZERO = const(3)  # a zero stands between this group and the next
BYTES = const(4)  # encoded bytes since the last delimiter
LENGTH = const(5)  # decoded so far
RESULT = const(6)  # of the last chunk: decoded length, or -1 when it was broken
CELLS = const(7)

# Cells of the line to the host. First the frame that queue() is to complete: its address, divisible by 4, with the body
# from byte BODY on; what its header says; what its CRC begins with; how many bytes of the ring must stay free.
SOURCE = const(0)
BODY_LENGTH = const(1)
KIND = const(2)
NODE = const(3)
TIME = const(4)
SEED = const(5)
RESERVE = const(6)
# The ring.
SEQUENCE = const(7)  # of the next frame
HEAD = const(8)  # where it goes
TAIL = const(9)  # where the first byte stands that the Hal has not got
READY = const(10)  # bytes that may be sent now; on a line of its own a board may send all it has
SHARED = const(11)  # not 0: only a YIELD makes what was queued ready
SENT = const(12)  # frames, wraps
DROPPED = const(13)
RING_AT = const(14)  # addresses
TABLES_AT = const(15)  # of the CRC, four of 256 words: what a byte with none, one, two, three bytes behind it does
TARGET = const(16)  # where the Hal wants the bytes to be sent
BLOCK_AT = const(17)  # of the DATA frame
SCHEMA = const(18)  # seed of its CRC
PROTOCOL = const(19)  # in every header
LINE_CELLS = const(20)

BODY = const(12)  # where a body begins in a frame's buffer: wire.HEADER_SIZE
SAMPLES = const(30)  # where a DATA frame's samples begin
LEFT_BY_DATA = const(1400)  # bytes of the ring a DATA frame must leave free
# As wire.py and tick.py have them; viper folds a constant only when it stands in the same file. link.py compares them.
MESSAGE_DATA = const(32)
MESSAGE_YIELD = const(36)
BOARD_NODE = const(0)
STREAM_CHANNELS = const(40)
INPUTS = const(128)
SAMPLE = const(131)
STATE = const(133)
COUNT = const(227)
FIRST_TICK = const(228)
FIRST_PLAY = const(229)
DIVIDERS = const(231)


@micropython.viper
def decode(cells: ptr32, source: ptr8, count: int) -> bool:
    """True when a chunk ended within source[NEXT:count]; its length or -1 is in RESULT. NEXT moves on."""
    frame = ptr8(cells[FRAME])
    at = cells[NEXT]
    left = cells[LEFT]
    zero = cells[ZERO]
    seen = cells[BYTES]
    length = cells[LENGTH]
    ended = False
    while at < count and not ended:
        byte = source[at]
        at += 1
        if byte == 0:
            if seen > 0:  # delimiters in a row mark a pause
                ended = True
                cells[RESULT] = length
                if left > 0 or length > LARGEST:
                    cells[RESULT] = -1
            left = 0
            zero = 0
            seen = 0
            length = 0
        else:
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
    cells[NEXT] = at
    cells[LEFT] = left
    cells[ZERO] = zero
    cells[BYTES] = seen
    cells[LENGTH] = length
    return ended


@micropython.viper
def take_block(line: ptr32, cells: ptr32, missed: int) -> int:
    """Make the tick's DATA block the frame to be queued, and let the tick begin another. Returns its samples."""
    block = line[BLOCK_AT]
    count = cells[COUNT]
    inputs = ptr32(cells[INPUTS])
    head = ptr32(block + BODY)
    head[0] = cells[FIRST_TICK]
    head[1] = cells[DIVIDERS]
    head[2] = cells[FIRST_PLAY]
    head[3] = cells[STREAM_CHANNELS] | (missed << 16)
    ptr16(block + BODY)[8] = count | (cells[STATE] << 8)
    line[SOURCE] = block
    line[BODY_LENGTH] = cells[SAMPLE] - block - BODY
    line[KIND] = MESSAGE_DATA
    line[NODE] = cells[BOARD_NODE]
    line[TIME] = inputs[1]
    line[SEED] = line[SCHEMA]
    line[RESERVE] = LEFT_BY_DATA
    cells[COUNT] = 0
    cells[SAMPLE] = block + SAMPLES
    return count


@micropython.viper
def queue(line: ptr32) -> int:
    """Complete the frame that the cells describe and put it into the ring. 0: there was no room, it is dropped."""
    at = 0  # viper keeps the first local of all in a register
    size = line[BODY_LENGTH] + BODY
    head = line[HEAD]
    tail = line[TAIL]
    if RING - 1 - ((head - tail) & (RING - 1)) < size + 4 + (size + 4) // 254 + 2 + line[RESERVE]:
        line[DROPPED] = line[DROPPED] + 1
        return 0
    words = ptr32(line[SOURCE])
    words[0] = line[PROTOCOL] | (line[KIND] << 8) | (line[NODE] << 16)
    words[1] = line[SEQUENCE] | (line[BODY_LENGTH] << 16)
    words[2] = line[TIME]

    none = ptr32(line[TABLES_AT])
    one = ptr32(line[TABLES_AT] + 1024)
    two = ptr32(line[TABLES_AT] + 2048)
    three = ptr32(line[TABLES_AT] + 3072)
    crc = line[SEED] ^ -1
    end = size >> 2
    while at < end:
        crc = crc ^ words[at]
        at += 1
        crc = three[crc & 255] ^ two[(crc >> 8) & 255] ^ one[(crc >> 16) & 255] ^ none[(crc >> 24) & 255]
    frame = ptr8(line[SOURCE])
    at = end << 2
    while at < size:
        crc = none[(crc ^ frame[at]) & 255] ^ ((crc >> 8) & 0xFFFFFF)
        at += 1
    crc = crc ^ -1
    frame[size] = crc
    frame[size + 1] = crc >> 8
    frame[size + 2] = crc >> 16
    frame[size + 3] = crc >> 24
    size += 4

    # COBS: byte k goes behind place k. A zero's place, or the one before the first, takes the length of the group that
    # follows. A group of 254 bytes without a zero has no such place behind it: from there on all goes one further.
    out = ptr8(line[RING_AT] + head)
    behind = ptr8(int(out) + 1)
    group = 0
    at = 0
    while at < size:
        end = group + 254
        if end > size:
            end = size
        while at < end:
            byte = frame[at]
            behind[at] = byte
            at += 1
            if byte == 0:
                out[group] = at - group
                group = at
        if at - group == 254 and at < size:
            out[group] = 255
            out = behind
            behind = ptr8(int(out) + 1)
            group = at
    out[group] = at - group + 1
    behind[at] = 0
    head = int(out) + at + 2 - line[RING_AT]
    if head >= RING:
        head -= RING
        start = ptr8(line[RING_AT])
        beyond = ptr8(line[RING_AT] + RING)
        at = 0
        while at < head:
            start[at] = beyond[at]
            at += 1
    line[HEAD] = head
    if line[SHARED] == 0 or line[KIND] == MESSAGE_YIELD:
        line[READY] = (head - tail) & (RING - 1)
    line[SEQUENCE] = (line[SEQUENCE] + 1) & 0xFFFF
    line[SENT] = line[SENT] + 1
    return 1


@micropython.viper
def drain(line: ptr32, most: int) -> int:
    """Copy up to `most` of the bytes that may be sent now to where the Hal wants them; returns how many."""
    count = line[READY]
    if count > most:
        count = most
    tail = line[TAIL]
    source = ptr8(line[RING_AT] + tail)
    target = ptr8(line[TARGET])
    end = RING - tail
    if end > count:
        end = count
    at = 0
    while at < end:
        target[at] = source[at]
        at += 1
    source = ptr8(line[RING_AT] + tail - RING)
    while at < count:
        target[at] = source[at]
        at += 1
    line[TAIL] = (tail + count) & (RING - 1)
    line[READY] = line[READY] - count
    return count
