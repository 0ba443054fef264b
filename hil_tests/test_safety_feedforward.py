"""A push during a motion with feed-forward trips the board by itself; the same motion without a push does not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, Wave, ask_bench, inject, ready_bench
from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.bench import Bench, Feedforward, Progress, open_bench
from jointbench.bench.client import RegisterName
from jointbench.errors import BoardFault
from jointbench.identification.feedforward import feedback_current
from jointbench.model import inverse_dynamics, load_robot
from jointbench.recording import Recorder, open_run
from jointwire import State, Trip

MOTION = 2.048  # [s]; boards watch from its 1024th tick on
PUSHED = 1  # of the two joints; its node is 2
PUSH_Nm = 40.0
PUSHED_FOR = 50  # ticks; the servo meets a push of this size within some 20, as the joint's inertia gives way
BAND: RegisterName = "limit.unexpected"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    out = tmp_path_factory.mktemp("sim")
    with virtual_bench(COBOT, plant="ideal", seed=3, modules=2, out=out) as path:
        yield path


@pytest.fixture(scope="module")
def currents(live: Path, tmp_path_factory: pytest.TempPathFactory) -> Array:
    with ready_bench(live) as bench:
        return learned(bench, tmp_path_factory.mktemp("first") / "run")


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.clear()
        bench.configure()
        yield bench


def slow(bench: Bench) -> Wave:
    return Wave(np.array(bench.robot.home), np.full(bench.robot.n_joints, 0.02), MOTION)


def learned(bench: Bench, folder: Path) -> Array:
    """The current that this motion takes, at its knots: a feed-forward that needs no model."""
    with Recorder(folder, bench.provenance(repeats=1)) as recorder:
        bench.play(slow(bench), 1, recorder)
    samples = open_run(folder).samples
    assert samples.motor_current is not None
    playing = samples.play_tick >= 0
    ticks = 32 * np.arange(round(1000 * MOTION) // 32 + 1)
    own = samples.motor_current[playing]
    return np.stack([np.interp(ticks, samples.play_tick[playing], current) for current in own.T], axis=1)


def play_fed(bench: Bench, folder: Path, fed: Feedforward, push_Nm: float = 0.0) -> list[dict[str, Any]]:
    """Play it, pushed from its middle on, and return the recording's events, whatever comes of it."""
    pushed = list[float]()

    def push(progress: Progress) -> None:
        if push_Nm and not pushed and progress.elapsed > MOTION / 2:
            pushed.append(progress.elapsed)
            ask_bench(bench, {"outputs": PUSHED + 1})  # which are noted from now on
            inject(bench, "push", PUSHED + 1, torque_Nm=push_Nm)

    bench.move_to(bench.robot.home)
    with Recorder(folder, bench.provenance(repeats=1)) as recorder:
        bench.play(slow(bench), 1, recorder, push, feedforward=fed)
    return events_of(folder)


def events_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def limits(events: list[dict[str, Any]]) -> list[int]:
    return [event["registers"][BAND] for event in events if event["event"] == "feedforward"]


def text(events: list[dict[str, Any]]) -> str:
    return next(event["text"] for event in events if event["event"] == "watch")


def test_a_push_trips_unexpected_and_the_motor_is_off(bench: Bench, currents: Array, tmp_path: Path) -> None:
    """Half an ampere is more than the learned current leaves to the servo, and less than a push of 40 N·m takes."""
    fed = Feedforward(currents, None, np.array([np.inf, 0.5]))
    calm = play_fed(bench, tmp_path / "calm", fed)
    assert [board.state for board in bench.boards] == [State.DONE] * 2
    assert limits(calm) == [0, 500]
    assert text(calm) == "boards trip UNEXPECTED where the servo adds more to the feed-forward than: j1 off, j2 0.5 A"
    assert [facts.registers[BAND] for facts in bench.facts] == [0, 0]  # back when the motion is over
    # What the servos added, as a band is made of it: less than the band, and not nothing.
    added = feedback_current(open_run(tmp_path / "calm"), fed, bench.facts)
    assert added.shape == (round(1000 * MOTION) - 1024, 2)
    assert np.all(np.abs(added).max(axis=0) < 0.5)
    assert np.all(np.abs(added).max(axis=0) > 0.0)
    with pytest.raises(BoardFault, match=r"^j2 \(node 2\): .* adds more to the motion's feed-forward .*, limit 0\.5 A"):
        play_fed(bench, tmp_path / "pushed", fed, PUSH_Nm)
    fault = bench.boards[PUSHED].fault
    assert fault is not None
    assert (Trip(fault.trip), fault.limit) == (Trip.UNEXPECTED, 500)
    assert abs(fault.value) > 500
    assert bench.boards[PUSHED].state is State.FAULT
    outputs = ask_bench(bench, {"outputs": PUSHED + 1})["outputs"]
    assert {(enable, command) for tick, enable, command in outputs if tick >= fault.tick} == {(0, 0)}
    assert all(enable for tick, enable, _ in outputs if tick < fault.tick)
    assert fault.tick - outputs[0][0] < PUSHED_FOR


def test_the_feed_forward_of_another_robots_model_trips_unexpected(
    bench: Bench, currents: Array, tmp_path: Path
) -> None:
    """Modules of another arm on the same drives: gravity asks 1.1 A of the second one, where this arm needs none."""
    other = load_robot("modular7:2")
    assert other.standard_parameters is not None
    wave = slow(bench).evaluate(np.linspace(0.0, MOTION, len(currents)))
    wrong = Feedforward.of_joint_torque(inverse_dynamics(other, *wave, other.standard_parameters), bench.robot)
    bench.move_to(bench.robot.home)
    ask_bench(bench, {"outputs": PUSHED + 1})
    with (
        Recorder(tmp_path / "run", bench.provenance(repeats=1)) as recorder,
        pytest.raises(BoardFault, match=r"^j2 \(node 2\): .* adds more to the motion's feed-forward"),
    ):
        bench.play(slow(bench), 1, recorder, feedforward=replace(wrong, unexpected_limit_A=np.array([np.inf, 0.5])))
    fault = bench.boards[PUSHED].fault
    assert fault is not None
    assert (Trip(fault.trip), bench.boards[PUSHED].state) == (Trip.UNEXPECTED, State.FAULT)
    outputs = ask_bench(bench, {"outputs": PUSHED + 1})["outputs"]
    assert {(enable, command) for tick, enable, command in outputs if tick >= fault.tick} == {(0, 0)}
    # As soon as the board watches, 1024 ticks into the motion: within its low-pass.
    played = open_run(tmp_path / "run").samples.play_tick
    assert 1024 <= played.max() <= 1024 + 30


def test_without_a_band_the_same_push_trips_nothing_and_the_recording_says_that_nobody_watched(
    bench: Bench, currents: Array, tmp_path: Path
) -> None:
    events = play_fed(bench, tmp_path / "pushed", Feedforward(currents), PUSH_Nm)
    assert limits(events) == [0, 0]
    assert text(events) == "no board watches for pushes: limit.unexpected is 0, off"
    assert [board.state for board in bench.boards] == [State.DONE] * 2
