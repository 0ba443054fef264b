"""What a board sends during one recorded motion, made here so that every byte of it is known."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointbench.recording import Recorder
from jointwire import REGISTERS, FrameReader, MessageType, State, encode_frame

DEFAULTS = {register.name: register.default for register in REGISTERS}
BLOCK = 64


@dataclass(frozen=True)
class Sent:
    """One message as it left the board: its bytes with delimiter, and how many samples it carries."""

    time_us: int
    data: bytes
    samples: int = 0


def sample(tick: int, node: int) -> tuple[int, int, int, int, int]:
    """Raw channels of a tick: each value says which tick and node it is of."""
    return tick % 30000, 1000 * tick + node, 2000 * tick + node, tick % 1000, node


def status(node: int, seq: int, tick: int, state: State, taken: int, dropped: int = 0, missed: int = 0) -> Sent:
    """A STATUS frame."""
    return Sent(tick * 1000, encode_frame(
        MessageType.STATUS, node, seq, tick * 1000, state=state, trip=0, reserved=0, tick=tick, samples_taken=taken,
        samples_dropped=dropped, frames_sent=0, frames_dropped=0, ticks_missed=missed, bad_frames=0, heap_free=0,
    ))  # fmt: skip


def data(node: int, seq: int, first_tick: int, count: int, play_tick: int = -1, missed: int = 0) -> Sent:
    """A DATA frame with all channels."""
    head = struct.pack("<IBBHi", first_tick, count, 31, missed, play_tick)
    body = b"".join(struct.pack("<hiihh", *sample(first_tick + k, node)) for k in range(count))
    end_us = (first_tick + count - 1) * 1000
    return Sent(end_us, encode_frame(MessageType.DATA, node, seq, end_us, payload=head + body), count)


def motion(node: int, blocks: int = 10, start: int = 5000, first_seq: int = 65530, tail: int = 17) -> list[Sent]:
    """A whole motion: opening STATUS, full blocks, a STATUS in between, the flushed rest, the closing STATUS.

    The sequence starts just before it wraps, the tick counter and the board's sample count anywhere.
    """
    taken = 777
    sent = [status(node, first_seq, start - 20, State.LOADED, taken)]
    tick = start
    for index in range(blocks):
        sent.append(data(node, first_seq + len(sent), tick, BLOCK, tick - start))
        tick, taken = tick + BLOCK, taken + BLOCK
        if index == blocks // 2:
            sent.append(status(node, first_seq + len(sent), tick, State.RUNNING, taken))
    sent.append(data(node, first_seq + len(sent), tick, tail, tick - start))
    sent.append(status(node, first_seq + len(sent), tick + tail, State.DONE, taken + tail))
    return sent


def provenance(nodes: Sequence[int] = (1,), **more: Any) -> dict[str, Any]:
    """What run.toml needs: joints j1, j2 ... of cobot6 in order, default registers."""
    boards = [{"node": node, "joint": f"j{node}", "registers": DEFAULTS} for node in nodes]
    return {"robot": "cobot6", "clock": "virtual", "board": boards, **more}


def record(
    directory: Path,
    streams: Sequence[Sequence[Sent]],
    nodes: Sequence[int] = (1,),
    damage: Callable[[bytes], bytes] = bytes,
) -> Path:
    """Record streams as a bench would: one reader a port, in the order of time; `damage` alters a port's bytes."""
    readers = {node: FrameReader() for node in nodes}
    messages = sorted(
        ((sent, node) for node, stream in zip(nodes, streams, strict=True) for sent in stream),
        key=lambda item: item[0].time_us,
    )
    with Recorder(directory, provenance(nodes)) as recorder:
        for sent, node in messages:
            for chunk in readers[node].feed(damage(sent.data)):
                recorder.chunk(sent.time_us, node, chunk)
    return directory
