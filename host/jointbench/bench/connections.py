"""Everything between the host and the boards of a bench file, opened: ports, lines, one clock, boards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jointbench.bench.bench_file import BenchFile, BoardEntry
from jointbench.bench.board import Board
from jointbench.bench.clock import AttendedClock, Clock, LockstepClock, WallClock
from jointbench.bench.feed import release_watcher
from jointbench.bench.line import Line, Port
from jointbench.bench.shared_line import SharedLine
from jointbench.errors import BenchLost, BoardLost


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
