"""System E from boards to verdict, on both kinds of emulated boards."""

import json
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from tools.demo.verb import main

LIMITS = {
    "samples_lost": 0,
    "rms_reduction_excitation": 60,
    "rms_reduction_verification": 50,
    "j5_flexibility_claimed_off": 2,
    "j6_flexibility_claimed_off": 2,
}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("board", ["unix:", "qemu:"])
def test_improved_model_of_harmonic_joints_holds(board: str, tmp_path: Path) -> None:
    if board == "qemu:":
        need_qemu()
    demo, result = tmp_path / "demo", tmp_path / "result.json"
    code = main(["cobot6", "--board", board, "--out", str(demo), "--json", str(result)])

    said = json.loads(result.read_text(encoding="utf-8"))
    assert {check["name"]: check["limit"] for check in said["checks"]} == LIMITS
    assert [check["name"] for check in said["checks"] if not check["ok"]] == []
    assert code == 0
    assert said["samples_received"] >= 6 * 60_000
    assert (demo / "report.html").is_file()
    assert said["load_friction_grows_with"] == "gear"  # as it does in the plant
