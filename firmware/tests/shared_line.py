"""Boards on one half-duplex wire, tick by tick: what anyone says, all others hear; who speaks out of turn fails."""

from collections.abc import Sequence
from typing import Any

from firmware.tests.driver import LINE, BoardProcess
from jointwire import Frame, MessageType, encode_frame

QUIET_TICKS = 3  # a board answers in the tick it hears a request


class SharedLine:
    """The wire and its host, who asks one board after the other. `turn`: node that has the line, None for the host."""

    def __init__(self, boards: Sequence[BoardProcess]) -> None:
        self.boards = {board.node: board for board in boards}
        self.turn: int | None = None
        self._said: dict[int, bytes] = dict.fromkeys(self.boards, b"")  # in the last tick
        self._sequence = 0

    def step(self, from_host: bytes = b"") -> None:
        """One tick of all boards: each hears the host, and what the others said in the tick before."""
        said = {}
        assert not (from_host and any(self._said.values())), "the host spoke while a board did"
        for node, board in self.boards.items():
            heard = from_host + b"".join(data for other, data in self._said.items() if other != node)
            assert len(heard) <= LINE
            seen = len(board.frames)
            said[node] = board.step(heard).sent
            assert not said[node] or node == self.turn, f"board {node} spoke in the turn of {self.turn}"
            if any(frame.type is MessageType.YIELD for frame in board.frames[seen:]):
                assert board.frames[-1].type is MessageType.YIELD, "something followed a YIELD"
                self.turn = None
        self._said = said

    def run(self, ticks: int) -> None:
        """Several ticks in which the host is silent."""
        for _ in range(ticks):
            self.step()

    def say(self, data: bytes) -> None:
        """The host's bytes, as many in a tick as a board takes."""
        self.run(1)  # what a board said last has passed
        for start in range(0, len(data), LINE):
            self.step(data[start : start + LINE])

    def tell(self, kind: MessageType, node: int, *, seq: int | None = None, **fields: Any) -> None:
        """Send a frame; to one of the boards it gives that the line."""
        if seq is None:
            self._sequence = seq = (self._sequence + 1) & 0xFFFF
        data = encode_frame(kind, node, seq, **fields)
        self.run(1)
        self.turn = node if node in self.boards else None
        self.say(data)

    def ask(self, kind: MessageType, node: int, *, seq: int | None = None, **fields: Any) -> list[Frame]:
        """Send a request; all the board says in its turn, without the YIELD that must end it."""
        board = self.boards[node]
        seen = len(board.frames)
        self.tell(kind, node, seq=seq, **fields)
        quiet = 0
        while self.turn is not None:
            quiet = 0 if board.last.sent else quiet + 1
            assert quiet < QUIET_TICKS, f"board {node} does not end its turn"
            self.step()
        return board.frames[seen:-1]
