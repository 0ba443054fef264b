"""`jointbench identify`: what it takes, and a short one on an emulated bench."""

import json
from pathlib import Path

import pytest

from hil_tests.link_helpers import COBOT
from hil_tests.virtual_bench import virtual_bench
from jointbench.cli.main import main


@pytest.mark.parametrize("text", ["0", "100%", "-5%", "ten", "1.5"])
def test_a_precision_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["identify", "bench.toml", f"--until={text}"])
    assert f"{text!r} is no share above 0 and below 1, such as 10% or 0.1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_bench_is_identified_piece_by_piece_and_the_model_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live:
        options = ["--until", "30%", "--most", "20", "--piece", "3.2", "--plan-time", "1", "--out", "out"]
        assert main(["identify", str(live), *options, "--json", "result.json"]) == 0
        assert main(["identify", str(live), "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "out exists; name another directory with --out" in said.err
    result = json.loads(Path("result.json").read_text())
    runs = [Path(run) for run in result["runs"]]
    assert len(runs) >= 2
    assert all((run / "result.json").is_file() for run in (*runs, Path(result["verification"])))
    assert result["motion_s"] == pytest.approx(3.2 * len(runs))
    assert "parameters are known to 30 %" in said.out
    assert Path("out/model.json").is_file()
