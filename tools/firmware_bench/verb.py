"""`./run bench firmware`: the tick by stages, by viper and in C; the main loop; framing; each counted twice."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from hil_tests.virtual_bench.qemu import find_qemu
from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from tools.firmware_bench.loop import LoopCost, count_loop
from tools.firmware_bench.peer import compiler_version
from tools.firmware_bench.stages import EDGE_TIMES, OBSERVER, Cost, count, cut_kernels, prepare

TICK_LIMIT = 3000
TICK_PERIOD = 25_000  # instructions in a millisecond of a 25 MHz core
_SOURCES = {"observer": OBSERVER, "edge times": EDGE_TIMES}

Counted = tuple[dict[str, list[Cost]], LoopCost, LoopCost]


def firmware(options: argparse.Namespace, console: Console) -> Result:
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
    for check in checks:
        console.say(str(check))
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
    """What each stage adds to the one before; the first has the interpreter's call, too."""
    return [costs[0], *(after.since(before) for before, after in pairwise(costs))]


def make_checks(runs: Sequence[Counted]) -> tuple[Check, ...]:
    """What must hold."""
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
    """How many figures the runs do not agree on."""
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
