"""A running board for a test, ended with it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firmware.tests.driver import BoardProcess, flash

StartBoard = Callable[..., BoardProcess]


@pytest.fixture
def start_board(tmp_path: Path) -> Iterator[StartBoard]:
    """Function that flashes and starts a board: start_board(facts=…, program=…, sim_joint=…)."""
    started: list[BoardProcess] = []

    def start(
        facts: dict[str, int] | None = None, program: str | None = None, sim_joint: dict[str, float] | None = None
    ) -> BoardProcess:
        folder = tmp_path / f"board{len(started)}"
        folder.mkdir()
        flash(folder, facts, program, sim_joint=sim_joint)
        started.append(BoardProcess(folder))
        started[-1].run(1)
        return started[-1]

    yield start
    for board in started:
        board.close()


@pytest.fixture
def board(start_board: StartBoard) -> BoardProcess:
    """A board with the firmware as it is, one tick after boot."""
    return start_board()
