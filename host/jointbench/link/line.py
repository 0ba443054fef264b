"""A line: what its port receives, cut into frames and handed to the board each is from."""

from __future__ import annotations

from typing import Protocol

from jointbench.link.clock import Clock
from jointbench.link.port import Port
from jointwire import BROADCAST_NODE, Chunk, Frame, FrameReader, MessageType, encode_frame
from jointwire.messages import FIRST_FROM_BOARD

NEVER = 2**63  # [µs]


class Member(Protocol):
    """One board's side of a line."""

    def heard(self, data: bytes) -> None:
        """Take note of raw bytes that are most likely this board's."""
        ...

    def take(self, time_us: int, chunk: Chunk) -> None:
        """Take a frame of this board, or what came in its place."""
        ...

    def ping_frame(self) -> bytes:
        """Build a PING for this board."""
        ...


class Line:
    """The line of one board: whatever is to be sent goes out at once.

    Attributes:
        port, clock: through which, and when.
        nodes: the boards on it.
        speaker: the node whose turn it is, or was last; noise is put down to it.
    """

    def __init__(self, port: Port, clock: Clock) -> None:
        """Listen at the port; nothing is sent."""
        self.port = port
        self.clock = clock
        self.nodes: tuple[int, ...] = port.nodes
        self.speaker: int = port.nodes[0]
        self._reader = FrameReader()
        self._members: dict[int, Member] = {}
        port.sink = self._receive

    def join(self, node: int, member: Member) -> None:
        """Hand everything from this node to `member` from now on."""
        self._members[node] = member

    def send(self, node: int, frame: bytes) -> None:
        """Send a frame to a node; on a shared line, as soon as the line is free."""
        self.port.write(frame)

    def stop_all(self) -> None:
        """Send STOP to every board this instant, whoever speaks, and wait for nothing."""
        self.port.write(encode_frame(MessageType.STOP, BROADCAST_NODE, 0, self.clock.now_us()))

    def keep_alive(self, node: int) -> None:
        """Let the node hear of the host; a shared line does so by itself."""
        self.port.write(self._members[node].ping_frame())

    def attend(self, node: int, transmit_buffer: int) -> None:
        """The node has been greeted and has that many bytes to keep what it has to say; give it turns from now on."""

    @property
    def patience_us(self) -> int:
        """How much later an answer may come than on a line of the board's own."""
        return 0

    def due_us(self) -> int:
        """When `serve` must be called at the latest [µs]."""
        return NEVER

    def serve(self) -> None:
        """Do what is due."""

    @property
    def rest(self) -> bytes:
        """What has come since the last delimiter."""
        return self._reader.pending

    def _receive(self, data: bytes, time_us: int) -> None:
        if self.speaker in self._members:
            self._members[self.speaker].heard(data)
        for chunk in self._reader.feed(data):
            node = self.speaker
            if isinstance(chunk.content, Frame):
                if chunk.content.type < FIRST_FROM_BOARD:
                    continue  # some adapters give the host its own words back
                if chunk.content.node in self._members:
                    node = chunk.content.node
            if node in self._members:
                self._members[node].take(time_us, chunk)
            self._heard(time_us, chunk)

    def _heard(self, time_us: int, chunk: Chunk) -> None:
        """A chunk has been handed on."""
