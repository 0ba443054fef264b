"""The consoles of boards at their ports, while no client moves time: mpremote and terminals need none."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from hil_tests.virtual_bench.board import Board
from hil_tests.virtual_bench.errors import BoardDied
from hil_tests.virtual_bench.qemu_board import QemuBoard
from hil_tests.virtual_bench.rp2040.board import Rp2040Board
from hil_tests.virtual_bench.serial_link import SerialLink

_MOST = 4096  # bytes at a time
_FULL_PORT = 0.005  # [s] of the wall clock until a port is tried again whose reader is slower than the console
_STEP_NS = 1_000_000  # that a chip runs at a time
_SILENT_STEPS = 3000  # after which it stands again: it erases, hashes and starts within that
_LEAVING_STEPS = 100  # in which a program ends that was asked to, before anything is typed


class Consoles:
    """Carries bytes between ports and consoles, both ways; only boards at their prompt are typed to.

    The line of a chip is its UART, whatever runs on it. It runs by itself from the first byte until all is silent; the
    plant and other boards stand meanwhile.
    """

    def __init__(self, boards: Mapping[int, Board], links: Iterable[SerialLink]) -> None:
        """Know each board by the link it is on."""
        self._boards: list[tuple[SerialLink, list[QemuBoard]]] = []
        self._chips: list[tuple[SerialLink, Rp2040Board]] = []
        for link in links:
            all_on_link = dict.fromkeys(boards[node] for node in link.nodes)  # a board once, however many motors it has
            on_link = [board for board in all_on_link if isinstance(board, QemuBoard)]
            if on_link:
                self._boards.append((link, on_link))
            self._chips += [(link, board) for board in all_on_link if isinstance(board, Rp2040Board)]
        self._used: set[str] = set()
        self._steps_left: dict[str, int] = {}  # of chips that run, by their links

    def sources(self) -> list[Any]:
        """What to wait on for reading; a silent console may still change to its prompt, which it then says."""
        waited: list[Any] = [link.port for link, _ in self._chips]
        for link, boards in self._boards:
            waited += [board.console for board in boards if board.death is None and not link.port.waiting]
            waited += [link.port] if any(board.at_prompt for board in boards) else []
        return waited

    @property
    def timeout(self) -> float | None:
        """How long to wait at most [s]."""
        if any(self._steps_left.get(link.key) and not link.port.waiting for link, _ in self._chips):
            return 0.0
        links = [link for link, _ in [*self._boards, *self._chips]]
        return _FULL_PORT if any(link.port.waiting for link in links) else None

    def carry(self, ready: list[Any]) -> None:
        """Carry what is there, given the sources that can be read."""
        for link, boards in self._boards:
            port = link.port
            typed = _typed(link) if port in ready else b""
            for board in boards:
                with contextlib.suppress(BoardDied):  # told with the next answer to a client
                    if typed and board.at_prompt:
                        board.type(typed)
                    if board.console in ready:
                        port.put(board.hear(_MOST))
                        self._used.add(link.key)
            if port.waiting:
                port.put(b"")
        for link, chip in self._chips:
            with contextlib.suppress(BoardDied):
                self._run(link, chip, _typed(link) if link.port in ready else b"")

    def forget(self) -> None:
        """Let the next client find its ports empty."""
        for link, _ in [*self._boards, *self._chips]:
            if link.key in self._used:
                link.restart()
        self._used.clear()
        self._steps_left.clear()

    def _run(self, link: SerialLink, chip: Rp2040Board, typed: bytes) -> None:
        """Let a chip run on where it is typed to, or not yet silent."""
        left = self._steps_left.get(link.key, 0)
        if link.port.waiting:
            link.port.put(b"")
        if chip.death or (not typed and (not left or link.port.waiting)):
            self._steps_left[link.key] = 0 if chip.death else left
            return
        said = b""
        if link.key not in self._used:
            self._used.add(link.key)
            said = chip.run_alone(_LEAVING_STEPS * _STEP_NS)
        said += chip.run_alone(_STEP_NS, typed)
        self._steps_left[link.key] = _SILENT_STEPS if typed or said else left - 1
        link.port.put(said)


def _typed(link: SerialLink) -> bytes:
    """What was written to a port."""
    link.port.take()
    return link.port.release(link.port.taken)
