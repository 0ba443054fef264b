"""A run's bytes as six boards send them: blocks of 64 ticks, all channels of a joint at their default dividers."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from jointwire import BODIES, BY_NAME, CHANNELS, JOINT_CHANNELS, ChannelKind, MessageType, State, divider, encode_frame

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
