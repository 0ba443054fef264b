"""Everything between the host and the boards of a bench file, opened: ports, lines, one clock, boards.

A line may be shared by several boards, half duplex: one of them speaks at a time, when the host has spoken to it.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jointbench.bench.bench_file import BenchFile, BoardEntry
from jointbench.bench.board import Board
from jointbench.bench.clock import AttendedClock, Clock, LockstepClock, WallClock
from jointbench.bench.feed import release_watcher
from jointbench.bench.identity import Facts
from jointbench.bench.line import NEVER, Line, Port
from jointbench.errors import BenchLost, BoardLost, FileError
from jointwire import BODIES, CHANNELS, Chunk, Frame, MessageType, encode_frame

# Of each board while nobody asks it anything: what waits in its transmit buffer comes out, and it hears of the host.
POLL_US = 90_000
# Rounds of polls begin up to this much late, seeded: at no fixed phase of boards' ticks, their clocks are seen better.
DITHER_US = 5_000
# A board that has the line and is not heard for so long has not understood or is not there. Above the 16 ms for which
# common USB adapters hold received bytes back, far below the 240 ms of samples that a transmit buffer holds.
QUIET_US = 40_000
_TRANSMIT_BUFFER = 4096  # [bytes] of a board that has not been greeted yet
BITS = 10  # of a byte on the line, with start and stop
_MARGIN = 1.5  # boards hand their bytes to the line tick by tick, and it need not be full in each
# The rest is silence between words: boards answer in their next tick, and adapters take their time.
USABLE = 0.9


@dataclass
class _Turn:
    node: int
    quiet_us: int  # it is over when nothing was heard until then
    latest_us: int  # it is over then, whatever is heard


class SharedLine(Line):
    """Turns: a request gives its board the line until it says YIELD, or until its time is up; then the next one.

    Requests come first, in their order; with none waiting, the greeted boards are polled one after the other by a PING
    each, every `POLL_US`. All lines begin their rounds at the same times, and between them nobody has to turn to any.
    """

    def __init__(self, port: Port, clock: Clock, baud: int) -> None:
        """Listen at the port; nothing is sent."""
        super().__init__(port, clock)
        self._byte_us = 1e6 * BITS / baud
        self._requests: deque[tuple[int, bytes]] = deque()
        self._turn: _Turn | None = None
        self._buffers = dict.fromkeys(self.nodes, _TRANSMIT_BUFFER)
        self._greeted: dict[int, None] = {}  # in their order
        self._round: deque[int] = deque()  # to be polled still
        self._round_us = NEVER  # when the next round begins

    @property
    def patience_us(self) -> int:
        """Everybody else may speak first, and the board say what it had to say before."""
        return sum(self._longest_us(node) for node in self.nodes)

    def send(self, node: int, frame: bytes) -> None:
        """Send a frame to a node as soon as the line is free; one that waits already is not sent twice."""
        if (node, frame) not in self._requests:
            self._requests.append((node, frame))
        self._begin_turn()

    def stop_all(self) -> None:
        """Send STOP to every board this instant, even if it collides; nothing that waited is sent any more."""
        self._requests.clear()
        super().stop_all()

    def keep_alive(self, node: int) -> None:
        """Nothing to do: polls do it."""

    def attend(self, node: int, transmit_buffer: int) -> None:
        """Poll this node from now on."""
        self._buffers[node] = transmit_buffer
        if not self._greeted:
            self._plan_round()
        self._greeted[node] = None

    def due_us(self) -> int:
        """Latest end of the turn, or begin of the next poll [µs]."""
        if self.port.lost:
            return NEVER
        if self._turn:
            return min(self._turn.quiet_us, self._turn.latest_us)
        return self.clock.now_us() if self._requests or self._round else self._round_us

    def serve(self) -> None:
        """End a turn whose time is up, and begin the next one when the line is free."""
        if self._turn and self.clock.now_us() >= min(self._turn.quiet_us, self._turn.latest_us):
            self._turn = None
        self._begin_turn()

    def _begin_turn(self) -> None:
        if self._turn or self.port.lost:
            return
        if self._requests:
            self._give_turn(*self._requests.popleft())
            return
        if not self._round and self._round_us <= self.clock.now_us():
            self._round.extend(node for node in self._greeted if not self.port.why_lost(node))
            self._plan_round()
        if self._round:
            node = self._round.popleft()
            self._give_turn(node, self._members[node].ping_frame())

    def _give_turn(self, node: int, frame: bytes) -> None:
        self.speaker = node
        sent_us = self.clock.now_us() + round(len(frame) * self._byte_us)
        self._turn = _Turn(node, sent_us + QUIET_US, sent_us + self._longest_us(node))
        self.port.write(frame)

    def _plan_round(self) -> None:
        number = self.clock.now_us() // POLL_US + 1
        self._round_us = number * POLL_US + random.Random(number).randrange(DITHER_US)

    def _longest_us(self, node: int) -> int:
        """Time in which a board says all that it had to say when its turn began."""
        return QUIET_US + round(_MARGIN * self._buffers[node] * self._byte_us)

    def _receive(self, data: bytes, time_us: int) -> None:
        if self._turn:
            self._turn.quiet_us = time_us + QUIET_US
        super()._receive(data, time_us)

    def _heard(self, time_us: int, chunk: Chunk) -> None:
        match chunk.content:
            case Frame(type=MessageType.YIELD, node=node) if self._turn and node == self._turn.node:
                self._turn = None
            case _:
                pass


def check_load(entries: Iterable[BoardEntry], facts: Iterable[Facts]) -> None:
    """Refuse a line that cannot carry what its boards will stream.

    Raises:
        FileError: says what is needed and what the line carries.
    """
    entries = tuple(entries)
    needed = sum(bytes_per_second(board_facts) for board_facts in facts)
    carried = entries[0].baud / BITS
    if needed > USABLE * carried:
        joints = ", ".join(entry.joint for entry in entries)
        raise FileError(
            f"line {entries[0].url!r} of {joints}: its boards stream {needed / 1e3:.1f} kB/s, {entries[0].baud} baud "
            f"carry {carried / 1e3:.1f} kB/s, of which {USABLE:.0%} are usable; raise the baud rate of boards and "
            "file, or give some of them another line"
        )


def bytes_per_second(facts: Facts) -> float:
    """Bytes per second of a board that streams: its DATA, and its turns."""
    registers = facts.registers
    tick = 0.0
    for channel in CHANNELS:
        if registers["stream.channels"] >> channel.bit & 1:
            size = struct.calcsize(f"<{channel.format}")
            tick += size / (1 << registers[f"stream.every_{channel.kind.name.lower()}"])
    ticks = registers["stream.block"]
    body = b"\1" * (BODIES[MessageType.DATA].sizeof() + round(ticks * tick))  # without zeros COBS is longest
    block = len(encode_frame(MessageType.DATA, 0, 0, payload=body))
    turn = sum(len(frame) for frame in (
        encode_frame(MessageType.PING, 0, 0, nonce=0),
        encode_frame(MessageType.PONG, 0, 0, nonce=0, tick=0),
        encode_frame(MessageType.YIELD, 0, 0),
    ))  # fmt: skip
    return block / (ticks * facts.tick_period) + turn / (POLL_US * 1e-6)


class Connections:
    """The boards of a bench file behind one clock; nothing is sent to them yet.

    Attributes:
        clock: the target's time.
        lines: in the order of the file.
        boards: by joint.
        unopened: of joints whose port could not be opened, why.
    """

    def __init__(
        self,
        file: BenchFile,
        whole: bool = True,
        around: Callable[[Clock], Clock] | None = None,
        watching: bool = False,
    ) -> None:
        """Open ports and clock; a program that only watches the bench gives them back.

        Args:
            file: where the boards are.
            whole: whether one port that cannot be opened is an error; otherwise `unopened` tells.
            around: makes the clock that everybody waits on from that of the bench.
            watching: whether this only watches, too, and lets another watcher have the bench.

        Raises:
            BoardLost: a port cannot be opened.
            BenchLost: the virtual bench does not answer.
        """
        if not watching:
            release_watcher(file)
        self.unopened: dict[str, BoardLost] = {}
        self.boards: dict[str, Board] = {}
        opened: list[tuple[Port, Sequence[BoardEntry]]] = []
        self._ports: list[Port] = []
        try:
            for entries in file.lines:
                try:
                    self._ports.append(Port(entries))
                except BoardLost as error:
                    if whole:
                        raise
                    self.unopened |= {entry.joint: BoardLost(entry.joint, entry.node, error.text) for entry in entries}
                    continue
                if watching:
                    self._ports[-1].announce(watching=True)
                opened.append((self._ports[-1], entries))
            clock: Clock = (
                LockstepClock(file.control, self._ports, file.common_ticks) if file.control else WallClock(self._ports)
            )
        except BaseException:
            self._close_ports()
            raise
        self._bench_clock = clock
        self.lines: tuple[Line, ...] = tuple(_line(port, clock, entries) for port, entries in opened)
        shared = [line for line in self.lines if len(line.nodes) > 1]
        attended: Clock = AttendedClock(clock, shared) if shared else clock
        self.clock: Clock = around(attended) if around else attended
        for line, (port, entries) in zip(self.lines, opened, strict=True):
            for entry in entries:
                self.boards[entry.joint] = Board(port, self.clock, entry.node, line, file.how_to_update(entry))

    def restart(self, node: int) -> None:
        """Take an emulated board's power and give it back.

        Raises:
            BenchLost: the boards are not those of a virtual bench in virtual time, or the board does not start.
        """
        if not isinstance(self._bench_clock, LockstepClock):
            raise BenchLost("only a virtual bench in virtual time can take a board's power; do it by hand")
        self._bench_clock.restart(node)

    def close(self) -> None:
        """Close clock and ports; closing twice is harmless."""
        self.clock.close()
        self._close_ports()

    def _close_ports(self) -> None:
        for port in self._ports:
            port.close()


def _line(port: Port, clock: Clock, entries: Sequence[BoardEntry]) -> Line:
    return SharedLine(port, clock, entries[0].baud) if len(entries) > 1 else Line(port, clock)
