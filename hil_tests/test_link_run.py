"""The host's link against emulated boards: what is recorded is what was played, every sample of it, every time."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, record_wave, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.errors import BenchLost, BoardLost, BoardRefused, TrajectoryError
from jointbench.link import Bench, open_bench
from jointbench.link.lockstep import LockstepClock
from jointbench.link.motion import PointToPoint
from jointbench.link.playback import keep_alive_us
from jointbench.recording import Recorder, open_run
from jointbench.testing.measured import Measured
from jointwire import Chunk, Frame, MessageType, State


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, plant="ideal", seed=3, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        yield bench


def test_a_run_holds_every_sample_of_every_joint(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    run = record_wave(bench, tmp_path / "run", repeats=2)
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    assert run.warnings == ()
    assert run.repeats == 2
    playing = run.samples.play_tick >= 0
    np.testing.assert_array_equal(run.samples.play_tick[playing], np.arange(2 * 1024))
    assert run.samples.valid[playing].all()


def test_joints_follow_the_trajectory_that_was_asked_for(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    run = record_wave(bench, tmp_path / "run")
    playing = run.samples.play_tick >= 0
    q, _, _ = wave(bench).evaluate(run.samples.play_tick[playing] * np.float64(run.samples.sample_period))
    # The servo's stiffness leaves some milliradians; a slip of time, scale or sign would leave tens of them.
    measured("play.follow_error", np.abs(run.samples.motor_position[playing] - q), "rad")
    assert np.ptp(q, axis=0).min() > 0.099


def test_both_encoders_agree_on_the_joint(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    samples = record_wave(bench, tmp_path / "run").samples
    assert samples.link_position is not None
    difference = (samples.link_position - samples.motor_position)[samples.valid.all(axis=1)]
    measured("play.encoders_apart_rigid", 1e6 * np.abs(difference), "µrad")


def test_the_filter_in_the_run_is_the_one_the_boards_have(bench: Bench, tmp_path: Path) -> None:
    samples = record_wave(bench, tmp_path / "run").samples
    assert samples.board_filters is not None
    for board_filter, facts in zip(samples.board_filters, bench.facts, strict=True):
        raw = facts.registers
        for number, (b, a) in enumerate(board_filter.sections, 1):
            assert b == tuple(raw[f"filter.{number}.{name}"] / 2**27 for name in ("b0", "b1", "b2"))
            assert a == (1.0, raw[f"filter.{number}.a1"] / 2**27, raw[f"filter.{number}.a2"] / 2**27)
        assert len(board_filter.sections) == 2
        assert board_filter.gain == 1.0  # at rest, exactly
        assert board_filter.cic_order == raw["adc.cic_order"]
        assert board_filter.window == raw["adc.window"] * 1e-6
        assert board_filter.sample_period == raw["board.tick_period"] * 1e-6


def test_motors_are_off_when_a_motion_is_over(bench: Bench, tmp_path: Path) -> None:
    record_wave(bench, tmp_path / "run")
    for board in bench.boards:
        board.hello()
        assert board.state is State.DONE


def test_move_to_gets_there_and_back(bench: Bench, measured: Measured) -> None:
    home = np.array(bench.robot.home)
    pose = home + np.array([0.1, 0.15, -0.2, 0.1, -0.1, 0.3])
    bench.move_to(pose)
    measured("play.follow_error", np.abs(bench.positions() - pose), "rad")  # held by brakes where the servo let go
    bench.move_to(home)
    measured("play.follow_error", np.abs(bench.positions() - home), "rad")


def test_progress_tells_time_rate_and_torque(bench: Bench, tmp_path: Path) -> None:
    reports = []
    record_wave(bench, tmp_path / "run", repeats=2, progress=reports.append)
    assert reports[-1].elapsed == reports[-1].duration == pytest.approx(2.048)
    assert reports[-1].rate == pytest.approx(6000, rel=0.02)
    assert reports[-1].frames_lost == 0
    assert any(set(report.peak_torque) == set(bench.robot.joint_names) for report in reports)
    assert max(max(report.peak_torque.values(), default=0.0) for report in reports) > 5.0


def test_events_tell_the_story(bench: Bench, tmp_path: Path) -> None:
    record_wave(bench, tmp_path / "run")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    names = [event["event"] for event in events]
    assert names == ["loaded", *["armed"] * 6, *["start"] * 6, "done"]
    assert len({event["at_tick"] for event in events if event["event"] == "start"}) == 1


def test_pings_during_a_motion_come_often_and_at_no_fixed_phase_of_a_tick(bench: Bench) -> None:
    sent_us: list[int] = []

    def note(time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.PONG:
            sent_us.append(chunk.content.body.nonce)

    bench.boards[0].listen(note)
    bench.play(wave(bench), 4)
    assert len(sent_us) >= 4 * 1_024_000 // keep_alive_us(bench.facts)
    # Of 33 phases drawn from 1000, seven are there twice with a chance of 1e-6.
    assert len({time_us % 1000 for time_us in sent_us}) > len(sent_us) - 7


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    digests = []
    for attempt in ("first", "second"):
        with virtual_bench(COBOT, seed=11, out=tmp_path / attempt) as live, open_bench(live) as bench:
            bench.connect()
            bench.configure()
            bench.move_to(bench.robot.home)
            digests.append(record_wave(bench, tmp_path / f"run-{attempt}").sha256)
    assert digests[0] == digests[1]


def test_a_trajectory_must_be_whole_knots(bench: Bench, tmp_path: Path) -> None:
    motion = wave(bench, period=1.0)
    with pytest.raises(TrajectoryError, match=r"period 1 s .* knot steps of 0\.032 s; the nearest that is: 0\.992 s"):
        bench.play(motion)


def test_a_trajectory_outside_the_limits_is_refused_by_the_board(bench: Bench) -> None:
    with pytest.raises(BoardRefused, match=r"j1 \(node 1\): refused LOAD .*: outside the position window"):
        bench.play(wave(bench, way=4.0))


def test_a_start_far_away_is_refused_and_motors_go_off(bench: Bench, tmp_path: Path) -> None:
    home = np.array(bench.robot.home)
    away = home.copy()
    away[3] += 0.2
    recorder = Recorder(tmp_path / "run", bench.provenance())
    with pytest.raises(BoardRefused, match=r"j4 \(node 4\): refused START .* motor counts from the first knot; m"):
        bench.play(PointToPoint(away, home, 1.024), recorder=recorder)
    for board in bench.boards:
        board.hello()
        assert board.state is State.LOADED
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert any("stopped by BoardRefused: j4" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("register", "value", "message"),
    [
        ("servo.kp", 40000, r"refused WRITE servo\.kp = 40000: out of range, .* allowed is 0 to 32767 \(0 A/count to"),
        ("drive.ratio", 5, "a fact of the board and cannot be written"),
        ("servo.kz", 5, "has no register 'servo.kz'; it has board.node"),
        ("limit.current", 2**40, "allowed is 0 to 32000"),
    ],
)
def test_registers_are_refused_in_words(bench: Bench, register: Any, value: int, message: str) -> None:
    with pytest.raises(BoardRefused, match=message):
        bench.boards[2].write_register(register, value)


def test_a_second_client_is_sent_away(bench: Bench, live: Path) -> None:
    with pytest.raises(BoardLost, match=r"j1 \(node 1\): port .* is in use: .*; end that first"):
        open_bench(live)
    assert bench.file.control is not None
    with pytest.raises(BenchLost, match="already has a client"):
        LockstepClock(bench.file.control, [])


def test_killed_while_recording_the_run_is_readable(live: Path, tmp_path: Path) -> None:
    """The process is killed where it cannot clean up; at most 100 ms of the target's time may be missing."""
    program = textwrap.dedent(
        f"""
        from pathlib import Path
        from hil_tests.link_helpers import wave
        from jointbench.link import open_bench
        from jointbench.recording import Recorder
        with open_bench({str(live)!r}) as bench:
            bench.connect()
            bench.configure()
            bench.move_to(bench.robot.home)
            recorder = Recorder({str(tmp_path / "run")!r}, bench.provenance())
            bench.play(wave(bench), 100, recorder, lambda progress: print(progress.samples, flush=True))
        """
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        received = 0
        while received < 6000:
            received = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    run = open_run(tmp_path / "run")
    assert "unfinished run: there is no result.json" in run.warnings[-1]
    assert run.samples.valid.sum() >= received - 600  # 6 joints x 100 ms
    with open_bench(live) as bench:  # the bench ran on until the boards had noticed
        bench.connect()
        assert all(board.state is State.FAULT for board in bench.boards)
        bench.clear()
        bench.configure()
        bench.move_to(bench.robot.home)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_stops_the_motors_first(live: Path, tmp_path: Path, number: signal.Signals) -> None:
    sent = []

    def interrupt(progress) -> None:
        if progress.samples > 3000 and not sent:
            sent.append(time.monotonic())
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)  # an impatient one must not break into the stopping

    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        with pytest.raises(KeyboardInterrupt if number is signal.SIGINT else SystemExit):
            record_wave(bench, tmp_path / "run", repeats=50, progress=interrupt)
        for board in bench.boards:
            board.hello()
            assert board.state is State.LOADED
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    assert run.samples.valid.sum() > 3000
    assert "the run was stopped by" in run.warnings[0]
