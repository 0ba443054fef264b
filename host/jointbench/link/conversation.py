"""Requests and answers over a port: repeated until answered, and plain words when they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jointbench.errors import BoardLost, BoardSilent
from jointbench.link.clock import Clock
from jointbench.link.port import Port
from jointwire import BodyError, Chunk, Frame, FrameReader, MessageType, Noise, encode_frame

ANSWER_TIMEOUT_US = 100_000
RETRANSMISSIONS = 3
_SHOWN = 60  # bytes of what came instead of a frame

ChunkListener = Callable[[int, int, Chunk], None]
"""Called with the clock's time [µs], the node of the port, and what came."""


class Conversation:
    """Everything that goes to and comes from one board.

    Attributes:
        port, clock: through which and when.
        last_frame_us: when the last valid frame came.
        listener: called for everything received, unaltered (a recorder), or None.
        on_frame: called with each valid frame of this board; answers True when it has dealt with it, so that it is
            no answer to a request.
    """

    def __init__(self, port: Port, clock: Clock, on_frame: Callable[[Frame], bool]) -> None:
        """Listen at the port; nothing is sent."""
        self.port, self.clock, self.on_frame = port, clock, on_frame
        self.listener: ChunkListener | None = None
        self.last_frame_us = clock.now_us()
        self._reader = FrameReader()
        self._answers: list[tuple[int, Frame]] = []
        self._sequence = 0
        self._stray = b""  # the last bytes received that were no frame of this board
        self._frames = 0
        port.sink = self._receive

    def send(self, kind: MessageType, **fields: Any) -> None:
        """Send a frame without waiting for its answer."""
        self.port.write(self._request(kind, fields))

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
        self._answers.clear()
        received, frames = self.port.received, self._frames
        request = self._request(kind, fields)
        sequence = self._sequence
        for _ in range(1 + RETRANSMISSIONS):
            self.port.write(request)
            deadline = self.clock.now_us() + ANSWER_TIMEOUT_US
            while (left := deadline - self.clock.now_us()) > 0:
                self._need_port()
                self.clock.wait(left)
                while self._answers:
                    time_us, frame = self._answers.pop(0)
                    if frame.type is MessageType.ACK:
                        if (frame.body.request, frame.body.request_seq) == (kind, sequence):
                            return time_us, frame
                    elif frame.type is answer and matches(frame.body):
                        return time_us, frame
        self._need_port()
        raise self._silent(kind, self.port.received - received, self._frames - frames)

    def lost_error(self) -> BoardLost:
        """Say why the board is gone."""
        return BoardLost(self.port.joint, self.port.node, f"{self.port.lost}. Its motor has no power from this board")

    def _request(self, kind: MessageType, fields: dict[str, Any]) -> bytes:
        self._sequence = (self._sequence + 1) & 0xFFFF
        return encode_frame(kind, self.port.node, self._sequence, self.clock.now_us(), **fields)

    def _need_port(self) -> None:
        if self.port.lost:
            raise self.lost_error()

    def _receive(self, data: bytes, time_us: int) -> None:
        self._stray = self._stray or data
        for chunk in self._reader.feed(data):
            if self.listener:
                self.listener(time_us, self.port.node, chunk)
            match chunk.content:
                case Frame(node=self.port.node) as frame:
                    self._stray = b""
                    self._take(frame, time_us)
                case Frame(node=node):
                    self._stray = f"frames of node {node}".encode()
                case Noise():
                    self._stray = chunk.encoded

    def _take(self, frame: Frame, time_us: int) -> None:
        self._frames += 1
        self.last_frame_us = time_us
        try:
            if not self.on_frame(frame):
                self._answers.append((time_us, frame))
        except BodyError:  # the recording counts it; here it is as good as not received
            self._stray = frame.payload

    def _silent(self, kind: MessageType, received: int, frames: int) -> BoardSilent:
        text = f"no answer to {kind.name} in {1 + RETRANSMISSIONS} tries of {ANSWER_TIMEOUT_US // 1000} ms"
        if received == 0:
            text += f", and not one byte on {self.port.url}; is it powered, is this its port, does its program run?"
        elif frames == 0:
            text += (
                f"; {received} bytes came and none was a frame of node {self.port.node}: {self._stray[:_SHOWN]!r}. "
                "Another baud rate, another node, the REPL of a board without the firmware, or another program?"
            )
        else:
            text += f", though {frames} of its frames came; is its firmware as old as this host?"
        return BoardSilent(self.port.joint, self.port.node, text)
