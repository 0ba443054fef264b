"""`./run bench friction`: what is claimed of friction fits, measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from tools.friction_bench.problem import NOISE, cases
from tools.friction_bench.race import Found, global_search, ours, swarm

JOINTS, JOINTS_LIKE_PAPER = 20, 40
TIMES_ERROR = 1.1
MILLISECONDS = 10.0
ROUNDING = 1e-12
"""Of R²: where the swarm arrives too, both are at the same minimum."""


def friction(options: argparse.Namespace, console: Console) -> Result:
    """Twenty joints beside differential evolution, forty with noise as in the paper beside the particle swarm."""
    console.say(f"{JOINTS} joints, noise {NOISE} N·m: variable projection, and a long differential evolution")
    found: list[tuple[Found, Found]] = []
    for k, case in enumerate(cases(JOINTS, options.seed)):
        console.progress(f"joint {k + 1} of {JOINTS}")
        found.append((ours(case), global_search(case, options.seed + k)))
    console.say(search_table(found))
    console.say(f"{JOINTS_LIKE_PAPER} joints with the paper's noise: variable projection, and the particle swarm")
    noisy = cases(JOINTS_LIKE_PAPER, options.seed + 1, like_paper=True)
    beside = [(ours(case), swarm(case, options.seed + k)) for k, case in enumerate(noisy)]
    console.say(swarm_table(beside))
    checks = make_checks(found, beside)
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "beside_global_search": [{"ours": a.to_dict(), "global": b.to_dict()} for a, b in found],
        "beside_swarm": [{"ours": a.to_dict(), "swarm": b.to_dict()} for a, b in beside],
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": {name: metadata.version(name) for name in ("numpy", "scipy")},
    }
    return Result("bench friction", options.seed, checks, fields)


def make_checks(found: Sequence[tuple[Found, Found]], beside: Sequence[tuple[Found, Found]]) -> tuple[Check, ...]:
    """What must hold."""
    mine, peer = (together([pair[k].rms_to_true for pair in found]) for k in (0, 1))
    milliseconds = 1e3 * float(np.median([a.seconds for a, _ in found]))
    gain = min(a.r_squared - b.r_squared for a, b in beside)
    return (
        Check("error to the true curve over that of the global search", mine / peer, "<=", TIMES_ERROR),
        Check("a fit takes", milliseconds, "<=", MILLISECONDS, "ms"),
        Check("R² above that of the swarm, the least of all joints", gain, ">=", -ROUNDING),
    )


def together(errors: Sequence[float]) -> float:
    """Root mean square over joints."""
    return float(np.sqrt(np.mean(np.square(errors))))


def search_table(found: Sequence[tuple[Found, Found]]) -> str:
    """Errors and times of both, over all joints; how far apart they are at worst, either way."""
    rows = [
        [
            name,
            f"{together([each.rms_to_true for each in kind]):.4f}",
            f"{max(each.rms_to_true for each in kind):.4f}",
            f"{1e3 * float(np.median([each.seconds for each in kind])):.1f}",
            f"{1e3 * max(each.seconds for each in kind):.1f}",
        ]
        for name, kind in (("variable projection", [a for a, _ in found]), ("global search", [b for _, b in found]))
    ]
    ratios = [a.squares / b.squares for a, b in found]
    heads = ("fit", "error to true [N·m]", "worst joint", "median [ms]", "slowest [ms]")
    return (
        table(heads, rows)
        + f"\n  sum of squares over the search's: {min(ratios):.4f} to {max(ratios):.4f}, "
        + f"above it for {sum(ratio > 1.0 + 1e-6 for ratio in ratios)} of {len(ratios)} joints"
    )


def swarm_table(beside: Sequence[tuple[Found, Found]]) -> str:
    """R² of both, and the times."""
    rows = [
        [
            name,
            f"{float(np.median([each.r_squared for each in kind])):.5f}",
            f"{min(each.r_squared for each in kind):.5f}",
            f"{together([each.rms_to_true for each in kind]):.3f}",
            f"{1e3 * float(np.median([each.seconds for each in kind])):.1f}",
        ]
        for name, kind in (("variable projection", [a for a, _ in beside]), ("particle swarm", [b for _, b in beside]))
    ]
    return table(("fit", "R² median", "R² least", "error to true [N·m]", "median [ms]"), rows)
