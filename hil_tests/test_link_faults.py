"""Boards that are broken or gone, a recorder that is killed, a full disk: a clear error, motors off, nothing lost."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, bench_with_program, inject, ready_bench, record_wave, ripple, variation, wave
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench import BEHIND
from jointbench.bench import Bench, open_bench
from jointbench.errors import (
    BenchLost,
    BoardFault,
    BoardLost,
    BoardRefused,
    BoardSilent,
    JointbenchError,
    RunError,
)
from jointbench.recording import Recorder, examine, open_run, read_records
from jointbench.testing.requirements import Measured
from jointwire import MessageType, State, decode_frame

ATTEMPTS = 5
SEED = 10
BABBLE = Path(__file__).parent / "programs" / "babble.py"


@contextmanager
def connecting(bench_file: Path) -> Generator[Bench]:
    with virtual_bench(bench_file, out=bench_file.parent / "sim") as live, open_bench(live) as bench:
        yield bench


@contextmanager
def ready(bench_file: Path, out: Path, modules: int | None = None, **settings) -> Generator[Bench]:
    simulated = virtual_bench(bench_file, plant="ideal", seed=3, modules=modules, out=out)
    with simulated as live, open_bench(live) as bench:
        bench.connect()
        bench.configure(**settings)
        bench.move_to(bench.robot.home)
        yield bench


def states(bench: Bench) -> dict[str, State | None]:
    for board in bench.boards:
        if not board.why_lost:
            board.hello()
    return {board.joint: board.state for board in bench.boards if not board.why_lost}


def test_a_board_that_answers_garbage(tmp_path: Path) -> None:
    bench_file = bench_with_program(tmp_path, "j3", BABBLE.read_text())
    with connecting(bench_file) as bench, pytest.raises(BoardSilent) as caught:
        bench.connect()
    text = str(caught.value)
    assert (caught.value.joint, caught.value.node) == ("j3", 3)
    assert re.search(r"^j3 \(node 3\): no answer to HELLO in 4 tries of 100 ms; \d+ bytes came and none was a f", text)
    assert "Another baud rate, another node, the REPL" in text


def test_a_board_in_its_repl_is_shown_as_it_speaks(tmp_path: Path) -> None:
    echo = (BABBLE.parent / "echo.py").read_text()
    said = 'board.outgoing[board.OUTGOING_AT : board.OUTGOING_AT + 4] = b">>> "; board.send(4)'
    prompt = echo.replace("board.send(count)", said)
    message = r"none was a frame of node 1: b'(>>> )+"
    with connecting(bench_with_program(tmp_path, "j1", prompt)) as bench, pytest.raises(BoardSilent, match=message):
        bench.connect()


def test_ports_that_are_swapped(tmp_path: Path) -> None:
    with virtual_bench(COBOT, realtime=True, out=tmp_path / "sim") as live:
        first, second = (board["url"] for board in tomllib.loads(live.read_text())["board"][:2])
        text = live.read_text().replace(first, "FIRST").replace(second, first).replace("FIRST", second)
        swapped = tmp_path / "swapped.toml"
        swapped.write_text(text)
        with open_bench(swapped) as bench, pytest.raises(BoardSilent, match=r"^j1 \(node 1\): no answer to HELLO"):
            bench.connect()


def test_facts_that_are_not_the_robots(tmp_path: Path) -> None:
    program = variation(board='board.facts["drive.ratio"] = 51000')
    message = r"^j5 \(node 5\): says drive\.ratio = 51, the robot file 101; is this"
    bench_file = bench_with_program(tmp_path, "j5", program)
    with connecting(bench_file) as bench, pytest.raises(BoardRefused, match=message):
        bench.connect()


def test_a_board_that_dies_while_moving(tmp_path: Path) -> None:
    with ready(COBOT, tmp_path / "sim", modules=4) as bench:
        pids = {board["joint"]: board["pid"] for board in tomllib.loads(bench.file.path.read_text())["board"]}
        killed = []

        def kill(progress) -> None:
            if progress.elapsed > 0.1 and not killed:
                os.kill(pids["j4"], signal.SIGKILL)
                killed.append(progress.samples)

        with pytest.raises(BoardLost, match=r"^j4 \(node 4\): its process has ended: exit status -9"):
            record_wave(bench, tmp_path / "run", repeats=50, progress=kill)
        assert set(states(bench).values()) == {State.LOADED}
        assert set(states(bench)) == {"j1", "j2", "j3"}
    run = open_run(tmp_path / "run")
    assert run.samples.valid.sum() >= killed[0]
    assert run.ledger is not None
    by_joint = {board.joint: board for board in run.ledger.boards}
    assert all(by_joint[joint].closes and by_joint[joint].samples_lost == 0 for joint in ("j1", "j2", "j3"))
    assert "no STATUS after the last sample" in by_joint["j4"].fault
    assert not run.ledger.is_valid
    assert any("stopped by BoardLost: j4" in warning for warning in run.warnings)


def test_a_board_that_falls_silent_while_moving(tmp_path: Path) -> None:
    with ready(COBOT, tmp_path / "sim", modules=2) as bench:
        silenced = []

        def silence(progress) -> None:
            if progress.elapsed > 0.1 and not silenced:
                silenced.append(progress.elapsed)
                inject(bench, "motor_silent", 2)

        with pytest.raises(BoardSilent, match=r"^j2 \(node 2\): sent nothing for 0\.5 s while moving"):
            bench.play(wave(bench), 50, progress=silence)
        bench.boards[0].hello()
        assert bench.boards[0].state is State.LOADED


def test_a_bench_that_ends_while_moving(tmp_path: Path) -> None:
    with virtual_bench(COBOT, plant="ideal", out=tmp_path / "sim") as live:
        with ready_bench(live) as bench:
            pid = _parent_of(tomllib.loads(live.read_text())["board"][0]["pid"])

            def end(progress) -> None:
                if progress.samples > 3000:
                    os.kill(pid, signal.SIGKILL)

            with pytest.raises(BenchLost):
                record_wave(bench, tmp_path / "run", repeats=50, progress=end)
            assert bench.stop() == list(bench.robot.joint_names)  # nobody confirms, and nothing is raised
        run = open_run(tmp_path / "run")
    assert run.samples.valid.sum() > 3000
    assert any("stopped by" in warning for warning in run.warnings)


@pytest.mark.slow  # quickly: test_safety.py has the trips and clears them
def test_a_trip_stops_all_is_told_in_words_and_must_be_cleared(tmp_path: Path) -> None:
    with ready(COBOT, tmp_path / "sim", modules=2) as bench:
        bench.boards[1].write_register("limit.following", 100)
        with pytest.raises(BoardFault) as caught:
            record_wave(bench, tmp_path / "run", repeats=3)
        assert re.search(
            r"^j2 \(node 2\): tripped at tick \d+, joint does not follow its reference: -?\d+ count, limit 100 count; "
            r"its motor is off\. Look for a blocked joint.*clear\(\)",
            str(caught.value),
        )
        after = states(bench)
        assert after.pop("j2") is State.FAULT
        assert set(after.values()) == {State.LOADED}
        with pytest.raises(BoardFault, match="j2"):
            bench.play(wave(bench))
        with pytest.raises(BoardFault, match=r"^j2 \(node 2\)"):
            bench.configure()
        bench.clear()
        bench.configure()
        run = record_wave(bench, tmp_path / "again", motion=ripple(bench))
        assert run.ledger is not None
        assert run.ledger.is_valid, run.ledger.text()
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()


def _lose_bytes(rng: random.Random) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        if rng.random() < 0.05:
            at = rng.randrange(len(data))
            return data[:at] + data[at + rng.randrange(1, 40) :]
        return data

    return damage


def _flip_bits(rng: random.Random) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        if rng.random() < 0.05:
            at = rng.randrange(len(data))
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        return data

    return damage


@pytest.mark.parametrize("modules", [2, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [_lose_bytes, _flip_bits])
def test_a_bad_cable_is_accounted_to_the_sample(tmp_path: Path, kind, modules: int | None) -> None:
    """Bytes lost or flipped between board and host: the ledger closes exactly, and says that the run is invalid."""
    with ready(COBOT, tmp_path / "sim", modules) as bench:
        for board in bench.boards:
            # Of these seeds none damages all four answers to a request; whether commands get through is another test's.
            deliver, damage = board.port.sink, kind(random.Random(SEED + board.node))
            board.port.sink = lambda data, time_us, deliver=deliver, damage=damage: deliver(damage(data), time_us)
        run = record_wave(bench, tmp_path / "run", repeats=1 if modules else 6)
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert run.ledger.samples_lost > 0
    assert not run.ledger.is_valid
    for index, board in enumerate(run.ledger.boards):
        assert board.samples_taken == board.samples_received + board.crc_lost + board.link_lost
        assert board.frames_sent == board.frames_received + board.frames_damaged + board.frames_vanished
        assert run.samples.valid[:, index].sum() == board.samples_received
        assert np.isfinite(run.samples.motor_position[run.samples.valid[:, index], index]).all()


@pytest.mark.unix_only("six QEMU boards do not keep pace with the wall clock on every machine")
@pytest.mark.slow
def test_by_the_wall_clock_the_motion_is_played_and_counted(tmp_path: Path, measured: Measured) -> None:
    """Real time, each board aligned by its PONGs alone.

    How well boards are aligned depends on how busy this machine is, so it is judged on synthetic clocks (test_sync.py,
    test_run.py); here, that nothing is lost unseen and that the recorded motion is the planned one. The latter is asked
    of a bench that kept pace: one that says it fell behind real time, whose boards answer late, is tried again, and in
    the end let go.
    """
    for attempt in range(ATTEMPTS):
        folder = tmp_path / f"sim{attempt}"
        try:
            with virtual_bench(COBOT, plant="ideal", realtime=True, out=folder) as live, open_bench(live) as bench:
                bench.connect()
                bench.configure(link_timeout=2.0)  # a busy test machine may hold this process up
                bench.move_to(bench.robot.home)
                run = record_wave(bench, tmp_path / f"run{attempt}", repeats=2)
        except JointbenchError:
            if BEHIND not in (folder / "bench.log").read_text():
                raise
            continue
        assert run.provenance["clock"] == "wall"
        assert run.ledger is not None
        assert run.ledger.closes, run.ledger.text()
        if BEHIND not in (folder / "bench.log").read_text():
            break
    else:
        pytest.skip(f"nothing was lost unseen; {ATTEMPTS} times this machine was too busy for six boards in real time")
    q, _, _ = wave(bench).evaluate(run.samples.play_tick * np.float64(run.samples.sample_period))
    playing = (run.samples.play_tick >= 0) & run.samples.valid.all(axis=1)
    # Of 2048 ticks; boards that start some ticks apart are not all there at both ends.
    assert playing.sum() >= 2000
    # Following error, with 0.2 rad/s for each second that boards are apart: tens of ticks would show.
    measured("play.follow_error", np.abs(run.samples.motor_position[playing] - q[playing]), "rad")


def _parent_of(pid: int) -> int:
    return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])


KILLS, KILL_SEED = 20, 3
MOTION_US = 1_800_000  # of the motion recorded, from its first sample


@dataclass(frozen=True)
class Killed:
    """A run whose recorder was killed.

    Attributes:
        path: of the run.
        received: how much the process said that it had received and written.
        time_us: the clock's time that it said last.
    """

    path: Path
    received: int
    time_us: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Killed]]:
    """Twenty runs of six boards on one bench, each killed at a random moment after its first sample."""
    folder, rng = tmp_path_factory.mktemp("killed"), np.random.default_rng(KILL_SEED)
    with virtual_bench(COBOT, out=folder / "sim") as live:
        process = subprocess.Popen(
            [sys.executable, "-m", "hil_tests.recorder_to_kill", str(live)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
        try:
            yield [_kill(process, folder / f"run{k}", int(rng.integers(MOTION_US))) for k in range(KILLS)]
        finally:
            process.communicate()


def _kill(process: subprocess.Popen[str], path: Path, after_us: int) -> Killed:
    assert process.stdin is not None
    assert process.stdout is not None
    print(path, file=process.stdin)
    pid, first_us, killed, said = 0, 0, False, {"received": 0, "time": 0}
    for line in process.stdout:
        word, number = line.split()
        if word == "pid":
            pid = int(number)
        elif word == "ended":
            assert (killed, number) == (True, "-9"), line
            break
        else:
            said[word] = int(number)
            first_us = first_us or said["time"]
            if not killed and first_us and said["time"] - first_us >= after_us:
                os.kill(pid, signal.SIGKILL)
                killed = True
    return Killed(path, said["received"], said["time"])


@pytest.mark.slow
def test_every_run_is_readable_and_lacks_next_to_nothing(killed: list[Killed], measured: Measured) -> None:
    """Held against what the process had received, and against the clock's time when it was killed."""
    assert len(killed) == KILLS
    losses_us: list[int] = []
    for each in killed:
        records = list(read_records((each.path / "frames.bin").read_bytes(), []))
        run = open_run(each.path)
        assert run.samples.valid.any()
        assert run.samples.joint_names == ("j1", "j2", "j3", "j4", "j5", "j6")
        assert len(records) >= each.received
        losses_us.append(each.time_us - records[-1].time_us)
    measured("recording.killed_loss", np.array(losses_us) / 1000.0, "ms")


@pytest.mark.slow
def test_the_doctor_says_that_the_recorder_was_killed(killed: list[Killed]) -> None:
    for each in killed:
        diagnosis = examine(each.path)
        wrong = {finding.name for finding in diagnosis.findings if not finding.ok}
        assert {"result.json", "ledger"} <= wrong <= {"result.json", "ledger", "end of frames.bin"}, diagnosis.text()
        assert "the recorder was killed" in diagnosis.text()


@pytest.mark.slow
def test_torn_at_any_byte_the_doctor_names_it_and_the_run_opens(killed: list[Killed]) -> None:
    """As a power cut may leave it: any of the bytes of the last records, none of them twice."""
    rng = np.random.default_rng(KILL_SEED)
    for each in killed:
        path = each.path / "frames.bin"
        whole = path.read_bytes()
        records = list(read_records(whole, []))
        ends = np.cumsum([record.size for record in records])
        cut = int(rng.integers(ends[-4] + 1, ends[-1]))
        kept = int(np.searchsorted(ends, cut, side="right"))
        path.write_bytes(whole[:cut])
        end = next(finding for finding in examine(each.path).findings if finding.name == "end of frames.bin")
        if cut == ends[kept - 1]:
            assert end.ok
        else:
            assert not end.ok
            assert f"{cut - ends[kept - 1]} bytes are left out" in end.what
            assert f"from byte {ends[kept - 1]}" in end.where
        frames = [decode_frame(record.payload) for record in records[:kept]]
        if len({frame.node for frame in frames if frame.type is MessageType.DATA}) == 6:
            assert open_run(each.path).samples.valid.any()
        else:
            with pytest.raises(RunError, match="it ended before their first block came"):
                open_run(each.path)
        path.write_bytes(whole)


ROOM = 20_000  # bytes of frames.bin: some half a second of two boards


@contextmanager
def no_file_grows_past(size: int) -> Iterator[None]:
    """Have the operating system refuse to let any file of this process grow further, as a full disk does."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_motors_stop_and_the_run_stays_readable(tmp_path: Path) -> None:
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live, ready_bench(live) as bench:
        recorder = Recorder(tmp_path / "run", bench.provenance(repeats=3))
        with (
            no_file_grows_past(ROOM),
            pytest.raises(RunError, match=r"recording stopped: .*frames\.bin cannot be written: File too large"),
        ):
            bench.play(wave(bench), 3, recorder)
        for board in bench.boards:
            board.hello()
            assert not board.is_driving
    assert ROOM - 2000 < (tmp_path / "run" / "frames.bin").stat().st_size <= ROOM
    run = open_run(tmp_path / "run")
    assert run.samples.valid.any()
    assert any("stopped by RunError: recording stopped" in warning for warning in run.warnings)
    findings = {finding.name: finding for finding in examine(tmp_path / "run").findings}
    assert findings["frames.bin"].ok
    assert findings["end of frames.bin"].ok
    assert not findings["result.json"].ok


pytest_plugins = ["pytester"]

BENCH = f"""
version = 1
name = "two"
robot = "cobot6:2"
plant = {json.dumps(str(COBOT6_PLANT))}
board = [{{ node = 1, joint = "j1", url = "unix:" }}, {{ node = 2, joint = "j2", url = "unix:" }}]
"""

TESTS = """
import os, signal, tomllib
from jointbench.bench import open_bench
from jointbench.testing import functional, needs

@functional
@needs("several_boards")
def test_whole(live_bench):
    with open_bench(live_bench) as bench:
        bench.connect()

@functional
def test_deadly(live_bench):
    pids = {board["joint"]: board["pid"] for board in tomllib.loads(live_bench.read_text())["board"]}
    os.kill(pids["j2"], signal.SIGKILL)

@functional
def test_next(live_bench): ...

@functional
def test_last(live_bench): ...
"""


@pytest.mark.slow
def test_a_dead_board_ends_one_test_and_is_the_reason_why_others_do_not_run(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    bench = tmp_path / "two.toml"
    bench.write_text(BENCH)
    pytester.makeconftest("from hil_tests.conftest import pytest_jointbench_start")
    pytester.makepyfile(test_two=TESTS)
    where = (f"--bench={bench}", "--bench-out=out", "--require=functional")
    plugins = ("-p", "jointbench.testing.plugin", "-p", "no:cacheprovider", "-rs")
    result = pytester.runpytest_inprocess(*plugins, *where)
    result.assert_outcomes(passed=2, errors=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "the required tier functional skipped 1 of 4 tests: test_two.py::test_last (board j2 (node 2) is broken *",
            "SKIPPED *: board j2 (node 2) is broken since test_two.py::test_next: its process has ended: *",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
