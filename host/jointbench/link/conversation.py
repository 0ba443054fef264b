"""Requests and answers with one board: repeated until answered, and plain words when they are not."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable
from typing import Any

from jointbench.errors import BoardLost, BoardSilent
from jointbench.link.clock import Clock
from jointbench.link.line import Line
from jointbench.link.usb_ports import line_beside
from jointwire import FROZEN, BodyError, Chunk, Frame, MessageType, Noise, Refusal, encode_frame

ANSWER_TIMEOUT_US = 100_000
RETRANSMISSIONS = 3
# Of requests that take a board longer than answering: it writes its flash, and may have to erase it first.
_TIMEOUTS_US = {MessageType.SAVE: 1_000_000, MessageType.CONFIRM: 1_000_000}
_SHOWN = 60  # bytes of what came instead of a frame
# 2^32 / golden ratio: times that differ little give numbers that differ much (Knuth, TAOCP 3, sec. 6.4).
_SPREAD = 0x9E3779B1

ChunkListener = Callable[[int, int, Chunk], None]
"""Called with the clock's time [µs], the board's node, and what came."""


class Conversation:
    """Everything that goes to and comes from one board.

    Attributes:
        line, node, joint: on which line, with whom.
        last_frame_us: when the last valid frame came.
        listener: called for everything received, unaltered (a recorder), or None.
        on_frame: called with each valid frame of this board; answers True when it has dealt with it, so that it is
            no answer to a request.
        understood: whether the board has this host's schema.
    """

    def __init__(self, line: Line, node: int, joint: str, clock: Clock, on_frame: Callable[[Frame], bool]) -> None:
        """Listen at the line; nothing is sent."""
        self.line = line
        self.node = node
        self.joint = joint
        self.clock = clock
        self.on_frame = on_frame
        self.listener: ChunkListener | None = None
        self.understood = False
        self.last_frame_us: int = clock.now_us()
        self._answers: list[tuple[int, Frame]] | None = None  # None: nobody waits for one
        self._surplus = False  # whether a second answer to the last request may be under way
        self._sequence = _first_sequence(clock)
        self._stray = b""  # the last bytes received that were no frame of this board
        self._bytes = self._frames = 0
        line.join(node, self)

    def frame(self, kind: MessageType, **fields: Any) -> bytes:
        """Build this conversation's next frame."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        return encode_frame(kind, self.node, self._sequence, self.clock.now_us(), **fields)

    def ping_frame(self) -> bytes:
        """Build a PING that carries the time."""
        return self.frame(MessageType.PING, payload=struct.pack("<I", self.clock.now_us() & 0xFFFFFFFF))

    def ask(
        self, kind: MessageType, answer: MessageType, matches: Callable[[Any], bool], **fields: Any
    ) -> tuple[int, Frame]:
        """Send a request until it is answered; its sequence number makes a repetition harmless.

        Args:
            kind: of the request.
            answer: the type its answer has; an ACK of this request is an answer, too.
            matches: whether a frame of that type, by its body, answers this request.
            fields: of the request's body.

        Returns:
            When the answer came [µs], and the answer.

        Raises:
            BoardLost: the port is gone.
            BoardSilent: no answer after all repetitions; says what came instead.
        """
        if self._surplus and answer is not MessageType.ACK:
            self._let_surplus_pass()
        request = self.frame(kind, **fields)
        sequence, heard, frames = self._sequence, self._bytes, self._frames
        timeout_us = _TIMEOUTS_US.get(kind, ANSWER_TIMEOUT_US) + self.line.patience_us
        self._answers = []
        try:
            for tries in range(1, RETRANSMISSIONS + 2):
                self.line.send(self.node, request)
                if found := self._answer(kind, sequence, answer, matches, timeout_us):
                    self._surplus = self.understood and tries > 1
                    return found
        finally:
            self._answers = None
        raise self._silent(kind, timeout_us, self._bytes - heard, self._frames - frames)

    def lost_error(self) -> BoardLost:
        """Say why the board is gone."""
        reason = self.line.port.why_lost(self.node)
        return BoardLost(self.joint, self.node, f"{reason}. Its motor has no power from this board")

    def heard(self, data: bytes) -> None:
        """Take note of raw bytes that are most likely this board's."""
        self._bytes += len(data)
        self._stray = self._stray or data

    def take(self, time_us: int, chunk: Chunk) -> None:
        """Take a frame of this board, or what came in its place."""
        if self.listener:
            self.listener(time_us, self.node, chunk)
        match chunk.content:
            case Frame(node=self.node) as frame:
                self._stray = b""
                self._take_frame(frame, time_us)
            case Frame(node=node):
                self._stray = f"frames of node {node}".encode()
            case Noise():
                self._stray = chunk.encoded

    def _take_frame(self, frame: Frame, time_us: int) -> None:
        self._frames += 1
        self.last_frame_us = time_us
        try:
            if not self.on_frame(frame) and self._answers is not None:
                _ = frame.body
                self._answers.append((time_us, frame))
        except BodyError:  # the recording counts it; here it is as good as not received
            self._stray = frame.payload

    def _answer(
        self, kind: MessageType, sequence: int, answer: MessageType, matches: Callable[[Any], bool], timeout_us: int
    ) -> tuple[int, Frame] | None:
        """Wait for an answer; None when the time is up."""
        deadline = self.clock.now_us() + timeout_us
        while (left := deadline - self.clock.now_us()) > 0:
            self._need_port()
            self.clock.wait(left)
            while self._answers:
                time_us, frame = self._answers.pop(0)
                if frame.type is MessageType.ACK:
                    # Where an answer has a type of its own, an ACK can only be a refusal.
                    is_answer = answer is MessageType.ACK or frame.body.refusal != Refusal.OK
                    if is_answer and (frame.body.request, frame.body.request_seq) == (kind, sequence):
                        return time_us, frame
                elif frame.type is answer and matches(frame.body):
                    return time_us, frame
        self._need_port()
        return None

    def _let_surplus_pass(self) -> None:
        """A repeated request may be answered twice; what comes before the answer to a new PING is not the next's."""
        self._surplus = False
        nonce = self.clock.now_us() & 0xFFFFFFFF
        self.ask(MessageType.PING, MessageType.PONG, lambda body: body.nonce == nonce, nonce=nonce)
        self._surplus = False  # of PONGs, whose nonces tell them apart

    def _need_port(self) -> None:
        if self.line.port.why_lost(self.node):
            raise self.lost_error()

    def _silent(self, kind: MessageType, timeout_us: int, received: int, frames: int) -> BoardSilent:
        text = f"no answer to {kind.name} in {1 + RETRANSMISSIONS} tries of {timeout_us // 1000} ms"
        port = self.line.port
        if received == 0:
            text += f", and not one byte on {port.url}; is it powered, is this its port, does its program run?"
            if beside := line_beside(port.url):
                text += f" This port is the board's console; its line is {beside}"
        elif frames == 0:
            text += (
                f"; {received} bytes came and none was a frame of node {self.node}: {self._stray[:_SHOWN]!r}. "
                "Another baud rate, another node, the REPL of a board without the firmware, or another program?"
            )
        elif kind not in FROZEN and not self.understood:
            text += f", though {frames} of its frames came; greet it first, its firmware may be another release's"
        else:
            text += f", though {frames} of its frames came; is the line too bad, or its receive buffer overrun?"
        return BoardSilent(self.joint, self.node, text)


def _first_sequence(clock: Clock) -> int:
    """Where this session's numbers begin: elsewhere than an earlier session's, whose last the board remembers.

    By virtual time, which no two sessions share, the same run has the same bytes.
    """
    if clock.name == "virtual":
        return clock.now_us() * _SPREAD >> 16 & 0xFFFF
    return secrets.randbelow(0x10000)
