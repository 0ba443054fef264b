"""A half-duplex wire with boards at its far end, in time of its own: it is Port and Clock to what is tested.

What overlaps on it is garbled for everybody. The boards know turns, a transmit buffer and a few requests; a whole board
is tested in hil_tests.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jointwire import REGISTERS, Frame, FrameReader, MessageType, Refusal, encode_frame, schema_hash

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

    def pass_time(self, clock: "Wire", duration_us: int) -> None:
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
