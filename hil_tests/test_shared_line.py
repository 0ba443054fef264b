"""Boards on lines that they share, and whole benches behind fault:// lines.

In the small two boards share each line, and slowly three.

All is in virtual time and seeded, so each of these runs has the same faults at the same bytes every time.
"""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import (
    COBOT,
    COBOT_BUS,
    bench_with_program,
    get_ready,
    ready_bench,
    record_wave,
    ripple,
    variation,
    wave,
)
from hil_tests.test_safety_pair import PAIR, write_pair
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, BoardLedger, open_bench
from jointbench.bench.conversation import RETRANSMISSIONS
from jointbench.bench.playback import keep_alive_us
from jointbench.errors import BoardFault, BoardLost, BoardRefused, BoardSilent
from jointbench.recording import open_run
from jointbench.testing.requirements import Measured
from jointwire import State, Trip


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
    with ready_bench(live) as bench:
        yield bench


def test_every_sample_of_every_joint_crosses_the_lines(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    nodes = tuple(board.node for board in bench.boards)
    assert [line.nodes for line in bench.lines] == [nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]]
    repeats, motion = (1, wave(bench, 0.03, 0.512)) if len(nodes) == 4 else (4, wave(bench))
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
        with virtual_bench(COBOT_BUS, seed=11, out=tmp_path / attempt) as live, ready_bench(live) as bench:
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
        pytest.raises(BoardRefused, match=message),
    ):
        bench.connect()


_WITH_THE_THIRD = f'{PAIR}line = "base"\n[[board]]\nnode = 9\njoint = "j3"\nurl = "unix:"\nline = "base"\n'


@pytest.mark.slow
@pytest.mark.both_boards
def test_two_nodes_of_a_board_and_one_of_another_share_a_wire(
    tmp_path: Path, emulator: str, measured: Measured
) -> None:
    path = write_pair(tmp_path, _WITH_THE_THIRD, alone=(4, 5, 6))
    with virtual_bench(path, plant="ideal", seed=3, out=tmp_path / "sim", board=emulator) as live:
        with ready_bench(live) as bench:
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


# Within a motion of three seconds: after the recording's first STATUS, before its last.
WHILE_MOVING = "from:1.3s,until:3.5s"
LINK_TIMEOUT_MS = 500  # the boards' default


@contextmanager
def faulty_bench(folder: Path, options: str, file: Path = COBOT, modules: int | None = None) -> Generator[Bench]:
    """A bench, not yet connected, each of whose lines has these faults by a seed of its own."""
    with virtual_bench(file, plant="ideal", seed=3, modules=modules, out=folder / "sim") as live:
        text, ports = live.read_text(), {}

        def damaged(url: re.Match[str]) -> str:
            return f'url = "fault://seed={ports.setdefault(url[1], len(ports) + 1)}&{options};{url[1]}"'

        path = live.with_name("faulty.toml")
        path.write_text(re.sub(r'url = "(.*)"', damaged, text))
        with open_bench(path) as bench:
            yield bench


def nothing_lost(board: BoardLedger, struck: int) -> bool:
    return board.frames_lost == board.samples_lost == board.duplicates == 0


def as_many_vanished(board: BoardLedger, struck: int) -> bool:
    return (board.frames_damaged, board.frames_vanished) == (0, struck)


def as_many_duplicates(board: BoardLedger, struck: int) -> bool:
    return board.frames_lost == board.samples_lost == 0 and board.duplicates == struck


def one_or_two_frames_each(board: BoardLedger, struck: int) -> bool:
    """The frame that lost its end, and the next, which then has no delimiter before it."""
    return struck <= board.frames_lost <= 2 * struck


def at_most_two_frames_each(board: BoardLedger, struck: int) -> bool:
    """One frame, two where a delimiter is hit, none more where a frame is hit twice."""
    return (struck > 0) <= board.frames_lost <= 2 * struck


def at_most_four_frames_each(board: BoardLedger, struck: int) -> bool:
    """A burst of 32 bytes may reach over a frame as short as a PONG into the next, and make delimiters of its own."""
    return (struck > 0) <= board.frames_lost <= 4 * struck


@pytest.mark.parametrize(
    ("fault", "accounted"),
    [
        (f"drop=2e-4,{WHILE_MOVING}", at_most_two_frames_each),
        (f"flip=2e-4,{WHILE_MOVING}", at_most_two_frames_each),
        (f"baud=1e-4,{WHILE_MOVING}", at_most_four_frames_each),
        (f"lose=0.05,{WHILE_MOVING}", as_many_vanished),
        (f"truncate=0.05,{WHILE_MOVING}", one_or_two_frames_each),
        (f"duplicate=0.1,{WHILE_MOVING}", as_many_duplicates),
        (f"reorder=0.1,{WHILE_MOVING}", nothing_lost),
        (f"delay=0.3,for:1ms..30ms,{WHILE_MOVING}", nothing_lost),
        ("stall=every:0.7s,for:0.1s", nothing_lost),
    ],
    ids=lambda value: value.partition("=")[0] if isinstance(value, str) else "",
)
@pytest.mark.slow
def test_each_fault_is_accounted_to_the_frame_and_the_sample(tmp_path: Path, fault: str, accounted) -> None:
    with faulty_bench(tmp_path, fault) as bench:
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run", repeats=3)
        assert run.ledger is not None
        assert run.ledger.closes, run.ledger.text()
        name = fault.partition("=")[0]
        total = Counter[str]()
        for index, (board, ledger) in enumerate(zip(bench.boards, run.ledger.boards, strict=True)):
            total.update(board.port.faults)
            assert accounted(ledger, board.port.faults[f"rx.{name}"]), run.ledger.text()
            assert ledger.samples_taken == ledger.samples_received + ledger.samples_lost
            assert run.samples.valid[:, index].sum() == ledger.samples_received
        assert total[f"rx.{name}"] > 0
        assert run.ledger.is_valid == (run.ledger.samples_lost == 0)


@pytest.mark.slow
def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    def recorded(name: str) -> bytes:
        with faulty_bench(tmp_path / name, "flip=1e-4&lose=0.02&delay=0.2,for:1ms..9ms") as bench:
            get_ready(bench)
            record_wave(bench, tmp_path / name / "run")
        return (tmp_path / name / "run" / "frames.bin").read_bytes()

    assert recorded("one") == recorded("two")


def test_the_run_says_through_what_it_was_recorded(tmp_path: Path) -> None:
    with faulty_bench(tmp_path, "rx.lose=0.01", modules=2) as bench:
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run", motion=ripple(bench))
    for number, board in enumerate(run.provenance["board"], start=1):
        assert board["url"].startswith(f"fault://seed={number}&rx.lose=0.01;/dev/")


@pytest.mark.parametrize("file", [COBOT, COBOT_BUS], ids=["ports", "bus"])
@pytest.mark.slow
def test_commands_get_through_within_their_retransmissions(tmp_path: Path, file: Path) -> None:
    """Frames lost, damaged, doubled and late both ways, from the first HELLO to the last STOP."""
    options = "lose=0.03&flip=1e-4&duplicate=0.03&delay=0.1,for:1ms..20ms"
    with faulty_bench(tmp_path, options, file) as bench:
        sent: Counter[tuple[str, bytes]] = Counter()
        for line in bench.lines:

            def write(data: bytes, port=line.port.key, write=line.port.write) -> None:
                sent[port, data] += 1
                write(data)

            line.port.write = write
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run")
        assert bench.stop() == []
        assert 1 < max(sent.values()) <= 1 + RETRANSMISSIONS
        struck = sum((Counter(line.port.faults) for line in bench.lines), Counter())
        assert set(struck) == set(bench.lines[0].port.faults)  # each fault, both ways
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()


@pytest.mark.parametrize("modules", [2, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", ["stall", "tx.stall", pytest.param("reset", marks=pytest.mark.slow)])
def test_no_motor_stays_on_behind_a_line_that_is_dead(tmp_path: Path, fault: str, modules: int | None) -> None:
    """Boards that hear nothing for their link time-out switch off by themselves, whatever the host can still do."""
    with faulty_bench(tmp_path, f"{fault}=at:1.4s,for:0.7s", modules=modules) as bench:  # in full motion
        get_ready(bench)
        with pytest.raises((BoardFault, BoardSilent)):
            record_wave(bench, tmp_path / "run", repeats=50)
        while (left := 2_200_000 - bench.clock.now_us()) > 0:  # what was held comes now
            bench.clock.wait(left)
        for board in bench.boards:
            board.hello()
            assert board.state is State.FAULT
        status = [board.fault for board in bench.boards if board.fault]
        if fault != "reset":  # which loses what the boards say meanwhile
            assert len(status) == len(bench.boards)
        for body in status:
            assert body.trip == Trip.LINK_LOSS
            # The last valid frame came before 1.4 s; a virtual bench's tick is its millisecond.
            assert body.tick <= 1400 + LINK_TIMEOUT_MS + 1
        bench.clear()
        bench.connect()
        bench.configure()
        run = record_wave(bench, tmp_path / "again", motion=ripple(bench))
        assert run.ledger is not None
        assert run.ledger.is_valid, run.ledger.text()


def test_a_short_break_of_all_lines_is_survived(tmp_path: Path) -> None:
    with faulty_bench(tmp_path, "reset=at:2s,for:0.1s", modules=2) as bench:
        get_ready(bench)
        run = record_wave(bench, tmp_path / "run", repeats=2)
        assert run.ledger is not None
        assert run.ledger.closes, run.ledger.text()
        for board in run.ledger.boards:
            assert board.frames_lost >= 1
            # A tenth of a second, the block that was cut, and one that the cut one's rest has spoilt: 64 ms each.
            assert 0 < board.samples_lost <= 100 + 3 * 64
