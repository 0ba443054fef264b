"""The consoles of QEMU boards at their ports, while no client moves time: mpremote and terminals need none."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from hil_tests.virtual_bench.board import Board
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.qemu_board import QemuBoard
from hil_tests.virtual_bench.serial_link import SerialLink

_MOST = 4096  # bytes at a time
_FULL_PORT = 0.005  # [s] of the wall clock until a port is tried again whose reader is slower than the console


class Consoles:
    """Carries bytes between ports and consoles, both ways; only boards at their prompt are typed to."""

    def __init__(self, boards: Mapping[int, Board], links: Iterable[SerialLink]) -> None:
        """Know each QEMU board by the link it is on."""
        self._boards: list[tuple[SerialLink, list[QemuBoard]]] = []
        for link in links:
            all_on_link = dict.fromkeys(boards[node] for node in link.nodes)  # a board once, however many motors it has
            on_link = [board for board in all_on_link if isinstance(board, QemuBoard)]
            if on_link:
                self._boards.append((link, on_link))
        self._used: set[str] = set()

    def sources(self) -> list[Any]:
        """What to wait on for reading; a silent console may still change to its prompt, which it then says."""
        waited: list[Any] = []
        for link, boards in self._boards:
            waited += [board.console for board in boards if board.death is None and not link.port.waiting]
            waited += [link.port] if any(board.at_prompt for board in boards) else []
        return waited

    @property
    def timeout(self) -> float | None:
        """How long to wait at most [s]."""
        return _FULL_PORT if any(link.port.waiting for link, _ in self._boards) else None

    def carry(self, ready: list[Any]) -> None:
        """Carry what is there, given the sources that can be read."""
        for link, boards in self._boards:
            port = link.port
            typed = b""
            if port in ready:
                port.take()
                typed = port.release(port.taken)
            for board in boards:
                with contextlib.suppress(BoardDied):  # told with the next answer to a client
                    if typed and board.at_prompt:
                        board.type(typed)
                    if board.console in ready:
                        port.put(board.hear(_MOST))
                        self._used.add(link.key)
            if port.waiting:
                port.put(b"")

    def forget(self) -> None:
        """Let the next client find its ports empty."""
        for link, _ in self._boards:
            if link.key in self._used:
                link.restart()
        self._used.clear()
