"""`./run bench identification`: many rows in half a second, an hour's log in constant memory."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.identification.least_squares import Estimate, joint_weights, least_squares
from jointbench.identification.rows import MotionRows
from jointbench.identification.triangles import compress
from tools.bench.identification_memory import in_own_process, many_rows

ROUNDS = 7


@dataclass(frozen=True)
class Race:
    """Times of both ways, and their difference.

    Attributes:
        rows, columns: of the matrix.
        seconds: of each round of ours, parameters with their covariance, after a first call.
        fill_s: to make the peer's matrix.
        lstsq_s: of `numpy.linalg.lstsq` on it, once: parameters alone, of weights that are given to it.
        qr_s: of `numpy.linalg.qr` on it, R alone.
        apart: largest difference of a parameter, in its standard deviations.
        condition_apart: of the condition numbers, relative.
        off: root mean square of (estimate - truth) / σ.
    """

    rows: int
    columns: int
    seconds: list[float]
    fill_s: float
    lstsq_s: float
    qr_s: float
    apart: float
    condition_apart: float
    off: float


def race(rows: MotionRows, truth: Array, rounds: int = ROUNDS) -> Race:
    """Solve the rows in both ways; the peer is given our weights of the joints."""
    estimate = least_squares([rows])
    seconds: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        estimate = least_squares([rows])
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    matrix = np.concatenate([block.regressor for block in rows.blocks()])
    fill_s = time.perf_counter() - begin
    begin = time.perf_counter()
    triangle = np.linalg.qr(matrix.reshape(-1, rows.n_parameters), mode="r")
    qr_s = time.perf_counter() - begin
    condition = float(np.linalg.cond(triangle))
    weights = joint_weights(compress([rows]))
    matrix *= weights[:, None]
    matrix = matrix.reshape(-1, rows.n_parameters)
    right = (rows.torque * weights).ravel()
    solution, lstsq_s = _lstsq(matrix, right)
    sigma = np.sqrt(np.diag(estimate.covariance))
    return Race(
        rows=len(matrix),
        columns=rows.n_parameters,
        seconds=seconds,
        fill_s=fill_s,
        lstsq_s=lstsq_s,
        qr_s=qr_s,
        apart=float(np.abs((estimate.parameters - solution) / sigma).max()),
        condition_apart=abs(estimate.condition_number / condition - 1.0),
        off=_off(estimate, truth),
    )


def _lstsq(matrix: Array, right: Array) -> tuple[Array, float]:
    scale = np.linalg.norm(matrix, axis=0)
    matrix /= scale
    begin = time.perf_counter()
    solution = np.linalg.lstsq(matrix, right)[0]
    return solution / scale, time.perf_counter() - begin


def _off(estimate: Estimate, truth: Array) -> float:
    return float(np.sqrt(np.mean((estimate.parameters - truth) ** 2 / np.diag(estimate.covariance))))


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


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Many rows beside NumPy, then logs of ten minutes and of an hour.

    Raises:
        BenchmarkFailed: a process that was measured ended with an error.
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
    fields: dict[str, Any] = {
        "many_rows": {**asdict(raced), **many},
        "logs": {kind: {f"{minutes:g} min": each for minutes, each in of.items()} for kind, of in logs.items()},
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
    """Checks against the limits."""
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
