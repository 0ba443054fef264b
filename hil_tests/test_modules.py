"""Arms of modules: cut short on a bench, and assembled from what their boards say.

The bench's own robot and plant are described by hand, without the catalogue: axes where a ruler finds them, bodies
about their mass centres. So MuJoCo's torques of that arm are an independent truth for the file that `assemble` writes.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jointbench as jb
from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.__main__ import main
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.model import build_model
from hil_tests.virtual_bench.standing_plant import StandingPlant
from jointbench.bench import open_bench
from jointbench.cli.main import main as assembled_arm_main
from jointbench.excitation import random_excitation
from jointbench.model import load_robot
from jointbench.recording import record

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


HERE = Path(__file__).parent
ASSEMBLED_ARM_BENCH = HERE / "benches" / "modules.toml"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(ASSEMBLED_ARM_BENCH, plant="ideal", out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture(scope="module")
def assembled(live: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("robot") / "robot.toml"
    assert assembled_arm_main(["assemble", str(live), "--out", str(out), "--json", str(out.with_suffix(".json"))]) == 0
    return out


def true_torques(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Torques of the bench's arm by MuJoCo, links alone: of what was written by hand."""
    bench = read_bench_file(ASSEMBLED_ARM_BENCH)
    model = build_model(bench.robot, bench.plant, "ideal")
    model.dof_armature[:] = model.dof_damping[:] = 0.0
    data = mujoco.MjData(model)
    torques = []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(q, dq, ddq, strict=True):
        mujoco.mj_inverse(model, data)
        torques.append(data.qfrc_inverse.copy())
    return np.array(torques)


def moved_by(live: Path, robot: Path) -> Path:
    """The same bench with another robot in its file."""
    text = live.read_text(encoding="utf-8").replace(str(HERE / "benches/robots/modules.toml"), str(robot))
    assert str(robot) in text
    path = live.with_name("assembled.toml")
    path.write_text(text, encoding="utf-8")
    return path


def test_the_file_has_the_dynamics_of_the_arm_that_stands_there(assembled: Path) -> None:
    robot, rng = load_robot(assembled), np.random.default_rng(0)
    q, dq, ddq = (scale * rng.uniform(-1.0, 1.0, (50, 4)) for scale in (2.0, 3.0, 8.0))
    parameters = robot.standard_parameters
    assert parameters is not None
    truth = true_torques(q, dq, ddq)
    error = jb.inverse_dynamics(robot, q, dq, ddq, parameters) - truth
    assert np.all(np.abs(truth).max(axis=0) > [20.0, 20.0, 0.5, 0.02])
    assert np.abs(error).max() < 1e-6  # the plant's file has inertias to 1e-9 kg m^2
    other = load_robot("modular7:4")  # the same boards in the printed order would be this arm
    assert other.standard_parameters is not None
    wrong = jb.inverse_dynamics(other, q, dq, ddq, other.standard_parameters) - truth
    assert np.abs(wrong).max() > 10.0


def test_it_says_what_answered(assembled: Path) -> None:
    said = json.loads(assembled.with_suffix(".json").read_text(encoding="utf-8"))
    assert [(module["joint"], module["type"], module["serial"]) for module in said["modules"]] == [
        ("j1", "type1.arm", "M1-0012"),
        ("j2", "type2.fork", "M2-0031"),
        ("j3", "type2.turn", "M2-0007"),
        ("j4", "type3.end", "M3-0120"),
    ]
    robot = load_robot(assembled)
    assert robot.description == (
        "Modules from the base on: type1.arm M1-0012, type2.fork M2-0031, type2.turn M2-0007, type3.end M3-0120."
    )


@pytest.mark.slow
def test_it_is_identified_by_that_file(live: Path, assembled: Path, tmp_path: Path) -> None:
    robot = load_robot(assembled)
    with open_bench(moved_by(live, assembled)) as bench:
        bench.connect()
        bench.configure()
        runs = [
            record(bench, motion, tmp_path / f"run{seed}", repeats=1)
            for seed in (1, 2)
            for motion in [random_excitation(robot, harmonics=3, period=4.8, seed=seed)]
        ]
    assert runs[0].robot == robot
    unseen = jb.validate(jb.fit(runs[0], robot), runs[1])
    # Two short motions: 0.8, 0.6, 0.6 and 2.2 % of the torques' rms on the one that was not fitted, all samples.
    assert np.all(unseen.error_all.relative < 0.03), unseen.error_all.relative


def test_a_board_without_a_module_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ASSEMBLED_ARM_BENCH.read_text(encoding="utf-8").replace("robots/", f"{HERE}/benches/robots/")
    text = text.replace("../virtual_bench", f"{HERE}/virtual_bench")
    bench = tmp_path / "bench_file.toml"
    bench.write_text(text.replace('module = { type = "type2.turn", serial = "M2-0007" }', ""), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with virtual_bench(bench, plant="ideal", out=tmp_path / "sim") as live:
        assert assembled_arm_main(["assemble", str(live)]) == 2
        said = capsys.readouterr().err
        assert "j3 (node 3): its board tells no module; write" in said
        assert '"module": {"type": …, "serial": …} into its config.json' in said
        assert not Path("robot.toml").exists()
        file = live.with_name("gap.toml")
        file.write_text(live.read_text(encoding="utf-8").replace("node = 2", "node = 9"), encoding="utf-8")
        assert assembled_arm_main(["assemble", str(file)]) == 2
        assert "has nodes 1, 3, 4, 9, and none of 2, 5, 6, 7, 8; modules are numbered" in capsys.readouterr().err


def test_a_module_of_a_bench_file_has_both_names(tmp_path: Path) -> None:
    text = ASSEMBLED_ARM_BENCH.read_text(encoding="utf-8").replace(', serial = "M2-0007"', "")
    bench = tmp_path / "bench_file.toml"
    bench.write_text(text.replace("robots/", f"{HERE}/benches/robots/"), encoding="utf-8")
    with pytest.raises(BenchFileError, match="'serial' is missing"):
        read_bench_file(bench)
