"""Benches of other robots than a plain arm: coupled drives, a biped, a passive joint, a pulled hand."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import jointbench as jb
from hil_tests.link_helpers import (
    HERE,
    NURSING_ARM,
    NURSING_DUAL,
    REHAB_ARM,
    Wave,
    ask_bench,
    bench_with_program,
    inject,
    ready_bench,
    record_wave,
    rehab_arm_with_a_free_hand,
    variation,
    wave,
)
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import ControlError
from hil_tests.virtual_bench.hardware_faults import HardwareFaults, Injection
from hil_tests.virtual_bench.plant import Plant
from jointbench.bench import SOLE_EDGE, TIPPING_TIME, Bench, Ledger, open_bench
from jointbench.errors import (
    BoardFault,
    BoardRefused,
    BoardSilent,
    ExcitationError,
    FitError,
    FootOffGround,
    RobotFell,
    StuckFootSensor,
)
from jointbench.recording import Recorder, Run, open_run, record
from jointbench.testing.requirements import Measured
from jointwire import State


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(NURSING_ARM, plant="ideal", seed=3, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@contextmanager
def at_home(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.clear()
        bench.configure()
        bench.move_to(bench.robot.home)
        yield bench


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with at_home(live) as bench:
        yield bench


def states(bench: Bench) -> list[State | None]:
    """What each node says of itself when it is asked."""
    for board in bench.boards:
        board.hello()
    return [board.state for board in bench.boards]


def assert_nothing_lost(ledger: Ledger | None, measured: Measured) -> None:
    """Hold every board's count against what came."""
    assert ledger is not None
    assert ledger.closes, ledger.text()
    measured("stream.lost", ledger.samples_lost)


def test_joints_follow_through_their_couplings(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    assert [line.nodes for line in bench.lines] == [(1, 2), (3, 4), (5, 6)]
    reports = []
    run = record_wave(bench, tmp_path / "run", progress=reports.append)
    assert_nothing_lost(run.ledger, measured)
    assert run.warnings == ()
    assert set(run.starts) == set(bench.robot.joint_names)
    measured("play.start_apart", run.start_skew, "ticks")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert len({event["at_tick"] for event in events if event["event"] == "start"}) == 1
    samples = run.samples
    playing = samples.play_tick >= 0
    np.testing.assert_array_equal(samples.play_tick[playing], np.arange(1024))
    q, _, _ = wave(bench).evaluate(samples.play_tick[playing] * np.float64(samples.sample_period))
    measured("play.follow_error_through_couplings", np.abs(samples.motor_position[playing] - q), "rad")
    # What is shown on the way is what the recording has: the same samples, through the same matrix.
    assert samples.motor_torque is not None
    recorded = np.abs(samples.motor_torque[playing]).max(axis=0)
    shown = np.max([list(report.peak_torque.values()) for report in reports if len(report.peak_torque) == 6], axis=0)
    # A report knows only ticks of which both motors' samples have come, so it may miss the very peak.
    assert np.all(shown <= recorded * (1.0 + 1e-12))
    assert np.all(shown > 0.8 * recorded)


def test_a_joint_is_refused_what_its_motors_would_allow(bench: Bench) -> None:
    """Rotation beyond its window, where each motor is well within its own: the pitch is at 0."""
    high = bench.robot.position_limits[0, 1]
    way = np.array([high + 0.05, 0.0, 0.0, 0.0, 0.0, 0.0])
    motor = bench.robot.transmission_matrix[:2] @ way * bench.facts[0].motor_counts / (2.0 * np.pi)
    for facts, counts in zip(bench.facts[:2], motor, strict=True):
        assert facts.registers["limit.position_min"] < counts < facts.registers["limit.position_max"]
    said = rf"^joint 'j1' position reaches {high + 0.05:.6g} rad, at most {high:.6g} rad is allowed"
    with pytest.raises(ExcitationError, match=said):
        bench.play(Wave(np.array(bench.robot.home), way, period=40.96))
    with pytest.raises(ExcitationError, match=said):
        bench.move_to(way)
    with pytest.raises(ExcitationError, match=r"^joint 'j2' acceleration reaches"):
        bench.play(Wave(np.array(bench.robot.home), np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0])))
    assert State.RUNNING not in states(bench)


@pytest.mark.slow
@pytest.mark.parametrize("joint", ["j3", "j4"])
def test_a_pair_of_which_one_motor_is_silent_stops_the_arm(
    bench: Bench, joint: str, tmp_path: Path, measured: Measured
) -> None:
    node = bench.robot.joint_index(joint) + 1
    silenced: list[float] = []

    def silence(progress) -> None:
        if progress.elapsed > 0.5 and not silenced:
            silenced.append(progress.elapsed)
            inject(bench, "motor_silent", node)

    with pytest.raises(BoardSilent, match=rf"^{joint} \(node {node}\): ") as raised:
        record_wave(bench, tmp_path / "run", repeats=50, progress=silence)
    assert raised.value.node == node
    others = [board for board in bench.boards if board.node != node]
    for board in others:
        board.hello()
    assert not any(board.is_driving for board in others)
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert all(board.closes for board in run.ledger.boards if board.node != node), run.ledger.text()
    played_on_s = run.samples.play_tick.max() * run.samples.sample_period - silenced[0]
    measured("play.on_after_silence", 1000.0 * played_on_s, "ms")


@pytest.mark.slow
def test_a_motor_that_trips_is_named_before_its_partner(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    bench.boards[4].write_register("limit.current", 50)  # a third of what the wave takes
    with pytest.raises(BoardFault, match=r"^j5 \(node 5\): tripped at tick \d+, (?!the other motor)"):
        record_wave(bench, tmp_path / "run", repeats=3)
    assert states(bench) == [*[State.LOADED] * 4, State.FAULT, State.FAULT]
    bench.clear()
    bench.configure()
    bench.move_to(bench.robot.home)
    assert_nothing_lost(record_wave(bench, tmp_path / "again").ledger, measured)


def test_a_stop_in_full_motion_leaves_nothing_to_clear(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    def stop(progress) -> None:
        if progress.elapsed > 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_wave(bench, tmp_path / "run", repeats=50, progress=stop)
    assert states(bench) == [State.LOADED] * 6
    assert_nothing_lost(open_run(tmp_path / "run").ledger, measured)


def test_another_gear_is_refused_by_name(live: Path) -> None:
    with open_bench(live) as bench:
        pair = replace(bench.robot.couplings[1], matrix=((1530.0, 1530.0), (-1530.0, 1530.0)))
        bench.robot = replace(bench.robot, couplings=(bench.robot.couplings[0], pair, bench.robot.couplings[2]))
        with pytest.raises(BoardRefused, match=r"^j3 \(node 3\): says drive\.ratio = 3060, the robot file 1530"):
            bench.connect()


@pytest.mark.slow
def test_twelve_motors_on_six_lines_start_within_one_tick(tmp_path: Path, measured: Measured) -> None:
    with virtual_bench(NURSING_DUAL, seed=3, out=tmp_path / "sim") as live, ready_bench(live) as bench:
        run = record_wave(bench, tmp_path / "run", repeats=4)
    assert len(bench.lines) == 6
    assert len(run.starts) == 12
    measured("play.start_apart", run.start_skew, "ticks")
    assert run.warnings == ()
    assert_nothing_lost(run.ledger, measured)
    playing = run.samples.play_tick >= 0
    assert run.samples.valid[playing].all()


@pytest.mark.slow
def test_motors_of_a_board_start_together_by_any_clock(tmp_path: Path, measured: Measured) -> None:
    """Boards with clocks of their own start within a tick of each other, the motors of one at the very same."""
    clocks = iter((("0", "2.0"), ("35", "11.2503"), ("-20", "4292.9671")))
    text = NURSING_ARM.read_text().replace('"../virtual_bench', f'"{NURSING_ARM.parents[1]}/virtual_bench')
    head, *boards = text.split("[[board]]")
    boards = [
        f"{each}clock_ppm = {ppm}\nclock_offset_s = {offset}\n"
        for each, (ppm, offset) in zip(boards, clocks, strict=True)
    ]
    link = "[link]\nlatency_us = 125\njitter_us = 875\nservice_us = 150\nsync_s = 1\n"
    (tmp_path / "bench.toml").write_text("[[board]]".join([head + link, *boards]))
    with virtual_bench(tmp_path / "bench.toml", seed=3, out=tmp_path / "sim") as live, ready_bench(live) as bench:
        run = record_wave(bench, tmp_path / "run", repeats=2)
    assert_nothing_lost(run.ledger, measured)
    assert run.warnings == ()
    assert run.start_skew > 0.0
    measured("play.start_apart_by_own_clocks", run.start_skew, "ticks")
    starts = [run.starts[joint] for joint in bench.robot.joint_names]
    measured("play.start_apart_on_one_board", np.abs(np.diff(starts)[::2]), "ticks")


BIPED = HERE / "benches" / "gorobot2.toml"
TRUNK, SUPPORT = 6, 13  # nodes: the joint that moves the trunk, and the foot it stands on


@pytest.fixture
def biped_bench(tmp_path: Path) -> Iterator[Bench]:
    with virtual_bench(BIPED, seed=3, out=tmp_path / "sim") as live, ready_bench(live) as biped_bench:
        yield biped_bench


def crouch(biped_bench: Bench) -> Wave:
    """Knee and trunk move some degrees and come back."""
    way = np.zeros(biped_bench.robot.n_joints)
    way[[2, 5]] = -0.1, 0.2
    return Wave(np.array(biped_bench.robot.home), way, period=2.048)


def play(biped_bench: Bench, directory: Path, repeats: int = 1, **more) -> Run:
    biped_bench.play(crouch(biped_bench), repeats, Recorder(directory, biped_bench.provenance(repeats=repeats)), **more)
    return open_run(directory)


@pytest.mark.slow
def test_a_change_of_posture_is_recorded_whole(biped_bench: Bench, tmp_path: Path) -> None:
    assert [line.nodes for line in biped_bench.lines] == [(*range(1, 7), 13), (*range(7, 13), 14)]
    margins: list[float] = []
    run = play(biped_bench, tmp_path / "run", progress=lambda each: margins.append(each.sole_margin or np.inf))
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert [board.joint for board in run.ledger.boards] == [*biped_bench.robot.joint_names, "r_foot", "l_foot"]
    assert run.ledger.samples_lost == 0
    assert run.warnings == ()
    samples = run.samples
    assert samples.foot_names == ("r_foot", "l_foot")
    assert samples.foot_force is not None
    playing = np.flatnonzero(samples.play_tick >= 0)
    assert len(playing) == 2049 - 1
    measured = np.isfinite(samples.foot_force[playing]).all(axis=(1, 2))
    assert (np.flatnonzero(measured) % 8 == np.argmax(measured)).all()  # the same ticks on all boards
    assert measured.sum() == 2048 // 8
    assert np.array_equal(np.isfinite(samples.motor_position[playing]).all(axis=1), measured)
    assert samples.valid[playing].all()
    forces = samples.foot_force[playing[measured]]
    # 28.1 kg; gains are off by 1.5 %, and cables pull by a newton or two.
    assert forces[:, 0].sum(axis=1).mean() == pytest.approx(28.1 * 9.81, rel=0.03)
    assert np.abs(forces[:, 1].sum(axis=1).mean()) < 2.0  # in the air; each zero may be off by 0.3 N
    foot = biped_bench.robot.foot("r_foot")
    inside = foot.distance_to_edge(foot.pressure_point(forces[:, 0]))
    assert min(margins) <= inside.min() + 1e-3
    assert 0.02 < inside.min() < 0.06


@pytest.mark.slow
def test_a_push_that_tips_it_stops_all_boards(biped_bench: Bench, tmp_path: Path, measured: Measured) -> None:
    pushed: list[float] = []

    def push(progress) -> None:
        if progress.elapsed > 1.0 and not pushed:
            pushed.append(progress.elapsed)
            inject(biped_bench, "shove", TRUNK, force_N=60.0)

    with pytest.raises(RobotFell, match=r"^r_foot \(node 13\): the robot falls, 1\.\d s into its motion: for 104 ms"):
        play(biped_bench, tmp_path / "run", repeats=3, progress=push)
    for board in biped_bench.all_boards:
        board.hello()
    assert [board.state for board in biped_bench.all_boards] == [*[State.LOADED] * 12, *[State.DISARMED] * 2]
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert events[-1]["event"] == "stopped"
    assert events[-1]["unconfirmed"] == []
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith("the run was stopped by RobotFell: r_foot (node 13)")
    samples, foot = run.samples, biped_bench.robot.foot("r_foot")
    assert samples.foot_force is not None
    there = np.isfinite(samples.foot_force[:, 0, 0])
    inside = foot.distance_to_edge(foot.pressure_point(samples.foot_force[there, 0]))
    tips = float(samples.time[there][np.argmax(inside < SOLE_EDGE * 0.12)])
    off = float(samples.time[samples.play_tick >= 0].max())
    assert off - tips > TIPPING_TIME
    measured("biped.fall_to_off", 1000.0 * (off - tips), "ms")


@pytest.mark.slow
def test_it_does_not_move_with_a_dead_sensor_or_a_foot_in_the_air(biped_bench: Bench) -> None:
    inject(biped_bench, "foot_force_3_stuck", SUPPORT)
    with pytest.raises(StuckFootSensor, match=r"its rear right sensor says the same \d+ times while others vary"):
        biped_bench.play(crouch(biped_bench))
    ask_bench(biped_bench, {"heal": SUPPORT})
    for corner in (1, 2, 3, 4):
        inject(biped_bench, f"foot_force_{corner}_offset", SUPPORT, force_N=-60.0)
    with pytest.raises(FootOffGround, match=r"^r_foot \(node 13\) does not carry the robot: its corners carry [34]\d"):
        biped_bench.play(crouch(biped_bench))
    for board in biped_bench.boards:
        board.hello()
        assert not board.is_driving
    biped_bench.play(crouch(biped_bench), standing=False)  # as one that hangs


@pytest.fixture(scope="module")
def rehab_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    bench_file = rehab_arm_with_a_free_hand(tmp_path_factory.mktemp("bench"))
    with virtual_bench(bench_file, seed=3, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture
def rehab_bench(rehab_live: Path) -> Iterator[Bench]:
    with at_home(rehab_live) as bench:
        yield bench


def swing(bench: Bench, passive: float = 0.0) -> Wave:
    """A wave of the four driven joints; `passive`: of the fifth, too."""
    return Wave(np.array(bench.robot.home), np.array([0.06, 0.06, 0.06, 0.06, passive]), period=1.024)


def test_it_is_recorded_with_the_others(rehab_bench: Bench, tmp_path: Path, measured: Measured) -> None:
    rehab_bench.play(swing(rehab_bench), 1, Recorder(tmp_path / "run", rehab_bench.provenance()))
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    measured("stream.lost", run.ledger.samples_lost)
    assert run.warnings == ()
    assert set(run.starts) == {"j1", "j2", "j3", "j4"}
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [event["node"] for event in events if event["event"] == "start"] == [1, 2, 3, 4]
    samples = run.samples
    playing = samples.play_tick >= 0
    assert samples.valid[playing].all()
    assert samples.link_position is not None
    assert samples.motor_torque is not None
    assert samples.motor_current is not None
    np.testing.assert_array_equal(samples.motor_position[playing, 4], samples.link_position[playing, 4])
    assert np.ptp(samples.motor_position[playing, 4]) > 0.002  # the arm's motion carries it along
    assert np.all(samples.motor_torque[playing, 4] == 0.0)
    assert np.all(np.isnan(samples.motor_current[:, 4]))
    assert np.isfinite(samples.motor_current[playing, :4]).all()
    for board in rehab_bench.boards:
        board.hello()
    assert [board.state for board in rehab_bench.boards] == [*[State.DONE] * 4, State.DISARMED]
    assert rehab_bench.boards[4].read_registers().registers["stream.always"] == 0


def test_it_is_refused_to_move(rehab_bench: Bench) -> None:
    said = r"^joint 'j5' is asked to move from 0 to 0\.1 rad, but nothing drives it: its board has no motor"
    with pytest.raises(ExcitationError, match=said):
        rehab_bench.play(swing(rehab_bench, passive=0.1))
    with pytest.raises(ExcitationError, match=r"^joint 'j5' is asked to go to 0\.5 rad, but nothing drives it"):
        rehab_bench.move_to([*rehab_bench.robot.home[:4], 0.5])
    for board in rehab_bench.boards:
        board.hello()
        assert not board.is_driving


def test_its_board_has_no_servo_settings(rehab_bench: Bench) -> None:
    assert set(rehab_bench.provenance()["settings"]) == {"j1", "j2", "j3", "j4"}
    assert rehab_bench.facts[4].registers["servo.kp"] == 0


@pytest.mark.slow
def test_when_it_falls_silent_all_stop(rehab_bench: Bench, tmp_path: Path, measured: Measured) -> None:
    silenced: list[float] = []

    def silence(progress) -> None:
        if progress.elapsed > 0.5 and not silenced:
            silenced.append(progress.elapsed)
            inject(rehab_bench, "motor_silent", 5)

    with pytest.raises(BoardSilent, match=r"^j5 \(node 5\): sent nothing for 0\.5 s while moving"):
        rehab_bench.play(
            swing(rehab_bench), 20, Recorder(tmp_path / "run", rehab_bench.provenance(repeats=20)), silence
        )
    run = open_run(tmp_path / "run")
    played_on_s = run.samples.play_tick.max() * run.samples.sample_period - silenced[0]
    measured("play.on_after_silence", 1000.0 * played_on_s, "ms")
    for board in rehab_bench.boards[:4]:
        board.hello()
        assert board.state is State.LOADED


def test_a_joint_in_torque_mode_swings_with_the_arm_and_its_motor_carries_no_current(tmp_path: Path) -> None:
    with virtual_bench(REHAB_ARM, seed=3, out=tmp_path / "sim") as rehab_live, at_home(rehab_live) as bench:
        assert (bench.provenance()["settings"]["j5"]["stiffness"], bench.facts[4].has_motor) == (0.0, True)
        with pytest.raises(ExcitationError, match=r"^joint 'j5' is asked to move .* but its motor holds no position"):
            bench.play(swing(bench, passive=0.1))
        with pytest.raises(ExcitationError, match=r"its motor holds no position: it is in torque mode\. It is at "):
            bench.move_to([*bench.robot.home[:4], 0.5])
        bench.play(swing(bench), 1, Recorder(tmp_path / "run", bench.provenance()))
        for board in bench.boards:
            board.hello()
        assert [board.state for board in bench.boards] == [State.DONE] * 5
    samples = open_run(tmp_path / "run").samples
    playing = samples.play_tick >= 0
    assert samples.valid[playing].all()
    assert samples.motor_current is not None
    assert np.ptp(samples.motor_position[playing, 4]) > 0.002  # the arm's motion carries it along
    # The board's own zero is known to 2 mA (1 σ) and its filter leaves less than half of 25 mA of noise.
    assert abs(float(samples.motor_current[playing, 4].mean())) < 0.01
    assert float(samples.motor_current[playing, 4].std()) < 0.025


@pytest.mark.slow
def test_a_board_that_lost_its_motor_is_not_taken_for_a_passive_joints(tmp_path: Path) -> None:
    program = variation(board='board.facts["board.channels"] = 0x24')
    bench_file = bench_with_program(tmp_path, "j3", program, REHAB_ARM)
    said = r"^j3 \(node 3\): has no motor \(board\.channels\), the robot file has a drive for it"
    with (
        virtual_bench(bench_file, out=tmp_path / "sim") as rehab_live,
        open_bench(rehab_live) as bench,
        pytest.raises(BoardRefused, match=said),
    ):
        bench.connect()


WEIGHT = np.array([0.0, 0.0, -30.0])


@dataclass(frozen=True)
class Recorded:
    """A model of the arm alone, and another motion with the weight on its hand."""

    pulled: Run
    model: jb.Model


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("runs")
    robot = jb.load_robot("nursing_arm")
    motions = [jb.random_excitation(robot, harmonics=2, period=4.8, seed=seed) for seed in (1, 2)]
    with virtual_bench(NURSING_ARM, plant="ideal", out=folder / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        free = record(bench, motions[0], folder / "free", repeats=1)
        inject(bench, "pull", 6, force_N=WEIGHT[2])
        pulled = record(bench, motions[1], folder / "pulled", repeats=1)
    return Recorded(pulled, jb.fit(free, robot))


@pytest.mark.slow
def test_what_the_model_lacks_is_the_force_at_the_hand(recorded: Recorded) -> None:
    check = jb.validate(recorded.model, recorded.pulled)
    missing = (check.measured - check.predicted)[check.complete]
    samples = recorded.pulled.samples
    played = samples.play_tick >= 0
    time = samples.play_tick[played] * samples.sample_period
    joints = samples.motor_position[played].T
    q = np.stack([np.interp(check.time[check.complete], time, joint) for joint in joints], axis=1)

    truth = external(q, WEIGHT)
    rms = np.sqrt(np.mean(truth**2, axis=0))
    loaded = rms > 1.0  # the rotations hardly carry it
    assert loaded.tolist() == [False, True, False, True, False, True]
    error = np.sqrt(np.mean((missing - truth) ** 2, axis=0))
    # Two short motions: 6, 5 and 4 % of its rms, of which the model's own error is 2, 2 and 1.
    assert np.all(error[loaded] < 0.1 * rms[loaded]), error / rms
    per_newton = np.stack([external(q, axis).ravel() for axis in np.eye(3)], axis=1)
    told, *_ = np.linalg.lstsq(per_newton, missing.ravel())
    np.testing.assert_allclose(told, WEIGHT, atol=1.5)  # [0.1, -0.5, -30.7] N of these motions


@pytest.mark.slow
def test_a_known_force_is_taken_off(recorded: Recorded) -> None:
    weight = jb.Wrench("hand", WEIGHT)
    free = jb.without_external(recorded.pulled, weight)
    assert free.warnings[-1] == "a known force at 'hand' was taken off its torques"
    with_it, without = (jb.validate(recorded.model, run).error_all.relative for run in (recorded.pulled, free))
    assert np.all(with_it[[1, 3, 5]] > 0.2), with_it
    assert np.all(without < 0.03), without
    constant = np.tile(WEIGHT, (free.samples.n_samples, 1))
    as_channel = jb.without_external(recorded.pulled, jb.Wrench("hand", constant))
    assert as_channel.samples.motor_torque is not None
    assert free.samples.motor_torque is not None
    np.testing.assert_allclose(as_channel.samples.motor_torque, free.samples.motor_torque, atol=1e-9)
    with pytest.raises(FitError, match=r"force has shape \(5, 3\); it must be \(3,\), or \(\d+, 3\)"):
        jb.without_external(recorded.pulled, jb.Wrench("hand", constant[:5]))
    with pytest.raises(FitError, match="'nursing_arm' has no frame 'tool'; there are"):
        jb.without_external(recorded.pulled, jb.Wrench("tool", WEIGHT))


def external(q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """tau_ext of a force at the hand by differences of the hand's place: none of the product's Jacobians."""
    robot = jb.load_robot("nursing_arm")
    torque = np.empty_like(q)
    for joint in range(robot.n_joints):
        step = 1e-5 * np.eye(robot.n_joints)[joint]
        torque[:, joint] = -(hand(robot, q + step) - hand(robot, q - step)) @ force / 2e-5
    return torque


def hand(robot: jb.Robot, q: np.ndarray) -> np.ndarray:
    """Where the hand is [m], multiplied out from the file's placements."""
    at = np.tile(np.eye(4), (len(q), 1, 1))
    for joint, position in zip(robot.joints, q.T, strict=True):
        placed, turn = np.eye(4), np.tile(np.eye(4), (len(q), 1, 1))
        placed[:3, :3], placed[:3, 3] = joint.placement
        turn[:, 0, 0] = turn[:, 1, 1] = np.cos(position)
        turn[:, 1, 0], turn[:, 0, 1] = np.sin(position), -np.sin(position)
        at = at @ placed @ turn
    return (at @ [0.0, 0.12, 0.0, 1.0])[:, :3]


def test_the_plant_rests_on_its_brakes_with_the_weight_that_statics_has() -> None:
    """A still arm with closed brakes: what gears carry changes by tau_ext, to what the flexing gears give way."""
    bench = read_bench_file(NURSING_ARM)
    torques = []
    for force in (0.0, -30.0):
        plant = Plant(bench.robot, bench.plant, "harmonic")
        pull = np.array([0.0, 0.0, 0.0, 0.0, 0.0, force])
        motion = plant.advance(np.zeros(6, bool), np.zeros(6), pull=pull)
        for _ in range(1499):
            motion = plant.advance(np.zeros(6, bool), np.zeros(6), pull=pull)
        torques.append(motion.torque[-1])
    q = plant.link_position[None]
    np.testing.assert_allclose(torques[1] - torques[0], external(q, WEIGHT)[0], atol=0.02)


def test_things_hang_on_arms_alone() -> None:
    with pytest.raises(ControlError, match="a pull is at an arm whose base stands still; this robot can have a shove"):
        HardwareFaults({1: {}}, {1: 0}, 1, is_arm=False).inject(Injection(1, "pull", 5.0))
