"""Benches of an arm that ends behind some of its modules: robot, plant, boards and servos follow."""

from pathlib import Path

import pytest

from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.__main__ import main
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.standing_plant import StandingPlant
from jointbench.bench import open_bench
from jointbench.excitation import random_excitation
from jointbench.recording import record
from jointbench.robot import load_robot

BENCH = Path(__file__).parent / "benches" / "modular7.toml"
SERVO = "\n[servo.j2]\nstiffness_Nm_rad = 9000\n\n[servo.j6]\nstiffness_Nm_rad = 700\n"


def edited(folder: Path, old: str, new: str, more: str = "") -> Path:
    """The bench file elsewhere, with a change."""
    text = BENCH.read_text(encoding="utf-8").replace("../virtual_bench", str(BENCH.parents[1] / "virtual_bench"))
    path = folder / "bench_file.toml"
    path.write_text(text.replace(old, new) + more, encoding="utf-8")
    return path


@pytest.mark.parametrize("n", range(1, 8))
def test_all_of_a_bench_follows_the_modules(tmp_path: Path, n: int) -> None:
    whole = read_bench_file(edited(tmp_path, "", "", SERVO))
    joints = list(whole.robot.joint_names[:n])

    cut = whole.with_modules(n)

    assert cut.robot == load_robot(cut.robot_reference) == load_robot(f"modular7:{n}")
    assert cut.plant.joints == whole.plant.joints[:n]
    assert [board.joint for board in cut.boards] == joints
    assert list(cut.servo) == [joint for joint in ("j2", "j6") if joint in joints]
    assert cut.started_from.endswith(f"bench_file.toml --modules {n}")


def test_a_bench_file_can_name_a_chain_itself(tmp_path: Path) -> None:
    """Its plant file describes the whole arm all the same; boards of joints that are not there are refused."""
    chain = edited(tmp_path, 'robot = "modular7"', 'robot = "modular7:3"')
    with pytest.raises(BenchFileError, match=r"joint = 'j4': robot 'modular7:3' has j1, j2, j3"):
        read_bench_file(chain)
    text = chain.read_text(encoding="utf-8")
    chain.write_text(text[: text.index("[[board]]\nnode = 4")], encoding="utf-8")

    bench = read_bench_file(chain)

    assert len(bench.plant.joints) == bench.robot.n_joints == 3
    cut = bench.with_modules(2)
    assert cut.robot.joint_names == ("j1", "j2")
    assert cut.robot.name == cut.robot_reference == "modular7:2"


def test_a_chain_keeps_the_wires_between_its_boards() -> None:
    cut = read_bench_file(BENCH.with_name("unix6.toml")).with_modules(3)
    assert [wire.target for wire in cut.terms.wires] == ["j1.sync", "j2.sync", "j3.sync"]
    assert all(map(cut.hears_sync, cut.boards))


def test_a_biped_keeps_the_feet_of_the_legs_it_has() -> None:
    cut = read_bench_file(BENCH.with_name("gorobot2.toml")).with_modules(6)
    assert [board.joint for board in cut.boards] == [*cut.robot.joint_names, "r_foot"]
    assert [foot.name for foot in cut.plant.feet] == [foot.name for foot in cut.robot.feet] == ["r_foot"]
    assert StandingPlant(cut.robot, cut.plant, "ideal").standing().foot_force.shape == (1, 4)


@pytest.mark.parametrize("modules", ["8", "0", "2.5", "two"])
def test_other_numbers_of_modules_are_refused_with_those_there_are(
    tmp_path: Path, modules: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["sim", str(BENCH), "--modules", modules, "--out", str(tmp_path / "sim")])

    assert main() == 2

    assert f"a chain of {modules} of them is none; give a whole number from 1 to 7" in capsys.readouterr().err


def test_a_bench_that_cannot_start_says_so_in_python_too(tmp_path: Path) -> None:
    with (
        pytest.raises(BenchError, match="'modular7' has 7 joints, and a chain of 8"),
        virtual_bench(BENCH, out=tmp_path / "bench", modules=8),
    ):
        pytest.fail("it started")


def test_two_modules_play_and_are_recorded(tmp_path: Path) -> None:
    motion = random_excitation(load_robot("modular7:2"), harmonics=2, period=1.6)
    with virtual_bench(BENCH, out=tmp_path / "bench", modules=2) as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        run = record(bench, motion, tmp_path / "run", repeats=1)

    assert run.robot == load_robot("modular7:2")
    assert run.ledger is not None
    assert run.ledger.samples_lost == 0
    assert [board["joint"] for board in run.provenance["board"]] == ["j1", "j2"]
    assert run.provenance["robot"] == "modular7:2"
