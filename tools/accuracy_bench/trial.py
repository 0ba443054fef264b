"""One recording after the other, fitted as anyone would, and held against the truth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointbench import fit
from jointbench.arrays import Array
from jointbench.dynamics import base_parameters
from jointbench.errors import PhysicalSolverFailed
from jointbench.excitation import Excitation
from jointbench.identification import Model
from tools.accuracy_bench.arm import Arm
from tools.accuracy_bench.bound import cramer_rao, fitted_moments
from tools.accuracy_bench.playing import Playing, play
from tools.accuracy_bench.possible import impossible
from tools.accuracy_bench.recording import record

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
    """What a fit of one recording came to; each array of shape (rank,).

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
    except PhysicalSolverFailed as error:
        return (str(error),), float("nan")
    return impossible(model.robot, found.standard_parameters, found.drive_parameters), found.distance
