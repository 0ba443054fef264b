"""`jointbench init`: files of an arm from its URDF, what it asks, and what it refuses.

`info ROBOT --base-parameters`: on the terminal and as JSON.
"""

import builtins
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import trimesh

from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.bench import open_bench
from jointbench.cli.main import main
from jointbench.model import base_parameters, load_robot
from jointbench.recording import Recorder
from jointbench.results import export
from jointbench.tests.recording.simulated_run import boards, feed, provenance

DRIVE = "kind=harmonic,ratio=101,torque_constant_Nm_A=0.1,current_limit_A=13"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    export(load_robot("cobot6:2"), "arm.urdf")
    return tmp_path


def test_files_that_fit_together_come_of_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "arm.urdf", "--drive", DRIVE, "--drive", "j2:ratio=-161", "--out", "arm"]) == 0
    robot = load_robot("arm/robot.toml")
    assert [drive.ratio for drive in robot.drives] == [101.0, -161.0]
    bench = read_bench_file(Path("arm/bench.toml"))
    assert [(board.node, board.joint, board.url) for board in bench.boards] == [(1, "j1", "unix:"), (2, "j2", "unix:")]
    plant = read_plant_file(bench.plant_path, bench.robot)
    assert [joint.link.mass for joint in plant.joints] == [joint.link.mass for joint in robot.joints]
    said = capsys.readouterr().out
    assert "files: arm/robot.toml, arm/bench.toml, arm/plant.toml" in said
    assert "next: `jointbench info arm/robot.toml`, then `./run sim arm/bench.toml`" in said


@pytest.mark.slow
def test_the_emulated_bench_starts_and_holds_the_arm() -> None:
    assert main(["init", "arm.urdf", "--drive", DRIVE, "--out", "arm"]) == 0
    with virtual_bench(Path("arm/bench.toml"), out=Path("arm/sim")) as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        goal = np.add(bench.robot.home, [0.1, 0.05])
        bench.move_to(goal)
        # A servo without an integral is off by friction and gravity over its stiffness.
        assert bench.positions() == pytest.approx(goal, abs=0.02)


def test_a_torque_limit_beyond_the_motor_is_lowered_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    weak = DRIVE.replace("13", "3")
    assert main(["init", "arm.urdf", "--drive", DRIVE, "--drive", f"j2:{weak}", "--out", "arm"]) == 0
    assert load_robot("arm/robot.toml").joints[1].torque_limit == pytest.approx(101 * 0.1 * 3, rel=1e-4)
    assert "torque limits of j2 are lowered to what their motors reach" in capsys.readouterr().out


def test_boards_have_their_ports() -> None:
    boards = ["--board", "j1=serial:/dev/ttyACM0", "--board", "j2=serial:/dev/ttyACM1"]
    assert main(["init", "arm.urdf", "--drive", DRIVE, *boards, "--out", "arm"]) == 0
    bench = tomllib.loads(Path("arm/bench.toml").read_text())
    assert bench["clock"] == "wall"
    assert [board["url"] for board in bench["board"]] == ["serial:/dev/ttyACM0", "serial:/dev/ttyACM1"]


def test_meshes_become_capsules_that_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("arm.urdf").read_text()
    trimesh.creation.cylinder(radius=0.04, height=0.3).export("tube.stl")
    collision = '<collision><geometry><mesh filename="{}"/></geometry></collision>\n  </link>'
    links = [joint.link.name for joint in load_robot("arm.urdf").joints]
    for name, mesh in zip(links, ("tube.stl", "gone.stl"), strict=True):
        start = text.index(f'<link name="{name}"')
        end = text.index("</link>", start)
        text = text[:end] + collision.format(mesh) + text[end + len("</link>") :]
    Path("arm.urdf").write_text(text)
    assert main(["init", "arm.urdf", "--drive", DRIVE, "--out", "arm"]) == 0
    (capsule,) = load_robot("arm/robot.toml").capsules
    assert (capsule.link, capsule.joint) == (links[0], 0)
    assert 0.04 <= capsule.radius < 0.05
    said = capsys.readouterr().out
    assert "capsules around its collision meshes" in said
    assert f"warning: mesh gone.stl of link {links[1]!r} cannot be read" in said


def test_what_is_missing_is_asked_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the second joint the first one's answers are offered; an answer that is not allowed is asked for again."""
    answers: Iterator[str] = iter(["harmonic", "many", "101", "0.1", "12", "?", "yes", "", "-101", "", "", "2e-5", ""])
    questions: list[str] = []

    def answer(question: str) -> str:
        questions.append(question)
        return next(answers)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(builtins, "input", answer)
    assert main(["init", "arm.urdf", "--out", "arm"]) == 0
    first, second = load_robot("arm/robot.toml").drives
    assert (first.kind, first.ratio, first.rotor_inertia, first.link_encoder) == ("harmonic", 101.0, None, True)
    assert (second.kind, second.ratio, second.rotor_inertia, second.link_encoder) == ("harmonic", -101.0, 2e-5, True)
    assert questions[1] == questions[2]
    assert questions[-1].endswith(" [yes]: ")


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        ('type="revolute"', 'type="prismatic"', "joint 'j1' slides, and emulated joints turn"),
        (r"(?s)<inertial>.*?</inertial>", "", "has no inertia in the URDF"),
    ],
)
def test_an_arm_that_no_plant_can_be_is_told_so_and_has_a_bench_of_boards_only(
    pattern: str, by: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("arm.urdf").write_text(re.sub(pattern, by, Path("arm.urdf").read_text()))
    assert main(["init", "arm.urdf", "--drive", DRIVE, "--out", "arm"]) == 0
    said = capsys.readouterr().out
    assert "no plant to try them on: " in said
    assert reason in said
    assert [path.name for path in Path("arm").iterdir()] == ["robot.toml"]
    boards = ["--board", "j1=serial:/dev/ttyACM0", "--board", "j2=serial:/dev/ttyACM1"]
    assert main(["init", "arm.urdf", "--drive", DRIVE, *boards, "--out", "driven"]) == 0
    assert sorted(path.name for path in Path("driven").iterdir()) == ["bench.toml", "robot.toml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a URDF does not say what drives its joints: ratio of all; torque_constant_Nm_A of all; current_limit_A"),
        (["--drive", "j2:ratio=5"], "ratio of j1; torque_constant_Nm_A of all"),
        (["--drive", "j7:ratio=5"], "--drive j7:ratio=5: no joint 'j7'; the joints are j1, j2"),
        (["--drive", "ratio=0"], "--drive ratio=0: ratio = '0' must be a number that is not zero"),
        (["--drive", "gear=5"], "'gear=5' is not KEY=VALUE with a KEY of kind, ratio,"),
        (["--drive", DRIVE, "--board", "j1=serial:/dev/ttyACM0"], "joints j2 have no --board, others have"),
        (["--drive", DRIVE, "--board", "serial:/dev/ttyACM0"], "not JOINT=URL with a joint of j1, j2"),
        (["--drive", DRIVE, "--out", "full"], "folder full is not empty; name another with --out"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/notes.txt").write_text("of a week's work")
    before = sorted(Path().rglob("*"))
    assert main(["init", "arm.urdf", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(Path().rglob("*")) == before


def test_a_robot_file_needs_no_init(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "cobot6"]) == 2
    assert "is not a URDF" in capsys.readouterr().err


def test_it_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "cobot6", "--base-parameters"]) == 0

    assert f"robot cobot6: {base_parameters(load_robot('cobot6')).table()}" in capsys.readouterr().out


def test_the_whole_grouping_is_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "nursing_arm", "--base-parameters", "--json", "-"]) == 0

    said = json.loads(capsys.readouterr().out)
    base = base_parameters(load_robot("nursing_arm"))
    assert (said["rank"], said["gap"]) == (base.rank, base.gap)
    assert said["lengths_m"] == pytest.approx({"d2": 0.242, "a3": 0.11, "d3": 0.3, "d4": 0.028, "d5": 0.25})
    for each, row in zip(said["base_parameters"], base.grouping, strict=True):
        assert each["coefficients"] == {base.full_names[k]: row[k] for k in row.nonzero()[0]}


def test_a_free_base_has_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "gorobot2", "--base-parameters"]) == 0

    said = capsys.readouterr().out
    assert "robot gorobot2 on its free base: 94 base parameters" in said
    assert "mass of r_foot, plus the mass of everything from r_ankle_pitch on" in said


def test_of_a_run_they_are_its_robots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    streams = boards()
    with Recorder(tmp_path / "run", provenance(streams)) as recorder:
        feed(recorder, streams)

    assert main(["info", str(tmp_path / "run"), "--base-parameters", "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["robot"] == "cobot6"


def test_a_link_that_is_assumed_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "rehab_arm"]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["j4", "forearm", "1.75", "kg,", "assumed"] in rows
    assert ["j5", "j5", "neglected"] in rows
    assert any(row[:3] == ["j5", "revolute,", "passive"] for row in rows)
