"""`jointbench prove`: a model of an emulated bench proves itself there, and not on the motion it was fitted to."""

import json
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_bench
from jointbench.cli.main import main
from jointbench.excitation import random_excitation
from jointbench.identification import fit
from jointbench.recording import record


@pytest.mark.slow
def test_a_model_proves_itself_on_its_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with virtual_bench(COBOT, modules=2, out=tmp_path / "sim") as live:
        with open_bench(live) as bench:
            bench.connect()
            bench.configure()
            limits = np.array([1e-3 * facts.registers["limit.current"] for facts in bench.facts])
            motion = random_excitation(bench.robot, period=10.016, seed=3)
            run = record(bench, motion, tmp_path / "fitted", 2)
        model = fit(run).save(tmp_path / "model.json")
        Path("fitted.json").write_text(json.dumps(motion.to_dict()))
        assert main(["prove", str(model), str(live), "--plan", "fitted.json", "--out", "again"]) == 2
        assert "which the model was fitted to; give another with --plan" in capsys.readouterr().err
        assert not Path("again").exists()
        stiffness = ["--stiffness", str(tmp_path / "fitted")]
        stiffness += ["--report", "proof.html"]
        options = ["--period", "8", "--controls", "--out", "out", "--json", "result.json", *stiffness]
        code = main(["prove", str(model), str(live), *options])
    said = capsys.readouterr().out
    result = json.loads(Path("result.json").read_text())
    assert result["proven"], said
    assert code == 0
    figures = said[said.index("tracking error without") : said.index("runs: out")]
    assert max(map(len, figures.splitlines())) <= 80
    for joint in result["joints"].values():
        assert joint["ratio"] > 5.0  # a perfect model is limited by encoder counts alone, at 20 and more
        assert abs(joint["half_ratio"] - 0.5) <= 0.1
        assert joint["stiffness"] == pytest.approx(24000.0, rel=0.02)  # the plant's; torque sensors are off by 1 %
        assert joint["link_ratio"] > 10.0  # without the lead 4.6 at j2
    page = Path("proof.html").read_text(encoding="utf-8")
    assert f"jointbench prove {model} {live} --seed 1 --period 8.0 --stiffness" in page
    assert page.count("<tr>") == 2 + 2 + 4  # heads, joints, controls
    assert "motors led by the wind-up of j1, j2" in said
    assert len(result["controls"]) == 4
    assert all(control["fails"] for control in result["controls"].values())
    # Boards watched in both runs with feed-forward, by bands far below the motors' limits, and tripped in neither.
    band = np.array(result["unexpected_limit_A"])
    assert np.all((band > 0.0) & (band < 0.2 * limits))
    for name in ("half", "with-1", "with-2"):
        events = [json.loads(line) for line in Path("out", name, "events.jsonl").read_text().splitlines()]
        (words,) = [event["text"] for event in events if event["event"] == "watch"]
        assert ("boards trip UNEXPECTED" in words) is (name != "half")
    assert {path.name for path in Path("out").iterdir()} >= {"without-1", "half", "with-1", "without-2", "with-2"}
