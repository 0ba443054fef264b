"""DATA bodies as arrays: one block, or all blocks of a board one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwire.channels import CHANNEL_BY_NAME, divider
from jointwire.decoder import HEAD, unpack_columns
from jointwire.errors import BodyError
from jointwire.framing import Frame


@dataclass(frozen=True)
class Block:
    """The samples of one DATA frame.

    Attributes:
        first_tick, count: its ticks are first_tick … first_tick + count - 1.
        columns: raw values of each channel in the mask, at the ticks where it was due.
        dividers, channels, play_tick, missed, state: as in the head.
    """

    first_tick: int
    count: int
    columns: dict[str, NDArray[np.int32]]
    dividers: int
    channels: int
    play_tick: int
    missed: int
    state: int

    def ticks(self, name: str) -> NDArray[np.int64]:
        """Ticks of the values of a channel."""
        every = divider(self.dividers, CHANNEL_BY_NAME[name].kind)
        return np.arange(-(-self.first_tick // every) * every, self.first_tick + self.count, every, dtype=np.int64)


def decode_samples(frame: Frame) -> Block:
    """The block of a DATA frame.

    Raises:
        BodyError: the body's length is not that of `count` samples of these channels.
    """
    head = frame.body
    columns = stack_samples([frame])
    return Block(
        head.first_tick, head.count, columns, head.dividers, head.channels, head.play_tick, head.missed, head.state
    )


def stack_samples(frames: Sequence[Frame]) -> dict[str, NDArray[np.int32]]:
    """Raw values of each channel in the blocks of DATA frames, one after the other: many cost little more than one.

    Raises:
        BodyError: the length of a body is not that of `count` samples of its channels.
    """
    payloads = [frame.payload for frame in frames]
    for frame in frames:
        if len(frame.payload) < HEAD.itemsize:
            raise _wrong_length(frame)
    heads = np.frombuffer(b"".join([payload[: HEAD.itemsize] for payload in payloads]), HEAD)
    lengths = np.array([len(payload) for payload in payloads])
    starts = np.cumsum(lengths) - lengths + HEAD.itemsize
    raw = np.frombuffer(b"".join(payloads), np.uint8)
    columns = unpack_columns(raw, starts, lengths - HEAD.itemsize, heads)
    if isinstance(columns, int):
        raise _wrong_length(frames[columns])
    return columns


def _wrong_length(frame: Frame) -> BodyError:
    head = frame.body
    return BodyError(
        f"DATA frame {frame.seq} of node {frame.node} says {head.count} ticks of channels {head.channels:#x} with "
        f"dividers {head.dividers:#x}, which {len(frame.payload)} bytes with the head are not"
    )
