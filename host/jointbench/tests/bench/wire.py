"""A half-duplex wire with boards at its far end, in time of its own: it is Port and Clock to what is tested.

What overlaps on it is garbled for everybody. The boards know turns, a transmit buffer and a few requests; a whole board
is tested in hil_tests.

A board's stream, frame by frame, and its clock: the truth of every byte and of every time is known.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.sync import Exchange, Pulse
from jointwire import BODIES, REGISTERS, Frame, FrameReader, MessageType, Refusal, State, encode_frame, schema_hash

BUFFER = 4096
PIECE_US = 1000  # boards hand bytes to the line tick by tick
ANSWER_US = 300


DEFAULTS = {register.name: register.default for register in REGISTERS}
HELLO_ACK: dict[str, Any] = {
    "major": 1, "minor": 2, "state": 1, "reset_cause": 3, "schema_hash": schema_hash(), "firmware_version": 0x010203,
    "features": 1 | 4, "token": 7, "tick": 0, "clock_Hz": 150_000_000, "adc_rate_Hz": 16000, "motor_counts": 4096,
    "link_counts": 524288, "adc_reference_mV": 3300, "adc_bits": 12, "encoder_source": 2, "receive_buffer": 256,
    "transmit_buffer": BUFFER, "max_knots": 2048, "max_block": 64, "uid": bytes(range(8)) + bytes(4),
    "board": b"pico2".ljust(16, b"\0"), "image_sha256": bytes(range(32)),
    "module_type": bytes(16), "module_serial": bytes(16),
}  # fmt: skip


@dataclass
class Sending:
    """Bytes on their way."""

    sender: int
    start_us: float
    end_us: float
    data: bytes
    collided: bool = False


@dataclass(eq=False)
class WireBoard:
    """One board; `delays_us` holds back its next answers, `mute` keeps it from answering at all."""

    node: int
    shared: bool = True
    mute: bool = False
    keeps_line: bool = False  # says no YIELD
    delays_us: list[int] = field(default_factory=list[int])
    value: int = 0  # what READ answers
    hello: dict[str, Any] = field(default_factory=HELLO_ACK.copy)
    refusal: Refusal = Refusal.OK
    dropped: int = 0
    served: list[Frame] = field(default_factory=list[Frame])
    ring: bytearray = field(default_factory=bytearray)
    allowed: int = 0  # bytes of the ring that may go out in this turn
    sending: bool = False
    seq: int = 0
    reader: FrameReader = field(default_factory=FrameReader)

    def queue(self, kind: MessageType, **fields: Any) -> None:
        """Put a frame into the transmit buffer, or drop it."""
        frame = encode_frame(kind, self.node, self.seq, **fields)
        if len(self.ring) + len(frame) > BUFFER:
            self.dropped += 1
            return
        self.ring += frame
        self.seq = (self.seq + 1) & 0xFFFF

    def answer(self, request: Frame) -> None:
        """Queue the answer to a request."""
        body = request.body
        match request.type:
            case MessageType.HELLO:
                self.hello["token"] += 1
                self.queue(MessageType.HELLO_ACK, **self.hello)
            case MessageType.PING:
                self.queue(MessageType.PONG, nonce=body.nonce, tick=0)
            case MessageType.READ:
                self.queue(MessageType.VALUES, first=body.first, count=body.count, values=[self.value] * body.count)
            case _:
                answer = {"request": request.type, "request_seq": request.seq, "refusal": self.refusal, "value": 0}
                self.queue(MessageType.ACK, **answer)


class Wire:
    """The wire; as a Port it has one line to all boards, as a Clock it has its own time."""

    name, common_ticks, url, lost = "virtual", True, "wire://", ""

    def __init__(self, *boards: WireBoard, baud: int = 921600, damage: Callable[[bytes], bytes] = bytes) -> None:
        """`damage` makes of the bytes of each piece that a board sends those that arrive."""
        self.boards = {board.node: board for board in boards}
        self.nodes = tuple(self.boards)
        self.joints = tuple(f"j{node}" for node in self.nodes)
        self.written = self.received = self.collisions = 0
        self.sink: Callable[[bytes, int], None] = lambda data, time_us: None
        self.damage = damage
        self._byte_us = 1e7 / baud
        self._now_us = 0.0
        self._free_us = 0.0  # when the host has sent what it was given
        self._events: list[tuple[float, int, Callable[[], bool]]] = []
        self._order = itertools.count()
        self._on_wire: list[Sending] = []

    def why_lost(self, node: int) -> str:
        """Boards are never lost here."""
        return ""

    def now_us(self) -> int:
        """Time of the wire."""
        return int(self._now_us)

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """Let time pass until something arrives at the host."""
        deadline = self._now_us + timeout_us
        while self._events and self._events[0][0] <= deadline:
            self._now_us, _, act = heapq.heappop(self._events)
            if act():
                return
        self._now_us = deadline

    def close(self) -> None:
        """Nothing to let go of."""

    def pass_time(self, clock: Wire, duration_us: int) -> None:
        """Wait by `clock` until this time is over."""
        end = self.now_us() + duration_us
        while (left := end - self.now_us()) > 0:
            clock.wait(left)

    def write(self, data: bytes) -> None:
        """Send the host's bytes."""
        self.written += len(data)
        start = max(self._now_us, self._free_us)
        self._free_us = start + len(data) * self._byte_us
        self._put(Sending(0, start, self._free_us, data))

    def stream(self, node: int, period_us: int, size: int) -> None:
        """Have a board queue a frame of this size again and again."""

        def produce() -> bool:
            self.boards[node].queue(MessageType.ECHO_REPLY, count=size, data=bytes(size))
            self._at(self._now_us + period_us, produce)
            return False

        self._at(self._now_us + period_us, produce)

    def babble(self, node: int, data: bytes) -> None:
        """Have a board send bytes that nobody asked for, now."""
        self._put(Sending(node, self._now_us, self._now_us + len(data) * self._byte_us, data))

    def _at(self, time_us: float, act: Callable[[], bool]) -> None:
        heapq.heappush(self._events, (time_us, next(self._order), act))

    def _put(self, sending: Sending) -> None:
        self._on_wire = [each for each in self._on_wire if each.end_us > self._now_us]
        for other in self._on_wire:
            if other.sender != sending.sender and other.end_us > sending.start_us and sending.end_us > other.start_us:
                other.collided = sending.collided = True
                self.collisions += 1
        self._on_wire.append(sending)
        self._at(sending.end_us, lambda: self._deliver(sending))

    def _deliver(self, sending: Sending) -> bool:
        data = bytes(byte ^ 0xA5 for byte in sending.data) if sending.collided else sending.data
        for board in self.boards.values():
            if board.node != sending.sender:
                for chunk in board.reader.feed(data):
                    self._hear(board, chunk.content)
        if not sending.sender:
            return False
        data = self.damage(data)
        self.received += len(data)
        self.sink(data, self.now_us())
        return True

    def _hear(self, board: WireBoard, content: object) -> None:
        if not isinstance(content, Frame) or content.type >= 0x20 or content.node not in (board.node, 0xFF):
            return
        board.served.append(content)
        if board.mute or (content.node == 0xFF and board.shared):
            return

        def speak() -> bool:
            board.answer(content)
            if board.shared and not board.keeps_line:
                board.queue(MessageType.YIELD)
            board.allowed = len(board.ring)
            return False if board.sending else self._send_piece(board)

        self._at(self._now_us + (board.delays_us.pop(0) if board.delays_us else ANSWER_US), speak)

    def _send_piece(self, board: WireBoard) -> bool:
        count = min(board.allowed, int(PIECE_US / self._byte_us))
        board.sending = count > 0
        if board.sending:
            data = bytes(board.ring[:count])
            del board.ring[:count]
            board.allowed -= count
            self._put(Sending(board.node, self._now_us, self._now_us + count * self._byte_us, data))
            self._at(self._now_us + PIECE_US, lambda: self._send_piece(board))
        return False


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
