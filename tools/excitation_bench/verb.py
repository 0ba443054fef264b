"""`./run bench excitation`: what is claimed of planning, measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from tools.excitation_bench.peer import Peer
from tools.excitation_bench.problem import problem_of, ur10
from tools.excitation_bench.race import WORKERS, FirstOptimum, Planned, first_optimum, planned, warm_up

SEEDS = 3
TIMES_SOONER = 50.0
LEAST_WITHIN = {5.0: 14.5, 20.0: 14.2}


def excitation(options: argparse.Namespace, console: Console) -> Result:
    """First optima beside the peer's, and plans in 5 and 20 seconds.

    Raises:
        PeerMissing: there is no Pinocchio.
    """
    problem = problem_of(ur10())
    peer = Peer(problem)
    seeds = range(options.seed, options.seed + SEEDS)
    console.say("starting the processes, and loading or compiling the kernels")
    warm_up(problem)
    firsts: list[FirstOptimum] = []
    for seed in seeds:
        console.say(f"seed {seed}: to the first optimum, ours and SLSQP's with differences over Pinocchio")
        firsts.append(first_optimum(problem, peer, seed))
    console.say(first_table(firsts))
    plans: list[Planned] = []
    for time_limit in LEAST_WITHIN:
        for seed in seeds:
            console.say(f"seed {seed}: a plan in {time_limit:g} s on {WORKERS} processes")
            plans.append(planned(problem, seed, time_limit))
    console.say(plan_table(plans, firsts))
    checks = make_checks(firsts, plans)
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "first_optimum": [each.to_dict() for each in firsts],
        "plans": [asdict(each) for each in plans],
        "workers": WORKERS,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": {"pinocchio": peer.version}
        | {name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
    }
    return Result("bench excitation", options.seed, checks, fields)


def make_checks(firsts: Sequence[FirstOptimum], plans: Sequence[Planned]) -> tuple[Check, ...]:
    """What must hold."""
    sooner = [
        Check(f"seed {each.seed}: first optimum, times as soon as SLSQP", each.times_sooner, ">=", TIMES_SOONER)
        for each in firsts
    ]
    within: list[Check] = []
    for each in plans:
        name = f"seed {each.seed}, {each.time_limit:g} s"
        within += [
            Check(f"{name}: condition number", each.value, "<=", LEAST_WITHIN[each.time_limit]),
            Check(f"{name}: taken", each.seconds, "<=", each.time_limit, "s"),
            Check(f"{name}: violations on the finer grid", each.violations, "==", 0),
        ]
    return (*sooner, *within)


def first_table(firsts: Sequence[FirstOptimum]) -> str:
    """A line per start."""
    rows = [
        [
            f"{each.seed}", f"{each.start:.1f}", f"{each.ours:.2f}", f"{each.seconds:.3f}", f"{each.peer.value:.2f}",
            f"{each.peer.seconds:.1f}", f"{each.peer.evaluations}", f"{each.times_sooner:.0f}",
        ]
        for each in firsts
    ]  # fmt: skip
    heads = ("first optimum", "start", "ours", "seconds", "SLSQP", "seconds", "evaluations", "times as soon")
    return table(heads, rows)


def plan_table(plans: Sequence[Planned], firsts: Sequence[FirstOptimum]) -> str:
    """A line per plan; how soon it was as good as where the peer's own search from the same start ended."""
    of_peer = {each.seed: each.peer.value for each in firsts}
    rows = [
        [
            f"{each.time_limit:g} s, seed {each.seed}", f"{each.value:.2f}", f"{each.violations}", f"{each.searches}",
            f"{each.seconds:.2f}", f"{each.reached(of_peer[each.seed]):.2f}",
        ]
        for each in plans
    ]  # fmt: skip
    return table(("plan", "condition", "violations", "searches", "seconds", "as good as SLSQP's after"), rows)
