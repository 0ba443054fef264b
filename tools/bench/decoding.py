"""Decoding what six boards send in a minute, in turns with construct: the frames, the peer and the race.

Everything construct leaves to others is done by the quickest there is: COBS by the host's own compiled loop, CRC-32 by
zlib. Where a slow channel falls within a block is worked out once for each phase, so that construct meets nothing but
plain arrays of plain structs, which it can also compile.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import construct
import numpy as np
from construct import Int16sl, Int32sl, Int32ul, Struct
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.cli.console import table
from jointwire import (
    BODIES,
    BY_NAME,
    CHANNELS,
    HEADER,
    JOINT_CHANNELS,
    ChannelKind,
    MessageType,
    State,
    decode_stream,
    divider,
    encode_frame,
    kernel,
    schema_hash,
)

BOARDS = 6
BLOCK = BY_NAME["stream.block"].default
TICK_US = BY_NAME["board.tick_period"].default
DIVIDERS = sum(BY_NAME[f"stream.every_{kind.name.lower()}"].default << 4 * kind for kind in ChannelKind)
OUR_CHANNELS = tuple(channel for channel in CHANNELS if JOINT_CHANNELS >> channel.bit & 1)

Columns = dict[str, NDArray[np.int32]]


def board_columns(node: int, n_ticks: int, first_tick: int, random: np.random.Generator) -> Columns:
    """Samples of a board whose joint swings: numbers as large, as smooth and as noisy as those of a run."""
    time = TICK_US * 1e-6 * (first_tick + np.arange(n_ticks))
    swing = np.sin(0.9 * node**0.5 * time) + 0.3 * np.sin(4.1 * time)
    values = {
        "motor_current": 9000 * swing + random.normal(0, 60, n_ticks),
        "motor_position": 30_000 * swing,
        "link_position": 40_000 * swing + random.normal(0, 1, n_ticks),
        "joint_torque": 7000 * swing + random.normal(0, 80, n_ticks),
        "current_command": 3000 * swing,
        "bus_voltage": 24_000 + random.normal(0, 5, n_ticks),
        "temperature": 4000 + 0.05 * time,
    }
    ticks = first_tick + np.arange(n_ticks)
    return {
        channel.name: np.rint(values[channel.name][ticks % divider(DIVIDERS, channel.kind) == 0]).astype(np.int32)
        for channel in OUR_CHANNELS
    }


def board_frames(node: int, columns: Columns, first_tick: int, n_ticks: int) -> list[bytes]:
    """The board's DATA frames, encoded with their delimiters."""
    taken = dict.fromkeys(columns, 0)
    frames: list[bytes] = []
    for number, first in enumerate(range(first_tick, first_tick + n_ticks, BLOCK)):
        samples = bytearray()
        for tick in range(first, first + BLOCK):
            for channel in OUR_CHANNELS:
                if tick % divider(DIVIDERS, channel.kind) == 0:
                    samples += struct.pack("<" + channel.format, columns[channel.name][taken[channel.name]])
                    taken[channel.name] += 1
        head = BODIES[MessageType.DATA].build(
            {
                "first_tick": first, "dividers": DIVIDERS, "play_tick": first - first_tick,
                "channels": JOINT_CHANNELS, "missed": 0, "late_us": 0, "count": BLOCK, "state": State.RUNNING,
            }
        )  # fmt: skip
        time_us = TICK_US * (first + BLOCK) & 0xFFFFFFFF
        frames.append(encode_frame(MessageType.DATA, node, number, time_us, payload=head + samples))
    return frames


def run_stream(n_blocks: int, seed: int) -> tuple[bytes, dict[int, Columns]]:
    """Frames of all boards in turn, as they come over a line, and the samples in them by node.

    Args:
        n_blocks: of each board.
        seed: of the noise.
    """
    random = np.random.default_rng(seed)
    n_ticks = n_blocks * BLOCK
    columns: dict[int, Columns] = {}
    frames: list[list[bytes]] = []
    for node in range(1, BOARDS + 1):
        first_tick = 1000 + 7 * node  # boards do not start at the same tick, nor at a whole block
        columns[node] = board_columns(node, n_ticks, first_tick, random)
        frames.append(board_frames(node, columns[node], first_tick, n_ticks))
    return b"".join(frame for each in zip(*frames, strict=True) for frame in each), columns


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
        "before" / construct.Array(before, row),
        "whole" / whole,
        "after" / construct.Array(BLOCK - before - 1, row),
    )
    return block.compile() if compiled else block


BLOCKS = 1000  # of each board: a minute's run
PEER_BLOCKS = 20
ROUNDS = 15


@dataclass(frozen=True)
class Speed:
    """Samples a second in each of several rounds; a sample is one tick of one board.

    Attributes:
        name: of the decoder.
        rounds: samples a second, shape (n_rounds,).
        values_per_sample: integers in a sample, on average.
        bytes_per_sample: of the stream.
    """

    name: str
    rounds: Array
    values_per_sample: float
    bytes_per_sample: float

    @property
    def best(self) -> float:
        """The round least disturbed by whatever else the machine did."""
        return float(self.rounds.max())

    @property
    def spread(self) -> float:
        """Middle half of the rounds, as a fraction of their median."""
        low, middle, high = np.percentile(self.rounds, (25, 50, 75))
        return float((high - low) / middle)


def decode(stream: bytes) -> dict[int, Columns]:
    """Samples of each channel by node: COBS, CRC, header, samples."""
    decoded = decode_stream(stream)
    return {node: decoded.samples(node).columns for node in range(1, BOARDS + 1)}


def race(seed: int, blocks: int = BLOCKS, peer_blocks: int = PEER_BLOCKS, rounds: int = ROUNDS) -> tuple[Speed, ...]:
    """Speeds of the host's decoder, of construct, and of construct compiled by itself, on one core.

    All of them must give the samples that were encoded. construct takes the first part of the stream only.
    """
    whole, columns = run_stream(blocks, seed)
    part, part_columns = run_stream(peer_blocks, seed)
    entries: list[tuple[str, Callable[[], dict[int, Columns]], dict[int, Columns], bytes]] = [
        ("jointwire", lambda: decode(whole), columns, whole),
        ("construct", lambda: parse_stream(part, compiled=False), part_columns, part),
        ("construct, compiled", lambda: parse_stream(part, compiled=True), part_columns, part),
    ]
    seconds = np.empty((rounds, len(entries)))
    for _, run, expected, _ in entries:  # the compilers do their work here, not below
        _must_equal(run(), expected)
    for each in seconds:
        for index, (_, run, _, _) in enumerate(entries):
            began = time.perf_counter()
            run()
            each[index] = time.perf_counter() - began
    speeds: list[Speed] = []
    for (name, _, expected, stream), taken in zip(entries, seconds.T, strict=True):
        n_samples = BOARDS * BLOCK * (blocks if stream is whole else peer_blocks)
        values = sum(len(column) for board in expected.values() for column in board.values())
        speeds.append(Speed(name, n_samples / taken, values / n_samples, len(stream) / n_samples))
    return tuple(speeds)


def _must_equal(found: dict[int, Columns], expected: dict[int, Columns]) -> None:
    assert found.keys() == expected.keys()
    for node, columns in expected.items():
        assert found[node].keys() == columns.keys()
        for name, values in columns.items():
            np.testing.assert_array_equal(found[node][name], values)


def speed_table(speeds: tuple[Speed, ...]) -> str:
    """A line per decoder: its best round, the spread of the rounds, and how often the slowest goes into it."""
    slowest = min(speed.best for speed in speeds)
    rows = [
        [
            speed.name, f"{speed.best / 1e6:.3f}", f"{speed.best * speed.values_per_sample / 1e6:.3f}",
            f"{speed.best * speed.bytes_per_sample / 1e6:.1f}", f"{speed.spread:.1%}", f"{speed.best / slowest:.1f}",
        ]
        for speed in speeds
    ]  # fmt: skip
    return table(("decoder", "M samples/s", "M values/s", "MB/s", "spread", "times construct"), rows)


def speed_fields(speed: Speed) -> dict[str, Any]:
    """A decoder's figures, each round of it."""
    return {
        "samples_per_s": speed.best,
        "values_per_s": speed.best * speed.values_per_sample,
        "bytes_per_s": speed.best * speed.bytes_per_sample,
        "spread": speed.spread,
        "rounds": speed.rounds,
    }
