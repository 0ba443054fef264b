"""System D from boards to verdict: the whole arm, and chains of its modules."""

import json
from pathlib import Path
from typing import Any

import pytest

from jointbench.recording import open_run
from tools.demo.__main__ import main
from tools.demo.modular7 import JUDGED, OWN

LIMITS = {"samples_lost": 0, "gain_on_own_mission": 90, "gain_on_worst_unseen_mission": 60}


def played(folder: Path, *more: str) -> dict[str, Any]:
    """What a demo that went well says in JSON."""
    result = folder / "result.json"
    code = main(["modular7", *more, "--out", str(folder / "demo"), "--json", str(result)])
    said = json.loads(result.read_text(encoding="utf-8"))
    assert {check["name"]: check["limit"] for check in said["checks"]} == LIMITS
    assert [check for check in said["checks"] if not check["ok"]] == []
    assert code == 0
    assert (folder / "demo" / "report.html").is_file()
    assert (folder / "demo" / "residuals.png").is_file()
    return said


@pytest.mark.slow
@pytest.mark.parametrize("modules", [1, 3, 7])
def test_a_chain_of_modules_passes_and_the_whole_arm_shows_the_printed_gains(modules: int, tmp_path: Path) -> None:
    """Chains differ in their benches alone; test_modules.py has all seven of those."""
    said = played(tmp_path, "--modules", str(modules))

    run = open_run(tmp_path / "demo" / OWN)
    assert run.robot.name == f"modular7:{modules}"
    assert run.samples.motor_position.shape[1] == said["modules"] == modules
    assert said["warnings"] == []
    unseen = {name: gains for name, gains in said["missions"].items() if name != OWN}
    assert len(unseen) == 6
    for gains in unseen.values():
        assert gains["state"]["verdict"] != "refused"
        assert gains["polynomial"]["verdict"] == "refused"
        assert gains["polynomial"]["average_gain"] < gains["state"]["average_gain"]
    assert JUDGED in said["missions"]
    if modules == 7:
        assert said["lines"][0]["paper"] == "33.28 32.87 34.14 33.15 34.14 34.15 33.30 %"
        assert said["missions"][OWN]["polynomial"]["average_gain"] > 0.0


def test_modules_that_are_not_there_are_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modular7", "--modules", "8", "--out", str(tmp_path / "demo")]) == 2

    assert "'modular7' has 7 joints" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
