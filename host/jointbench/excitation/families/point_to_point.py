"""Moves from rest to rest through free way points, the last one back home."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Repetition, check_order, grid_between, times_between
from jointbench.excitation.families.septic import septic_bounds, septic_values
from jointbench.excitation.settings import MOST, check_duration


@dataclass(frozen=True)
class PointToPoint:
    """Moves of equal duration through way points, each at rest (velocity, acceleration and jerk 0) at both its ends.

    q(t) = home + p_k + (p_{k+1} - p_k) s(x), s(x) = 35x⁴ - 84x⁵ + 70x⁶ - 20x⁷, x from 0 to 1 within each move; p_0 and
    the last p are 0. The weights are the way points between, from home [rad].

    Attributes:
        points: number of free way points, at least 1; there is one move more.
        segment: how long each move takes [s].

    Raises:
        ExcitationError: no points or too many, or a segment that is no duration.

    Source: the polynomial of least degree with these ends, as in Biagiotti & Melchiorri, Trajectory Planning for
        Automatic Machines and Robots, Springer 2008, sec. 2.1.6.
    """

    points: int
    segment: float

    def __post_init__(self) -> None:
        """Refuse what is no move."""
        if not 1 <= self.points <= MOST:
            raise ExcitationError(
                f"points = {self.points}: at least 1 way point is needed, and at most {MOST}; 10 is usual"
            )
        check_duration("segment", self.segment, "a move of 2 s is usual")

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return self.points

    @property
    def duration(self) -> float:
        """Of all moves [s]."""
        return (self.points + 1) * self.segment

    @property
    def fastest_cycle(self) -> float:
        """A move [s]: within it the acceleration goes to and fro once."""
        return self.segment

    @property
    def repetition(self) -> Repetition:
        """The whole motion, once."""
        return Repetition(0.0, self.duration, 1)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        return f"moves through {self.points} way points, {self.segment:g} s each"

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, size) each."""
        check_order(order)
        time = np.asarray(time, dtype=np.float64) % self.duration
        move = np.minimum((time / self.segment).astype(np.intp), self.points)
        rows = np.arange(len(time))
        values: list[Array] = []
        for derivative in septic_values(time / self.segment - move, self.segment, order):
            # Columns 0 and the last are home, before the first move and after the last one.
            phi = np.zeros((len(time), self.points + 2))
            phi[rows, move] = derivative[:, :4].sum(axis=1)
            phi[rows, move + 1] = derivative[:, 4:].sum(axis=1)
            values.append(phi[:, 1:-1])
        return tuple(values)

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, the ends of all moves among them."""
        return grid_between(self._ends, step)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints): the largest over all moves."""
        n_joints = len(weights)
        way = np.hstack([np.zeros((n_joints, 1)), weights, np.zeros((n_joints, 1))])
        coefficients = np.repeat(np.stack([way[:, :-1], way[:, 1:]]), 4, axis=0)
        bounds = septic_bounds(coefficients.reshape(8, -1), self.segment)
        return bounds.reshape(len(bounds), n_joints, -1).max(axis=2)

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over the moves, none of them at a way point."""
        return times_between(self._ends, samples)

    @property
    def _ends(self) -> list[float]:
        """Times at which the motion is at rest, home first and last [s]."""
        return [self.segment * end for end in range(self.points + 2)]
