"""An arm floats by its identified model: it stays where it is left, follows a hand, and stops when a link drops."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, REHAB_ARM, ask_bench, inject
from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.bench import Bench, RegisterName, open_bench
from jointbench.bench.floating import FloatTable, RemainingCurrent, float_boards
from jointbench.cli.main import main
from jointbench.errors import BoardFault, BoardSilent
from jointbench.excitation import load_excitation, random_excitation
from jointbench.identification import Model, fit, load_model
from jointbench.identification.floating import float_arm, float_tables
from jointbench.recording import open_run, record
from jointwire import State

# A soft hand, about an adult's arm at rest. A stiffer one is unstable by the 20 to 40 ms that the bench takes to obey.
STIFFNESS, DAMPING = np.array([50.0, 50.0, 12.0, 12.0]), np.array([8.0, 8.0, 1.5, 1.5])
WAY, PERIOD = np.array([0.5, 0.5, 0.45, 0.5]), 8.0 / np.array([1.0, 0.9, 1.1, 1.2])  # [rad], [s]
SECONDS, SETTLED = 15.0, 3.0
LARGEST_SHARE = 0.15  # of the uncompensated arm's interaction torque, rms over joints
STRETCHED = np.radians([0.0, 60.0, -40.0, 90.0, 0.0])  # where gravity asks more of the arm's motors than at home
OFF = (1.05, 0.95)  # torque of wrong models over the right one's
LARGEST_DRIFT = 1.0  # [deg]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("float")
    with virtual_bench(COBOT, plant="ideal", seed=3, modules=2, out=folder / "sim") as path:
        with open_bench(path) as bench:
            bench.connect()
            bench.configure()
            fit(record(bench, random_excitation(bench.robot, period=3.2, seed=1), folder / "run", 1)).save(
                path.with_name("model.json")
            )
        yield path


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.clear()
        bench.configure()
        yield bench
        ask_bench(bench, {"heal": 1})
        ask_bench(bench, {"heal": 2})


@pytest.fixture
def model(live: Path) -> Model:
    return load_model(live.with_name("model.json"))


def test_the_verb_floats_records_and_leaves_the_boards_as_they_were(
    live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = str(live.with_name("model.json"))
    assert main(["float", str(live), "--model", model, "--seconds", "1", "--out", "led", "--json", "result.json"]) == 0
    said = capsys.readouterr().out
    assert "next: jointbench plan cobot6:2 --taught led --out taught.json" in said
    for place in json.loads(Path("result.json").read_text())["joints"].values():
        # Nobody touches it: gravity of a fitted model is within a percent, and holds are ten times as strong.
        assert place["highest"] - place["lowest"] <= 0.1
    run = open_run("led")
    assert run.ledger is not None
    assert run.ledger.is_valid
    assert 1.0 <= run.samples.n_samples * run.samples.sample_period <= 2.5
    with open_bench(live) as bench:
        bench.connect()
        assert {board.state for board in bench.boards} == {State.LOADED}
        assert {facts.registers["limit.float"] for facts in bench.facts} == {0}
        assert {facts.registers["servo.friction"] for facts in bench.facts} == {0}


@pytest.mark.slow  # quickly: a recorded path becomes a motion in host/jointbench/tests/excitation/test_plan.py
def test_what_a_hand_has_taught_becomes_a_motion_that_the_bench_plays(
    bench: Bench, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    updates: list[Array] = []

    def lead(q: Array) -> None:
        """Push the first joint for half a second; its friction is below 10 N·m."""
        updates.append(q)
        if len(updates) in (10, 35):
            inject(bench, "push", 1, torque_Nm=15.0 if len(updates) == 10 else 0.0)

    bench.move_to(bench.robot.home)
    led, plan = tmp_path / "led", tmp_path / "taught.json"
    float_arm(model, bench, led, 1.2, on_update=lead)
    assert main(["plan", bench.file.robot, "--taught", str(led), "--out", str(plan)]) == 0
    assert "there and back" in capsys.readouterr().out
    motion = load_excitation(plan)
    reached = np.ptp(motion.evaluate(np.linspace(0.0, motion.period, 500))[0], axis=0)
    assert reached[0] == pytest.approx(np.ptp(updates, axis=0)[0], rel=0.2)  # it still brakes when updates end
    assert reached[0] > 0.02
    bench.admit(motion)


@pytest.mark.slow  # quickly: the host that hangs below, and a board alone in firmware/tests/test_floating.py
def test_a_link_that_drops_stops_every_motor_and_names_its_board(bench: Bench, model: Model, tmp_path: Path) -> None:
    updates: list[Array] = []

    def drop(q: Array) -> None:
        updates.append(q)
        if len(updates) == 20:
            inject(bench, "motor_silent", 2)

    with pytest.raises(BoardSilent, match=r"^j2 \(node 2\): sent nothing for 0\.5 s while it floated"):
        float_arm(model, bench, tmp_path / "run", 10.0, on_update=drop)
    ask_bench(bench, {"heal": 2})
    for board in bench.boards:
        board.hello()
        assert board.state in (State.LOADED, State.DISARMED)
    run = open_run(tmp_path / "run")
    assert any("stopped by BoardSilent: j2" in warning for warning in run.warnings)


def test_a_switch_that_is_let_go_of_brakes_and_stops_every_motor(bench: Bench, model: Model, tmp_path: Path) -> None:
    asked: list[bool] = []

    def is_held() -> bool:
        asked.append(len(asked) < 25)
        return asked[-1]

    began_us = bench.clock.now_us()
    float_arm(model, bench, tmp_path / "run", 10.0, is_held=is_held)
    assert bench.clock.now_us() - began_us < 4_000_000
    assert {board.state for board in bench.boards} == {State.LOADED}


def test_a_host_that_hangs_finds_its_motors_off_and_says_why(bench: Bench, model: Model, tmp_path: Path) -> None:
    updates: list[Array] = []

    def hang(q: Array) -> None:
        updates.append(q)
        if len(updates) == 20:
            end_us = bench.clock.now_us() + 400_000
            while bench.clock.now_us() < end_us:
                bench.clock.wait(10_000)
                for board in bench.boards:
                    board.keep_alive()  # the link is there, the program is not

    with pytest.raises(BoardFault, match=r"^j1 \(node 1\): braked and switched its motor off: for float\.timeout"):
        float_arm(model, bench, tmp_path / "run", 10.0, on_update=hang)
    assert {board.state for board in bench.boards} == {State.LOADED}


def test_a_joint_that_is_torn_out_of_its_window_trips(bench: Bench, model: Model, tmp_path: Path) -> None:
    def tear(_: Array) -> None:
        inject(bench, "push", 1, torque_Nm=400.0)

    with pytest.raises(BoardFault, match=r"^j1 \(node 1\)"):
        float_arm(model, bench, tmp_path / "run", 10.0, on_update=tear)
    assert not any(board.is_driving for board in bench.boards)


class Hand:
    """Leads the first four joints there and back, and notes with what torque [N·m]."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.home = bench, bench.positions()[:4]
        self.start_s = bench.clock.now_us() * 1e-6
        self.before, self.velocity = (self.start_s, self.home), np.zeros(4)
        self.torques: list[Array] = []

    def __call__(self, q: Array) -> None:
        """Pull towards where the joints should be now."""
        now = self.bench.clock.now_us() * 1e-6
        phase, way = 2.0 * np.pi * (now - self.start_s) / PERIOD, WAY * min(1.0, now - self.start_s) / 2.0
        goal, speed = self.home + way * (1.0 - np.cos(phase)), way * 2.0 * np.pi / PERIOD * np.sin(phase)
        self.velocity = 0.5 * (self.velocity + (q[:4] - self.before[1]) / max(now - self.before[0], 1e-3))
        self.before = (now, q[:4])
        torque = STIFFNESS * (goal - q[:4]) + DAMPING * (speed - self.velocity)
        self.pull(torque)
        if now - self.start_s > SETTLED:
            self.torques.append(torque)

    def pull(self, torque: Array) -> None:
        for joint, one in enumerate(torque.tolist(), start=1):
            inject(self.bench, "push", joint, torque_Nm=float(one))

    @property
    def rms(self) -> float:
        """Over joints and time [N·m]."""
        return float(np.sqrt(np.mean(np.square(self.torques))))

    @property
    def mean(self) -> float:
        """Mean absolute torque [N·m], over time and joints."""
        return float(np.mean(np.abs(self.torques)))


def uncompensated(tables: Sequence[FloatTable | None]) -> list[FloatTable | None]:
    none: dict[RegisterName, int] = {"servo.friction": 0, "servo.velocity_feedforward": 0}
    return [
        table
        and replace(
            table, currents_mA=np.zeros_like(table.currents_mA), registers={**table.registers, **none}, hold_A=0.0
        )
        for table in tables
    ]


def of_a_wrong_model(
    tables: Sequence[FloatTable | None], remaining: RemainingCurrent, off: float
) -> tuple[list[FloatTable | None], RemainingCurrent]:
    """Tables of a model all of whose torques are a factor off: gravity, springs and friction; holds stay."""
    names: tuple[RegisterName, ...] = ("servo.friction", "servo.velocity_feedforward")
    wrong = [
        table
        and replace(
            table,
            currents_mA=np.round(off * table.currents_mA).astype(np.int16),
            registers={**table.registers, **{name: round(off * table.registers[name]) for name in names}},
        )
        for table in tables
    ]
    return wrong, lambda q: off * remaining(q)


def drift(bench: Bench, model: Model, pose: Array | Sequence[float], off: float, seconds: float) -> Array:
    """Farthest that each joint moves from a pose by itself, with a model that is this off [deg], shape (n_joints,)."""
    bench.move_to(pose)
    places: list[Array] = []
    tables, remaining = of_a_wrong_model(*float_tables(model, bench.facts, bench.positions()), off)
    float_boards(bench, tables, remaining, seconds, on_update=places.append)
    return np.degrees(np.abs(np.array(places) - places[0])).max(axis=0)


def interaction(
    bench: Bench, model: Model, change: Callable[..., tuple[list[FloatTable | None], RemainingCurrent]]
) -> Array:
    """Torque of the hand that leads the arm [N·m], rms and mean absolute."""
    bench.move_to(bench.robot.home)
    tables, remaining = change(*float_tables(model, bench.facts, bench.positions()))
    hand = Hand(bench)
    float_boards(bench, tables, remaining, SECONDS, on_update=hand)
    hand.pull(np.zeros(4))
    return np.array([hand.rms, hand.mean])


@pytest.mark.slow
def test_a_hand_leads_it_with_a_seventh_of_the_force_and_by_itself_it_stays(tmp_path: Path) -> None:
    with virtual_bench(REHAB_ARM, seed=0, out=tmp_path / "sim") as path, open_bench(path) as bench:
        bench.connect()
        bench.configure()
        model = fit(record(bench, random_excitation(bench.robot, period=20.0, seed=3), tmp_path / "fitted", 1))
        without = interaction(bench, model, lambda tables, _: (uncompensated(tables), lambda q: np.zeros(len(q))))
        by_model = interaction(bench, model, lambda tables, remaining: (tables, remaining))
        print("rms and mean absolute torque [N·m]:", by_model, without, by_model / without)
        assert np.all(by_model <= LARGEST_SHARE * without), (by_model, without)
        for off, pose in itertools.product(OFF, (bench.robot.home, STRETCHED)):
            moved = drift(bench, model, pose, off, 20.0)
            print(off, pose, moved)
            assert np.all(moved <= LARGEST_DRIFT), (off, pose, moved)
