"""A board's stream, frame by frame, with the counters a real one keeps, so that the truth of every byte is known."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from jointwire import BODIES, MessageType, State, encode_frame

_EVERY_TICK = 0  # dividers
_CHANNELS = 0x1F


@dataclass(frozen=True)
class Sent:
    """One frame as it left the board, with its delimiter; how many samples it carries, and its board time."""

    data: bytes
    kind: MessageType
    samples: int = 0
    time_us: int = 0


def sample(tick: int) -> bytes:
    """Raw channels of a tick: current, motor and link position, torque, command; the positions say which tick it is."""
    return struct.pack("<hiihh", 1, tick & 0x3FFFFFFF, 2 * (tick & 0x3FFFFFFF), 4, 5)


@dataclass
class SimulatedBoard:
    """Counters of a board; each method is something that happens to it. All counters may start anywhere."""

    node: int = 1
    sequence: int = 65530
    tick: int = 2**32 - 100
    taken: int = 2**32 - 50
    dropped: int = 3
    missed: int = 4
    frames_sent: int = 2**32 - 5
    bad_frames: int = 7
    state: State = State.LOADED
    sent: list[Sent] = field(default_factory=list[Sent])

    def status(self, state: State | None = None) -> None:
        """Send a STATUS."""
        self.state = self.state if state is None else state
        self._send(
            MessageType.STATUS, state=self.state, trip=0, reserved=0, tick=_u32(self.tick),
            samples_taken=_u32(self.taken), samples_dropped=_u32(self.dropped), frames_sent=_u32(self.frames_sent),
            frames_dropped=0, ticks_missed=_u32(self.missed), frames_received=9, bad_frames=self.bad_frames,
            heap_free=0,
            longest_tick_us=0,
            longest_gc_us=0,
            mean_tick_us=0,
        )  # fmt: skip

    def block(self, count: int = 64) -> None:
        """Sample and send a block."""
        first = self.tick
        head = BODIES[MessageType.DATA].build(
            {"first_tick": _u32(self.tick), "dividers": _EVERY_TICK, "play_tick": -1, "channels": _CHANNELS,
             "missed": 0, "late_us": 0, "count": count, "state": self.state}
        )  # fmt: skip
        self.tick += count
        self.taken += count
        self._send(MessageType.DATA, samples=count, payload=head + b"".join(map(sample, range(first, self.tick))))

    def pong(self, wrong_us: int = 0) -> None:
        """Answer a PING that was sent 400 µs before by the same clock, and read the clock wrongly by so much."""
        now_us = 1000 * self.tick
        self._send(MessageType.PONG, wrong_us, nonce=_u32(now_us - 400), tick=_u32(self.tick))

    def drop(self, count: int = 64) -> None:
        """Sample a block for which the transmit buffer has no room."""
        self.tick += count
        self.taken += count
        self.dropped += count

    def miss(self, ticks: int) -> None:
        """Be too busy for some ticks."""
        self.tick += ticks
        self.missed += ticks

    def pause(self, ticks: int) -> None:
        """Stream nothing for some ticks."""
        self.tick += ticks

    def _send(self, kind: MessageType, wrong_us: int = 0, samples: int = 0, **content: Any) -> None:
        time_us = _u32(1000 * self.tick)
        data = encode_frame(kind, self.node, self.sequence, _u32(time_us + wrong_us), **content)
        self.sent.append(Sent(data, kind, samples, time_us))
        self.sequence = self.sequence + 1 & 0xFFFF
        self.frames_sent += 1


def motion(blocks: int = 10, tail: int = 17, **counters: Any) -> SimulatedBoard:
    """A whole motion: opening STATUS, full blocks, a STATUS in between, the flushed rest, the closing STATUS."""
    board = SimulatedBoard(**counters)
    board.status(State.LOADED)
    board.pong()
    board.state = State.RUNNING
    for index in range(blocks):
        board.block()
        if index == blocks // 2:
            board.status()
    board.block(tail)
    board.status(State.DONE)
    return board


def _u32(value: int) -> int:
    return value & 0xFFFFFFFF
