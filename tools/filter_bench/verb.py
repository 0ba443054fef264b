"""`./run bench filters`: all that is claimed of the boards' filters, measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import Any

from hil_tests.virtual_bench.errors import QemuMissing
from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from tools.filter_bench.accuracy import Accuracy, accuracies, decibel
from tools.filter_bench.board import on_qemu, on_unix
from tools.filter_bench.cases import random_cases
from tools.filter_bench.exactness import FILTERS, Exactness, compare
from tools.filter_bench.speed import PEER, Speed, race
from tools.filter_bench.twins import plain_outputs

SAMPLES = 1_000_000
ERROR_DB = -80.0
# The velocity's two sources take turns, so that each has a quarter of what the sections of both signals have.
_TICKS, _CASES = 5_200, 400
_TICKS_PLAIN, _CASES_PLAIN = 1_500, 16
PLAIN = "plain Python"


def filters(options: argparse.Namespace, console: Console) -> Result:
    """Exactness, accuracy and speed, one after the other.

    Raises:
        BenchError: no interpreter to compare with; under CI, no QEMU either.
    """
    exact = list(exactness(options.seed, console))
    console.say(exactness_table(exact))
    console.say("error against the design in float64 (scipy.signal)")
    errors = accuracies(options.seed)
    console.say(accuracy_table(errors))
    console.say("speed of the host's twins")
    speeds = race(options.seed)
    console.say(speed_table(speeds))
    checks = make_checks(exact, errors)
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "exactness": {each.where: each.to_dict() for each in exact},
        "error": [each.to_dict() for each in errors],
        "speed": {speed.name: {"samples_per_s": speed.best, "rounds": speed.rounds} for speed in speeds},
    }
    return Result("bench filters", options.seed, checks, fields)


def exactness(seed: int, console: Console) -> Iterable[Exactness]:
    """On everything that is there: the same cases on all boards, and some in Python, which is too slow for as many."""
    console.say("some ticks of the firmware in plain Python, and on the host")
    plain = random_cases(_CASES_PLAIN, _TICKS_PLAIN, seed + 1)
    yield compare(PLAIN, lambda some: map(plain_outputs, some), plain)
    console.say(f"{_CASES * _TICKS} ticks on the 32-bit unix port, and on the emulated Cortex-M3")
    cases = random_cases(_CASES, _TICKS, seed)
    yield compare("unix, viper", on_unix, cases)
    try:
        yield compare("qemu, viper", on_qemu, cases)
    except QemuMissing as error:
        if os.environ.get("CI"):
            raise
        console.say(f"not on QEMU: {error}")


def make_checks(exact: Sequence[Exactness], errors: Sequence[Accuracy]) -> tuple[Check, ...]:
    """What must hold."""
    boards = [each for each in exact if each.where != PLAIN]
    worst: dict[str, float] = {}
    for each in errors:
        worst[each.name] = max(each.peak, worst.get(each.name, 0.0))
    return (
        *(Check(f"{each.where}: samples of each filter", int(each.compared.min()), ">=", SAMPLES) for each in boards),
        *(Check(f"{each.where}: samples that differ", int(each.different.sum()), "==", 0) for each in exact),
        *(_error_check(f"{name}: largest error", peak) for name, peak in worst.items()),
    )


def _error_check(name: str, peak: float) -> Check:
    if peak == 0.0:  # less than any number of decibels
        return Check(name, peak, "==", 0.0, "of full scale")
    return Check(name, decibel(peak), "<=", ERROR_DB, "dB")


def exactness_table(exact: Sequence[Exactness]) -> str:
    """A line per filter: differing of compared samples, wherever it ran."""
    rows = [
        [name, *(f"{each.different[index]} of {each.compared[index]}" for each in exact)]
        for index, name in enumerate(FILTERS)
    ]
    return table(("samples that differ", *(each.where for each in exact)), rows)


def accuracy_table(errors: Sequence[Accuracy]) -> str:
    """A line per filter and cut-off."""
    rows = [
        [each.name, "" if each.cutoff_Hz is None else f"{each.cutoff_Hz:g}", _level(each.peak), _level(each.rms)]
        for each in errors
    ]
    return table(("error", "cut-off [Hz]", "peak [dB]", "rms [dB]"), rows)


def speed_table(speeds: Sequence[Speed]) -> str:
    """A line per twin, and how it compares with the peer."""
    peer = next(speed.best for speed in speeds if speed.name == PEER)
    rows = [[speed.name, f"{speed.best / 1e6:.1f}", f"{speed.best / peer:.2f}"] for speed in speeds]
    return table(("twin", "M samples/s", "times the peer"), rows)


def _level(ratio: float) -> str:
    return f"{decibel(ratio):.1f}" if ratio else "none"
