"""Boards on one half-duplex wire, tick by tick: what anyone says, all others hear; who speaks out of turn fails.

One board with two motors is a line of two nodes.
"""

import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from firmware.tests.driver import LINE, NODE, BoardProcess, Outputs, flash
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


PARTNER = 9
SHARED = {"board.shared_line": 1}
GREETING = struct.pack("<4I", 0x4A420004, 256, 0, 0)


class Motor:
    """One of the motors: its sensors, and what its node has said."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.motor_count = self.link_count = self.current = self.torque = self.motor_edge = 0
        self.trajectory = 0  # of the last upload
        self.frames: list[Frame] = []
        self.last = Outputs(0, 0, 0, b"")
        self.plant: Callable[[Outputs], int] | None = None  # motor count at the next tick


class PairProcess(BoardProcess):
    """The board: `motors` by node, and `frames` of both in the order they came."""

    GREETING = GREETING
    HEAP = "256k"

    def __init__(self, folder: Path) -> None:
        self.motors = {node: Motor(node) for node in (NODE, PARTNER)}
        self.node = NODE
        super().__init__(folder)

    @property
    def trajectory(self) -> int:
        """Of the last upload to `node`."""
        return self.motors[self.node].trajectory

    @trajectory.setter
    def trajectory(self, crc: int) -> None:
        self.motors[self.node].trajectory = crc

    def step(self, received: bytes = b"") -> Outputs:
        """One tick of both motors; the outputs are the first one's, with all that the line says."""
        records = b""
        for motor in self.motors.values():
            for name in ("motor_count", "link_count", "current", "torque", "motor_edge"):
                setattr(self, name, getattr(motor, name))
            records += self._inputs(b"" if records else received)[:128]
        os.write(self._to_board, records + received)
        words = struct.unpack("<8i", self._read(32))
        self.last = Outputs(*words[:3], self._read(words[3]))
        seen = len(self.frames)
        self._take(self.last.sent)
        for k, motor in enumerate(self.motors.values()):
            motor.frames += [frame for frame in self.frames[seen:] if frame.node == motor.node]
            said = self.last.sent if any(frame.node == motor.node for frame in self.frames[seen:]) else b""
            motor.last = Outputs(*words[4 * k : 4 * k + 3], said)
            if motor.plant:
                motor.motor_count = motor.plant(motor.last)
        assert {words[0], words[4]} == {self.tick}
        self.tick += 1
        return self.last

    def end_turn(self) -> None:
        """Tick until the node that was asked has given the line back."""
        while self.frames[-1].type is not MessageType.YIELD:
            self.run(1)


class PairLine(SharedLine):
    """The board's line as if two boards shared it."""

    def __init__(self, pair: PairProcess) -> None:
        super().__init__([])
        self.pair = pair
        self.boards = pair.motors  # type: ignore[assignment] - motors of one process stand for boards

    def step(self, from_host: bytes = b"") -> None:
        """One tick: both nodes hear the host."""
        seen = len(self.pair.frames)
        sent = self.pair.step(from_host).sent
        assert not sent or self.turn is not None, "a node spoke out of turn"
        for frame in self.pair.frames[seen:]:
            assert frame.node == self.turn, f"node {frame.node} spoke in the turn of {self.turn}"
            if frame.type is MessageType.YIELD:
                self.turn = None


def flash_pair(folder: Path, program: str | None = None, facts: dict[str, int] | None = None) -> None:
    """Write the folder of a board with two motors that have equal facts."""
    facts = SHARED | (facts or {})
    flash(folder, facts, program, partner={"node": PARTNER, "facts": facts})
