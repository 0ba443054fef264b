"""A joint that nothing drives, on a bench whose others move: measured with them, never moved, and missed at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import REHAB_ARM, Wave, bench_with_program, inject, variation
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, open_bench
from jointbench.errors import BoardSilent, ConfigurationDiffers, TrajectoryError
from jointbench.recording import Recorder, open_run
from jointbench.testing.measured import Measured
from jointwire import State


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(REHAB_ARM, seed=3, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.clear()
        bench.configure()
        bench.move_to(bench.robot.home)
        yield bench


def swing(bench: Bench, passive: float = 0.0) -> Wave:
    """A wave of the four driven joints; `passive`: of the fifth, too."""
    return Wave(np.array(bench.robot.home), np.array([0.06, 0.06, 0.06, 0.06, passive]), period=1.024)


def test_it_is_recorded_with_the_others(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    bench.play(swing(bench), 1, Recorder(tmp_path / "run", bench.provenance()))
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
    for board in bench.boards:
        board.hello()
    assert [board.state for board in bench.boards] == [*[State.DONE] * 4, State.DISARMED]
    assert bench.boards[4].read_registers().registers["stream.always"] == 0


def test_it_is_refused_to_move(bench: Bench) -> None:
    said = r"^joint 'j5' is asked to move from 0 to 0\.1 rad, but nothing drives it: its board has no motor"
    with pytest.raises(TrajectoryError, match=said):
        bench.play(swing(bench, passive=0.1))
    with pytest.raises(TrajectoryError, match=r"^joint 'j5' is asked to go to 0\.5 rad, but nothing drives it"):
        bench.move_to([*bench.robot.home[:4], 0.5])
    for board in bench.boards:
        board.hello()
        assert not board.is_driving


def test_its_board_has_no_servo_settings(bench: Bench) -> None:
    assert set(bench.provenance()["settings"]) == {"j1", "j2", "j3", "j4"}
    assert bench.facts[4].registers["servo.kp"] == 0


@pytest.mark.slow
def test_when_it_falls_silent_all_stop(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    silenced: list[float] = []

    def silence(progress) -> None:
        if progress.elapsed > 0.5 and not silenced:
            silenced.append(progress.elapsed)
            inject(bench, "motor_silent", 5)

    with pytest.raises(BoardSilent, match=r"^j5 \(node 5\): sent nothing for 0\.5 s while moving"):
        bench.play(swing(bench), 20, Recorder(tmp_path / "run", bench.provenance(repeats=20)), silence)
    run = open_run(tmp_path / "run")
    played_on_s = run.samples.play_tick.max() * run.samples.sample_period - silenced[0]
    measured("play.on_after_silence", 1000.0 * played_on_s, "ms")
    for board in bench.boards[:4]:
        board.hello()
        assert board.state is State.LOADED


@pytest.mark.slow
def test_a_board_that_lost_its_motor_is_not_taken_for_a_passive_joints(tmp_path: Path) -> None:
    program = variation(board='board.facts["board.channels"] = 0x24')
    bench_file = bench_with_program(tmp_path, "j3", program, REHAB_ARM)
    said = r"^j3 \(node 3\): has no motor \(board\.channels\), the robot file has a drive for it"
    with (
        virtual_bench(bench_file, out=tmp_path / "sim") as live,
        open_bench(live) as bench,
        pytest.raises(ConfigurationDiffers, match=said),
    ):
        bench.connect()
