"""The command line on emulated boards, as its user meets it: a fault, its clearing, a run, a model, a page."""

import json
from pathlib import Path

import pytest

from hil_tests.link_helpers import COBOT, wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.cli.main import main
from jointbench.errors import BoardFault
from jointbench.link import open_bench


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


def _trip(live: Path) -> None:
    """Leave joint 2 with a latched fault."""
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.boards[1].write_register("limit.following", 20)
        with pytest.raises(BoardFault):
            bench.play(wave(bench))
