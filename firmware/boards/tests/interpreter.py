"""Programs on the real 32-bit MicroPython, with the drivers on its path; they answer in JSON."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from firmware.tests.driver import micropython

BOARDS = Path(__file__).resolve().parents[1]
PATIENCE_S = 60  # against a program that hangs
# allocated(function): bytes that 500 calls of it take, beyond those of a function that does nothing.
ALLOCATED = """
import gc
calls = range(500)
def taken(function):
    function()
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in calls:
        function()
    return gc.mem_alloc() - before
def allocated(function):
    return taken(function) - taken(lambda: None)
"""
ANSWER = "\nimport json\nprint(json.dumps(answer))\n"


def run(program: str, **given: Any) -> Any:
    """What a program leaves in `answer`; the names given are there from its start.

    Raises:
        AssertionError: it ended with an exception, which is told.
    """
    start = "".join(f"{name} = {value!r}\n" for name, value in given.items())
    done = subprocess.run(
        [micropython(), "-X", "heapsize=8M", "-c", start + program + ANSWER],
        env=os.environ | {"MICROPYPATH": f"{BOARDS}:{BOARDS.parent}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
