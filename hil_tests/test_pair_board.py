"""A board with two motors on a wire that it shares with another board: each node has its turn, and nothing is lost."""

from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import record_wave, wave
from hil_tests.test_safety_pair import PAIR, write_pair
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench
from jointbench.testing.measured import Measured

_WITH_THE_THIRD = f'{PAIR}line = "base"\n[[board]]\nnode = 9\njoint = "j3"\nurl = "unix:"\nline = "base"\n'


@pytest.mark.slow
@pytest.mark.both_boards
def test_two_nodes_of_a_board_and_one_of_another_share_a_wire(
    tmp_path: Path, emulator: str, measured: Measured
) -> None:
    path = write_pair(tmp_path, _WITH_THE_THIRD, alone=(4, 5, 6))
    with virtual_bench(path, plant="ideal", seed=3, out=tmp_path / "sim", board=emulator) as live:
        with open_bench(live) as bench:
            bench.connect()
            bench.configure()
            bench.move_to(bench.robot.home)
            assert [line.nodes for line in bench.lines] == [(1, 2, 9), (4,), (5,), (6,)]
            run = record_wave(bench, tmp_path / "run", repeats=2)
        q, _, _ = wave(bench).evaluate(np.arange(1024) * np.float64(1e-3))
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    measured("play.start_apart", run.start_skew, "ticks")
    playing = run.samples.play_tick >= 0
    assert run.samples.valid[playing].all()
    error = run.samples.motor_position[playing] - np.tile(q, (2, 1))
    measured("play.follow_error", np.abs(error), "rad")
