"""Pairs of motors that turn and pitch a joint together, a board for each: played, guarded and stopped as one."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import NURSING_ARM, NURSING_DUAL, Wave, inject, record_wave, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, Ledger, open_bench
from jointbench.errors import BoardFault, BoardSilent, ConfigurationDiffers, TrajectoryError
from jointbench.recording import open_run
from jointbench.testing.measured import Measured
from jointwire import State


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(NURSING_ARM, plant="ideal", seed=3, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.clear()
        bench.configure()
        bench.move_to(bench.robot.home)
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
    with pytest.raises(TrajectoryError, match=said):
        bench.play(Wave(np.array(bench.robot.home), way, period=40.96))
    with pytest.raises(TrajectoryError, match=said):
        bench.move_to(way)
    with pytest.raises(TrajectoryError, match=r"^joint 'j2' acceleration reaches"):
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
        with pytest.raises(
            ConfigurationDiffers, match=r"^j3 \(node 3\): says drive\.ratio = 3060, the robot file 1530"
        ):
            bench.connect()


@pytest.mark.slow
def test_twelve_motors_on_six_lines_start_within_one_tick(tmp_path: Path, measured: Measured) -> None:
    with virtual_bench(NURSING_DUAL, seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
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
    with virtual_bench(tmp_path / "bench.toml", seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        run = record_wave(bench, tmp_path / "run", repeats=2)
    assert_nothing_lost(run.ledger, measured)
    assert run.warnings == ()
    assert run.start_skew > 0.0
    measured("play.start_apart_by_own_clocks", run.start_skew, "ticks")
    starts = [run.starts[joint] for joint in bench.robot.joint_names]
    measured("play.start_apart_on_one_board", np.abs(np.diff(starts)[::2]), "ticks")
