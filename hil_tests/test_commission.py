"""Commissioning on emulated boards: wrong wiring is named within 5°, and values are those of the plant."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, inject
from hil_tests.virtual_bench import virtual_bench
from jointbench.arrays import Array
from jointbench.bench import Bench, Progress, open_bench
from jointbench.bench.single_motor import JointMotion, OwnLimits, play_alone, why_not_alone
from jointbench.cli.main import main
from jointbench.errors import RobotError
from jointbench.identification.commission import CommissionedJoint, changes, commission
from jointbench.identification.commission_readings import ADVICE, Push, Value, judge_push, push_currents, read_push
from jointbench.model import load_robot
from jointbench.recording import open_run
from jointwire import State

FIVE_DEGREES = np.radians(5.0)


@pytest.fixture(scope="module")
def one_joint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, modules=1, out=tmp_path_factory.mktemp("one") / "sim") as live:
        yield live


@pytest.fixture(scope="module")
def two_joints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, modules=2, out=tmp_path_factory.mktemp("two") / "sim") as live:
        yield live


@pytest.fixture
def bench(one_joint: Path) -> Iterator[Bench]:
    with open_bench(one_joint) as bench:
        bench.connect()
        bench.configure()
        yield bench


@pytest.fixture(scope="module")
def pushed(one_joint: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CommissionedJoint]:
    """A folder with the pushes of the one joint, and what they showed."""
    folder = tmp_path_factory.mktemp("pushed")
    with open_bench(one_joint) as bench:
        bench.connect()
        bench.configure()
        (joint,) = commission(bench, folder, only_wiring=True)
        assert bench.boards[0].state is not State.RUNNING
    return folder, joint


def nowhere(time: Array) -> tuple[Array, Array, Array]:
    rest = np.zeros(len(time))
    return rest, rest, rest


GOOD = Push(
    direction=1,
    sense=(1.0, 0.002),
    moved=0.02,
    link_moved=0.02,
    before=0.0,
    other=("j2", 0.0),
    break_away=(0.4, 0.02),
    link_per_motor=(1.0, 1e-4, 1e-3),
    link_counts=1700,
)
WRONG: dict[str, dict[str, Any]] = {
    "moves without current": {"before": 0.01},
    "no current": {"sense": (0.0, 0.002), "moved": 0.0, "link_moved": 0.0},
    "reversed current sensor": {"sense": (-1.0, 0.002)},
    "swapped cables": {"moved": 0.0, "link_moved": 0.0, "other": ("j2", 0.01)},
    "dead motor encoder": {"moved": 0.0},
    "jammed joint": {"moved": 1e-4, "link_moved": 1e-4},
    "reversed encoder": {"moved": -0.02},
    "missing link encoder": {"link_moved": 0.0, "link_counts": 0, "link_per_motor": (0.0, 1e-6, 1e-5)},
    "slipping coupling": {"link_moved": 0.012, "link_per_motor": (0.6, 0.01, 0.1)},
}


def test_each_fault_has_its_signature_and_an_advice() -> None:
    assert judge_push(GOOD, link_encoder=True) == (None, "")
    assert set(WRONG) == set(ADVICE)
    for fault, signs in WRONG.items():
        named, evidence = judge_push(replace(GOOD, **signs), link_encoder=True)
        assert named == fault, evidence
        assert evidence
    missing = replace(GOOD, **WRONG["missing link encoder"])
    assert judge_push(missing, link_encoder=False) == (None, "")


def test_the_current_of_a_push_begins_small_and_stays_far_below_the_limit() -> None:
    currents = push_currents(10.0, -1, 0.032)
    assert (currents[:8] == 0.0).all()
    assert (np.diff(currents) <= 0.0).all()
    assert currents.min() == pytest.approx(-3.0)


def test_a_value_is_judged_by_its_own_sigma() -> None:
    assert Value("ratio", 101.2, 0.1, "", 101.0).verdict == "agrees"
    assert Value("ratio", 81.0, 0.1, "", 101.0).verdict == "differs by 200 σ"
    assert Value("coulomb", 4.0, 0.1).verdict == "measured, the file has none"
    assert Value("ratio", why_not="there is no link encoder").verdict == "not measured: there is no link encoder"


def test_a_sound_joint_is_pushed_once_and_a_later_call_reads_what_was_recorded(
    bench: Bench, pushed: tuple[Path, CommissionedJoint]
) -> None:
    folder, joint = pushed
    assert joint.fault is None
    assert joint.moved < FIVE_DEGREES
    truth = 101.0
    assert joint.value("ratio by push").value == pytest.approx(truth, rel=0.005)  # half a turn of the motor is seen
    # 1 % is what one of these current sensors may be off, 0.1 % the noise of a second.
    assert joint.value("measured/asked current").value == pytest.approx(1.0, abs=0.011)
    before = bench.clock.now_us()
    (again,) = commission(bench, folder, only_wiring=True)
    assert bench.clock.now_us() == before
    assert again == joint
    assert changes((joint,), (again,)) == ()
    assert [path.name for path in joint.runs] == ["push-up-1", "push-down-1"]


def test_a_reversed_encoder_is_named_in_the_first_push(bench: Bench, tmp_path: Path) -> None:
    inject(bench, "encoder_reversed", 1)
    (joint,) = commission(bench, tmp_path)
    assert joint.fault == "reversed encoder"
    assert joint.moved < FIVE_DEGREES
    assert not bench.boards[0].is_driving
    assert len(joint.runs) == 1


def test_ctrl_c_switches_the_motor_off_and_the_step_counts_as_not_done(bench: Bench, tmp_path: Path) -> None:
    def interrupted(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commission(bench, tmp_path, only_wiring=True, progress=interrupted)
    assert not bench.boards[0].is_driving
    assert bench.facts[0].registers["servo.kp"] > 0  # set as before
    assert json.loads((tmp_path / "j1" / "push-up-1" / "result.json").read_text())["outcome"] == "stopped by Ctrl-C"
    inject(bench, "encoder_reversed", 1)  # so that one push is enough
    (joint,) = commission(bench, tmp_path, only_wiring=True)
    assert [path.name for path in joint.runs] == ["push-up-2"]


def test_no_motion_goes_farther_than_the_bench_file_allows(
    bench: Bench, tmp_path: Path, pushed: tuple[Path, CommissionedJoint]
) -> None:
    assert bench.robot.name == "cobot6:1"
    narrow = replace(bench.file.terms, limits={"position_rad": np.radians(3.0)})
    bench.file = replace(bench.file, terms=narrow)
    shutil.copytree(pushed[0], tmp_path, dirs_exist_ok=True)
    (joint,) = commission(bench, tmp_path)
    assert "the bench's file allows 3°" in joint.value("ratio").verdict
    assert "the bench's file allows 3°" in joint.value("coulomb").verdict
    assert [path.name for path in joint.runs] == ["push-up-1", "push-down-1"]


def test_the_board_itself_ends_a_motion_that_leaves_its_limits(bench: Bench) -> None:
    still = JointMotion(bench.positions(), 0, 1.024, nowhere)
    limits = OwnLimits(reach=np.radians(0.5), enough=None, others=1.0, velocity=0.5, current=2.0)
    why = play_alone(bench, still, limits, motor_currents=np.linspace(0.0, 1.5, 33))
    assert "position outside its window" in why
    assert bench.boards[0].state is State.DISARMED  # acknowledged
    assert bench.facts[0].registers["limit.feedforward"] == 0
    assert bench.facts[0].registers["servo.kp"] > 0


def test_an_unknown_joint_is_refused_with_those_there_are(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(RobotError, match="has no joint 'elbow'; its joints: j1"):
        commission(bench, tmp_path, ["elbow"])
    assert why_not_alone(bench, 0) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "value", "named"),
    [
        ("jammed", {}, "jammed joint"),
        ("drive_swapped", {"other_node": 2}, "swapped cables"),
        ("link_slips", {"counts": 300}, "slipping coupling"),
        ("link_stuck", {}, "missing link encoder"),
        ("drive_dead", {}, "no current"),
        ("current_reversed", {}, "reversed current sensor"),
        ("encoder_stuck", {}, "dead motor encoder"),
        ("push", {"torque_Nm": 40.0}, "moves without current"),
    ],
)
def test_a_wrong_bench_is_named_with_its_motor_off(
    two_joints: Path, tmp_path: Path, fault: str, value: dict[str, float], named: str
) -> None:
    with open_bench(two_joints) as bench:
        bench.connect()
        bench.configure()
        inject(bench, fault, 1, **value)
        (joint,) = commission(bench, tmp_path, ["j1"])
        assert joint.fault == named, joint.evidence
        assert joint.moved < FIVE_DEGREES
        assert not any(board.is_driving for board in bench.boards)


@pytest.mark.slow
def test_the_verb_measures_writes_and_checks(
    one_joint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["commission", str(one_joint), "--write", "own.toml"]) == 0
    said = capsys.readouterr().out
    assert "nobody is here to say yes" in said
    shown = said[said.index("  value ") : said.index("not measured: winding")].splitlines()
    assert max(map(len, shown)) <= 80
    assert main(["commission", str(one_joint), "--write", "own.toml", "--yes", "--json", "result.json"]) == 0
    values = json.loads(Path("result.json").read_text())["joints"]["j1"]["values"]
    assert values["ratio"]["verdict"] == "agrees"
    own = load_robot("own.toml").drives[0]
    assert own.link_coulomb == pytest.approx(values["coulomb"]["value"], abs=values["coulomb"]["sigma"])
    assert own.ratio == 101.0  # it agreed, and is as it was
    assert main(["commission", str(one_joint), "--check"]) == 0
    assert "ok: nothing has changed" in capsys.readouterr().out
    push = read_push(open_run("runs/cobot6-commission/j1/push-up-2"))
    assert push.direction == 1
