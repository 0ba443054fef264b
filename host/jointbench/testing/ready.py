"""Boards as a test wants to find them: greeted, their motors off, no fault latched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jointbench.link import Board


def make_ready(file: Path) -> tuple[Board, ...]:
    """Greet every board of a live bench file, stop those that may drive, and acknowledge latched faults.

    Returns:
        The boards, as they answered; their ports are closed again.

    Raises:
        BoardLost, BoardSilent: a board is gone or does not answer.
        SchemaMismatch: a board's firmware is another release's.
        BenchFileError, BenchLost: the bench cannot be opened.
    """
    from jointbench.link import open_bench  # brings numpy and more: only to runs with a bench
    from jointwire import State

    with open_bench(file) as bench:
        for board in bench.all_boards:
            board.greet()
            if board.is_driving:
                board.line.stop_all()  # of a board's two motors, one that is stopped alone trips the other
                board.stop()
            board.need_our_schema()
        for board in bench.all_boards:
            board.hello()
            if board.state is State.FAULT:
                board.clear()
        return bench.all_boards
