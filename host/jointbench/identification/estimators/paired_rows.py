"""Rows of one recording with two regressors: that of the motion as measured, and another one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.observations import observe
from jointbench.identification.rows import Block, Rows
from jointbench.identification.settings import FitSettings
from jointbench.recording import Run


class Chosen:
    """Selection of rows, by their place on the grid, kept as it was when they were first asked for.

    Shared by the passes of one estimate, so that rows do not come and go between them.
    """

    def __init__(self) -> None:
        """Nothing is chosen yet."""
        self._used = np.zeros((0, 0), dtype=np.bool_)
        self._known = np.zeros(0, dtype=np.bool_)

    def of(self, start: int, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows that are used from a place on, shape (n, n_joints); those asked for the first time are `used`'s."""
        stop, length = start + len(used), len(self._known)
        if stop > length:
            more = max(stop, 2 * length) - length
            self._used = np.vstack([self._used.reshape(length, used.shape[1]), np.zeros((more, used.shape[1]), bool)])
            self._known = np.append(self._known, np.zeros(more, bool))
        new = ~self._known[start:stop]
        self._used[start:stop][new] = used[new]
        self._known[start:stop] = True
        return self._used[start:stop].copy()


@dataclass(frozen=True, eq=False)
class BlockPair:
    """Consecutive rows with both regressors, only those that both sides have.

    Attributes:
        start: place of the first row on the grid.
        measured, other: regressors, shape (n, n_joints, p); a zero of the measured one is zero in the other, too, so
            that a column which the fit leaves out of a joint's rows is left out of both.
        torque, other_torque: shape (n, n_joints) each.
        used: rows that both sides use, shape (n, n_joints).
        complete: shape (n,).
    """

    start: int
    measured: Array
    other: Array
    torque: Array
    other_torque: Array
    used: NDArray[np.bool_]
    complete: NDArray[np.bool_]


class Pairs(Protocol):
    """Whatever gives the same pairs each time it is asked."""

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        ...

    @property
    def n_parameters(self) -> int:
        """Columns of each regressor."""
        ...

    def pairs(self) -> Iterator[BlockPair]:
        """All rows that both sides have, in order of time."""
        ...


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Two rows on the same grid side by side.

    Attributes:
        measured: the recording's.
        other: of another motion at the same times, block by block as it likes.
        chosen: which rows are used; None: those that both sides use.
    """

    measured: Rows
    other: Rows
    chosen: Chosen | None = None

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.measured.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of each regressor."""
        return self.measured.n_parameters

    def pairs(self) -> Iterator[BlockPair]:
        """All rows that both sides have, in order."""
        others = self.other.blocks()
        other = next(others, None)
        for block in self.measured.blocks():
            start = block.start
            while other is not None and start < block.stop:
                first, last = max(start, other.start), min(block.stop, other.stop)
                if first < last:
                    pair = _pair(block, other, first, last)
                    used = pair.used if self.chosen is None else self.chosen.of(first, pair.used)
                    yield replace(pair, used=used)
                start = max(start, last)
                if other.stop <= block.stop:
                    other = next(others, None)
                else:
                    break


@dataclass(frozen=True, eq=False)
class OtherRegressor:
    """The other regressor with the recording's torques, or with its own.

    Attributes:
        pair: both sides.
        own_torque: whether the torques are of the other side, too.
    """

    pair: Pairs
    own_torque: bool = False

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.pair.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.pair.n_parameters

    def blocks(self) -> Iterator[Block]:
        """All rows that both sides have."""
        for pair in self.pair.pairs():
            torque = pair.other_torque if self.own_torque else pair.torque
            yield Block.of(pair.start, pair.other, torque, pair.used, pair.complete)


def _pair(block: Block, other: Block, first: int, last: int) -> BlockPair:
    one, two = slice(first - block.start, last - block.start), slice(first - other.start, last - other.start)
    measured = block.regressor[one]
    return BlockPair(
        start=first,
        measured=measured,
        other=np.where(measured != 0.0, other.regressor[two], 0.0),
        torque=block.torque[one],
        other_torque=other.torque[two],
        used=block.used[one] & other.used[two],
        complete=block.complete[one] & other.complete[two],
    )


def measured_positions(run: Run, settings: FitSettings) -> Array:
    """Positions of the encoders that a fit goes by [rad or m], shape (n_samples, n_joints)."""
    link = run.samples.link_position
    return link if settings.position == "link" and link is not None else run.samples.motor_position


def measured(run: Run, settings: FitSettings) -> NDArray[np.bool_]:
    """Samples at which the positions of all joints are known, shape (n_samples,)."""
    known = np.isfinite(measured_positions(run, settings))
    return np.asarray((run.samples.valid & known).all(axis=1))


def with_positions(run: Run, position: Array) -> Run:
    """The run with these positions in the place of those of its encoders; torques and gaps stay.

    Args:
        run: the recording.
        position: of the joints at its samples, seen by motor and link encoders alike; NaN where it is not known
            [rad or m], shape (n_samples, n_joints).
    """
    samples = run.samples
    known = np.asarray(np.isfinite(position).all(axis=1))[:, None]
    moved = replace(
        samples,
        motor_position=position,
        link_position=None if samples.link_position is None else position,
        valid=samples.valid & known,
    )
    return replace(run, samples=moved)


def with_samples(run: Run, chosen: NDArray[np.bool_]) -> Run:
    """The run as if the samples that are not chosen, shape (n_samples,), were missing."""
    return replace(run, samples=replace(run.samples, valid=run.samples.valid & chosen[:, None]))


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

    def pairs(self) -> Iterator[BlockPair]:
        """All rows that both halves have."""
        for one, two in zip(self.even.pairs(), self.odd.pairs(), strict=True):
            yield BlockPair(
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
            raise FitError(
                f'run {run.path}: instruments = "halves" need averages over periods, and average_periods is False; '
                f"set it to True, or choose other instruments"
            )
        repetition = _repetitions(run)
        rows: list[OtherRegressor] = []
        for parity in (0, 1):
            half = with_samples(run, repetition % 2 == parity)
            seen = observe(half, problem.robot, problem.base, observed.settings)
            rows.append(OtherRegressor(PairedRows(part, seen), own_torque=True))
        halves.append(CrossedHalves(PairedRows(rows[0], rows[1]), PairedRows(rows[1], rows[0])))
    return halves


def _repetitions(run: Run) -> NDArray[np.intp]:
    """Return how often the motion was at each sample's phase before, -1 where nothing plays, shape (n_samples,)."""
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
