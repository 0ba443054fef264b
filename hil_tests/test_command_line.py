"""The command line on emulated boards, as its user meets it: a fault, its clearing, a run, a model, a page."""

import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hil_tests.link_helpers import COBOT, COBOT_BUS, HERE, bench_with_program, variation, wave
from hil_tests.small_bench import KINDS
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench
from jointbench.cli.main import main
from jointbench.errors import BoardFault
from jointbench.excitation import random_excitation
from jointbench.model import load_robot
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR

WIRE = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_plan(folder: Path, robot: str, period: float) -> str:
    """A short motion, planned without the verb and its picture (host/jointbench/tests/cli/test_plan_verb.py)."""
    motion = random_excitation(load_robot(robot), period=period, seed=0)
    (folder / "plan.json").write_text(json.dumps(motion.to_dict()))
    return str(folder / "plan.json")


@dataclass(frozen=True)
class Arm:
    """The arm, or its first joints: how many there are, and a plan for them, with its period [s]."""

    joints: int
    period: float
    plan: str

    @property
    def modules(self) -> int | None:
        """What a bench of it takes."""
        return self.joints if self.joints < 6 else None


@pytest.fixture(scope="module", params=[2, pytest.param(6, marks=pytest.mark.slow)])
def arm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Arm:
    folder = tmp_path_factory.mktemp("plan")
    if request.param < 6:
        return Arm(request.param, 1.6, write_plan(folder, f"cobot6:{request.param}", 1.6))
    plan = str(folder / "plan.json")
    # 9.6 s are 300 whole knots, and long enough for every joint to move.
    assert main(["plan", "cobot6", "--random", "--period", "9.6", "--out", plan]) == 0
    return Arm(6, 9.6, plan)


@dataclass(frozen=True)
class Ran:
    """What `run` did on a tripped bench: `refused` in these words, then cleared and played twice, as in `folder`."""

    arm: Arm
    refused: str
    ledger: dict[str, Any]
    folder: str


@pytest.fixture(scope="module")
def ran(arm: Arm, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder, refused, said = tmp_path_factory.mktemp("ran"), StringIO(), StringIO()
    with virtual_bench(COBOT, plant="ideal", seed=5, modules=arm.modules, out=folder / "bench") as live:
        _trip(live)
        with redirect_stderr(refused):
            assert main(["run", str(live), "--plan", arm.plan]) == 2
        run = ["run", str(live), "--plan", arm.plan, "--clear", "--repeats", "2", "--out", str(folder / "run")]
        with redirect_stdout(said):
            assert main([*run, "--json", "-"]) == 0
    return Ran(arm, refused.getvalue(), json.loads(said.getvalue())["ledger"], str(folder / "run"))


def test_a_tripped_bench_runs_when_it_has_been_cleared(ran: Ran) -> None:
    assert "j2" in ran.refused
    assert "run --clear" in ran.refused
    assert "Traceback" not in ran.refused
    assert ran.ledger["samples_lost"] == 0
    assert ran.ledger["samples_received"] > ran.arm.joints * 2 * 1000 * ran.arm.period


@pytest.fixture(scope="module")
def model(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("fitted") / "model.json")
    assert main(["fit", ran.folder, "--out", path]) == 0
    return path


def test_its_model_gets_a_verdict(ran: Ran, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", model, ran.folder]) == 2
    assert "validate on a run of another motion" in capsys.readouterr().err
    assert main(["validate", model, ran.folder, "--in-sample"]) == 0
    assert "verdict: in-sample" in capsys.readouterr().out


def test_its_model_gets_a_report(ran: Ran, model: str, tmp_path: Path) -> None:
    assert main(["report", model, ran.folder, ran.folder, "--out", str(tmp_path / "report.html")]) == 0
    assert "share samples" in (tmp_path / "report.html").read_text(encoding="utf-8")


def joined_rows(said: str) -> dict[str, list[str]]:
    """Cells of each joint, of all tables that a wide one became, and of their heads."""
    rows: dict[str, list[str]] = {}
    for line in said.splitlines():
        first, *cells = line.replace(" MHz", "MHz").split() or [""]
        if line.startswith("  ") and re.fullmatch(r"j\d+|joint", first):
            rows.setdefault(first, [first]).extend(cells)
    return rows


@pytest.mark.parametrize("like", [COBOT, COBOT_BUS])
def test_list_shows_each_boards_word_and_its_trouble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], like: Path, emulator: str
) -> None:
    """One board is silent and one of another release: the others' rows are as ever."""
    silent = (HERE / "programs" / "babble.py").read_text().replace("board.send(16)", "board.send(0)")
    bench_file = bench_with_program(tmp_path, "j3", silent, like)
    bench_file = bench_with_program(tmp_path / "2", "j2", variation("wire.SCHEMA_HASH = 0x12345678"), bench_file)
    with virtual_bench(bench_file, plant="ideal", modules=4, out=tmp_path / "sim") as live:
        assert main(["list", str(live), "--json", str(tmp_path / "list.json")]) == 1
        said = capsys.readouterr().out
        rows = joined_rows(said)
        assert rows["joint"][:8] == ["joint", "node", "port", "kind", "uid", "firmware", "wire", "schema"]
        assert rows["j1"][3] == KINDS[emulator]
        clock_MHz = {"unix:": "–", "qemu:": "25MHz"}[emulator]
        assert rows["j1"][5:11] == ["1.1.0", WIRE, "same", "DISARMED", "POWER_ON", clock_MHz]
        assert int(rows["j1"][11], 16) != int(rows["j4"][11], 16)  # facts of each joint are part of it
        assert rows["j2"][6:9] == [WIRE, "other", "DISARMED"]
        assert rows["j3"][3:] == ["–"] * 9
        assert f"j2 (node 2): speaks wire {WIRE} with schema 12345678, this host" in said
        assert "j3 (node 3): no answer to HELLO" in said
        boards = json.loads((tmp_path / "list.json").read_text(encoding="utf-8"))["boards"]
        assert [bool(board["trouble"]) for board in boards] == [False, True, True, False]
        assert boards[0]["schema_hash"] != boards[1]["schema_hash"] == "12345678"


def test_list_shows_a_latched_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with virtual_bench(COBOT, plant="ideal", seed=5, modules=2, out=tmp_path / "bench") as live:
        assert main(["list", str(live)]) == 0
        _trip(live)
        assert main(["list", str(live)]) == 1
        said = capsys.readouterr().out
        assert re.search(r"j2 \(node 2\): tripped at tick \d+, .*, limit ", said)
        assert "jointbench run --clear" in said


def test_check_finds_boards_fit_to_move_and_changes_nothing(
    arm: Arm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with virtual_bench(COBOT, seed=5, modules=arm.modules, out=tmp_path / "bench") as live:
        before = _registers(live)
        capsys.readouterr()
        assert main(["check", str(live), "--plan", arm.plan, "--json", "-"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert _registers(live) == before
    assert found["fit"]
    looked_at = {finding["name"] for finding in found["findings"] if finding["joint"] == f"j{arm.joints}"}
    assert looked_at == {
        "firmware", "state", "identity", "link", "clock", "current", "supply", "temperature", "position", "limits",
    }  # fmt: skip
    assert found["findings"][-1]["name"] == "playable"


def test_check_says_no_to_a_tripped_board_and_to_another_robots_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write_plan(tmp_path, "modular7:1", 1.6)
    with virtual_bench(COBOT, seed=5, modules=2, out=tmp_path / "bench") as live:
        _trip(live)
        assert main(["check", str(live), "--plan", plan]) == 1
    said = capsys.readouterr().out
    assert "NO  plan, playable: it is a plan for robot 'modular7:1', the bench's is 'cobot6:2'" in said
    assert "NO  j2, state: tripped at tick" in said
    assert "not fit to move: j2, plan\n" in said


def test_a_bench_that_has_ended_is_told_from_one_that_never_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with virtual_bench(COBOT, plant="ideal", modules=1, out=tmp_path / "sim") as live:
        pass
    for command in (["list", str(live)], ["check", str(live)], ["repl", str(live), "j1"]):
        assert main(command) == 2
        assert f"the virtual bench of {live} has ended" in capsys.readouterr().err
    assert main(["list", str(tmp_path / "never.toml")]) == 2
    assert f"there is no bench file {tmp_path / 'never.toml'}" in capsys.readouterr().err


def test_check_goes_on_without_boards_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One board is silent and one of another release."""
    silent = (HERE / "programs" / "babble.py").read_text().replace("board.send(16)", "board.send(0)")
    bench_file = bench_with_program(tmp_path, "j3", silent)
    bench_file = bench_with_program(tmp_path / "2", "j2", variation("wire.SCHEMA_HASH = 0x12345678"), bench_file)
    with virtual_bench(bench_file, plant="ideal", modules=4, out=tmp_path / "sim") as live:
        assert main(["check", str(live)]) == 1
        said = capsys.readouterr().out
    assert "not fit to move: j2, j3\n" in said
    assert "NO  j2, firmware: speaks wire" in said
    assert "NO  j3, answer: no answer to HELLO" in said
    row = joined_rows(said)["j4"]
    assert "NO" not in row


def test_a_joint_that_is_not_there_has_no_repl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'version = 1\nname = "lab"\nrobot = "cobot6"\n[[board]]\nnode = 1\njoint = "j1"\nurl = "/dev/nowhere"\n'
    (tmp_path / "lab.toml").write_text(text)
    assert main(["repl", str(tmp_path / "lab.toml"), "elbow"]) == 2
    assert "bench 'lab' has no board for joint 'elbow'; its joints: j1" in capsys.readouterr().err
    assert main(["list", str(tmp_path / "lab.toml")]) == 1
    assert "j1 (node 1): port /dev/nowhere cannot be opened" in capsys.readouterr().out


def _registers(live: Path) -> list[dict[str, int]]:
    with open_bench(live) as bench:
        bench.connect()
        return [facts.registers for facts in bench.facts]


def _trip(live: Path) -> None:
    """Leave joint 2 with a latched fault."""
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.boards[1].write_register("limit.following", 20)
        with pytest.raises(BoardFault):
            bench.play(wave(bench))
