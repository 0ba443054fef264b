"""`./run bench feed`: what those who look on cost a recording."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from tools.feed_bench.race import Recorded, race
from tools.machine import machine

CROWDS, ROUNDS = (0, 1, 3), 2
CPU_PERCENT = 15.0
RATE_HZ = 20.0


def feed(options: argparse.Namespace, console: Console) -> Result:
    """Record twelve boards in real time with nobody, one and three that look on, in turns."""
    console.say(f"12 boards (MicroPython), recorded {ROUNDS} times each with nobody, one and three that look on")
    recorded: list[Recorded] = []
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        for each in race(Path(name), CROWDS, ROUNDS, options.seed):
            recorded.append(each)
            console.progress(f"recording {len(recorded)} of {ROUNDS * len(CROWDS)}")
    console.say(feed_table(recorded))
    checks = make_checks(recorded)
    for check in checks:
        console.say(str(check))
    fields = {
        "recordings": [
            {"readers": each.readers, "cpu_percent": 100.0 * each.cpu, "lost": each.lost, "states_Hz": each.rates}
            for each in recorded
        ],
        "machine": machine(),
    }
    return Result("bench feed", options.seed, checks, fields)


def make_checks(recorded: Sequence[Recorded]) -> tuple[Check, ...]:
    """What must hold; the peer is the same recording with nobody."""
    alone, crowd = (_cpu(recorded, readers) for readers in (min(CROWDS), max(CROWDS)))
    return (
        Check("samples lost", sum(each.lost for each in recorded), "==", 0),
        Check(f"one core used more with {max(CROWDS)} that look on", 100.0 * (crowd - alone), "<=", CPU_PERCENT, "%"),
        Check("states of each", min(rate for each in recorded for rate in each.rates), ">=", RATE_HZ, "/s"),
    )


def feed_table(recorded: Sequence[Recorded]) -> str:
    """A line for each number of readers: the median of the recordings, and all of them."""
    rows = [
        [
            f"{readers}",
            f"{100.0 * _cpu(recorded, readers):.2f}",
            " ".join(f"{100.0 * each.cpu:.2f}" for each in recorded if each.readers == readers),
            " ".join(f"{rate:.1f}" for each in recorded if each.readers == readers for rate in each.rates) or "–",
            f"{sum(each.lost for each in recorded if each.readers == readers)}",
        ]
        for readers in CROWDS
    ]
    return table(("look on", "of one core [%]", "each recording", "states of each [/s]", "samples lost"), rows)


def _cpu(recorded: Sequence[Recorded], readers: int) -> float:
    return median(each.cpu for each in recorded if each.readers == readers)
