"""What a board sends during one recorded motion, made here so that every byte of it is known."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointbench.recording import Recorder
from jointwire import (
    BODIES,
    CHANNELS,
    REGISTERS,
    ChannelKind,
    FrameReader,
    MessageType,
    State,
    divider,
    encode_frame,
)

DEFAULTS = {register.name: register.default for register in REGISTERS}
BLOCK = 64
WORD = 1 << 32
SLOW = 64  # ticks from one sample of bus voltage and temperature to the next
DIVIDERS = 6 << 4 * ChannelKind.BUS_VOLTAGE | 6 << 4 * ChannelKind.TEMPERATURE


@dataclass(frozen=True)
class Sent:
    """One message as it left the board: its bytes with delimiter, and how many samples it carries."""

    time_us: int
    data: bytes
    samples: int = 0


def sample(tick: int, node: int) -> dict[str, int]:
    """Raw channels of a joint's board at a tick: each value says which tick and node it is of."""
    return {
        "motor_current": tick % 30000,
        "motor_position": 1000 * tick % (1 << 30) + node,
        "link_position": 2000 * tick % (1 << 30) + node,
        "joint_torque": tick % 1000,
        "current_command": node,
        "bus_voltage": 24000 + tick // SLOW % 100,
        "temperature": 2000 + tick // SLOW % 100,
    }


def status(
    node: int, seq: int, tick: int, state: State, taken: int, dropped: int = 0, missed: int = 0, sent: int = 0,
    time_us: int | None = None,
) -> Sent:  # fmt: skip
    """A STATUS frame; `sent` counts the frames before it, `time_us` is the board's clock at the tick."""
    board_us = tick * 1000 if time_us is None else time_us
    return Sent(tick * 1000, encode_frame(
        MessageType.STATUS, node, seq, board_us, state=state, trip=0, reserved=0, tick=tick % WORD, samples_taken=taken,
        samples_dropped=dropped, frames_sent=sent, frames_dropped=0, ticks_missed=missed, frames_received=0,
        bad_frames=0, heap_free=0, longest_tick_us=0, longest_gc_us=0, mean_tick_us=0,
    ))  # fmt: skip


def data(
    node: int, seq: int, first_tick: int, count: int, play_tick: int = -1, missed: int = 0,
    raw: Callable[[int, int], Mapping[str, int]] = sample, dividers: int = DIVIDERS, late_us: int = 0,
) -> Sent:  # fmt: skip
    """A DATA frame with the channels that `raw` gives for a tick and a node."""
    columns = [channel for channel in CHANNELS if channel.name in raw(first_tick, node)]
    head = {
        "first_tick": first_tick % WORD, "dividers": dividers, "play_tick": play_tick,
        "channels": sum(1 << channel.bit for channel in columns), "missed": missed, "late_us": late_us, "count": count,
        "state": State.RUNNING,
    }  # fmt: skip
    body = BODIES[MessageType.DATA].build(head)
    for tick in range(first_tick, first_tick + count):
        values = raw(tick, node)
        due = [channel for channel in columns if tick % divider(dividers, channel.kind) == 0]
        body += b"".join(struct.pack("<" + channel.format, values[channel.name]) for channel in due)
    end_us = (first_tick + count - 1) * 1000
    return Sent(end_us, encode_frame(MessageType.DATA, node, seq, end_us, payload=body), count)


def motion(node: int, blocks: int = 10, start: int = 5000, first_seq: int = 65530, tail: int = 17) -> list[Sent]:
    """A whole motion: opening STATUS, full blocks, a STATUS in between, the flushed rest, the closing STATUS.

    The sequence starts just before it wraps, the tick counter and the board's sample count anywhere.
    """
    taken = 777
    before = 4242  # frames sent before the run
    sent = [status(node, first_seq, start - 20, State.LOADED, taken, sent=before)]
    tick = start
    for index in range(blocks):
        sent.append(data(node, first_seq + len(sent), tick, BLOCK, tick - start))
        tick, taken = tick + BLOCK, taken + BLOCK
        if index == blocks // 2:
            sent.append(status(node, first_seq + len(sent), tick, State.RUNNING, taken, sent=before + len(sent)))
    sent.append(data(node, first_seq + len(sent), tick, tail, tick - start))
    sent.append(status(node, first_seq + len(sent), tick + tail, State.DONE, taken + tail, sent=before + len(sent)))
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
