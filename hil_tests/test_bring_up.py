"""Bringing emulated benches up: a fault stops it with its motor off, a stop is resumed, ratios get onto the boards."""

import json
from pathlib import Path
from typing import Any

import pytest

from hil_tests.link_helpers import COBOT, inject
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, BenchFile, open_bench, read_bench_file
from jointbench.bench.flash import ask_boards, boards_of, write_facts
from jointbench.cli.bring_up import BringUp
from jointbench.cli.main import main
from jointbench.errors import BoardRefused, FlashError
from tools.commission import write_bench


def flashed_ratio(live: Path, out: Path, ratio: float) -> BenchFile:
    """Write a gear ratio onto the one board of a bench."""
    file = read_bench_file(live)
    said = ask_boards(file, ["j1"])
    (board,) = boards_of(file.boards, said)
    kept = write_facts(file, board, {1: {"drive.ratio": round(1e3 * ratio)}}, out)
    assert "101000" in (kept / "config.json").read_text()
    return file


def test_a_ratio_is_written_onto_its_board_and_nothing_else_changes(tmp_path: Path) -> None:
    with virtual_bench(COBOT, modules=1, out=tmp_path / "sim") as live:
        with open_bench(live) as bench:
            bench.connect()
            before = dict(bench.facts[0].registers)
        file = flashed_ratio(live, tmp_path / "kept", -81.5)
        with open_bench(live) as bench:
            with pytest.raises(BoardRefused, match=r"drive\.ratio = -81\.5, the robot file 101"):
                bench.connect()
            after = dict(bench.boards[0].read_registers().registers)
        assert {name for name in before if after[name] != before[name]} == {"drive.ratio"}
        config = Path(str(file.boards[0].flash)) / "config.json"
        config.write_text("{")
        with pytest.raises(FlashError, match=r"j1 \(node 1\): its config\.json holds no configuration"):
            write_facts(file, file.boards, {1: {"drive.ratio": 1000}}, tmp_path / "kept")


@pytest.mark.slow
def test_a_fault_ends_it_with_what_to_do_and_the_joint_is_moved_again_after_the_repair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configure = Bench.configure

    def with_fault(bench: Bench) -> None:  # a fault lasts as long as the client that asked for it
        configure(bench)
        inject(bench, "encoder_reversed", 1)

    monkeypatch.setattr(Bench, "configure", with_fault)
    with virtual_bench(COBOT, modules=1, out="sim") as live:
        for number in (1, 2):  # it is not repaired, and pushed again
            assert main(["bring-up", str(live), "--out", "product"]) == 1
            said = capsys.readouterr().out
            assert "verdict: not usable (commission: j1: reversed encoder" in said
            assert "swap the lines A and B of the motor encoder" in said
            assert f"next: jointbench check {live}" in said
            assert (Path("product/commission/j1") / f"push-up-{number}").is_dir()
        assert not Path("product/identify").exists()
        assert "not usable" in Path("product/report.html").read_text(encoding="utf-8")
        with open_bench(live) as bench:
            bench.connect()
            assert not bench.boards[0].is_driving


@pytest.mark.slow
def test_two_joints_no_file_knows_are_brought_up_through_two_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped before ratios are written, and in the second piece of motion: nothing that was done is done again."""
    monkeypatch.chdir(tmp_path)
    record = BringUp.record
    seen: list[str] = []

    def stopping(self: Any, bench: Any, excitation: Any, name: str) -> Any:
        seen.append(name)
        if seen == ["gears", "identify/piece-01", "identify/piece-02"]:
            raise KeyboardInterrupt
        return record(self, bench, excitation, name)

    monkeypatch.setattr(BringUp, "record", stopping)
    bench_file = write_bench("cobot6", 0, tmp_path / "plant")
    options = ["--out", "product", "--until", "60%", "--most", "21"]
    with virtual_bench(bench_file, modules=2, out="sim") as live:
        assert main(["bring-up", str(live), *options]) == 2  # nobody is here to say yes
        assert "type the same command with --yes" in capsys.readouterr().err
        assert main(["bring-up", str(live), *options, "--yes"]) == 130
        code = main(["bring-up", str(live), *options, "--yes", "--json", "result.json"])
    said = capsys.readouterr().out
    assert code == 0, said
    assert seen == ["gears", "identify/piece-01", "identify/piece-02", "identify/piece-02", "verification"]
    assert "resumed: 1 piece of motion kept" in said
    steps = json.loads(Path("result.json").read_text())["steps"]
    assert [steps[name]["word"] for name in ("commission", "gears", "prove")] == ["sound", "measured", "proven"]
