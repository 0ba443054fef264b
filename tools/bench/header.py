"""`./run bench header`: time per call of an exported C header, beside Pinocchio's `rnea`, and how far they differ."""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.identification.feedforward import FRICTION_WIDTH
from jointbench.identification.friction.law import Form, LawElement
from jointbench.identification.predictor import Predictor
from jointbench.model import Robot, compensation_parameter_names, drive_parameter_names, load_robot
from jointbench.results.c_header import c_header_text
from tools.bench.peers import BenchmarkFailed, pinocchio, pinocchio_model

ROBOTS = ("cobot6", "modular7")

DISAGREEMENT = 1e-9
"""Of the largest torque; sums of some hundred products round to 1e-13, so that any wrong term shows."""

LIMIT_US = 10.0
"""Longest time of the slowest state [µs]: 1 % of a control period of 1 ms."""

LINKS, FEEDFORWARD, PEER = "header, links alone", "header, to motor current", "Pinocchio, links alone"

OPTIONS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC")
_STATES, _ROUNDS = 2000, 50

_PROGRAM = """\
#define _POSIX_C_SOURCE 199309L
#include <time.h>
#include "model.h"

static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }}

void torques(int n, const double *q, const double *dq, const double *ddq, double *tau);
double in_a_row(int n, const double *q, const double *dq, const double *ddq, double *out);
void one_by_one(int n, const double *q, const double *dq, const double *ddq, double *out, double *seconds);

void torques(int n, const double *q, const double *dq, const double *ddq, double *tau)
{{
    int k;
    for (k = 0; k < n; k++)
        {name}_inverse_dynamics(q + {n} * k, dq + {n} * k, ddq + {n} * k, tau + {n} * k);
}}

double in_a_row(int n, const double *q, const double *dq, const double *ddq, double *out)
{{
    const double start = now();
    int k;
    for (k = 0; k < n; k++)
        {call};
    return (now() - start) / n;
}}

void one_by_one(int n, const double *q, const double *dq, const double *ddq, double *out, double *seconds)
{{
    int k;
    for (k = 0; k < n; k++) {{
        const double start = now();
        {call};
        seconds[k] = now() - start;
    }}
}}
"""
_CALLS = {
    LINKS: "{name}_inverse_dynamics(q + {n} * k, dq + {n} * k, ddq + {n} * k, out + {n} * k)",
    FEEDFORWARD: "{name}_feedforward(q + {n} * k, dq + {n} * k, ddq + {n} * k, {width}, out + {m} * k)",
}


class Times(NamedTuple):
    """Time of a method's calls [s].

    Attributes:
        in_a_row: mean of a call among many in a row, shape (n_rounds,).
        shortest: shortest time of each state's call in all rounds, clock included, shape (n_states,). What other
            programs on the machine take is not in it, so that its maximum is the time of the slowest state.
        longest: longest time of each state's call, interruptions included, shape (n_states,).
    """

    in_a_row: Array
    shortest: Array
    longest: Array


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Time and compare headers of both robots.

    Raises:
        BenchmarkFailed: there is no C compiler or no Pinocchio.
    """
    times: dict[str, dict[str, Times]] = {}
    checks: list[Check] = []
    for name in ROBOTS:
        console.say(f"{name}: {_ROUNDS} rounds of {_STATES} random states")
        times[name], apart = race(load_robot(name), options.seed)
        slowest = 1e6 * float(times[name][FEEDFORWARD].shortest.max())
        ratio = float(np.median(times[name][LINKS].in_a_row) / np.median(times[name][PEER].in_a_row))
        checks += [
            Check(f"{name}: the slowest state, to motor current", slowest, "<=", LIMIT_US, "µs"),
            Check(f"{name}: links alone, mean time of Pinocchio's", ratio, "<=", 1.5),
            *(Check(f"{name}: {what}", value, "<=", DISAGREEMENT) for what, value in apart.items()),
        ]
    rows = [
        [name, method, *(f"{1e6 * value:.2f}" for value in _figures(of))]
        for name, by_method in times.items()
        for method, of in by_method.items()
    ]
    heads = ("robot", "one call", "mean [µs]", "slowest state [µs]", "longest [µs]")
    console.say(table(heads, rows))
    fields = {
        "seconds": {name: {method: _figures(of) for method, of in by.items()} for name, by in times.items()},
        "load": os.getloadavg(),
    }
    return Result("bench header", options.seed, tuple(checks), fields)


def race(
    robot: Robot, seed: int, states: int = _STATES, rounds: int = _ROUNDS
) -> tuple[dict[str, Times], dict[str, float]]:
    """Times of each method, which take turns, and differences of torques as a share of the largest.

    Raises:
        BenchmarkFailed: there is no C compiler or no Pinocchio, or the robot has no inertias.
    """
    rng = np.random.default_rng(seed)
    links = robot.standard_parameters
    if links is None:
        raise BenchmarkFailed(f"robot {robot.name!r} has no inertias to write a header of; take {', '.join(ROBOTS)}")
    drives = rng.uniform(0.1, 2.0, len(drive_parameter_names(robot)))
    springs = rng.uniform(0.1, 2.0, len(compensation_parameter_names(robot)))
    laws = [(j, LawElement(form, *rng.uniform(0.1, 2.0, 2))) for j in range(robot.n_joints) for form in Form]
    moves = [np.ascontiguousarray(rng.uniform(-2.0, 2.0, (states, robot.n_joints))) for _ in range(3)]
    none, still = np.zeros_like(drives), np.zeros_like(springs)
    peer = _Peer(robot, moves)
    with tempfile.TemporaryDirectory() as folder:
        bare = _Header(robot, c_header_text(robot, links, none, still), LINKS, Path(folder) / "links")
        text = c_header_text(robot, links, drives, springs, laws=laws)
        full = _Header(robot, text, FEEDFORWARD, Path(folder) / "all")
        methods = {LINKS: bare, FEEDFORWARD: full, PEER: peer}
        apart = {
            "links alone, from Pinocchio": _apart(bare.torques(moves), peer.torques()),
            "links alone, from the host": _apart(bare.torques(moves), _host(robot, moves, links, none, still)),
            "with drives and friction laws, from the host": _apart(
                full.torques(moves), _host(robot, moves, links, drives, springs, laws)
            ),
        }
        taken = {method: ([what.in_a_row(moves)], what.one_by_one(moves)) for method, what in methods.items()}
        shortest = {method: each for method, (_, each) in taken.items()}
        longest = dict(shortest)
        for _ in range(rounds - 1):
            for method, what in methods.items():
                taken[method][0].append(what.in_a_row(moves))
                seconds = what.one_by_one(moves)
                shortest[method] = np.minimum(shortest[method], seconds)
                longest[method] = np.maximum(longest[method], seconds)
    times = {name: Times(np.array(rows), shortest[name], longest[name]) for name, (rows, _) in taken.items()}
    return times, apart


class _Header:
    """A header, compiled into a shared library."""

    def __init__(self, robot: Robot, text: str, call: str, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise BenchmarkFailed("there is no C compiler (cc or gcc); on Debian: sudo apt-get install gcc libc6-dev")
        folder.mkdir()
        (folder / "model.h").write_text(text, encoding="utf-8")
        words = {"name": robot.name, "n": robot.n_joints, "m": robot.drive_train.n_motors, "width": FRICTION_WIDTH}
        program, library = folder / "timed.c", folder / "timed.so"
        program.write_text(_PROGRAM.format(**words, call=_CALLS[call].format(**words)), encoding="utf-8")
        done = subprocess.run(
            [compiler, *OPTIONS, program, "-o", library, "-lm"], check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise BenchmarkFailed(f"{compiler} does not compile the header of {robot.name}: {done.stderr.strip()}")
        self._library = ctypes.CDLL(str(library))
        self._library.in_a_row.restype = ctypes.c_double

    def torques(self, moves: list[Array]) -> Array:
        tau = np.full_like(moves[0], np.nan)
        self._library.torques(len(tau), *map(_pointer, (*moves, tau)))
        return tau

    def in_a_row(self, moves: list[Array]) -> float:
        out = np.empty((len(moves[0]), 2 * moves[0].shape[1]))
        return float(self._library.in_a_row(len(out), *map(_pointer, (*moves, out))))

    def one_by_one(self, moves: list[Array]) -> Array:
        out, seconds = np.empty((len(moves[0]), 2 * moves[0].shape[1])), np.empty(len(moves[0]))
        self._library.one_by_one(len(out), *map(_pointer, (*moves, out, seconds)))
        return seconds


class _Peer:
    """Pinocchio: many in a row inside its own C++ loop, on one thread; one by one through its Python binding."""

    def __init__(self, robot: Robot, moves: list[Array]) -> None:
        self._library: Any = pinocchio()
        self._model = pinocchio_model(robot)
        self._data = self._model.createData()
        self._pool = self._library.ModelPool(self._model, 1)
        self._rows = list(zip(*moves, strict=True))
        self._columns = [np.asfortranarray(move.T) for move in moves]

    def torques(self) -> Array:
        return np.array([self._library.rnea(self._model, self._data, *row) for row in self._rows])

    def in_a_row(self, moves: list[Array]) -> float:
        start = time.perf_counter()
        self._library.rneaInParallel(1, self._pool, *self._columns)
        return (time.perf_counter() - start) / len(moves[0])

    def one_by_one(self, moves: list[Array]) -> Array:
        seconds = np.empty(len(moves[0]))
        for k, row in enumerate(self._rows):
            start = time.perf_counter()
            self._library.rnea(self._model, self._data, *row)
            seconds[k] = time.perf_counter() - start
        return seconds


def _host(
    robot: Robot, moves: list[Array], links: Array, drives: Array, springs: Array,
    laws: list[tuple[int, LawElement]] | None = None,
) -> Array:  # fmt: skip
    predict = Predictor(robot, links, drives, springs, laws or ())
    return np.array([predict(*row) for row in zip(*moves, strict=True)])


def _apart(torques: Array, expected: Array) -> float:
    return float(np.abs(torques - expected).max() / np.abs(expected).max())


def _figures(times: Times) -> tuple[float, float, float]:
    return (
        float(np.median(times.in_a_row)),
        float(times.shortest.max()),
        float(times.longest.max()),
    )


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
