"""One board program with two motors, as a line of two nodes (shared_line.py), tick by tick."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

from firmware.tests.driver import NODE, BoardProcess, Outputs, flash
from firmware.tests.shared_line import SharedLine
from jointwire import Frame, MessageType

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
        self.boards = pair.motors  # type: ignore[assignment]

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
