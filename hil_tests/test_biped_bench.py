"""A biped on fourteen boards and two lines: recorded whole, and stopped when it falls."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import HERE, Wave, ask_bench, inject
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import SOLE_EDGE, TIPPING_TIME, Bench, open_bench
from jointbench.errors import FootOffGround, RobotFalls, StuckFootSensor
from jointbench.recording import Recorder, Run, open_run
from jointbench.testing.measured import Measured
from jointwire import State

BIPED = HERE / "benches" / "gorobot2.toml"
TRUNK, SUPPORT = 6, 13  # nodes: the joint that moves the trunk, and the foot it stands on


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with virtual_bench(BIPED, seed=3, out=tmp_path / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        yield bench


def crouch(bench: Bench) -> Wave:
    """Knee and trunk move some degrees and come back."""
    way = np.zeros(bench.robot.n_joints)
    way[[2, 5]] = -0.1, 0.2
    return Wave(np.array(bench.robot.home), way, period=2.048)


def play(bench: Bench, directory: Path, repeats: int = 1, **more) -> Run:
    bench.play(crouch(bench), repeats, Recorder(directory, bench.provenance(repeats=repeats)), **more)
    return open_run(directory)


@pytest.mark.slow
def test_a_change_of_posture_is_recorded_whole(bench: Bench, tmp_path: Path) -> None:
    assert [line.nodes for line in bench.lines] == [(*range(1, 7), 13), (*range(7, 13), 14)]
    margins: list[float] = []
    run = play(bench, tmp_path / "run", progress=lambda each: margins.append(each.sole_margin or np.inf))
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert [board.joint for board in run.ledger.boards] == [*bench.robot.joint_names, "r_foot", "l_foot"]
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
    foot = bench.robot.foot("r_foot")
    inside = foot.distance_to_edge(foot.pressure_point(forces[:, 0]))
    assert min(margins) <= inside.min() + 1e-3
    assert 0.02 < inside.min() < 0.06


@pytest.mark.slow
def test_a_push_that_tips_it_stops_all_boards(bench: Bench, tmp_path: Path, measured: Measured) -> None:
    pushed: list[float] = []

    def push(progress) -> None:
        if progress.elapsed > 1.0 and not pushed:
            pushed.append(progress.elapsed)
            inject(bench, "shove", TRUNK, force_N=60.0)

    with pytest.raises(RobotFalls, match=r"^r_foot \(node 13\): the robot falls, 1\.\d s into its motion: for 104 ms"):
        play(bench, tmp_path / "run", repeats=3, progress=push)
    for board in bench.all_boards:
        board.hello()
    assert [board.state for board in bench.all_boards] == [*[State.LOADED] * 12, *[State.DISARMED] * 2]
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert events[-1]["event"] == "stopped"
    assert events[-1]["unconfirmed"] == []
    run = open_run(tmp_path / "run")
    assert run.ledger is not None
    assert run.ledger.closes, run.ledger.text()
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith("the run was stopped by RobotFalls: r_foot (node 13)")
    samples, foot = run.samples, bench.robot.foot("r_foot")
    assert samples.foot_force is not None
    there = np.isfinite(samples.foot_force[:, 0, 0])
    inside = foot.distance_to_edge(foot.pressure_point(samples.foot_force[there, 0]))
    tips = float(samples.time[there][np.argmax(inside < SOLE_EDGE * 0.12)])
    off = float(samples.time[samples.play_tick >= 0].max())
    assert off - tips > TIPPING_TIME
    measured("biped.fall_to_off", 1000.0 * (off - tips), "ms")


@pytest.mark.slow
def test_it_does_not_move_with_a_dead_sensor_or_a_foot_in_the_air(bench: Bench) -> None:
    inject(bench, "foot_force_3_stuck", SUPPORT)
    with pytest.raises(StuckFootSensor, match=r"its rear right sensor says the same \d+ times while others vary"):
        bench.play(crouch(bench))
    ask_bench(bench, {"heal": SUPPORT})
    for corner in (1, 2, 3, 4):
        inject(bench, f"foot_force_{corner}_offset", SUPPORT, force_N=-60.0)
    with pytest.raises(FootOffGround, match=r"^r_foot \(node 13\) does not carry the robot: its corners carry [34]\d"):
        bench.play(crouch(bench))
    for board in bench.boards:
        board.hello()
        assert not board.is_driving
    bench.play(crouch(bench), standing=False)  # as one that hangs
