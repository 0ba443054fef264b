"""The same stream parsed by construct: the description read back by the library it is written in.

Everything construct leaves to others is done by the quickest there is: COBS by the host's own compiled loop, CRC-32 by
zlib. Where a slow channel falls within a block is worked out once for each phase, so that construct meets nothing but
plain arrays of plain structs, which it can also compile.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from construct import Array, Int16sl, Int32sl, Int32ul, Struct

from jointwire import BODIES, HEADER, MessageType, divider, kernel, schema_hash
from tools.wire_bench.stream import BLOCK, DIVIDERS, OUR_CHANNELS, Columns

_INTEGERS = {"h": Int16sl, "i": Int32sl}


def parse_stream(stream: bytes, compiled: bool) -> dict[int, Columns]:
    """Samples of each channel by node.

    Args:
        stream: frames of DATA blocks.
        compiled: by construct's own compiler, or as construct parses without it.
    """
    kernel.load()
    lists: dict[int, dict[str, list[int]]] = {}
    for encoded in stream.split(b"\0")[:-1]:
        raw = _undo_cobs(encoded)
        body = raw[HEADER.sizeof() : -4]
        header = HEADER.parse(raw)
        assert header.length == len(body)
        assert zlib.crc32(raw[:-4], schema_hash()) == Int32ul.parse(raw[-4:])
        first_tick = int.from_bytes(body[:4], "little")
        block = _block(first_tick % BLOCK, compiled).parse(body)
        columns = lists.setdefault(header.node, {channel.name: [] for channel in OUR_CHANNELS})
        rows = [*block.before, block.whole, *block.after]
        for name in _QUICK:
            columns[name] += [row[name] for row in rows]
        for name in _SLOW:
            columns[name].append(block.whole[name])
    return {
        node: {name: np.array(values, dtype=np.int32) for name, values in columns.items()}
        for node, columns in lists.items()
    }


def _undo_cobs(encoded: bytes) -> bytes:
    raw = np.empty(len(encoded), np.uint8)
    return raw[: kernel.decode_cobs(np.frombuffer(encoded, np.uint8), 0, len(encoded), raw, 0)].tobytes()


_SLOW = [channel.name for channel in OUR_CHANNELS if divider(DIVIDERS, channel.kind) == BLOCK]
_QUICK = [channel.name for channel in OUR_CHANNELS if divider(DIVIDERS, channel.kind) == 1]
assert len(_SLOW) + len(_QUICK) == len(OUR_CHANNELS)


@lru_cache
def _block(phase: int, compiled: bool) -> Any:
    """A DATA body whose first tick is `phase` ticks after one that samples every channel."""
    row = Struct(*(channel.name / _INTEGERS[channel.format] for channel in OUR_CHANNELS if channel.name in _QUICK))
    whole = Struct(*(channel.name / _INTEGERS[channel.format] for channel in OUR_CHANNELS))
    before = -phase % BLOCK
    block = Struct(
        *BODIES[MessageType.DATA].subcons,
        "before" / Array(before, row),
        "whole" / whole,
        "after" / Array(BLOCK - before - 1, row),
    )
    return block.compile() if compiled else block
