"""A board's stream, frame by frame, and its clock: the truth of every byte and of every time is known."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.sync import Exchange, Pulse
from jointwire import BODIES, MessageType, State, encode_frame

_EVERY_TICK = 0  # dividers
_CHANNELS = 0x1F

WORD = 1 << 32
TICK_US = 1000
PING_US = 100_000
LEAST_US, MOST_US = 125, 1000  # a USB full-speed frame is 1 ms, a high-speed microframe 0.125 ms


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


@dataclass(frozen=True)
class TrueClock:
    """Board time = (1 + drift) * host time + offset; tick 0 begins at `tick_zero_us` of it."""

    drift_ppm: float
    offset_us: float
    tick_zero_us: int

    @staticmethod
    def random(rng: np.random.Generator) -> TrueClock:
        """Up to 100 ppm off, boot anywhere in the 32 bits, ticks anywhere in theirs."""
        offset = float(rng.uniform(0, WORD))
        tick_zero = round(offset) - TICK_US * int(rng.integers(0, WORD)) - int(rng.integers(0, TICK_US))
        return TrueClock(float(rng.uniform(-100, 100)), offset, tick_zero)

    def board_us(self, host_us):
        """What it shows, not wrapped."""
        return host_us * (1.0 + 1e-6 * self.drift_ppm) + self.offset_us

    def tick_host_us(self, tick):
        """Host time of a tick, not wrapped."""
        board = self.tick_zero_us + TICK_US * np.asarray(tick)
        return (board - self.offset_us) / (1.0 + 1e-6 * self.drift_ppm)

    def ticks_at(self, host_us):
        """Where a time of the host's clock lies on its ticks, not wrapped."""
        return (self.board_us(host_us) - self.tick_zero_us) / TICK_US

    def tick(self, host_us) -> int:
        """The last tick before a time of the host's clock, not wrapped."""
        return int((self.board_us(host_us) - self.tick_zero_us) // TICK_US)

    def exchanges(self, rng: np.random.Generator, span_us: int, start_us: int = 0) -> list[Exchange]:
        """PINGs each 100 ms, dithered, with delays of USB: in bursts one way is slower by some milliseconds."""
        result: list[Exchange] = []
        slow = np.zeros(2)
        for k in range(max(span_us // PING_US, 1)):
            if k % 7 == 0:  # a burst lasts 0.7 s; most stretches have none
                slow = rng.choice([0.0, 0.0, 0.0, 5000.0], 2)
            sent = start_us + k * PING_US + int(rng.integers(0, 2 * TICK_US))
            there, back = rng.uniform(LEAST_US, MOST_US, 2) + slow * rng.uniform(0, 1, 2)
            board = self.board_us(sent + there)
            received = sent + int(there + back)
            result.append(Exchange(sent, received, self.tick(sent + there) % WORD, int(board) % WORD))
        return result

    def stamps(self, start_us: int, end_us: int) -> list[tuple[int, int]]:
        """Ticks each 64 and the clock at them, wrapped, as frames have them."""
        ticks = range(self.tick(start_us), self.tick(end_us), 64)
        return [(tick % WORD, (self.tick_zero_us + TICK_US * tick) % WORD) for tick in ticks]

    def pulses(self, rng: np.random.Generator, instants_us: Array, jitter_us: float = 2.0) -> list[Pulse]:
        """Edges at these times, stamped to a microsecond with the jitter of an interrupt, told some time later."""
        stamped = self.board_us(instants_us) + rng.uniform(-jitter_us, jitter_us, len(instants_us))
        return [
            Pulse(edge, int(stamp) % WORD, int(at + rng.uniform(500, 80_000)))
            for edge, (stamp, at) in enumerate(zip(stamped, instants_us, strict=True), start=1)
        ]
