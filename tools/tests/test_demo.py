"""The whole way from motor to verdict, as `./run demo --plant ideal` goes it."""

import json
from pathlib import Path

import pytest

from tools.demo import main


@pytest.mark.slow
def test_demo_on_joints_of_the_models_own_form(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    code = main(["--plant", "ideal", "--seed", "0", "--out", str(tmp_path / "demo"), "--json", str(result)])

    said = json.loads(result.read_text())
    assert {check["name"]: check["ok"] for check in said["checks"]} == {
        "samples_lost": True,
        "parameters_within_2_sigma": True,
        "verification_relative_j1_to_j5": True,
    }
    assert code == 0
    # Six boards, two periods of 20 s and one more, sampled at 1 kHz.
    assert said["samples_received"] >= 6 * 60_000
    assert set(said["fit_rms"]) == set(said["verification_rms"]) == {f"j{k}" for k in range(1, 7)}
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
