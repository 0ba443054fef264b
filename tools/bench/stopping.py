"""`./run bench stopping`: identification that ends by its own σ, on simulated recordings whose truth is known."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.excitation import Excitation, plan_excitation
from jointbench.identification import fit
from jointbench.identification.sequential_design import SequentialIdentification, identify_until
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

EXPERIMENTS = 100
WANTED = 0.03
PIECE_S, MOST_S, PLAN_TIME_S = 10.016, 100.16, 0.5
DEFAULT_PERIOD_S, DEFAULT_REPEATS = 20.0, 2
"""Of a plan whose motion nobody chose, as `plan` and `run` have them."""

COVERAGE = (0.93, 0.97)
"""Share of parameters within 2 σ of the truth: 95.4 % of normal deviations, had each run ended at a time set before."""

LEAST_RATIO = 2.0
"""Motion of the default plan over that of pieces that leave the same worst relative σ."""

_ARM = arm(2)


@dataclass(frozen=True)
class Outcome:
    """One identification.

    Attributes:
        deviations: of each parameter from the truth, in σ.
        motion: until it ended [s].
        out_of_reach: how many parameters were given up.
    """

    deviations: tuple[float, ...]
    motion: float
    out_of_reach: int


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Identify again and again with noise drawn anew, and count how often the truth lies within 2 σ."""
    outcomes: list[Outcome] = []
    n = EXPERIMENTS
    for seed in range(options.seed, options.seed + n):
        identification = identified(seed)
        outcomes.append(outcome(identification))
        console.progress(f"{len(outcomes)} of {n} identifications", len(outcomes) / n)
    deviations = np.concatenate([each.deviations for each in outcomes])
    share = float(np.mean(np.abs(deviations) <= 2.0))
    motions = np.array([each.motion for each in outcomes])
    console.say(
        f"{n} identifications of two joints to {100.0 * WANTED:g} %: {np.median(motions):.1f} s of motion "
        f"({motions.min():.1f} to {motions.max():.1f}), {sum(each.out_of_reach for each in outcomes)} given up"
    )
    console.say(
        f"{100.0 * share:.1f} % of {len(deviations)} parameters within 2 σ, rms "
        f"{np.sqrt(np.mean(deviations**2)):.2f} σ, the worst {np.abs(deviations).max():.1f} σ"
    )
    ratio = default_motion(identified(options.seed), console)
    checks = (
        Check("coverage_low", share, ">=", COVERAGE[0]),
        Check("coverage_high", share, "<=", COVERAGE[1]),
        Check("default_motion_over_ours", ratio, ">=", LEAST_RATIO),
    )
    fields = {"experiments": n, "coverage": share, "motion_s": motions.tolist(), "deviations": deviations.tolist()}
    return Result("bench stopping", options.seed, checks=checks, fields=fields)


def identified(seed: int) -> SequentialIdentification:
    """Identify with this seed of the noise; the plans have it, too."""

    def play(excitation: Excitation, number: int) -> Run:
        return synthetic_run(_ARM, motion_seed=0, noise_seed=1000 * seed + number, repeats=1, plan=excitation)

    return identify_until(_ARM, play, WANTED, most=MOST_S, piece=PIECE_S, plan_time=PLAN_TIME_S, seed=seed)


def outcome(identification: SequentialIdentification) -> Outcome:
    """Distance of an identification's parameters from the truth."""
    deviations = np.asarray(identification.model.deviations(truth(_ARM)))
    given_up = int(identification.precision.is_out_of_reach.sum())
    return Outcome(tuple(deviations.tolist()), identification.motion, given_up)


def default_motion(identification: SequentialIdentification, console: Console) -> float:
    """Motion of the default plan over that after which pieces leave no larger worst relative σ."""
    plan = plan_excitation(_ARM, period=DEFAULT_PERIOD_S, time_limit=10.0)
    run = synthetic_run(_ARM, motion_seed=0, noise_seed=0, repeats=DEFAULT_REPEATS, plan=plan)
    worst = float((fit(run).sigma / identification.precision.size).max())
    by_pieces = [float(each.relative_sigma.max()) for each in identification.precisions]
    needed = next((k + 1 for k, each in enumerate(by_pieces) if each <= worst), None)
    motion = DEFAULT_PERIOD_S * DEFAULT_REPEATS
    if needed is None:
        console.say(f"the default plan's {motion:g} s leave {100.0 * worst:.3g} %, pieces never as little")
        return 0.0
    console.say(
        f"the default plan's {motion:g} s of motion leave a worst σ of {100.0 * worst:.3g} % of its parameter; pieces "
        f"leave no more after {needed * PIECE_S:g} s"
    )
    return motion / (needed * PIECE_S)
