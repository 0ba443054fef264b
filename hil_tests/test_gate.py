"""What must not be played is refused before anything moves, whichever way it is asked for, homing included."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT
from hil_tests.suite.driven_joint import DrivenJoint
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, open_bench
from jointbench.cli.main import main
from jointbench.errors import TrajectoryError
from jointbench.excitation import Excitation, random_excitation
from jointbench.recording import open_run, record
from jointbench.robot import Robot, load_robot
from jointwire import State

ROBOT = load_robot("cobot6:2")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, plant="ideal", seed=5, modules=2, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture(scope="module")
def plan() -> Excitation:
    return random_excitation(ROBOT, period=1.6, seed=0)


@pytest.fixture
def files(live: Path, plan: Excitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What makes the arguments of `run` of changed bench files and plans."""
    monkeypatch.chdir(tmp_path)

    def make(bench: str = "", motion: Excitation = plan) -> list[str]:
        own = live.with_name("own.toml")
        own.write_text(f"{live.read_text()}\n{bench}", encoding="utf-8")
        Path("plan.json").write_text(json.dumps(motion.to_dict()), encoding="utf-8")
        return ["run", str(own), "--plan", "plan.json", "--repeats", "1", "--out", "run"]

    return make


@pytest.fixture(scope="module")
def stands(live: Path) -> np.ndarray:
    """Where the joints are before anything is asked for."""
    return where(live)


def where(live: Path) -> np.ndarray:
    with open_bench(live) as bench:
        bench.connect()
        assert {board.state for board in bench.boards} == {State.DISARMED}
        return bench.positions()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"motion": random_excitation(replace(ROBOT, name="arm3"), period=1.6)},
            "it is a plan for robot 'arm3', the bench's is 'cobot6:2'; plan for that one",
        ),
        (
            {"motion": replace(random_excitation(load_robot("cobot6:3"), period=1.6), robot_name="cobot6:2")},
            "robot 'cobot6:2' is not what it was when this was planned: its joints sit elsewhere",
        ),
        (
            {
                "motion": replace(
                    random_excitation(load_robot("cobot6:3"), period=1.6), robot_name=ROBOT.name, digests={}
                )
            },
            "it moves 3 joints, robot 'cobot6:2' has 2",
        ),
        ({"bench": "[limits]\nvelocity_rad_s = 0.1\n"}, "velocity reaches"),
        ({"bench": "[limits]\ncurrent_A = 0.01\n"}, "current reaches"),
        ({"bench": "[limits]\nposition_rad = 0.01\n"}, "position reaches"),
    ],
)
def test_run_refuses_what_check_refuses(
    live: Path,
    stands: np.ndarray,
    files: Callable[..., list[str]],
    changes: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = files(**changes)
    assert main(run) == 2
    refused = capsys.readouterr().err
    assert said in refused
    assert "plan.json is not played on " in refused
    np.testing.assert_allclose(where(live), stands, atol=1e-3)  # it has not gone home, where runs begin
    assert not Path("run").exists()
    assert main(["check", run[1], "--plan", "plan.json"]) == 1
    assert said in capsys.readouterr().out


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        yield bench


def slower(robot: Robot, velocity: float) -> Robot:
    """The robot with its file's velocity limits lowered [rad/s]."""
    return replace(robot, joints=tuple(replace(joint, velocity_limit=velocity) for joint in robot.joints))


def test_limits_lowered_after_planning_hold_in_a_script(bench: Bench, plan: Excitation, tmp_path: Path) -> None:
    bench.robot = slower(bench.robot, np.radians(10.0))
    for play in (lambda: record(bench, plan, tmp_path / "run"), lambda: bench.play(plan), lambda: bench.admit(plan)):
        with pytest.raises(TrajectoryError, match=r"velocity reaches .*0\.174533 rad/s is allowed; the robot's limits"):
            play()
    assert not (tmp_path / "run").exists()
    for board in bench.boards:
        board.hello()
        assert not board.is_driving


def test_homing_keeps_the_bench_files_limits(bench: Bench) -> None:
    bench.file = replace(bench.file, terms=replace(bench.file.terms, limits={"position_rad": 0.05}))
    start = bench.positions()
    bench.move_to(start + 0.04)
    with pytest.raises(TrajectoryError, match=r"joint 'j1' position reaches"):
        bench.move_to(start + 0.08)  # 0.04 from here, 0.08 from where it stood
    bench.move_to(start)


def test_the_bench_tests_swings_keep_the_bench_files_limits(bench: Bench) -> None:
    joint = DrivenJoint(bench, bench.boards[0])
    counts = joint.facts.motor_counts * abs(joint.facts.ratio) / (2.0 * np.pi)
    free = np.ptp(joint.swing()[:, 0]) / counts
    assert 0.02 < free <= 0.05  # what was asked for, or what the joint's acceleration allows
    bench.file = replace(bench.file, terms=replace(bench.file.terms, limits={"position_rad": 0.02}))
    assert np.ptp(joint.swing()[:, 0]) / counts < 0.02
    bench.robot = slower(bench.robot, 1e-6)
    with pytest.raises(TrajectoryError, match="velocity reaches"):
        joint.swing()


def test_what_was_not_watched_is_said_before_anything_moves(
    files: Callable[..., list[str]], plan: Excitation, capsys: pytest.CaptureFixture[str]
) -> None:
    unwatched = "no capsules: self-collision and table NOT checked"
    run = files("[limits]\nvelocity_rad_s = 0.1\n", replace(plan, not_checked=unwatched))
    assert main(["check", run[1], "--plan", "plan.json"]) == 1
    assert f"plan.json: {unwatched}" in capsys.readouterr().out
    assert main(run) == 2
    assert f"plan.json: {unwatched}" in capsys.readouterr().out


def test_a_gentle_run_goes_a_share_of_the_way(
    live: Path, plan: Excitation, files: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    run = files()
    assert main([*run, "--gentle", "--json", "result.json"]) == 0
    assert ", 20% of its way and speed" in capsys.readouterr().out
    recorded = open_run("run")
    whole = plan.evaluate(np.linspace(0.0, plan.period, 200))[0] - plan.home
    gone = recorded.samples.motor_position[recorded.samples.play_tick >= 0] - plan.home
    np.testing.assert_allclose(np.ptp(gone, axis=0), 0.2 * np.ptp(whole, axis=0), atol=0.01)  # the servo's error
    assert recorded.provenance["gentle"] == 0.2
    assert recorded.provenance["settings"]["j1"]["velocity_limit"] == pytest.approx(
        0.2 * 1.3 * ROBOT.velocity_limits[0]
    )
