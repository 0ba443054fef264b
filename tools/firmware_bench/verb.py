"""`./run bench firmware`: the tick by stages, as Thumb, C and viper; the main loop; framing; each counted twice."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from hil_tests.virtual_bench.qemu import find_qemu
from jointbench.cli.console import Console
from jointbench.cli.result import Check, Result
from jointbench.cli.tables import table
from tools.firmware_bench.kernels import EDGE_TIMES, OBSERVER, Cost, count, cut_kernels, prepare
from tools.firmware_bench.loop import LoopCost, count_loop
from tools.firmware_bench.peer import compiler_version

TICK_LIMIT, TICK_GOAL = 3000, 1500
TIMES_C = 3.0
FRAMING_LIMIT = 500
_SOURCES = {"observer": OBSERVER, "edge times": EDGE_TIMES}

TICK_PERIOD = 25_000  # instructions in a millisecond of a 25 MHz core

Counted = tuple[dict[str, list[Cost]], LoopCost, LoopCost]


def firmware(options: argparse.Namespace, console: Console) -> Result:
    """Count everything twice; what is counted must not differ by one instruction."""
    find_qemu()  # missing: say so before the compilers have worked
    console.say("compiling the tick, cut after each of its stages, to Thumb, viper and C")
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
    dearest = max(costs[-1].called for costs in stages.values())
    console.say(
        f"goal of {TICK_GOAL} instructions for the tick as called: {'kept' if dearest <= TICK_GOAL else 'missed'}"
    )
    fields: dict[str, Any] = {
        "board": "qemu:mps2-an385, -icount shift=0",
        "c_compiler": compiler_version(),
        "goal": {"tick_as_called": TICK_GOAL, "kept": dearest <= TICK_GOAL},
        "stages": {name: [asdict(each) for each in parts(costs)] for name, costs in stages.items()},
        "tick": {name: asdict(costs[-1]) | {"ratio": costs[-1].ratio} for name, costs in stages.items()},
        "loop": asdict(loop),
        "loop_of_two": asdict(pair),
    }
    return Result("bench firmware", options.seed, checks, fields)


def parts(costs: Sequence[Cost]) -> list[Cost]:
    """What each stage adds to the one before."""
    return [costs[0], *(after.since(before) for before, after in pairwise(costs))]


def make_checks(runs: Sequence[Counted]) -> tuple[Check, ...]:
    """What must hold."""
    stages, loop, pair = runs[0]
    whole = [costs[-1] for costs in stages.values()]
    ratios = [each.ratio for costs in stages.values() for each in parts(costs)]
    return (
        Check("tick as called", max(each.called for each in whole), "<=", TICK_LIMIT, "instructions"),
        Check(
            "tick as called, by viper on ARMv6-M",
            max(each.armv6m_called for each in whole),
            "<=",
            TICK_LIMIT,
            "instructions",
        ),
        Check("tick over C, without the call", max(each.ratio for each in whole), "<=", TIMES_C),
        Check("dearest stage over C", max(ratios), "<=", TIMES_C),
        Check("framing", loop.framing_per_sample, "<=", FRAMING_LIMIT, "instructions a sample"),
        Check("heap taken by a tick", max(loop.bytes_per_tick, pair.bytes_per_tick), "==", 0, "bytes"),
        Check("a tick of two motors with its framing", pair.per_tick, "<=", TICK_PERIOD, "instructions"),
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
    heads = (f"velocity by {name}", "Thumb", "C -O2", "Thumb / C", "as called", "viper as called", "on ARMv6-M")
    return table(heads, rows)


def _row(name: str, cost: Cost) -> list[str]:
    called = (cost.called, cost.viper_called, cost.armv6m_called)
    return [name, f"{cost.thumb}", f"{cost.c}", f"{cost.ratio:.2f}", *map(str, called)]


def loop_table(name: str, loop: LoopCost) -> str:
    """A main loop's figures."""
    rows = [
        ["a turn with nothing sent", f"{loop.turn:.0f}"],
        ["framing, per sample", f"{loop.framing_per_sample:.0f}"],
        ["longest turn, which collects memory", f"{loop.collection}"],
    ]
    return table((f"{name}, {loop.samples} samples in frames of {loop.block}", "instructions"), rows)
