"""Random cases for the boards' filters, and the outputs of firmware and host for them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from firmware.tests.twin import Inputs, Twin, defaults
from hil_tests.virtual_bench.board import TICK_IN
from hil_tests.virtual_bench.emulated_board import CHECKOUT, find_interpreter
from hil_tests.virtual_bench.qemu import Board, on_a_cortex, run_program
from jointbench.signals import (
    MAX_IDLE_TICKS,
    OVERSAMPLING,
    PASS_THROUGH,
    Biquads,
    Cic,
    MtVelocity,
    QuantisedBiquad,
    TrackingObserver,
    boxcar,
    butterworth_sections,
)
from jointwire import BY_NAME

_REGISTERS = 128  # the firmware's table
_TOP = 4095  # of a 12-bit converter
_RATE_HZ = 1000.0
_COEFFICIENTS = ("b0", "b1", "b2", "a1", "a2")
_CLOCKS_HZ = (1_000_000, 16_000_000, 125_000_000)


@dataclass(frozen=True)
class Case:
    """One board's registers, and what its sensors say.

    Attributes:
        registers: raw values by name, those that filters depend on.
        inputs: of each tick, shape (n,), dtype TICK_IN.
    """

    registers: dict[str, int]
    inputs: NDArray[Any]

    @property
    def sections(self) -> tuple[QuantisedBiquad, ...]:
        """The filter's coefficients."""
        return tuple(_section(self.registers, number) for number in (1, 2))

    @property
    def cells(self) -> NDArray[np.int32]:
        """All registers by id, the others at their defaults, shape (128,)."""
        cells = np.zeros(_REGISTERS, np.int32)
        for name, register in BY_NAME.items():
            cells[register.id] = self.registers.get(name, register.default)
        return cells

    @property
    def capture_clocks(self) -> int:
        """Counts of the capture clock in a tick."""
        return self.registers["encoder.capture_clock"] * self.registers["board.tick_period"] // 10**6


def random_cases(count: int, ticks: int, seed: int) -> list[Case]:
    """Cases that take turns in decimator and source of velocity, so that each gets the same share of the ticks.

    Args:
        count: how many.
        ticks: of each, at least 1.
        seed: of all that is random in them.
    """
    return [_case(number, ticks, np.random.default_rng([seed, number])) for number in range(count)]


def _case(number: int, ticks: int, rng: np.random.Generator) -> Case:
    registers = {
        "board.tick_period": 1000,
        "adc.cic_order": 1 + number % 2,
        "velocity.source": number // 2 % 2,
        "velocity.alpha": _one_of(rng, 1, 128, 256, int(rng.integers(1, 257))),
        "velocity.beta": _one_of(rng, 1, 512, 1023, int(rng.integers(1, 1024))),
        "encoder.capture_clock": _one_of(rng, *_CLOCKS_HZ, int(rng.integers(10_000, 400_000_000))),
    }
    for section, coefficients in enumerate(_sections(rng), start=1):
        names = (f"filter.{section}.{name}" for name in _COEFFICIENTS)
        registers |= dict(zip(names, coefficients, strict=True))
    inputs = np.zeros(ticks, TICK_IN)
    inputs["tick"] = 1 + np.arange(ticks)
    for signal in (0, 1):
        inputs["adc"][:, signal] = _converter(rng, ticks)
    position, edge = _motion(rng, ticks, registers["encoder.capture_clock"] // 1000)
    inputs["motor_count"] = position % 2**16
    inputs["motor_edge"] = edge % 2**32
    return Case(registers, inputs)


def _section(registers: dict[str, int], number: int) -> QuantisedBiquad:
    b0, b1, b2, a1, a2 = (registers[f"filter.{number}.{name}"] for name in _COEFFICIENTS)
    return b0, b1, b2, a1, a2


def _sections(rng: np.random.Generator) -> tuple[QuantisedBiquad, ...]:
    """Filters as they are designed, and as only a mistake would write them: within the registers' bounds, but wild."""
    kind = ("designed", "designed", "none", "wild", "bounds")[rng.integers(5)]
    if kind == "designed":
        cutoff_hz = float(np.exp(rng.uniform(np.log(1.0), np.log(450.0))))
        return butterworth_sections(_one_of(rng, 2, 4), cutoff_hz, _RATE_HZ)
    if kind == "none":
        return PASS_THROUGH, PASS_THROUGH
    ranges = [(BY_NAME[f"filter.1.{name}"].minimum, BY_NAME[f"filter.1.{name}"].maximum) for name in _COEFFICIENTS]

    def one(low: int, high: int) -> int:
        return _one_of(rng, low, high) if kind == "bounds" else int(rng.integers(low, high, endpoint=True))

    return tuple(cast(QuantisedBiquad, tuple(one(*each) for each in ranges)) for _ in range(2))


def _converter(rng: np.random.Generator, ticks: int) -> NDArray[np.int64]:
    """ADC samples: noise over the whole range, a swing with noise on it, or rails, in stretches."""
    whole = rng.integers(0, _TOP, (ticks, OVERSAMPLING), endpoint=True)
    time = np.arange(ticks * OVERSAMPLING).reshape(ticks, OVERSAMPLING) / (OVERSAMPLING * _RATE_HZ)
    swing = 2048 + rng.uniform(100, 2400) * np.sin(2 * np.pi * rng.uniform(0.1, 500.0) * time + rng.uniform(0, 6.3))
    swing += rng.normal(0, rng.uniform(0, 40), swing.shape)
    rails = _TOP * rng.integers(0, 2, (ticks, 1)) * np.ones(OVERSAMPLING, np.int64)
    kinds = np.stack([whole, np.clip(np.rint(swing), 0, _TOP).astype(np.int64), rails])
    return kinds[_stretches(rng, ticks, 3), np.arange(ticks)]


def _motion(rng: np.random.Generator, ticks: int, clocks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts, and when the newest of them came: swings, rests, jumps of all sizes; edge times true or of any value."""
    time = np.arange(ticks)
    swing = rng.uniform(10, 30000) * np.sin(2 * np.pi * rng.uniform(1e-4, 5e-2) * time)
    jumps = np.cumsum(rng.choice([-32768, 32767, 0, 0, 1, -1, int(rng.integers(-32768, 32768))], ticks))
    creep = np.cumsum(rng.random(ticks) < rng.uniform(0.0, 0.1))
    kinds = np.stack([np.floor(swing).astype(np.int64), jumps, creep, np.zeros(ticks, np.int64)])
    moves = np.diff(kinds, axis=1, prepend=0)[_stretches(rng, ticks, 4), time]
    position = np.cumsum(moves)
    edge = (time + rng.random(ticks)) * clocks
    newest = np.maximum.accumulate(np.where(moves != 0, edge, 0.0)).astype(np.int64) + int(rng.integers(2**32))
    anything = rng.random(ticks) < 0.02
    return position, np.where(anything, rng.integers(0, 2**32, ticks), newest)


def _stretches(rng: np.random.Generator, ticks: int, kinds: int) -> NDArray[np.int64]:
    """Which kind each tick has, some hundred ticks at a time."""
    lengths = rng.integers(1, 700, ticks // 300 + 2)
    return np.resize(np.repeat(rng.integers(0, kinds, len(lengths)), lengths), ticks)


def _one_of(rng: np.random.Generator, *values: int) -> int:
    return values[rng.integers(len(values))]


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


def host_outputs(case: Case) -> NDArray[Any]:
    """Outputs of the host's integer twins, dtype OUTPUTS."""
    out = np.zeros(len(case.inputs), OUTPUTS)
    for index, name in enumerate(("current", "torque")):
        samples = case.inputs["adc"][:, index]
        decimated = boxcar(samples) if case.registers["adc.cic_order"] == 1 else Cic().run(samples)
        out[name] = decimated
        out[f"{name}_middle"] = Biquads(case.sections[:1]).run(decimated)
        out[f"{name}_filtered"] = Biquads(case.sections).run(decimated)
    out["velocity"] = _velocity(case)
    return out


def _velocity(case: Case) -> NDArray[np.int64]:
    counters = case.inputs["motor_count"]
    if case.registers["velocity.source"] == 0:
        observer = TrackingObserver(case.registers["velocity.alpha"], case.registers["velocity.beta"])
        return observer.run(counters)
    return MtVelocity(case.capture_clocks).run(counters, case.inputs["motor_edge"])


def plain_outputs(case: Case) -> NDArray[Any]:
    """Outputs of the firmware's own twin, whose integers are unbounded, dtype OUTPUTS."""
    twin = Twin(defaults() | case.registers, still=MAX_IDLE_TICKS, edge_clocks=case.capture_clocks)
    rows: list[tuple[int, ...]] = []
    for given in case.inputs:
        current, torque = given["adc"].tolist()
        tick, count, edge = (int(given[name]) for name in ("tick", "motor_count", "motor_edge"))
        twin.tick(Inputs(tick, count, 0, current, torque, motor_edge=edge))
        nodes = [node[0] for channel in (twin.current, twin.torque) for node in channel.nodes]
        rows.append((*nodes, twin.velocity_q12 // 16))
    return np.array(rows, OUTPUTS)
