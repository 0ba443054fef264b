"""The proof that a whole motion keeps its limits, between samples too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Basis, displacement
from jointbench.excitation.limits.motion_limits import Limit, Motion

RESOLUTION = 2e-3
"""Share of a limit to which its use over a motion is known."""

_FIRST_SLACK = 0.1
_FEWEST, _MOST = 32, 4096
"""Steps of the first grid: as many as leave this much of a limit open between samples, within these bounds."""

_PARTS = 4
"""Parts that a step is cut into where it decides: what is left open between samples falls by 4 or by 16."""

_PORTION = 4096
"""Steps that are looked into at a time, so that a hundred joints and a million steps still fit into memory."""

_OF_INTEREST = 0.5
"""Share of a limit below which it is enough to know that it is not used further."""

_FINEST = 1e-7
"""Share of a limit that is not looked into: what may exceed the limit by less than this counts as exceeding it."""

_SAFE = 1.0 - 2.0 * _FINEST
"""Usage that is certain to be found feasible again, whatever the samples."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far a motion uses each scalar of its limits, at any time; it is feasible where none is above 1.

    Attributes:
        limits: that were asked for.
        names: of their scalars, all in one row.
        usage: bound of the share of each limit that is used anywhere in the motion, shape (n_scalars,).
        seen: largest share at any of the samples, which usage exceeds by `RESOLUTION` at most where it is above 0.5.
        samples: at how many times the motion was looked at, all limits together.
    """

    limits: tuple[Limit, ...]
    names: tuple[str, ...]
    usage: Array
    seen: Array
    samples: int

    @property
    def feasible(self) -> bool:
        """Whether all limits are kept, proved for the whole motion."""
        return bool(np.all(self.usage <= 1.0))

    @property
    def worst(self) -> str:
        """Name of the scalar of which the motion uses most."""
        return self.names[int(np.argmax(self.usage))] if self.names else "nothing"

    @property
    def margins(self) -> dict[str, float]:
        """What is left of each limit, as a share of it: 0 touches it, below 0 breaks it."""
        return dict(zip(self.names, (1.0 - self.usage).tolist(), strict=True))

    @property
    def nearest(self) -> str:
        """A sentence on the limit of which the motion uses most."""
        return self._say(int(np.argmax(self.usage)))

    @property
    def violations(self) -> tuple[str, ...]:
        """A sentence for each limit that is not proved to be kept, the worst first."""
        order = np.argsort(-self.usage, kind="stable")
        return tuple(self._say(int(scalar)) for scalar in order if not self.usage[scalar] <= 1.0)

    def _say(self, scalar: int) -> str:
        usage = float(self.usage[scalar])
        for limit in self.limits:
            if scalar < len(limit.names):
                return limit.say(scalar, usage)
            scalar -= len(limit.names)
        raise IndexError(scalar)


def motion_at(basis: Basis, home: Array, weights: Array, time: Array) -> Motion:
    """Position, velocity, acceleration and jerk of a motion at times [s], shape (n_times, n_joints) each."""
    away, dq, ddq, dddq = displacement(basis, weights, time, 3)
    return home + away, dq, ddq, dddq


def certify(
    limits: Sequence[Limit], basis: Basis, home: Array, weights: Array, resolution: float = RESOLUTION
) -> Certificate:
    """Find how far a motion uses each of its limits, with certainty.

    Usage is taken at samples; between two of them it rises above the larger by `Limit.between` at most. Where that
    leaves open what is largest to more than `resolution`, or whether it is above 1, samples are added between.

    Args:
        limits: to keep.
        basis, home, weights: the motion, home [rad or m] of shape (n_joints,), weights (n_joints, basis.size).
        resolution: share of a limit.

    Returns:
        The certificate. It always decides; what stays within 1e-7 of a limit counts as beyond it.

    Raises:
        ExcitationError: a weight is not a finite number.
    """
    bounds = _bounds(basis, weights)
    peaks = [_Peaks(limit, basis, home, weights, bounds).refined(resolution) for limit in limits]
    return Certificate(
        limits=tuple(limits),
        names=tuple(name for limit in limits for name in limit.names),
        usage=np.concatenate([each.usage for each in peaks] or [np.empty(0)]),
        seen=np.concatenate([each.seen for each in peaks] or [np.empty(0)]),
        samples=sum(each.samples for each in peaks),
    )


def is_feasible(limits: Sequence[Limit], basis: Basis, home: Array, weights: Array) -> bool:
    """Tell whether a motion is sure to keep its limits: what this does, `certify` confirms; it ends sooner."""
    bounds = _bounds(basis, weights)
    return all(_Peaks(limit, basis, home, weights, bounds).within(_SAFE) for limit in limits)


def _bounds(basis: Basis, weights: Array) -> Array:
    if not np.all(np.isfinite(weights)):
        joints = np.flatnonzero(~np.isfinite(weights).all(axis=1)).tolist()
        raise ExcitationError(f"weights of joints {joints} are not finite numbers; there is no such motion")
    return basis.bounds(weights)


def _once(basis: Basis, step: float) -> list[Array]:
    """The grid of a motion in stretches that hold everything that it does, and what it repeats only once."""
    time, repeated = basis.grid(step), basis.repetition
    if repeated.times == 1:
        return [time]
    # The first stretch ends with the first time not before the end of one period.
    first, last = repeated.start + repeated.period, repeated.start + repeated.times * repeated.period
    stretches = time[: np.searchsorted(time, first) + 1], time[np.searchsorted(time, last * (1.0 - 1e-12)) :]
    return [stretch for stretch in stretches if len(stretch) > 1]


class _Steps(NamedTuple):
    """Steps in time: how often they were cut, where they begin, how wide they are [s], usage at both ends of each."""

    cuts: int
    start: Array
    width: Array
    before: Array
    after: Array


class _Peaks:
    """Largest usage of each scalar of one limit: what was seen at samples, and what it is at most."""

    def __init__(self, limit: Limit, basis: Basis, home: Array, weights: Array, bounds: Array) -> None:
        self._limit, self._basis, self._home, self._weights, self._bounds = limit, basis, home, weights, bounds
        self.seen = np.full(len(limit.names), -np.inf)
        self.usage = self.seen.copy()
        self.samples = 0
        self._widest = 0.0
        self._slack: dict[int, Array] = {}

    def refined(self, resolution: float) -> _Peaks:
        """Look closer until usage is known to the resolution, and on which side of 1 it is."""

        def enough() -> Array:
            known = np.maximum(self.seen, _OF_INTEREST) + resolution * np.maximum(self.seen, 1.0)
            return np.where(self.seen <= 1.0, np.minimum(known, 1.0), known)

        self._look_closer(enough, np.inf)
        return self

    def within(self, most: float) -> bool:
        """Look closer until it is known whether all usage is within this, or seen that it is not."""
        self._look_closer(lambda: np.full_like(self.seen, most), most)
        return bool(np.all(self.usage <= most))

    def _look_closer(self, enough: Callable[[], Array], most: float) -> None:
        """Cut steps until usage is `enough` in all of them; end early where more than `most` is seen."""
        steps = self._first_steps()
        while steps and not np.any(self.seen > most):
            present = steps.pop()
            opened = self._opened(present, enough())
            if opened.any():
                steps += self._cut(present, opened)
        self.usage = np.maximum(self.usage, self.seen)
        self.usage[np.isnan(self.usage)] = np.inf

    def _first_steps(self) -> list[_Steps]:
        steps: list[_Steps] = []
        for time in _once(self._basis, self._first_step()):
            usage = self._look(time)
            steps.append(_Steps(0, time[:-1], np.diff(time), usage[:-1], usage[1:]))
        self._widest = max(float(each.width.max()) for each in steps)
        return steps

    def _opened(self, steps: _Steps, enough: Array) -> NDArray[np.bool_]:
        """In which steps there is more to know; of the others, what usage can be in them is kept."""
        if steps.cuts not in self._slack:
            self._slack[steps.cuts] = self._limit.between(self._bounds, self._widest * _PARTS**-steps.cuts)
        slack = self._slack[steps.cuts]
        if not np.all(np.isfinite(slack)):  # beyond all numbers: no refinement would end
            self.usage = np.full_like(self.usage, np.inf)
            return np.zeros(len(steps.width), dtype=np.bool_)
        highest = np.maximum(steps.before, steps.after) + slack
        opened = np.any((highest > enough) & (slack > _FINEST), axis=1)
        self.usage = np.maximum(self.usage, highest[~opened].max(axis=0, initial=-np.inf))
        return opened

    def _cut(self, steps: _Steps, opened: NDArray[np.bool_]) -> list[_Steps]:
        """Parts of the opened steps, in portions."""
        width = steps.width[opened] / _PARTS
        inside = steps.start[opened, None] + width[:, None] * np.arange(1, _PARTS)
        usage = self._look(inside.ravel()).reshape(*inside.shape, -1)
        usage = np.concatenate([steps.before[opened, None], usage, steps.after[opened, None]], axis=1)
        start = np.column_stack([steps.start[opened], inside]).ravel()
        before, after = usage[:, :-1].reshape(len(start), -1), usage[:, 1:].reshape(len(start), -1)
        whole = start, np.repeat(width, _PARTS), before, after
        portions = (slice(first, first + _PORTION) for first in range(0, len(start), _PORTION))
        return [_Steps(steps.cuts + 1, *(each[portion] for each in whole)) for portion in portions]

    def _first_step(self) -> float:
        """Step [s] of the first grid, from how what is open between samples falls when the step is halved."""
        widest = self._basis.duration / _FEWEST
        slack, half = (float(self._limit.between(self._bounds, step).max(initial=0.0)) for step in (widest, widest / 2))
        if not (slack > _FIRST_SLACK and np.isfinite(slack)):
            return widest
        order = np.log2(slack / half)
        return max(widest * float(_FIRST_SLACK / slack) ** (1.0 / order), self._basis.duration / _MOST)

    def _look(self, time: Array) -> Array:
        usage = self._limit.usage(motion_at(self._basis, self._home, self._weights, time))
        self.samples += len(time)
        self.seen = np.maximum(self.seen, usage.max(axis=0, initial=-np.inf))
        return usage
