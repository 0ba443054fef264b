"""`./run bench predictor`: one sample a call, beside the regressor's way and Pinocchio."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.identification.predictor import Predictor
from jointbench.model import Robot, drive_parameter_names, load_robot, model_columns
from tools.bench.peers import pinocchio, pinocchio_model

ROBOTS = ("cobot6", "nursing_arm")
"""Six joints each; the second one's motors are all shared."""

LIMIT_US = 20.0
DISAGREEMENT = 1e-12
"""Of the largest torque: sums of some hundred products in double precision."""

OURS, REGRESSOR, PEER = "Predictor", "regressor @ parameters", "Pinocchio, links alone"
_CALLS, _ROUNDS = {OURS: 100, REGRESSOR: 10, PEER: 100}, 200


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Both robots; the methods take turns.

    Raises:
        BenchmarkFailed: there is no Pinocchio.
    """
    times: dict[str, Mapping[str, Array]] = {}
    apart: dict[str, float] = {}
    for name in ROBOTS:
        console.say(f"{name}, {_ROUNDS} rounds")
        times[name], apart[name] = race(load_robot(name), options.seed)
    rows = [
        [name, method, *(f"{1e6 * float(np.quantile(seconds, share)):.1f}" for share in (0.0, 0.5, 0.95))]
        for name, by_method in times.items()
        for method, seconds in by_method.items()
    ]
    console.say(table(("robot", "one sample", "best [µs]", "median [µs]", "95 % [µs]"), rows))
    checks = tuple(
        check
        for name in ROBOTS
        for check in (
            Check(f"{name}: one call", 1e6 * float(np.median(times[name][OURS])), "<=", LIMIT_US, "µs"),
            Check(f"{name}: from the regressor", apart[name], "<=", DISAGREEMENT),
        )
    )
    fields = {
        "seconds": {name: {method: each.tolist() for method, each in of.items()} for name, of in times.items()},
        "load": os.getloadavg(),
    }
    return Result("bench predictor", options.seed, checks, fields)


def race(robot: Robot, seed: int, rounds: int = _ROUNDS) -> tuple[dict[str, Array], float]:
    """Seconds a call, the mean of a few in each round, and how far the two of ours are apart."""
    rng = np.random.default_rng(seed)
    links = robot.standard_parameters
    if links is None:
        raise ValueError(f"robot {robot.name!r} has no inertias")
    drives = rng.uniform(0.1, 2.0, len(drive_parameter_names(robot)))
    predict, full = Predictor(robot, links, drives), np.concatenate([links, drives])
    q, dq, ddq = rng.normal(size=(3, robot.n_joints))

    def by_regressor() -> Array:
        columns, _ = model_columns(robot, q[None], dq[None], ddq[None])
        return columns @ full

    turns = {OURS: lambda: predict(q, dq, ddq), REGRESSOR: by_regressor, PEER: _peer(robot, q, dq, ddq)}
    expected = by_regressor()
    apart = float(np.abs(predict(q, dq, ddq) - expected).max() / np.abs(expected).max())
    seconds = np.array([[_seconds(turn, _CALLS[method]) for method, turn in turns.items()] for _ in range(rounds)])
    return dict(zip(turns, seconds.T, strict=True)), apart


def _seconds(call: Callable[[], Any], times: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def _peer(robot: Robot, q: Array, dq: Array, ddq: Array) -> Callable[[], Any]:
    library, model = pinocchio(), pinocchio_model(robot)
    data = model.createData()
    return lambda: library.rnea(model, data, q, dq, ddq)
