"""The firmware's own tick on a board: what its filters make of cases."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.interpreter import CHECKOUT, find_interpreter
from hil_tests.virtual_bench.pipe_layout import TICK_IN
from hil_tests.virtual_bench.qemu import Board, on_a_cortex, run_program
from tools.filter_bench.cases import Case

_FIRMWARE = CHECKOUT / "firmware"
_PATIENCE_S = 600.0  # against a board that hangs

OUTPUTS = np.dtype(
    [
        ("current", "<i4"),
        ("current_middle", "<i4"),
        ("current_filtered", "<i4"),
        ("torque", "<i4"),
        ("torque_middle", "<i4"),
        ("torque_filtered", "<i4"),
        ("velocity", "<i4"),
    ]
)
"""What a board has after a tick: decimated, behind the first section, behind the second; counts/tick Q8."""

# Runs the cases through the tick, with registers as they are written on a board. A case is the number of
# its ticks, the registers by id, and the inputs of each tick. What runs at each tick is native code: interpreted, it
# would take the emulated Cortex-M3 several times as long as the tick itself.
_PROGRAM = f"""
import gc
import micropython
from array import array
from uctypes import addressof, bytearray_at
from jointboard import bounds, tick
from jointboard.tick import tick as kernel
BLOCK, TICK_IN, WORDS = 64, {TICK_IN.itemsize}, {OUTPUTS.itemsize // 4}

@micropython.viper
def run(count: int, taken: ptr32, result: ptr32):
    at, last = ptr32(cells), int(WORDS) - 1
    inputs, step = int(tick.INPUTS), int(TICK_IN)
    while count:
        kernel(cells)
        at[inputs] += step
        n = 0
        while n < last:
            result[n] = at[taken[n]]
            n += 1
        result[last] = at[taken[last]] >> 4
        result = ptr32(int(result) + 4 * (last + 1))
        count -= 1

names = ("CURRENT_X1", "CURRENT_M1", "CURRENT_Y1", "TORQUE_X1", "TORQUE_M1", "TORQUE_Y1", "VELOCITY")
taken = array("i", [getattr(tick, name) for name in names])
cells, nothing = array("i", bytes(4 * tick.CELLS)), array("i", bytes(4 * tick.CELLS))
head, result = array("i", [0]), array("i", bytes(4 * WORDS * BLOCK))
outputs, sample, inputs = bytearray(12), bytearray(64), bytearray(TICK_IN * BLOCK)
# Files differ in how they count what they read into an array; in bytes they agree.
head_bytes, registers = bytearray_at(addressof(head), 4), bytearray_at(addressof(cells), 4 * tick.INPUTS)
result_bytes = memoryview(bytearray_at(addressof(result), 4 * WORDS * BLOCK))
source, target = open("cases.bin", "rb"), open("outputs.bin", "wb")
while source.readinto(head_bytes):
    gc.collect()
    cells[:] = nothing
    source.readinto(registers)
    bounds.derive(cells)
    cells[tick.OUTPUTS], cells[tick.SAMPLE], cells[tick.STILL] = addressof(outputs), addressof(sample), 257
    left = head[0]
    while left:
        count = min(left, BLOCK)
        left -= count
        source.readinto(memoryview(inputs)[: TICK_IN * count])
        cells[tick.INPUTS], cells[tick.STATUS_IN] = addressof(inputs), BLOCK + 1
        run(count, taken, result)
        target.write(result_bytes[: 4 * WORDS * count])
target.close()
"""


def on_unix(cases: Sequence[Case]) -> list[NDArray[Any]]:
    """Outputs of the viper tick on MicroPython's 32-bit unix port, for each case, dtype OUTPUTS.

    Raises:
        BenchError: there is no such interpreter.
    """
    interpreter = find_interpreter()

    def run(files: dict[str, bytes]) -> bytes:
        with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
            folder = Path(name)
            for path, data in files.items():
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_bytes(data)
            (folder / "main.py").write_text(_PROGRAM, encoding="utf-8")
            command = [interpreter, "-X", "heapsize=8m", "main.py"]
            subprocess.run(command, cwd=folder, check=True, timeout=_PATIENCE_S)
            return (folder / "outputs.bin").read_bytes()

    return _run(cases, run)


def on_qemu(cases: Sequence[Case], board: Board = on_a_cortex) -> list[NDArray[Any]]:
    """Outputs on an emulated Cortex-M3, or another board in QEMU, for each case, dtype OUTPUTS.

    Raises:
        BenchError: QEMU or its image is missing, or the program failed.
    """
    return _run(cases, lambda files: run_program(_PROGRAM, files, patience=_PATIENCE_S, board=board)["outputs.bin"])


def _run(cases: Sequence[Case], run: Callable[[dict[str, bytes]], bytes]) -> list[NDArray[Any]]:
    files = {f"jointboard/{path.name}": path.read_bytes() for path in (_FIRMWARE / "jointboard").glob("*.py")}
    heads = [np.array([len(case.inputs), *case.cells], "<i4") for case in cases]
    parts = zip(heads, cases, strict=True)
    files["cases.bin"] = b"".join(head.tobytes() + case.inputs.tobytes() for head, case in parts)
    lengths = [len(case.inputs) for case in cases]
    outputs = np.frombuffer(run(files), OUTPUTS)
    assert len(outputs) == sum(lengths)
    return np.split(outputs, np.cumsum(lengths)[:-1])
