"""COBS in viper: zero-free frames into the transmit ring, and frames found again in whatever bytes arrive.

No allocation, no call; a chunk that is too long or broken is swallowed
up to its delimiter and reported as broken, never written past the buffer.
"""

from micropython import const

RING = const(8192)  # bytes of the transmit ring; a power of two
LARGEST = const(1120)  # header, longest body, CRC: 12 + wire.MAX_BODY + 4

# Cells of a decoder.
FRAME = const(0)  # address the decoded bytes go to
NEXT = const(1)  # index of the first byte not yet looked at
LEFT = const(2)  # bytes left in the COBS group
ZERO = const(3)  # a zero stands between this group and the next
BYTES = const(4)  # encoded bytes since the last delimiter
LENGTH = const(5)  # decoded so far
RESULT = const(6)  # of the last chunk: decoded length, or -1 when it was broken
CELLS = const(7)


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
def encode(source: ptr8, count: int, ring: ptr8, head: int) -> int:
    """Write source[:count] as one COBS frame with its delimiter from ring[head]; returns the new head."""
    code_at = head
    head = (head + 1) & (RING - 1)
    code = 1
    at = 0
    while at < count:
        byte = source[at]
        at += 1
        if byte != 0:
            ring[head] = byte
            head = (head + 1) & (RING - 1)
            code += 1
        if byte == 0 or (code == 255 and at < count):
            ring[code_at] = code
            code_at = head
            head = (head + 1) & (RING - 1)
            code = 1
    ring[code_at] = code
    ring[head] = 0
    return (head + 1) & (RING - 1)


@micropython.viper
def drain(ring: ptr8, tail: int, target: ptr8, at: int, count: int):
    """Copy `count` bytes of the ring from `tail` to target[at:]."""
    while count > 0:
        target[at] = ring[tail]
        tail = (tail + 1) & (RING - 1)
        at += 1
        count -= 1
