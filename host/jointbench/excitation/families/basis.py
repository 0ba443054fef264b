"""Motion families: linear maps from free weights to motions that start and end at rest at home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError

HIGHEST_DERIVATIVE = 5
"""Highest derivative of a basis: the bound of torque between samples needs the fourth, and one to spare."""

_ROUNDING = 1e-12  # of a duration

_STEP, _PER_CYCLE, _MOST_STEPS = 1e-3, 100, 200_000
"""Step [s] between times at which a motion is shown, least number in a cycle, and most of them, for memory's sake."""

MIN_DURATION, MAX_DURATION = 1e-3, 1e5
"""Durations [s] from where no joint can do anything to more than a day; far beyond them, numbers overflow."""

MAX_ORDER = 200
"""Highest harmonic, or most way points: what a search can still hold in memory."""


@dataclass(frozen=True)
class Repetition:
    """The part of a motion that is the same several times within one playing.

    Attributes:
        start: when it begins [s].
        period: how long it lasts once [s].
        times: how often it comes; 1 where nothing repeats within a playing.
    """

    start: float
    period: float
    times: int


class Basis(Protocol):
    """A family of motions, linear in its free weights: q(t) = home + phi(t) @ w, with the same phi for all joints.

    Scaling w scales the whole motion about home. weights has shape (n_joints, size).
    """

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        ...

    @property
    def duration(self) -> float:
        """Duration from rest at home to rest at home [s]; the motion can be played again and again."""
        ...

    @property
    def fastest_cycle(self) -> float:
        """Shortest time in which what repeats swings to and fro [s]: what a grid in time must resolve.

        What comes before it and after it, such as a ramp, is one swing each.
        """
        ...

    @property
    def repetition(self) -> Repetition:
        """The part that repeats within one playing."""
        ...

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        ...

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, size) each.

        At a break between two pieces, derivatives that jump have the value of one of its sides. Times beyond the
        duration are those of the motion played again.

        Raises:
            ExcitationError: order is not from 0 to 5.
        """
        ...

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, every break between pieces among them."""
        ...

    def bounds(self, weights: Array) -> Array:
        """Bounds of |d^k/dt^k (q - home)|, k = 0..5, over all times [rad/s^k]; shape (6, n_joints), never too low."""
        ...

    def sample_times(self, samples: int) -> Array:
        """Times [s] to judge the motion at, spread over it, none where it must rest: there sign(0) says nothing."""
        ...


@runtime_checkable
class LocalBasis(Basis, Protocol):
    """A family of motions in which each weight acts for a short while: most of phi is zero, and need not be made."""

    def displacement(self, weights: Array, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Displacement from home and its derivatives, see `displacement`."""
        ...


def displacement(basis: Basis, weights: Array, time: Array, order: int = 2) -> tuple[Array, ...]:
    """Way from home, phi(t) @ w, and its first `order` derivatives at times [s], shape (n_times, n_joints) each.

    Raises:
        ExcitationError: order is not from 0 to 5.
    """
    if isinstance(basis, LocalBasis):
        return basis.displacement(weights, time, order)
    return tuple(phi @ weights.T for phi in basis.evaluate(time, order))


class Phase(NamedTuple):
    """A part of a motion: when it begins and ends, and its fastest cycle [s]."""

    start: float
    stop: float
    cycle: float


def phases(basis: Basis) -> list[Phase]:
    """All that a motion does, once: what comes before what repeats, one period of that, and what comes after it."""
    start, period, times = basis.repetition.start, basis.repetition.period, basis.repetition.times
    last, duration = start + times * period, basis.duration
    before_repetition, after_repetition = Phase(0.0, start, start), Phase(last, duration, duration - last)
    all_phases = before_repetition, Phase(start, start + period, basis.fastest_cycle), after_repetition
    return [stretch for stretch in all_phases if stretch.cycle > _ROUNDING * duration]


def fine_times(basis: Basis) -> Array:
    """Times [s] over a whole motion, at which it is shown: a millisecond apart, or less where it is fast."""
    step = min(_STEP, *(stretch.cycle / _PER_CYCLE for stretch in phases(basis)))
    return basis.grid(max(step, basis.duration / _MOST_STEPS))


def check_order(order: int) -> None:
    """Refuse a derivative that does not exist.

    Raises:
        ExcitationError: order is not from 0 to 5.
    """
    if not 0 <= order <= HIGHEST_DERIVATIVE:
        raise ExcitationError(f"order = {order}: a motion has derivatives of order 0 to {HIGHEST_DERIVATIVE}")


def grid_between(breaks: Sequence[float], step: float) -> Array:
    """Times from the first break to the last, evenly spaced between two breaks and at most `step` [s] apart.

    Raises:
        ExcitationError: step is not above 0.
    """
    if not step > 0.0:
        raise ExcitationError(f"step = {step:g} s between times must be above 0")
    grids = [
        np.linspace(start, stop, int(np.ceil((stop - start) / step)), endpoint=False)
        for start, stop in pairwise(breaks)
    ]
    return np.concatenate([*grids, breaks[-1:]])


def times_between(breaks: Sequence[float], samples: int) -> Array:
    """Times [s] spread over the pieces between breaks, each with its share of the samples; none of them at a break."""
    shares = [len(share) for share in np.array_split(np.arange(samples), len(breaks) - 1)]
    grids = [
        start + (np.arange(share, dtype=np.float64) + 0.5) * ((stop - start) / max(share, 1))
        for (start, stop), share in zip(pairwise(breaks), shares, strict=True)
    ]
    return np.concatenate(grids)


def check_series(harmonics: int | tuple[int, ...], period: float, min_harmonics: int = 2) -> None:
    """Refuse an impossible Fourier series, or one that cannot start and end at rest.

    Args:
        harmonics: how many, or the chosen multiples of the base frequency.
        period: [s].
        min_harmonics: number of harmonics that is needed.

    Raises:
        ExcitationError: too few harmonics, one that is chosen twice, below 1 or above `MAX_ORDER`, or an impossible
            period.
    """
    count = harmonics if isinstance(harmonics, int) else len(harmonics)
    if count < min_harmonics:
        rest = ", as the motion must start and end at rest" if min_harmonics > 1 else ""
        raise ExcitationError(f"harmonics = {harmonics}: at least {min_harmonics} are needed{rest}; 5 is usual")
    chosen_orders = () if isinstance(harmonics, int) else harmonics
    if len(set(chosen_orders)) < len(chosen_orders) or any(order < 1 or order % 1 for order in chosen_orders):
        raise ExcitationError(
            f"harmonics = {harmonics}: chosen harmonics are whole numbers from 1 on, each once, such as (1, 2, 3, 5, 7)"
        )
    if max(chosen_orders, default=count) > MAX_ORDER:
        raise ExcitationError(f"harmonics = {harmonics}: the highest may be number {MAX_ORDER}; 5 is usual")
    check_duration("period", period, "10 to 20 s is usual")


def check_duration(name: str, value: float, usual: str) -> None:
    """Refuse a duration that is not one, or in which nothing can move.

    Raises:
        ExcitationError: not a number of seconds from `MIN_DURATION` to `MAX_DURATION`.
    """
    if not MIN_DURATION <= value <= MAX_DURATION:
        raise ExcitationError(
            f"{name} = {value:g} s must be a positive number of seconds, "
            f"from {MIN_DURATION:g} to {MAX_DURATION:.0f}; {usual}"
        )
