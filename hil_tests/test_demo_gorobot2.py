"""System C from boards to verdict, as `./run demo gorobot2` goes it."""

import json
from pathlib import Path

import pytest

from tools.demo.__main__ import main

pytestmark = pytest.mark.slow


def test_a_biped_tells_its_masses_by_one_foots_forces_and_breaks_by_name(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    code = main(["gorobot2", "--out", str(tmp_path / "demo"), "--json", str(result)])

    said = json.loads(result.read_text())
    checks = {check["name"]: check for check in said["checks"]}
    assert {name: check["ok"] for name, check in checks.items()} == dict.fromkeys(
        [
            "ours_to_paper",
            "ours_to_sensor_floor",
            "covered_by_ours",
            "spread_smaller",
            "iterations_to_papers",
            "boards",
            "named_WrongTotalMass",
            "named_StuckFootSensor",
            "named_RobotFalls",
            "named_FootOffGround",
            "samples_lost",
        ],
        True,
    )
    limits = [checks[name]["limit"] for name in ("ours_to_paper", "ours_to_sensor_floor", "covered_by_ours")]
    assert limits == [0.5, 1.3, 7]
    assert code == 0
    # Twelve joint boards with three channels or more and two feet with four, every eighth tick of six runs of 95 s.
    assert said["samples_received"] > 6 * 95_000 / 8 * (12 * 3 + 2 * 4)
    assert said["mean_distance_m"]["sensors_uncorrected"]["nominal"] > 0.03
    # As printed: all of the gradient does not converge, and the paper's own method is judged as ours is.
    assert said["mean_distance_m"]["sensors_known"]["paper_alpha_1"] > said["mean_distance_m"]["sensors_known"]["paper"]
    assert set(said["covered"]) == {"torque", "paper", "ours"}
    assert "front left" in said["refusals"]["sensor of the front left corner stuck"]
