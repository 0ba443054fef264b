"""A board with two motors: whatever ends one of them takes the other's power in the same tick, on both kinds of boards.

Joints that nothing couples show it as well as coupled ones: the guard is the board's.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hil_tests.link_helpers import ask_bench, get_ready, inject, record_wave, wave
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, open_bench, trajectory_knots
from jointbench.errors import BoardFault, BoardLost, BoardSilent
from jointbench.testing.requirements import Measured
from jointwire import State, Trip

PAIR = """version = 1
name = "pair"
robot = "cobot6"
plant = "{plant}"
[[board]]
nodes = [1, 2]
joints = ["j1", "j2"]
url = "unix:"
"""
_ALONE = '[[board]]\nnode = {node}\njoint = "j{node}"\nurl = "unix:"\n'


def write_pair(folder: Path, text: str = PAIR, alone: tuple[int, ...] = (3, 4, 5, 6)) -> Path:
    """A bench file of the arm whose first two joints share a board; `alone` have one each."""
    path = folder / "pair.toml"
    others = "".join(_ALONE.format(node=node) for node in alone)
    path.write_text(text.format(plant=COBOT6_PLANT) + others, encoding="utf-8")
    return path


@pytest.fixture
def bench(tmp_path: Path, emulator: str) -> Iterator[Bench]:
    with (
        virtual_bench(
            write_pair(tmp_path), plant="ideal", seed=3, out=tmp_path / "sim", board=emulator, modules=3
        ) as live,
        open_bench(live) as bench,
    ):
        get_ready(bench)
        yield bench


def outputs(bench: Bench, node: int) -> dict[int, tuple[int, int]]:
    """Enable and command [mA] of a motor by tick, since this was last asked."""
    return {tick: (enable, command) for tick, enable, command in ask_bench(bench, {"outputs": node})["outputs"]}


def last_driven(bench: Bench, node: int) -> int:
    """The last tick in which the motor had power or was asked for current; the trace goes on beyond it."""
    noted = outputs(bench, node)
    last = max(tick for tick, pair in noted.items() if pair != (0, 0))
    assert last < max(noted)
    return last


def play_until(bench: Bench, folder: Path, strike: Any) -> None:
    """Play for long; trace the motors, and a while later strike."""
    begun: list[float] = []

    def progress(report: Any) -> None:
        if not begun:
            for node in (1, 2):
                outputs(bench, node)
            begun.append(report.elapsed)
        elif len(begun) == 1 and report.elapsed > begun[0] + 0.3:
            begun.append(report.elapsed)
            strike()

    record_wave(bench, folder / "run", repeats=20, progress=progress)


@pytest.mark.both_boards
def test_what_strikes_one_motor_takes_both(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    with pytest.raises(BoardFault, match=r"^j2 \(node 2\): tripped at tick \d+, motor encoder jumped"):
        play_until(bench, tmp_path, lambda: inject(bench, "encoder_jump", 2, counts=9000))
    bench.clock.wait(20_000)
    measured("safety.partner", last_driven(bench, 1) - last_driven(bench, 2))
    struck, partner = bench.boards[1].fault, bench.boards[0]
    partner.hello()
    assert struck is not None
    assert partner.fault is not None
    assert Trip(struck.trip) is Trip.ENCODER_JUMP
    assert (Trip(partner.fault.trip), partner.fault.value) == (Trip.PARTNER, Trip.ENCODER_JUMP)
    assert struck.tick == partner.fault.tick


@pytest.mark.slow
@pytest.mark.both_boards
def test_a_silent_motor_takes_both_and_is_named(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    with pytest.raises(BoardSilent, match=r"^j1 \(node 1\): "):
        play_until(bench, tmp_path, lambda: inject(bench, "motor_silent", 1))
    bench.clock.wait(20_000)
    measured("safety.partner", last_driven(bench, 1) - last_driven(bench, 2))
    bench.boards[1].hello()
    assert not bench.boards[1].is_driving


def test_a_pair_that_was_left_driving_is_stopped_without_a_fault(bench: Bench) -> None:
    knots = trajectory_knots(wave(bench), bench.robot, bench.facts)
    for board, own in zip(bench.boards[:2], knots, strict=False):
        board.upload(own, repeats=1)
    for board in bench.boards[:2]:
        board.arm()
    assert all(board.is_driving for board in bench.boards[:2])
    bench.connect()
    for board in bench.boards[:2]:
        board.hello()
        assert board.state is State.LOADED


def test_a_board_that_dies_is_both_motors_end(bench: Bench, tmp_path: Path) -> None:
    entries = tomllib.loads((tmp_path / "sim" / "bench.toml").read_text())["board"]
    assert [entry["node"] for entry in entries if entry["url"] == entries[0]["url"]] == [1, 2]
    assert entries[0]["pid"] == entries[1]["pid"] != entries[2]["pid"]
    with pytest.raises(BoardLost, match=r"^j[12] \(node [12]\): its process has ended"):
        play_until(bench, tmp_path, lambda: os.kill(entries[1]["pid"], 9))
    assert last_driven(bench, 1) == last_driven(bench, 2)
    for board in bench.boards[2:]:
        board.hello()
        assert board.state is State.LOADED
