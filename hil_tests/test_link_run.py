"""The host's link against emulated boards: what is recorded is what was played, every sample of it, every time."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, Wave, ready_bench, record_wave, ripple, wave
from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.model import PLANT_KINDS, PlantKind
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_file import read_plant_file
from hil_tests.virtual_bench.sensors import CAPTURE_CLOCK, EdgeTimes
from jointbench.bench import (
    Bench,
    Feedforward,
    LockstepClock,
    PointToPoint,
    Progress,
    default_settings,
    open_bench,
    trajectory_knots,
)
from jointbench.bench.playback import keep_alive_us
from jointbench.cli.main import main
from jointbench.errors import BenchLost, BoardLost, BoardRefused, ExcitationError
from jointbench.excitation import random_excitation
from jointbench.model import load_robot
from jointbench.recording import Recorder, Run, open_run, record
from jointbench.testing.requirements import Measured
from jointwire import Chunk, Frame, MessageType, State
from tools.load.lockstep import write_variation


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, plant="ideal", seed=3, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with ready_bench(live) as bench:
        yield bench


@pytest.fixture(scope="module")
def two_boards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Those of the first two joints, for what does not ask how many there are: six take three times the CPU time."""
    with virtual_bench(COBOT, plant="ideal", modules=2, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@dataclass(frozen=True)
class Recorded:
    """Two waves of all joints, and what the bench was then.

    Attributes:
        run: as it is read again, of `folder`.
        motion: that was asked for, once.
        reports: what the progress showed.
        states: of the boards when the motion was over.
        registers: of each board, raw.
    """

    run: Run
    folder: Path
    motion: Wave
    reports: list[Progress]
    states: list[State | None]
    registers: list[dict[str, int]]


@pytest.fixture(scope="module")
def recorded(live: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder, reports = tmp_path_factory.mktemp("recorded") / "run", []
    with ready_bench(live) as bench:
        run = record_wave(bench, folder, repeats=2, progress=reports.append)
        for board in bench.boards:
            board.hello()
        states = [board.state for board in bench.boards]
        registers = [dict(facts.registers) for facts in bench.facts]
        return Recorded(run, folder, wave(bench), reports, states, registers)


def test_a_run_holds_every_sample_of_every_joint(recorded: Recorded, measured: Measured) -> None:
    run = recorded.run
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    assert run.warnings == ()
    assert run.repeats == 2
    playing = run.samples.play_tick >= 0
    np.testing.assert_array_equal(run.samples.play_tick[playing], np.arange(2 * 1024))
    assert run.samples.valid[playing].all()


def test_joints_follow_the_trajectory_that_was_asked_for(recorded: Recorded, measured: Measured) -> None:
    samples = recorded.run.samples
    playing = samples.play_tick >= 0
    q, _, _ = recorded.motion.evaluate(samples.play_tick[playing] * np.float64(samples.sample_period))
    # The servo's stiffness leaves some milliradians; a slip of time, scale or sign would leave tens of them.
    measured("play.follow_error", np.abs(samples.motor_position[playing] - q), "rad")
    assert np.ptp(q, axis=0).min() > 0.099


def test_both_encoders_agree_on_the_joint(recorded: Recorded, measured: Measured) -> None:
    samples = recorded.run.samples
    assert samples.link_position is not None
    difference = (samples.link_position - samples.motor_position)[samples.valid.all(axis=1)]
    measured("play.encoders_apart_rigid", 1e6 * np.abs(difference), "µrad")


def test_the_filter_in_the_run_is_the_one_the_boards_have(recorded: Recorded) -> None:
    samples = recorded.run.samples
    assert samples.board_filters is not None
    for board_filter, raw in zip(samples.board_filters, recorded.registers, strict=True):
        for number, (b, a) in enumerate(board_filter.sections, 1):
            assert b == tuple(raw[f"filter.{number}.{name}"] / 2**27 for name in ("b0", "b1", "b2"))
            assert a == (1.0, raw[f"filter.{number}.a1"] / 2**27, raw[f"filter.{number}.a2"] / 2**27)
        assert len(board_filter.sections) == 2
        assert board_filter.gain == 1.0  # at rest, exactly
        assert board_filter.cic_order == raw["adc.cic_order"]
        assert board_filter.window == raw["adc.window"] * 1e-6
        assert board_filter.sample_period == raw["board.tick_period"] * 1e-6


def test_motors_are_off_when_a_motion_is_over(recorded: Recorded) -> None:
    assert recorded.states == [State.DONE] * 6


def test_progress_tells_time_rate_and_torque(recorded: Recorded) -> None:
    reports, joint_names = recorded.reports, recorded.run.samples.joint_names
    assert reports[-1].elapsed == reports[-1].duration == pytest.approx(2.048)
    assert reports[-1].rate == pytest.approx(6000, rel=0.02)
    assert reports[-1].frames_lost == 0
    assert any(set(report.peak_torque) == set(joint_names) for report in reports)
    assert max(max(report.peak_torque.values(), default=0.0) for report in reports) > 5.0


def test_events_tell_the_story(recorded: Recorded) -> None:
    events = [json.loads(line) for line in (recorded.folder / "events.jsonl").read_text().splitlines()]
    names = [event["event"] for event in events]
    assert names == ["loaded", *["armed"] * 6, *["start"] * 6, "done"]
    assert len({event["at_tick"] for event in events if event["event"] == "start"}) == 1


def lead_by_feedforward(bench: Bench, folder: Path) -> float:
    """How far the first joint is ahead [rad] by 0.5 A, on the mean of the second half of a motion."""
    motion, lead = wave(bench), list[float]()
    currents = np.zeros((33, bench.robot.n_joints))
    currents[:, 0] = 0.5
    for name, fed in (("without", None), ("with", Feedforward(currents, np.full(bench.robot.n_joints, 5.0)))):
        bench.move_to(bench.robot.home)
        with Recorder(folder / name, bench.provenance(repeats=1)) as recorder:
            bench.play(motion, 1, recorder, feedforward=fed)
        samples = open_run(folder / name).samples
        playing = samples.play_tick >= 500
        times = np.asarray(samples.play_tick[playing] * samples.sample_period, dtype=np.float64)
        reference = motion.evaluate(times)[0]
        lead.append(float(np.mean(samples.motor_position[playing] - reference, axis=0)[0]))
    return lead[1] - lead[0]


@pytest.mark.slow  # firmware/tests/test_feedforward.py shows the same on one board
def test_feedforward_pushes_in_its_direction_and_is_recorded_and_not_allowed_afterwards(
    two_boards: Path, tmp_path: Path
) -> None:
    """Half an ampere more than the servo asks moves a joint by that over its stiffness, while it moves anyhow."""
    with ready_bench(two_boards) as bench:
        lead = lead_by_feedforward(bench, tmp_path)
        pushed = 0.5 * bench.robot.drives[0].torque_per_current / default_settings(bench.robot)[0].stiffness
        assert lead == pytest.approx(pushed, rel=0.2)  # friction and a motion that ends take a part
        assert [facts.registers["limit.feedforward"] for facts in bench.facts] == [0] * bench.robot.n_joints
    events = [json.loads(line) for line in (tmp_path / "with" / "events.jsonl").read_text("utf-8").splitlines()]
    told = next(event for event in events if event["event"] == "feedforward" and event["node"] == 1)
    assert told["currents_mA"] == [500] * 33
    assert told["registers"]["limit.feedforward"] == 750


def test_move_to_gets_there_and_back(bench: Bench, measured: Measured) -> None:
    home = np.array(bench.robot.home)
    pose = home + np.array([0.05, 0.08, -0.1, 0.05, -0.05, 0.15])
    bench.move_to(pose)
    measured("play.follow_error", np.abs(bench.positions() - pose), "rad")  # held by brakes where the servo let go
    bench.move_to(home)
    measured("play.follow_error", np.abs(bench.positions() - home), "rad")


def test_pings_during_a_motion_come_often_and_at_no_fixed_phase_of_a_tick(tmp_path: Path) -> None:
    sent_us: list[int] = []

    def note(time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame) and chunk.content.type is MessageType.PONG:
            sent_us.append(chunk.content.body.nonce)

    with virtual_bench(COBOT, plant="ideal", modules=1, out=tmp_path) as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.boards[0].listen(note)
        bench.play(wave(bench), 4)
        often = 4 * 1_024_000 // keep_alive_us(bench.facts)
    assert len(sent_us) >= often
    # Of 33 phases drawn from 1000, seven are there twice with a chance of 1e-6.
    assert len({time_us % 1000 for time_us in sent_us}) > len(sent_us) - 7


@pytest.mark.slow  # test_virtual_bench_clocks.py shows the same of a shorter run
@pytest.mark.parametrize("modules", [2, None])
def test_same_seed_same_bytes(tmp_path: Path, modules: int | None) -> None:
    digests = []
    for attempt in ("first", "second"):
        simulated = virtual_bench(COBOT, seed=11, modules=modules, out=tmp_path / attempt)
        with simulated as live, ready_bench(live) as bench:
            digests.append(record_wave(bench, tmp_path / f"run-{attempt}", motion=ripple(bench)).sha256)
    assert digests[0] == digests[1]


def test_a_trajectory_must_be_whole_knots(bench: Bench, tmp_path: Path) -> None:
    motion = wave(bench, period=1.0)
    with pytest.raises(ExcitationError, match=r"period 1 s .* knot steps of 0\.032 s; the nearest that is: 0\.992 s"):
        bench.play(motion)


def test_a_trajectory_outside_the_limits_is_refused_by_the_board_as_well(bench: Bench) -> None:
    """The bench refuses it first; a board takes no host's word for it."""
    too_far = replace(wave(bench), way=np.full(6, 4.0))
    with pytest.raises(ExcitationError, match=r"joint 'j1' acceleration reaches"):
        bench.play(too_far)
    knots = trajectory_knots(too_far, bench.robot, bench.facts)
    with pytest.raises(BoardRefused, match=r"j1 \(node 1\): refused LOAD .*: outside the position window"):
        bench.boards[0].upload(knots[0], 1)


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


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """What ends a program that says nothing else, whoever started the tests, such as `nohup`."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_client_is_sent_away(bench: Bench, live: Path) -> None:
    with pytest.raises(BoardLost, match=r"j1 \(node 1\): port .* is in use: .*; end that first"):
        open_bench(live)
    assert bench.file.control is not None
    with pytest.raises(BenchLost, match="already has a client"):
        LockstepClock(bench.file.control, [])


def record_until_killed(live: Path, directory: Path, told: int) -> NoReturn:
    """Tell the file descriptor `told` how many samples have been received, line by line, in a process of its own."""

    def tell(progress: Progress) -> None:
        os.write(told, b"%d\n" % progress.samples)

    try:
        with ready_bench(live) as bench:
            recorder = Recorder(directory, bench.provenance())
            bench.play(wave(bench), 100, recorder, tell)
    finally:
        os._exit(1)  # it was not killed


@pytest.mark.slow  # host/jointbench/tests/recording reads frames that end anywhere
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # the child needs no thread
def test_killed_while_recording_the_run_is_readable(two_boards: Path, tmp_path: Path) -> None:
    """The process is killed where it cannot clean up; at most 100 ms of the target's time may be missing."""
    hears, tells = os.pipe()
    child = os.fork()  # which spares it the seconds that importing takes
    if child == 0:
        record_until_killed(two_boards, tmp_path / "run", tells)
    os.close(tells)
    with open(hears) as reports:
        received = next(samples for samples in map(int, reports) if samples >= 1000)
        os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    run = open_run(tmp_path / "run")
    assert "unfinished run: there is no result.json" in run.warnings[-1]
    assert run.samples.valid.sum() >= received - 200  # 2 joints x 100 ms
    with open_bench(two_boards) as bench:  # the bench ran on until the boards had noticed
        bench.connect()
        assert all(board.state is State.FAULT for board in bench.boards)
        bench.clear()
        bench.configure()
        bench.play(ripple(bench), 1, Recorder(tmp_path / "again", bench.provenance()))
    assert not open_run(tmp_path / "again").warnings


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP: its terminal is gone")],
)
def test_told_to_stop_it_stops_the_motors_first(
    two_boards: Path, tmp_path: Path, number: signal.Signals, said: str, usual_signals: None
) -> None:
    sent = []

    def interrupt(progress) -> None:
        if progress.samples > 1000 and not sent:
            sent.append(time.monotonic())
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)  # an impatient one must not break into the stopping

    with ready_bench(two_boards) as bench:
        with pytest.raises(KeyboardInterrupt if number is signal.SIGINT else SystemExit):
            record_wave(bench, tmp_path / "run", repeats=50, progress=interrupt)
        for board in bench.boards:
            board.hello()
            assert board.state is State.LOADED
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    assert run.samples.valid.sum() > 1000
    assert run.warnings[0].startswith(f"the run was stopped by {said}")


def record_as_a_program(live: Path, directory: Path) -> NoReturn:
    """Record in this process, a fork, whose output goes where the first two descriptors do."""
    code, plan = 1, directory.with_name("plan.json")
    try:
        # Planned here: it starts threads, and to fork beside them may leave a lock that nobody opens.
        plan.write_text(json.dumps(random_excitation(load_robot("cobot6"), period=1.6).to_dict()), encoding="utf-8")
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # not where tests put theirs
        code = main(["run", str(live), "--plan", str(plan), "--repeats", "50", "--out", str(directory)])
    finally:
        os._exit(code)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # the child needs no thread
def test_a_terminal_that_is_closed_is_a_stop(live: Path, tmp_path: Path) -> None:
    child, terminal = os.forkpty()
    if child == 0:
        record_as_a_program(live, tmp_path / "run")
    said = b""
    while b"frames lost, peak j" not in said:  # the progress of a recording
        said += os.read(terminal, 4096)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGHUP
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    assert run.warnings[0] == "the run was stopped by SIGHUP: its terminal is gone"
    with open_bench(live) as bench:
        for board in bench.boards:
            board.hello()
            assert board.state is State.LOADED


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # the child needs no thread
def test_progress_that_nobody_reads_is_a_stop(live: Path, tmp_path: Path) -> None:
    """As when an ssh without a terminal is lost: nothing else tells the program."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(writer)
        record_as_a_program(live, tmp_path / "run")
    os.close(writer)
    while not (tmp_path / "run" / "frames.bin").exists() or (tmp_path / "run" / "frames.bin").stat().st_size < 20_000:
        time.sleep(0.01)
    os.close(reader)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.is_valid, run.ledger.text()
    assert "BrokenPipeError: [Errno 32] standard error is closed: nothing reads the progress lines" in run.warnings[0]
    with open_bench(live) as bench:
        for board in bench.boards:
            board.hello()
            assert board.state is State.LOADED


@pytest.mark.parametrize("moment", ["its directory is there", "knots are sent"])
def test_a_stop_while_it_loads_leaves_nothing_in_the_way(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual_signals: None, moment: str
) -> None:
    plan = random_excitation(bench.robot, period=1.6)
    owner, name = (bench.boards[2], "upload") if moment == "knots are sent" else (Recorder, "__init__")
    act = getattr(owner, name)

    def interrupted(*what: Any) -> None:
        act(*what)
        os.kill(os.getpid(), signal.SIGINT)

    bench.move_to(plan.home)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            record(bench, plan, tmp_path / "run", repeats=1)
    assert not (tmp_path / "run").exists()
    Recorder(tmp_path / "run", bench.provenance()).close()  # the next one may have its name


COBOT6 = load_robot("cobot6")
TRUTH = read_plant_file(COBOT6_PLANT, COBOT6)
TICK_US = 250
BOARDS = 2
WAY, PERIOD = 0.06, 0.64  # of a wave


@pytest.mark.parametrize("ticks", ["99", "10001", "250.5", '"fast"'])
def test_ticks_that_cannot_be_are_told(tmp_path: Path, ticks: str) -> None:
    path = write_variation(tmp_path, tick_us=TICK_US)
    path.write_text(path.read_text().replace(f"tick_us = {TICK_US}", f"tick_us = {ticks}"))
    with pytest.raises(BenchFileError, match="tick_us"):
        read_bench_file(path)


def test_steps_are_no_longer_than_the_plant_file_wants_them() -> None:
    for tick_us in (100, 250, 333, 1000, 1700, 10_000):
        truth = TRUTH.on_ticks_of(1e-6 * tick_us)
        assert truth.tick / truth.steps_per_tick <= TRUTH.tick / TRUTH.steps_per_tick * (1.0 + 1e-12)
        assert truth.steps_per_tick == 1 or truth.tick / (truth.steps_per_tick - 1) > 5e-4 * (1.0 - 1e-12)


@pytest.mark.parametrize("kind", PLANT_KINDS)
def test_a_robot_moves_alike_on_any_ticks(kind: PlantKind) -> None:
    """A current for 50 ms: positions within a thousandth of the way, the windings as warm as before."""
    enabled, command = np.ones(6, dtype=bool), np.full(6, 0.8)
    usual, fast = Plant(COBOT6, TRUTH, kind), Plant(COBOT6, TRUTH.on_ticks_of(1e-6 * TICK_US), kind)
    start = usual.link_position
    slow_motion = [usual.advance(enabled, command) for _ in range(50)][-1]
    fast_motion = [fast.advance(enabled, command) for _ in range(200)][-1]
    way = np.abs(slow_motion.link_position - start)
    assert way.max() > 1e-3
    np.testing.assert_allclose(fast_motion.link_position, slow_motion.link_position, rtol=0.0, atol=1e-3 * way.max())
    assert fast.time == pytest.approx(usual.time)
    warmth = slow_motion.temperature - TRUTH.power.ambient
    np.testing.assert_allclose(fast_motion.temperature - TRUTH.power.ambient, warmth, rtol=1e-3)


def test_edges_are_timed_within_short_ticks() -> None:
    edges, per_tick = EdgeTimes(1, 1e-6 * TICK_US), round(CAPTURE_CLOCK * 1e-6 * TICK_US)
    edges.at(10, np.array([0.25]))
    assert edges.at(11, np.array([1.25]))[0] == 10 * per_tick + 0.75 * per_tick


def test_boards_play_and_stream_four_times_a_millisecond(tmp_path: Path, measured: Measured) -> None:
    bench_file = write_variation(tmp_path, tick_us=TICK_US)
    live_bench = virtual_bench(bench_file, plant="ideal", out=tmp_path / "sim", modules=BOARDS)
    with live_bench as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        assert {fact.tick_period for fact in bench.facts} == {1e-6 * TICK_US}
        first = bench.boards[0].ping()
        run = record_wave(bench, tmp_path / "run", motion=wave(bench, WAY, PERIOD))
        last = bench.boards[0].ping()
    measured("load.fast_rate", (last.tick - first.tick) / (1e-6 * (last.received_us - first.received_us)))
    assert run.ledger is not None
    assert run.ledger.closes
    assert run.ledger.samples_lost == 0
    assert run.warnings == ()
    playing = run.samples.play_tick >= 0
    np.testing.assert_array_equal(run.samples.play_tick[playing], np.arange(round(1e6 * PERIOD / TICK_US)))
    assert run.samples.time[1] - run.samples.time[0] == pytest.approx(1e-6 * TICK_US)
    position, home = run.samples.motor_position[playing], np.array(COBOT6.home[:BOARDS])
    w = 2.0 * np.pi * np.arange(len(position)) * TICK_US * 1e-6 / PERIOD
    planned = home + WAY * ((1.0 - np.cos(w)) ** 2 / 4.0)[:, None]
    assert np.abs(position - planned).max() < 0.02  # a third of the following limit that boards keep
