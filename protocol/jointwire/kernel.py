"""The decoder's loops: bytes to checked frames, and packed samples to columns. Compiled when they are first needed.

They see nothing but arrays and integers and never raise: what is wrong comes back as a number that framing.py has the
words for. What follows from the definition of the wire comes in as an argument, because compiled code is kept on disk
and would not notice a change elsewhere than in this file; only the header, frozen for ever, is written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

HEADER_SIZE = 12
CRC_SIZE = 4

# Columns of a chunk's row: where it is in the data, which check it failed, where its decoded bytes are and how many,
# then its header.
START, END, CHECK, AT, SIZE, PROTOCOL, TYPE, NODE, FLAGS, SEQ, LENGTH, TIME_US = range(12)
COLUMNS = 12

# What a message type is: its CRC starts from the schema hash, or it is frozen and starts from zero.
UNKNOWN_KIND, SEEDED_KIND, FROZEN_KIND = range(3)

# Values of CHECK.
WHOLE = 0
ENDLESS = 1
REST_OF_ENDLESS = 2
NOT_COBS = 3
TOO_SHORT = 4
TOO_LONG = 5
WRONG_LENGTH = 6
WRONG_CRC = 7
OTHER_PROTOCOL = 8
UNKNOWN_TYPE = 9

_Bytes = NDArray[np.uint8]
_Integers = NDArray[np.int64]
_Table = NDArray[np.uint32]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_compiled: list[str] = []


def compiled(function: _Function) -> _Function:
    """Mark a function that `load` compiles."""
    _compiled.append(function.__name__)
    return function


def load() -> None:
    """Put compiled functions in the place of the marked ones, from disk where they were compiled before.

    The compiler takes a while to import: who decodes nothing does without.
    """
    if not _compiled:
        return
    from numba import njit

    while _compiled:
        name = _compiled.pop()
        globals()[name] = njit(cache=True, nogil=True)(globals()[name])


# Unsigned indices spare the check for indices from the end; they may only be added to their own kind.
_Index = np.uint64


@compiled
def find_delimiter(data: _Bytes, start: int, stop: int) -> int:
    """Index of the first zero of data[start:stop], stop if there is none."""
    at, end, one = _Index(start), _Index(stop), _Index(1)
    while at < end and data[at] != 0:
        at += one
    return int(np.int64(at))


@compiled
def decode_cobs(data: _Bytes, start: int, stop: int, raw: _Bytes, to: int) -> int:
    """Undo COBS of data[start:stop], which holds no zero, into raw[to:]; returns the length, -1 if it is none."""
    # Everything is copied as it is, then each code becomes the zero it stands for. Only after a full group there is
    # none: what follows moves up.
    begin, end, one = _Index(start), _Index(stop), _Index(1)
    ahead = begin + one - _Index(to)
    for k in range(begin + one, end):
        raw[k - ahead] = data[k]
    at = begin + _Index(data[begin])
    full = data[begin] == 255
    while at < end:
        code = data[at]
        if full:
            ahead += one
            for k in range(at + one, end):
                raw[k - ahead] = data[k]
        else:
            raw[at - ahead] = 0
        full = code == 255
        at += _Index(code)
    return int(np.int64(end - ahead)) - to if at == end else -1


@compiled
def crc32(data: _Bytes, start: int, stop: int, seed: int, table: _Table) -> int:
    """CRC-32 as zlib's of data[start:stop], eight bytes at a time; table[k, b]: of byte b and k zeros after it."""
    at, end, eight, low = _Index(start), _Index(stop), _Index(8), _Index(0xFF)
    crc = np.uint64(seed ^ 0xFFFFFFFF)
    while at + eight <= end:
        word = np.uint64(0)
        for k in range(_Index(8)):
            word |= np.uint64(data[at + k]) << (eight * k)
        word ^= crc
        crc = np.uint64(0)
        for k in range(_Index(8)):
            crc ^= np.uint64(table[_Index(7) - k, (word >> (eight * k)) & low])
        at += eight
    while at < end:
        crc = (crc >> eight) ^ np.uint64(table[_Index(0), (crc ^ np.uint64(data[at])) & low])
        at += _Index(1)
    return int(np.int64(crc)) ^ 0xFFFFFFFF


@compiled
def integer(data: _Bytes, at: int, size: int) -> int:
    """Unsigned little-endian integer."""
    value = 0
    for k in range(size):
        value |= int(data[at + k]) << 8 * k
    return value


@compiled
def check(raw: _Bytes, row: _Integers, kinds: _Bytes, seed: int, table: _Table, major: int, most: int) -> int:
    """Check that a decoded chunk fails, WHOLE if none; its header goes to the row."""
    at, size = row[AT], row[SIZE]
    if size < 0:
        return NOT_COBS
    if size < HEADER_SIZE + CRC_SIZE:
        return TOO_SHORT
    row[PROTOCOL], row[TYPE], row[NODE], row[FLAGS] = raw[at], raw[at + 1], raw[at + 2], raw[at + 3]
    row[SEQ], row[LENGTH], row[TIME_US] = integer(raw, at + 4, 2), integer(raw, at + 6, 2), integer(raw, at + 8, 4)
    if size > most:
        return TOO_LONG
    if row[LENGTH] != size - HEADER_SIZE - CRC_SIZE:
        return WRONG_LENGTH
    kind = kinds[row[TYPE]]
    end = at + size - CRC_SIZE
    if crc32(raw, at, end, 0 if kind == FROZEN_KIND else seed, table) != integer(raw, end, CRC_SIZE):
        return WRONG_CRC
    if row[PROTOCOL] != major and kind != FROZEN_KIND:
        return OTHER_PROTOCOL
    return UNKNOWN_TYPE if kind == UNKNOWN_KIND else WHOLE


@compiled
def find_chunks(
    data: _Bytes,
    kinds: _Bytes,
    seed: int,
    table: _Table,
    major: int,
    most: int,
    endless: bool,
    raw: _Bytes,
    rows: _Integers,
) -> tuple[int, int, bool]:
    """Cut data at its zeros, undo COBS, and check each chunk.

    Args:
        data: bytes as they came.
        kinds: UNKNOWN_KIND, SEEDED_KIND or FROZEN_KIND of each message type.
        seed: of the CRC.
        table: of `crc32`.
        major: protocol of messages that are not frozen.
        most: bytes in the longest decoded frame.
        endless: whether data goes on in a chunk that was cut for its length.
        raw: takes the decoded bytes, one chunk after the other; as long as data.
        rows: takes a row for each chunk.

    Returns:
        How many chunks there are, where the unfinished one starts, and whether that one was cut before.
    """
    longest = most + most // 254 + 1
    start, to, found = 0, 0, 0
    while start < data.size:
        stop = min(start + longest + 1, data.size)
        end = find_delimiter(data, start, stop)
        too_long = end - start > longest
        if end == data.size and not too_long:
            break  # its delimiter has yet to come
        if end > start:
            row = rows[found]
            found += 1
            row[:] = 0
            row[START], row[END], row[AT] = start, end, to
            if endless:
                row[CHECK] = REST_OF_ENDLESS
            elif too_long:
                row[CHECK] = ENDLESS
            else:
                row[SIZE] = decode_cobs(data, start, end, raw, to)
                row[CHECK] = check(raw, row, kinds, seed, table, major, most)
                to += max(0, row[SIZE])
        endless = too_long
        start = end if too_long else end + 1
    return found, start, endless


@compiled
def count_values(
    first_ticks: _Integers, counts: _Integers, channels: _Integers, dividers: _Integers, kinds: _Bytes, sizes: _Bytes,
    lengths: _Integers, totals: _Integers,
) -> int:  # fmt: skip
    """Count the values of each channel in blocks of samples; returns the first block of another length, -1 if none.

    Args:
        first_ticks, counts, channels, dividers: of each block, from the heads.
        kinds, sizes: of each channel.
        lengths: bytes of each block's samples.
        totals: takes the counts.
    """
    for block in range(first_ticks.size):
        first, past = first_ticks[block], first_ticks[block] + counts[block]
        length = 0
        for channel in range(kinds.size):
            if channels[block] >> channel & 1:
                exponent = dividers[block] >> 4 * int(kinds[channel]) & 0xF
                due = (past - 1 >> exponent) - (first - 1 >> exponent)
                totals[channel] += due
                length += due * sizes[channel]
        if length != lengths[block] or channels[block] >> kinds.size:
            return block
    return -1


@compiled
def unpack_values(
    raw: _Bytes, starts: _Integers, first_ticks: _Integers, counts: _Integers, channels: _Integers, dividers: _Integers,
    kinds: _Bytes, sizes: _Bytes, cursors: _Integers, values: NDArray[np.int32],
) -> None:  # fmt: skip
    """Sort the packed samples of blocks that `count_values` found right into columns.

    Args:
        raw: bytes, with the samples of each block from `starts` on.
        starts, first_ticks, counts, channels, dividers, kinds, sizes: as for `count_values`.
        cursors: where each channel's column begins in `values`.
        values: takes the columns.
    """
    present = np.empty(kinds.size, np.int64)
    masks = np.empty(kinds.size, np.int64)
    for block in range(starts.size):
        used = 0
        for channel in range(kinds.size):
            if channels[block] >> channel & 1:
                present[used] = channel
                masks[used] = (1 << (dividers[block] >> 4 * int(kinds[channel]) & 0xF)) - 1
                used += 1
        at = starts[block]
        for tick in range(first_ticks[block], first_ticks[block] + counts[block]):
            for k in range(used):
                if tick & masks[k]:
                    continue
                channel = present[k]
                if sizes[channel] == 2:
                    value = np.int32(np.int16(np.uint16(raw[at]) | np.uint16(raw[at + 1]) << np.uint16(8)))
                    at += 2
                else:
                    value = np.int32(integer(raw, at, 4))
                    at += 4
                values[cursors[channel]] = value
                cursors[channel] += 1
