"""`./run bench regressor`: what is claimed of the dynamics' kernels, measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from jointbench.dynamics.parallel import n_threads
from tools.regressor_bench.peer import Peer
from tools.regressor_bench.race import FILL, NORMAL, PEER, REGRESSOR, Times, disagreement, race
from tools.regressor_bench.robots import robots
from tools.regressor_bench.start import Start, two_starts

SIZES = (1_000, 10_000, 100_000)
TIMES_PEER = {1_000: 10.0, 10_000: 6.0, 100_000: 6.0}
TIMES_FILL = 2.5
NORMAL_PER_S = 1e6
DISAGREEMENT = 1e-10


def regressor(options: argparse.Namespace, console: Console) -> Result:
    """Both arms, all sizes, and two fresh processes.

    Raises:
        PeerMissing: there is no Pinocchio.
        StartFailed: a fresh process ended with an error.
    """
    console.say("two processes on an empty cache")
    starts = two_starts()
    arms = robots()
    apart = {arm.name: disagreement(arm, options.seed) for arm in arms}
    times: list[Times] = []
    for arm in arms:
        for size in SIZES:
            console.say(f"{arm.name}, batches of {size} samples")
            times.append(race(arm, size, options.seed))
    console.say(times_table(times))
    console.say(starts_table(starts))
    checks = make_checks(times, apart, starts)
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "times": [each.to_dict() for each in times],
        "starts": [asdict(start) for start in starts],
        "threads": n_threads(),
        "load": os.getloadavg(),
        "versions": {"pinocchio": Peer(arms[0]).version}
        | {name: metadata.version(name) for name in ("numpy", "numba")},
    }
    return Result("bench regressor", options.seed, checks, fields)


def make_checks(times: Sequence[Times], apart: Mapping[str, float], starts: tuple[Start, Start]) -> tuple[Check, ...]:
    """What must hold."""
    checks: list[Check] = []
    for each in times:
        name = f"{each.robot}, {each.n_samples}"
        limit = TIMES_PEER[each.n_samples]
        checks += [
            Check(f"{name}: regressor, times as fast as Pinocchio", each.ratio(PEER, REGRESSOR), ">=", limit),
            Check(f"{name}: regressor over filling", each.ratio(REGRESSOR, FILL), "<=", TIMES_FILL),
            Check(f"{name}: normal equations", each.rate(NORMAL), ">=", NORMAL_PER_S, "samples/s"),
        ]
    checks += [Check(f"{name}: from Pinocchio", each, "<=", DISAGREEMENT) for name, each in apart.items()]
    first, second = starts
    return (
        *checks,
        Check("kernels the first process compiled", first.compiled, ">=", 3),
        Check("kernels the second process compiled", second.compiled, "==", 0),
        Check("kernels it had from disk", second.loaded, ">=", 3),
    )


def times_table(times: Sequence[Times]) -> str:
    """A line per batch: million samples a second, and the ratios that count."""
    methods = list(times[0].seconds)
    rows = [
        [
            f"{each.robot}, {each.n_samples}",
            *(f"{each.rate(method) / 1e6:.2f}" for method in methods),
            f"{each.ratio(PEER, REGRESSOR):.1f}",
            f"{each.ratio(REGRESSOR, FILL):.2f}",
        ]
        for each in times
    ]
    return table(("M samples/s", *methods, "times peer", "over fill"), rows)


def starts_table(starts: tuple[Start, Start]) -> str:
    """A line per process."""
    rows = [
        [name, f"{each.imports_s:.2f}", f"{each.calls_s:.2f}", f"{each.compiled}", f"{each.loaded}"]
        for name, each in zip(("first", "second"), starts, strict=True)
    ]
    return table(("process", "imports [s]", "first calls [s]", "compiled", "from disk"), rows)
