"""The emulated chip's own core beside the one of rp2040js: registers, flags, memory and time are the same."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hil_tests.test_rp2040_board import need_rp2040
from hil_tests.virtual_bench.rp2040.board import find_rp2040
from hil_tests.virtual_bench.rp2040.flash import write_flash

PROGRAM = Path(__file__).parent / "compare_cores.mjs"
ON_THE_CHIP = b"""
import gc, hashlib, json, math
number = 0
while True:
    number += 1
    text = json.dumps({"number": number, "values": [math.sin(k * number) / 3 for k in range(9)]})
    hashlib.sha256(text.encode()).digest()
    sorted(json.loads(text)["values"], key=lambda value: value % 0.1)
    -number // 7 * 12345678901 >> 3
    gc.collect()
"""


def compared(folder: Path, instructions: int, milliseconds: int) -> dict[str, Any]:
    """What the two cores did on two flashes with MicroPython and a program."""
    parts = find_rp2040()
    flashes = [folder / name for name in ("one.bin", "other.bin")]
    for flash in flashes:
        write_flash(flash, parts.firmware, {"main.py": ON_THE_CHIP})
    command = [parts.node, PROGRAM, parts.emulator, parts.bootrom, *flashes, str(instructions), str(milliseconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("instructions", "milliseconds"), [(40_000, 40), pytest.param(1_000_000, 500, marks=pytest.mark.slow)]
)
def test_the_quick_core_does_what_rp2040js_does(tmp_path: Path, instructions: int, milliseconds: int) -> None:
    need_rp2040()
    said = compared(tmp_path, instructions, milliseconds)
    assert said["difference"] is None
    assert said["cycles"] > 0.5 * milliseconds * 125_000  # the chip was not asleep
