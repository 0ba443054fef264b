"""System E from boards to verdict: README's `./run demo`, as it is typed."""

import json
import subprocess
from pathlib import Path

import pytest

from tools.docs.__main__ import ROOT, SAME, picture_difference

LIMITS = {
    "samples_lost": 0,
    "rms_reduction_excitation": 90,
    "rms_reduction_verification": 85,
    "j5_flexibility_off": 3,
    "j6_flexibility_off": 3,
}

pytestmark = pytest.mark.slow


def test_improved_model_of_harmonic_joints_holds(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = subprocess.run([ROOT / "run", "demo", "--json", result], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(result.read_text(encoding="utf-8"))
    assert {check["name"]: check["limit"] for check in said["checks"]} == LIMITS
    assert [check["name"] for check in said["checks"] if not check["ok"]] == []
    assert said["samples_received"] >= 6 * 60_000
    assert said["load_friction_grows_with"] == "gear"  # as it does in the plant
    (report,) = tmp_path.glob("runs/*-cobot6-demo/report.html")
    assert picture_difference(report.with_name("torques.png"), ROOT / "docs" / "torques.png") < SAME
