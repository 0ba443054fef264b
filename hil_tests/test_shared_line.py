"""Boards on two lines that they share: the same run as on lines of their own, and stopped as surely.

In the small two boards share each line, and slowly three.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, COBOT_BUS, bench_with_program, record_wave, variation, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, open_bench
from jointbench.bench.playback import keep_alive_us
from jointbench.errors import BoardFault, BoardLost, ConfigurationDiffers
from jointbench.recording import open_run
from jointbench.testing.measured import Measured
from jointwire import State


@pytest.fixture(params=[4, pytest.param(6, marks=pytest.mark.slow)])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Four boards or six, half of them on each line."""
    text = COBOT_BUS.read_text().replace('"../virtual_bench', f'"{COBOT_BUS.parents[1]}/virtual_bench')
    if request.param == 4:
        third = 'joint = "j3"\nurl = "unix:"\nline = '
        assert f'{third}"base"' in text
        text = text.replace(f'{third}"base"', f'{third}"wrist"')
    (tmp_path / "bus.toml").write_text(text)
    modules = None if request.param == 6 else request.param
    with virtual_bench(tmp_path / "bus.toml", "ideal", seed=3, modules=modules, out=tmp_path / "sim") as path:
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        yield bench


def test_every_sample_of_every_joint_crosses_the_lines(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    nodes = tuple(board.node for board in bench.boards)
    assert [line.nodes for line in bench.lines] == [nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]]
    repeats, motion = (1, wave(bench, 0.06, 0.768)) if len(nodes) == 4 else (4, wave(bench))
    run = record_wave(bench, tmp_path / "run", repeats, motion)
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    assert run.warnings == ()
    playing = run.samples.play_tick >= 0
    np.testing.assert_array_equal(run.samples.play_tick[playing], np.arange(repeats * round(1e3 * motion.period)))
    assert run.samples.valid[playing].all()
    time = run.samples.play_tick[playing] * np.float64(run.samples.sample_period)
    q, _, _ = motion.evaluate(time % motion.period)
    measured("play.follow_error", np.abs(run.samples.motor_position[playing] - q), "rad")


@pytest.mark.slow
def test_same_seed_same_bytes(tmp_path: Path) -> None:
    digests = set()
    for attempt in ("first", "second"):
        with virtual_bench(COBOT_BUS, seed=11, out=tmp_path / attempt) as live, open_bench(live) as bench:
            bench.connect()
            bench.configure()
            bench.move_to(bench.robot.home)
            digests.add(record_wave(bench, tmp_path / f"run-{attempt}").sha256)
    assert len(digests) == 1


def test_boards_hear_of_the_host_and_are_heard_as_often_as_on_lines_of_their_own(bench: Bench, tmp_path: Path) -> None:
    last = dict.fromkeys((board.node for board in bench.boards), 0)
    longest = dict(last)

    def note(time_us, node, chunk) -> None:
        longest[node] = max(longest[node], time_us - last[node])
        last[node] = time_us

    for node in last:
        last[node] = bench.clock.now_us()
    for board in bench.boards:
        board.listen(note)
    end = bench.clock.now_us() + 1_000_000
    while (left := end - bench.clock.now_us()) > 0:
        bench.clock.wait(left)
    assert max(longest.values()) < keep_alive_us(bench.facts)
    assert min(longest.values()) > 0


def test_a_stop_in_full_motion_is_confirmed_by_all(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    stopped_us = []

    def stop(progress) -> None:
        if progress.elapsed > 0.1 and not stopped_us:
            stopped_us.append(bench.clock.now_us())
            assert bench.stop() == []
            stopped_us.append(bench.clock.now_us())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_wave(bench, tmp_path / "run", repeats=50, progress=stop)
    measured("play.stop_confirmed", (stopped_us[1] - stopped_us[0]) / 1000.0, "ms")
    for board in bench.boards:
        board.hello()
        assert board.state is State.LOADED
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()


def trip_second_board(bench: Bench, directory: Path) -> None:
    """Record a wave that its second board does not follow for long."""
    bench.boards[1].write_register("limit.following", 30)
    with pytest.raises(BoardFault, match=r"^j2 \(node 2\): tripped at tick"):
        record_wave(bench, directory, repeats=3)


def test_one_board_that_trips_stops_both_lines(bench: Bench, tmp_path: Path) -> None:
    trip_second_board(bench, tmp_path / "run")
    for board in bench.boards:
        board.hello()
    others = [State.LOADED] * (len(bench.boards) - 2)
    assert [board.state for board in bench.boards] == [State.LOADED, State.FAULT, *others]


@pytest.mark.slow
def test_a_trip_that_is_cleared_leaves_nothing_behind(bench: Bench, tmp_path: Path) -> None:
    trip_second_board(bench, tmp_path / "run")
    bench.clear()
    bench.configure()
    bench.move_to(bench.robot.home)
    assert (ledger := record_wave(bench, tmp_path / "again").ledger) is not None
    assert ledger.is_valid, ledger.text()


def test_a_board_that_dies_leaves_its_line_to_the_others(bench: Bench, live: Path, tmp_path: Path) -> None:
    pids = {board["joint"]: board["pid"] for board in tomllib.loads(live.read_text())["board"]}
    *others, last = bench.boards
    killed = []

    def kill(progress) -> None:
        if progress.samples > 2000 and not killed:
            os.kill(pids[last.joint], 9)
            killed.append(progress.samples)

    with pytest.raises(BoardLost, match=rf"^{last.joint} \(node {last.node}\): its process has ended"):
        record_wave(bench, tmp_path / "run", repeats=50, progress=kill)
    for board in others:
        board.hello()
        assert board.state is State.LOADED
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert all(board.closes for board in run.ledger.boards if board.joint != last.joint), run.ledger.text()


@pytest.mark.parametrize(
    ("like", "fact", "message"),
    [
        (COBOT, 1, r"^j3 \(node 3\): is set up for a shared line \(board\.shared_line = 1\), but is alone at '/dev"),
        (COBOT_BUS, 0, r"^j3 \(node 3\): is not set up for a shared line, but the bench file gives '/dev"),
    ],
)
def test_file_and_board_must_agree_on_the_line(tmp_path: Path, like: Path, fact: int, message: str) -> None:
    program = variation(board=f'board.facts["board.shared_line"] = {fact}')
    bench_file = bench_with_program(tmp_path, "j3", program, like)
    with (
        virtual_bench(bench_file, out=tmp_path / "sim") as live,
        open_bench(live) as bench,
        pytest.raises(ConfigurationDiffers, match=message),
    ):
        bench.connect()
