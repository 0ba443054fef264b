"""`./run bench accuracy`: fits of simulated recordings, beside the Cramér–Rao bound and the truth."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np

from jointbench import fit
from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import NumericalError
from jointbench.excitation import Excitation, plan_excitation
from jointbench.identification import Model
from jointbench.model import base_parameters
from tools.bench.simulated_recordings import (
    ROBOT,
    Arm,
    Playing,
    arms,
    cramer_rao,
    fitted_moments,
    impossible,
    play,
    record,
)

REPEATS = 2
_BLOCK = 10
"""Recordings that one process does in a row."""


@dataclass(frozen=True, eq=False)
class Case:
    """An arm and the motion that it plays."""

    arm: Arm
    excitation: Excitation
    playing: Playing

    @classmethod
    def of(cls, arm: Arm, excitation: Excitation) -> Case:
        """Play the motion once."""
        return cls(arm, excitation, play(arm, excitation))


@dataclass(frozen=True, eq=False)
class Trial:
    """Result of a fit of one recording; each array of shape (rank,).

    Attributes:
        names: of the base parameters.
        truth: true values [SI].
        error: estimate - truth.
        sigma: as the model tells; infinite where it tells nothing.
        bound: Cramér–Rao bound over the moments the fit takes its rows from.
        bound_all: the same over all moments, those of rest and the ends included.
        faults: why the standard parameters are not physically possible; empty when they are.
        moved: how far the estimate is from the nearest possible ones [σ]; nan where none were found.
    """

    names: tuple[str, ...]
    truth: Array
    error: Array
    sigma: Array
    bound: Array
    bound_all: Array
    faults: tuple[str, ...]
    moved: float


def run_trials(cases: list[Case], recordings: int, seed: int) -> Iterator[tuple[int, Trial]]:
    """Record and fit on all cores, the recordings dealt out evenly to the cases.

    Yields:
        (case, trial), case by case, the same on any number of cores.
    """
    from joblib import Parallel, delayed

    seeds = np.random.SeedSequence(seed).generate_state(recordings).tolist()
    shares = [seeds[k :: len(cases)] for k in range(len(cases))]
    blocks = [(k, share[i : i + _BLOCK]) for k, share in enumerate(shares) for i in range(0, len(share), _BLOCK)]
    workers = min(os.cpu_count() or 1, len(blocks))
    parallel: Any = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    for case, trials in parallel(delayed(_block)(k, cases[k], each) for k, each in blocks):
        yield from ((case, trial) for trial in trials)


def _block(index: int, case: Case, seeds: list[int]) -> tuple[int, list[Trial]]:
    return index, try_out(case, seeds)


def try_out(case: Case, seeds: list[int]) -> list[Trial]:
    """Record a case by the boards of each seed, and fit each recording by itself with nothing but defaults."""
    arm, excitation = case.arm, case.excitation
    base = base_parameters(arm.robot)
    bounds: tuple[Array, Array] | None = None
    trials: list[Trial] = []
    for seed in seeds:
        recording = record(arm, excitation, case.playing, REPEATS, seed)
        model = fit(recording.run)
        if bounds is None:  # the thresholds of two recordings of a motion differ by a hundred-thousandth
            fitted = fitted_moments(excitation, model.settings)
            bounds = (
                cramer_rao(arm, excitation, base, REPEATS, fitted),
                cramer_rao(arm, excitation, base, REPEATS, np.ones_like(fitted)),
            )
        truth = arm.base_truth(base, recording.sensors)
        faults, moved = _judged(model)
        trials.append(Trial(model.names, truth, model.parameters - truth, model.sigma, *bounds, faults, moved))
    return trials


def _judged(model: Model) -> tuple[tuple[str, ...], float]:
    """What is wrong with the standard parameters that the model gives, and how far the estimate is from them [σ]."""
    try:
        found = model.physical
    except NumericalError as error:
        return (str(error),), float("nan")
    return impossible(model.robot, found.standard_parameters, found.drive_parameters), found.distance


@dataclass(frozen=True)
class Accuracy:
    """Errors of some recordings, together.

    Attributes:
        recordings: how many.
        times_bound: root mean square of error / Cramér–Rao bound over parameters and recordings.
        times_bound_all: the same with the bound over all moments, which counts what a fit leaves out as lost.
        times_sigma: root mean square of error / σ: 1 where error bars are right.
        covered: share of the intervals ± 2 σ that hold the truth; one without an end holds nothing.
        impossible: recordings whose standard parameters are not physically possible.
    """

    recordings: int
    times_bound: float
    times_bound_all: float
    times_sigma: float
    covered: float
    impossible: int

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Accuracy:
        """Summary of at least one trial."""
        error, sigma = (np.array([getattr(trial, name) for trial in trials]) for name in ("error", "sigma"))
        bound, bound_all = (np.array([getattr(trial, name) for trial in trials]) for name in ("bound", "bound_all"))
        return cls(
            recordings=len(trials),
            times_bound=_rms(error / bound),
            times_bound_all=_rms(error / bound_all),
            times_sigma=_rms(error / sigma),
            covered=float(np.mean(_held(error, sigma))),
            impossible=sum(bool(trial.faults) for trial in trials),
        )


@dataclass(frozen=True)
class ParameterAccuracy:
    """One parameter over all recordings; figures as in `Accuracy`.

    Attributes:
        name: of the parameter.
        relative_bound: Cramér–Rao bound as a share of the true value.
        bias: mean error / bound.
    """

    name: str
    relative_bound: float
    times_bound: float
    times_bound_all: float
    bias: float
    times_sigma: float
    covered: float

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        return dict(vars(self))


def by_parameter(trials: Sequence[Trial]) -> list[ParameterAccuracy]:
    """Each parameter by itself, in the model's order."""
    table: list[ParameterAccuracy] = []
    for k, name in enumerate(trials[0].names):
        truth, error, sigma, bound, bound_all = (
            np.array([getattr(trial, field)[k] for trial in trials])
            for field in ("truth", "error", "sigma", "bound", "bound_all")
        )
        table.append(
            ParameterAccuracy(
                name=name,
                relative_bound=float(np.median(bound / np.abs(truth))),
                times_bound=_rms(error / bound),
                times_bound_all=_rms(error / bound_all),
                bias=float(np.mean(error / bound)),
                times_sigma=_rms(error / sigma),
                covered=float(np.mean(_held(error, sigma))),
            )
        )
    return table


def _held(error: Array, sigma: Array) -> Array:
    return np.asarray((np.abs(error) <= 2.0 * sigma) & np.isfinite(sigma), dtype=np.float64)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


RECORDINGS = 200
CASES = 4
PERIOD = 20.0
TIMES_BOUND = 1.15
_NOTHING = 1e-6  # [σ], rounding
LEAST_COVERED, MOST_COVERED = 0.93, 0.97


def bench(options: argparse.Namespace, console: Console) -> Result:
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
    """Checks against the limits."""
    return (
        Check("recordings", found.recordings, ">=", RECORDINGS),
        Check("rms of error / Cramér–Rao bound of the moments fitted", found.times_bound, "<=", TIMES_BOUND),
        Check("the same with the bound of all moments", found.times_bound_all, "<=", TIMES_BOUND),
        Check("share of ± 2 σ intervals that hold the truth", found.covered, ">=", LEAST_COVERED),
        Check("the same share, not too large", found.covered, "<=", MOST_COVERED),
        Check("physically impossible parameter sets", found.impossible, "==", 0),
    )


def moved_line(moved: Sequence[float]) -> str:
    """Line on the number of estimates that were not possible, and on their distance from the possible ones."""
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
