"""System A from boards to verdict, as `./run demo nursing_arm` goes it."""

import json
from pathlib import Path

import pytest

from tools.demo.verb import main

LIMITS = {
    "friction_error_rotation": 2.0,
    "friction_error_played_rotation": 2.0,
    "friction_error_pitch": 2.0,
    "friction_error_played_pitch": 2.0,
    "base_parameters": 36,
    **{f"verification_relative_j{k}": 5.0 for k in range(1, 7)},
    "samples_lost": 0,
}


@pytest.mark.slow
def test_friction_and_model_of_three_coupled_drives(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    code = main(["nursing_arm", "--out", str(tmp_path / "demo"), "--json", str(result)])

    said = json.loads(result.read_text(encoding="utf-8"))
    assert {check["name"]: check["limit"] for check in said["checks"]} == LIMITS
    assert [check["name"] for check in said["checks"] if not check["ok"]] == []
    assert code == 0
    # Ten periods of 10 s, one more to verify on, and two stairs of 61 speeds each way, by six motors sampled at 1 kHz.
    assert said["samples_received"] >= 6 * (110_000 + 4 * 61 * 2 * 128)
    # A pitch that carries the arm shows that friction grows with the load; the paper's law alone cannot say it.
    pitch = said["friction_experiment"]["j2"]
    assert pitch["law"] == "makkar+load"
    assert pitch["swarm_error_to_truth"] > pitch["error_to_truth"]
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
