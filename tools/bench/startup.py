"""`./run bench startup`: how long the command line takes to say what it can, beside mpremote's and Python's own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from tools.machine import machine

LIMIT_S = 0.4
ROUNDS = 9
OURS = ("jointbench --help", "jointbench list", "jointbench")
PEER = "mpremote --help"
COMMANDS: dict[str, tuple[str, ...]] = {
    OURS[0]: ("-m", "jointbench", "--help"),
    OURS[1]: ("-m", "jointbench", "list"),
    OURS[2]: ("-m", "jointbench"),
    PEER: ("-m", "mpremote", "--help"),
    "python": ("-c", "pass"),
    "python, import numpy": ("-c", "import numpy"),
}


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Starts each in turns; whatever else the machine does, all suffer from."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for done in range(ROUNDS):
        console.progress(f"round {done + 1} of {ROUNDS}", done / ROUNDS)
        for name, arguments in COMMANDS.items():
            times[name].append(seconds_of(arguments))
    console.say(times_table(times))
    checks = make_checks(times)
    fields = {"seconds_each": times, "machine": machine()}
    return Result("bench startup", options.seed, checks, fields)


def seconds_of(arguments: Sequence[str]) -> float:
    """Time from the start of an interpreter with these arguments to its end [s]."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def make_checks(times: dict[str, list[float]]) -> tuple[Check, ...]:
    """The median of each of ours."""
    return tuple(Check(f"seconds of `{name}`", float(np.median(times[name])), "<=", LIMIT_S, "s") for name in OURS)


def times_table(times: dict[str, list[float]]) -> str:
    """Median, least and most of each, and the median in mpremote's."""
    peer = float(np.median(times[PEER]))
    rows = [
        [name, f"{np.median(each):.3f}", f"{min(each):.3f}", f"{max(each):.3f}", f"{np.median(each) / peer:.2f}"]
        for name, each in times.items()
    ]
    return table(("start to end [s]", "median", "least", "most", f"times {PEER}"), rows)
