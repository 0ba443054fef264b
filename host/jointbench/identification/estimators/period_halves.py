"""Two recordings out of one: the even periods of a repeated motion, and the odd ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import FitError
from jointbench.identification.estimators.moved_run import with_samples
from jointbench.identification.estimators.paired_rows import OtherRegressor, Pair, PairedRows
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.observations import observe
from jointbench.recording.run import Run


@dataclass(frozen=True, eq=False)
class CrossedHalves:
    """Rows of both halves at once, as of twice the joints, each with the other half's regressor beside it.

    They are at the same times of the motion: what a model lacks they lack together, and error bars must know it.

    Attributes:
        even, odd: rows of each half with those of the other; both on the same grid.
    """

    even: PairedRows
    odd: PairedRows

    @property
    def n_joints(self) -> int:
        """Torques a row of time: of both halves."""
        return 2 * self.even.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of each regressor."""
        return self.even.n_parameters

    def pairs(self) -> Iterator[Pair]:
        """All rows that both halves have."""
        for one, two in zip(self.even.pairs(), self.odd.pairs(), strict=True):
            yield Pair(
                start=one.start,
                measured=np.concatenate([one.measured, two.measured], axis=1),
                other=np.concatenate([one.other, two.other], axis=1),
                torque=np.concatenate([one.torque, two.torque], axis=1),
                other_torque=np.concatenate([one.other_torque, two.other_torque], axis=1),
                used=np.concatenate([one.used, two.used], axis=1),
                complete=one.complete & two.complete,
            )


def period_halves(problem: Problem) -> list[CrossedHalves]:
    """Observe both halves of each run's periods, averaged like the whole.

    Raises:
        FitError: a run's motion was not repeated, or its periods are not averaged.
    """
    halves: list[CrossedHalves] = []
    for run, observed, part in zip(problem.runs, problem.observations, problem.parts, strict=True):
        if not observed.settings.average_periods:
            raise FitError(f"run {run.path}: halves of the periods need average_periods, which is switched off")
        repetition = _repetitions(run)
        rows: list[OtherRegressor] = []
        for parity in (0, 1):
            half = with_samples(run, repetition % 2 == parity)
            seen = observe(half, problem.robot, problem.base, observed.settings)
            rows.append(OtherRegressor(PairedRows(part, seen), own_torque=True))
        halves.append(CrossedHalves(PairedRows(rows[0], rows[1]), PairedRows(rows[1], rows[0])))
    return halves


def _repetitions(run: Run) -> NDArray[np.intp]:
    """How often the motion has been at each sample's phase before, -1 where nothing plays, shape (n_samples,)."""
    tick = run.samples.play_tick
    played = np.flatnonzero(tick >= 0)
    if run.excitation is None or not len(played):
        raise FitError(f"run {run.path} has no periods of a played motion that could be halved")
    folded, length = run.excitation.fold(tick, run.samples.sample_period)
    order = played[np.argsort(folded[played], kind="stable")]
    counts = np.bincount(folded[played], minlength=length)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    repetition = np.full(len(tick), -1, dtype=np.intp)
    repetition[order] = np.arange(len(order)) - first
    if counts.max() < 2:
        raise FitError(f"run {run.path} plays its motion once; its periods can be halved from two on")
    return repetition
