"""`./run bench accuracy`: simulated recordings of an arm whose truth is known, fitted with nothing but defaults."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

import numpy as np

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.tables import table
from jointbench.excitation import plan_excitation
from tools.accuracy_bench.accuracy import Accuracy, ParameterAccuracy, by_parameter
from tools.accuracy_bench.arm import ROBOT, arms
from tools.accuracy_bench.trial import REPEATS, Case, Trial, run_trials

RECORDINGS = 200
CASES = 4
PERIOD = 20.0
TIMES_BOUND = 1.15
_NOTHING = 1e-6  # [σ], rounding
LEAST_COVERED, MOST_COVERED = 0.93, 0.97


def accuracy(options: argparse.Namespace, console: Console) -> Result:
    """Four arms, each with a motion of its own, and recordings of each by many sets of boards."""
    console.say(f"{CASES} arms like {ROBOT}, each with a planned motion of {PERIOD:g} s; MuJoCo plays them")
    cases = make_cases(CASES, PERIOD, options.seed, console)
    console.say(f"{options.recordings} recordings of {REPEATS} playings, each by boards of its own, fitted by default")
    found: dict[int, list[Trial]] = {}
    for done, (case, trial) in enumerate(run_trials(cases, options.recordings, options.seed)):
        found.setdefault(case, []).append(trial)
        console.progress(f"{done + 1} of {options.recordings} recordings")
    by_case = {f"arm {case + 1}": found[case] for case in sorted(found)}
    trials = [trial for each in by_case.values() for trial in each]
    parameters = by_parameter(trials)
    console.say(case_table(by_case))
    console.say(parameter_table(parameters))
    console.say(moved_line([trial.moved for trial in trials]))
    for fault in sorted({fault for trial in trials for fault in trial.faults}):
        console.say(f"impossible: {fault}")
    checks = make_checks(Accuracy.of(trials))
    for check in checks:
        console.say(str(check))
    fields: dict[str, Any] = {
        "all": asdict(Accuracy.of(trials)),
        "arms": {name: asdict(Accuracy.of(each)) for name, each in by_case.items()},
        "parameters": [each.to_dict() for each in parameters],
        "condition_numbers": [case.excitation.condition_number for case in cases],
        "moved_to_be_possible_sigma": [trial.moved for trial in trials],
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": {name: metadata.version(name) for name in ("numpy", "scipy")},
    }
    return Result("bench accuracy", options.seed, checks, fields)


def make_cases(count: int, period: float, seed: int, console: Console, starts: int = 8) -> list[Case]:
    """Arms and motions: the plan knows only the robot's file, as a user's would."""
    cases: list[Case] = []
    for k, arm in enumerate(arms(count, seed)):
        console.progress(f"arm {k + 1} of {count}")
        cases.append(Case.of(arm, plan_excitation(arm.robot, period=period, seed=seed + k, starts=starts)))
    return cases


def make_checks(found: Accuracy) -> tuple[Check, ...]:
    """What must hold."""
    return (
        Check("recordings", found.recordings, ">=", RECORDINGS),
        Check("rms of error / Cramér–Rao bound of the moments fitted", found.times_bound, "<=", TIMES_BOUND),
        Check("the same with the bound of all moments", found.times_bound_all, "<=", TIMES_BOUND),
        Check("share of ± 2 σ intervals that hold the truth", found.covered, ">=", LEAST_COVERED),
        Check("the same share, not too large", found.covered, "<=", MOST_COVERED),
        Check("physically impossible parameter sets", found.impossible, "==", 0),
    )


def moved_line(moved: Sequence[float]) -> str:
    """How many estimates were not possible as they were, and how far the possible ones are from them."""
    far = [each for each in moved if each > _NOTHING]
    if not far:
        return "  all estimates are physically possible as they are"
    return (
        f"  {len(far)} of {len(moved)} estimates are not physically possible as they are; the nearest that are lie "
        f"{np.median(far):.2f} σ away (median), {max(far):.2f} σ at most"
    )


def case_table(by_case: Mapping[str, Sequence[Trial]]) -> str:
    """A line per arm, and one for all of them."""
    everything = [trial for each in by_case.values() for trial in each]
    rows = [
        [
            name, f"{each.recordings}", f"{each.times_bound:.3f}", f"{each.times_bound_all:.3f}",
            f"{each.times_sigma:.3f}", f"{each.covered:.1%}", f"{each.impossible}",
        ]
        for name, each in ((name, Accuracy.of(trials)) for name, trials in (*by_case.items(), ("all", everything)))
    ]  # fmt: skip
    heads = ("arm", "recordings", "error / bound", "of all moments", "error / σ", "within 2 σ", "impossible")
    return table(heads, rows)


def parameter_table(parameters: Sequence[ParameterAccuracy]) -> str:
    """The parameters at the ends: least and most of each figure."""
    figures = (
        ("error / bound", "times_bound"), ("error / bound of all moments", "times_bound_all"),
        ("mean error / bound", "bias"), ("error / σ", "times_sigma"), ("within 2 σ", "covered"),
    )  # fmt: skip
    rows: list[list[str]] = []
    for head, field in figures:
        values = np.array([getattr(each, field) for each in parameters])
        low, high = int(values.argmin()), int(values.argmax())
        rows.append([head, f"{values[low]:.3f}", parameters[low].name, f"{values[high]:.3f}", parameters[high].name])
    return table(("by parameter", "least", "of", "most", "of"), rows)
