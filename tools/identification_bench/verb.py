"""`./run bench identification`: many rows in half a second, and an hour's log in the memory of some minutes'."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from jointbench.dynamics.parallel import n_threads
from tools.identification_bench.measured import in_own_process
from tools.identification_bench.motion import many_rows
from tools.identification_bench.race import Race, race

SECONDS, MEMORY_MB = 0.5, 300.0
ROWS, COLUMNS = 600_000, 60
APART = 1e-6
"""Of a parameter's standard deviation: both are solved by orthogonal decompositions in double precision."""

CONDITION_APART = 1e-6
SHORT_MINUTES, LONG_MINUTES = 10.0, 60.0
LONG_SAMPLES = 3_600_000
TIMES_MEMORY = 1.1
KINDS = ("imported", "recorded")
TORQUE_ERROR = 0.02
"""Of the torque, whose noise of 0.3 N·m the filter leaves a fifth of: the model must be right, too."""


def identification(options: argparse.Namespace, console: Console) -> Result:
    """Many rows beside NumPy, then logs of ten minutes and of an hour.

    Raises:
        ProcessFailed: a process that was measured ended with an error.
    """
    console.say("600 000 rows, and NumPy with their matrix in memory")
    raced = race(*many_rows(options.seed))
    many = in_own_process("many", str(options.seed))
    console.say(race_table(raced, many))
    logs: dict[str, dict[float, Mapping[str, Any]]] = {}
    for kind in KINDS:
        logs[kind] = {}
        for minutes in (SHORT_MINUTES, LONG_MINUTES):
            console.say(f"{minutes:.0f} minutes of six joints at 1 kHz, {kind}")
            logs[kind][minutes] = measured_log(kind, minutes, options.seed)
    console.say(log_table(logs))
    checks = make_checks(raced, many, logs)
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "many_rows": {**asdict(raced), **many},
        "logs": {kind: {f"{minutes:g} min": each for minutes, each in of.items()} for kind, of in logs.items()},
        "threads": n_threads(),
        "load": os.getloadavg(),
        "versions": {name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
    }
    return Result("bench identification", options.seed, checks, fields)


def measured_log(kind: str, minutes: float, seed: int) -> Mapping[str, Any]:
    """Make a log in one process, fit it in another."""
    with tempfile.TemporaryDirectory(prefix="jointbench-") as folder:
        path = str(Path(folder) / "run")
        made = in_own_process("make", kind, path, str(minutes), str(seed))
        return {**in_own_process("fit", path), "bytes": made["bytes"]}


def make_checks(
    raced: Race, many: Mapping[str, Any], logs: Mapping[str, Mapping[float, Mapping[str, Any]]]
) -> tuple[Check, ...]:
    """What must hold."""
    checks = [
        Check("rows", raced.rows, ">=", ROWS),
        Check("columns", raced.columns, ">=", COLUMNS),
        Check("identified, σ included", min(raced.seconds), "<=", SECONDS, "s"),
        Check("peak memory of its process", many["resident_MB"], "<=", MEMORY_MB, "MB"),
        Check("parameters off NumPy's, in σ", raced.apart, "<=", APART),
        Check("condition number off NumPy's", raced.condition_apart, "<=", CONDITION_APART),
    ]
    for kind, by_minutes in logs.items():
        short, long = by_minutes[SHORT_MINUTES], by_minutes[LONG_MINUTES]
        checks += [
            Check(f"an hour, {kind}: samples of each joint", long["samples"], ">=", LONG_SAMPLES),
            Check(
                f"an hour, {kind}: peak memory over that of ten minutes", long["resident_MB"] / short["resident_MB"],
                "<=", TIMES_MEMORY,
            ),
            Check(f"an hour, {kind}: peak memory", long["resident_MB"], "<=", MEMORY_MB, "MB"),
            Check(f"an hour, {kind}: torque error", long["total_relative"], "<=", TORQUE_ERROR),
        ]  # fmt: skip
    return tuple(checks)


def race_table(raced: Race, many: Mapping[str, Any]) -> str:
    """A line per way."""
    stored_MB = 8e-6 * raced.rows * raced.columns
    rows = [
        ["ours, σ included", f"{min(raced.seconds):.3f}", f"{max(raced.seconds):.3f}", f"{many['resident_MB']:.0f}"],
        ["numpy.linalg.lstsq, weights known", f"{raced.lstsq_s:.3f}", "", f"{stored_MB:.0f} for the matrix alone"],
        ["numpy.linalg.qr, R alone", f"{raced.qr_s:.3f}", "", ""],
        ["making its matrix", f"{raced.fill_s:.3f}", "", ""],
    ]
    return table((f"{raced.rows} x {raced.columns}", "best [s]", "worst [s]", "memory [MB]"), rows)


def log_table(logs: Mapping[str, Mapping[float, Mapping[str, Any]]]) -> str:
    """A line per log."""
    rows = [
        [
            f"{kind}, {minutes:.0f} min", f"{each['bytes'] / 1e6:.0f}", f"{each['resident_MB']:.0f}",
            f"{each['without_file_MB']:.0f}", f"{each['open_s']:.1f}", f"{each['fit_s']:.1f}",
            f"{100.0 * each['total_relative']:.2f}",
        ]
        for kind, of in logs.items()
        for minutes, each in of.items()
    ]  # fmt: skip
    heads = ("log", "size [MB]", "peak [MB]", "of it no file's [MB]", "open [s]", "fit [s]", "torque error [%]")
    return table(heads, rows)
