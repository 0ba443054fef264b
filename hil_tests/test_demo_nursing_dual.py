"""Both arms of system A, as `./run demo nursing_dual` goes it."""

import json
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from tools.demo.__main__ import main


@pytest.mark.slow
def test_twelve_motors_on_six_boards_move_as_mirror_images(tmp_path: Path) -> None:
    need_qemu()
    result = tmp_path / "result.json"
    code = main(["nursing_dual", "--board", "qemu:", "--out", str(tmp_path / "demo"), "--json", str(result)])

    said = json.loads(result.read_text(encoding="utf-8"))
    checks = {check["name"]: check for check in said["checks"]}
    assert {name: (check["limit"], check["ok"]) for name, check in checks.items()} == {
        "motors": (12, True),
        "start_ticks_apart": (1, True),
        "base_parameters": (72, True),
        "mirror_difference": (5, True),
        "verification_relative": (5, True),
        "samples_lost": (0, True),
    }
    assert code == 0
    # Four periods of 10 s and one more, by twelve motors sampled at 1 kHz.
    assert said["samples_received"] >= 12 * 50_000
    # They are two arms: what rubs differs, and so do the currents.
    assert checks["mirror_difference"]["value"] > 0
