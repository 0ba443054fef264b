"""The command line on emulated boards, as its user meets it: a fault, its clearing, a run, a model, a page."""

import json
from pathlib import Path

import pytest

from hil_tests.link_helpers import COBOT, COBOT_BUS, HERE, bench_with_program, variation, wave
from hil_tests.small_bench import KINDS
from hil_tests.virtual_bench import virtual_bench
from jointbench.cli.main import main
from jointbench.errors import BoardFault
from jointbench.link import open_bench
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR

WIRE = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_from_a_tripped_bench_to_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, run, model = (str(tmp_path / name) for name in ("plan.json", "run", "model.json"))
    # 9.6 s are 300 whole knots, and long enough for every joint to move.
    assert main(["plan", "cobot6", "--random", "--period", "9.6", "--out", plan]) == 0
    with virtual_bench(COBOT, plant="ideal", seed=5, out=tmp_path / "bench") as live:
        _trip(live)
        capsys.readouterr()

        assert main(["run", str(live), "--plan", plan]) == 2
        assert "j2" in (said := capsys.readouterr().err)
        assert "run --clear" in said
        assert "Traceback" not in said

        code = main(["run", str(live), "--plan", plan, "--clear", "--repeats", "2", "--out", run, "--json", "-"])
        ledger = json.loads(capsys.readouterr().out)["ledger"]
        assert code == 0
        assert ledger["samples_lost"] == 0
        assert ledger["samples_received"] > 6 * 2 * 9600
    assert main(["fit", run, "--out", model]) == 0
    assert main(["validate", model, run]) == 0
    assert "verdict: " in capsys.readouterr().out
    assert main(["report", model, run, run, "--out", str(tmp_path / "report.html")]) == 0
    assert "share samples" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("like", [COBOT, COBOT_BUS])
def test_list_shows_each_boards_word_and_its_trouble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], like: Path, emulator: str
) -> None:
    """One board is silent and one of another release: the others' rows are as ever."""
    silent = (HERE / "programs" / "babble.py").read_text().replace("board.send(16)", "board.send(0)")
    bench_file = bench_with_program(tmp_path, "j4", silent, like)
    bench_file = bench_with_program(tmp_path / "2", "j2", variation("wire.SCHEMA_HASH = 0x12345678"), bench_file)
    with virtual_bench(bench_file, plant="ideal", out=tmp_path / "sim") as live:
        assert main(["list", str(live)]) == 1
        said = capsys.readouterr().out.splitlines()
        assert said[0].split()[:8] == ["joint", "node", "port", "kind", "uid", "firmware", "wire", "schema"]
        rows = {line.split()[0]: line.replace(" MHz", "MHz").split() for line in said[2:8]}
        assert rows["j1"][3] == KINDS[emulator]
        clock_MHz = {"unix:": "–", "qemu:": "25MHz"}[emulator]
        assert rows["j1"][5:11] == ["1.1.0", WIRE, "same", "DISARMED", "POWER_ON", clock_MHz]
        assert int(rows["j1"][11], 16) != int(rows["j3"][11], 16)  # facts of each joint are part of it
        assert rows["j2"][6:9] == [WIRE, "other", "DISARMED"]
        assert rows["j4"][3:] == ["–"] * 9
        troubles = "\n".join(said[8:])
        assert f"j2 (node 2): speaks wire {WIRE} with schema 12345678, this host" in troubles
        assert "j4 (node 4): no answer to HELLO" in troubles
        assert main(["list", str(live), "--json", "-"]) == 1
        boards = json.loads(capsys.readouterr().out)["boards"]
        assert [bool(board["trouble"]) for board in boards] == [False, True, False, True, False, False]
        assert boards[0]["schema_hash"] != boards[1]["schema_hash"] == "12345678"


def test_list_shows_a_latched_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with virtual_bench(COBOT, plant="ideal", seed=5, out=tmp_path / "bench") as live:
        assert main(["list", str(live)]) == 0
        _trip(live)
        assert main(["list", str(live)]) == 1
        assert "j2 (node 2): " in (said := capsys.readouterr().out)
        assert "jointbench run --clear" in said


def test_check_says_whether_boards_are_fit_to_move_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = {robot: str(tmp_path / f"{robot}.json") for robot in ("cobot6", "modular7")}
    for robot, plan in plans.items():
        assert main(["plan", robot, "--random", "--period", "9.6", "--out", plan]) == 0
    with virtual_bench(COBOT, seed=5, out=tmp_path / "bench") as live:
        before = _registers(live)
        capsys.readouterr()
        assert main(["check", str(live), "--plan", plans["cobot6"], "--json", "-"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert _registers(live) == before
        assert found["fit"]
        looked_at = {finding["name"] for finding in found["findings"] if finding["joint"] == "j3"}
        assert looked_at == {
            "firmware", "state", "identity", "link", "clock", "current", "supply", "temperature", "position", "limits",
        }  # fmt: skip
        assert found["findings"][-1]["name"] == "playable"

        assert main(["check", str(live), "--plan", plans["modular7"]]) == 1
        said = capsys.readouterr().out
        assert "NO  plan, playable: it is a plan for robot 'modular7', the bench's is 'cobot6'" in said

        _trip(live)
        assert main(["check", str(live)]) == 1
        said = capsys.readouterr().out
        assert "NO  j2, state: tripped at tick" in said
        assert "not fit to move: j2\n" in said


def test_check_goes_on_without_boards_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One board is silent and one of another release."""
    silent = (HERE / "programs" / "babble.py").read_text().replace("board.send(16)", "board.send(0)")
    bench_file = bench_with_program(tmp_path, "j4", silent)
    bench_file = bench_with_program(tmp_path / "2", "j2", variation("wire.SCHEMA_HASH = 0x12345678"), bench_file)
    with virtual_bench(bench_file, plant="ideal", out=tmp_path / "sim") as live:
        assert main(["check", str(live)]) == 1
        said = capsys.readouterr().out
    assert "not fit to move: j2, j4\n" in said
    assert "NO  j2, firmware: speaks wire" in said
    assert "NO  j4, answer: no answer to HELLO" in said
    (row,) = [line.split() for line in said.splitlines() if line.startswith("  j6 ")]
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
