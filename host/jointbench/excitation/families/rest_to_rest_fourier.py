"""Fourier series that start and end at rest: a basis of those that satisfy the boundary conditions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation.families.basis import (
    HIGHEST_DERIVATIVE,
    Repetition,
    check_order,
    grid_between,
    times_between,
)
from jointbench.excitation.families.waves import in_words, orders_of, repeats_within, wave_bounds, waves
from jointbench.excitation.settings import check_series


@dataclass(frozen=True)
class RestToRestFourier:
    """Fourier series of one joint that leave home with velocity and acceleration 0, and so return.

    q(t) = home + Σ_l a_l/(ωl) sin(ωlt) + b_l/(ωl) (1 - cos(ωlt)) with Σ a_l = 0 (velocity) and Σ l b_l = 0
    (acceleration) at t = 0 and, by periodicity, at t = period. The weights w of the null space of those two rows
    are free: q(t) = home + phi(t) @ w.

    Attributes:
        harmonics: number of harmonics, at least 2; or the multiples l of the base frequency that are to be used, such
            as (1, 2, 3, 5, 7), where a resonance is to be left out.
        period: [s].

    Raises:
        ExcitationError: fewer than two harmonics, one twice or too high, or a period that is no duration.

    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997.
    """

    harmonics: int | tuple[int, ...]
    period: float

    def __post_init__(self) -> None:
        """Refuse what cannot start and end at rest."""
        check_series(self.harmonics, self.period)

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return 2 * (len(self.orders) - 1)

    @property
    def duration(self) -> float:
        """The period [s]."""
        return self.period

    @property
    def fastest_cycle(self) -> float:
        """Cycle of the highest harmonic [s]."""
        return self.period / float(self.orders.max())

    @property
    def repetition(self) -> Repetition:
        """The whole motion, once, unless all harmonics have a common divisor."""
        times = repeats_within(self.harmonics)
        return Repetition(0.0, self.period / times, times)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        return f"Fourier series of {in_words(self.harmonics)}, period {self.period:g} s"

    @cached_property
    def orders(self) -> Array:
        """Multiples l of the base frequency, shape (n_harmonics,)."""
        return orders_of(self.harmonics)

    @property
    def frequencies(self) -> Array:
        """Angular frequency ωl of each harmonic [rad/s], shape (n_harmonics,)."""
        return 2.0 * np.pi / self.period * self.orders

    @cached_property
    def _null_spaces(self) -> tuple[Array, Array]:
        """Orthonormal bases of the sine and cosine coefficients that satisfy the boundary conditions."""
        return _orthogonal_to(np.ones(len(self.orders))), _orthogonal_to(self.orders)

    def coefficients(self, weights: Array) -> tuple[Array, Array]:
        """Sine and cosine coefficients a, b [rad/s], shape (n_joints, n_harmonics), of weights (n_joints, size)."""
        sine, cosine = self._null_spaces
        half = self.size // 2
        return weights[:, :half] @ sine.T, weights[:, half:] @ cosine.T

    def weights_of(self, sine: Array, cosine: Array) -> Array:
        """Weights, shape (n_joints, size), of coefficients that satisfy the boundary conditions."""
        across = self._null_spaces
        return np.hstack([sine @ across[0], cosine @ across[1]])

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, size) each."""
        check_order(order)
        sine, cosine = self._null_spaces
        frequencies = self.frequencies
        pairs = waves(time, frequencies, order)
        pairs[0] = pairs[0][0], 1.0 / frequencies + pairs[0][1]
        return tuple(np.hstack([sin @ sine, cos @ cosine]) for sin, cos in pairs)

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the period, at most `step` apart."""
        return grid_between((0.0, self.period), step)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints): the sums of the amplitudes."""
        sine, cosine = self.coefficients(weights)
        bounds = wave_bounds(sine, cosine, self.frequencies, HIGHEST_DERIVATIVE)
        bounds[0] += np.abs((cosine / self.frequencies).sum(axis=1))
        return bounds

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over what repeats, none of them at its ends, nor halfway where odd harmonics all turn."""
        repeated = self.repetition
        turns = bool(np.all(self.orders / repeated.times % 2 == 1))
        return times_between(np.linspace(0.0, repeated.period, 3 if turns else 2).tolist(), samples)


def _orthogonal_to(row: Array) -> Array:
    """Orthonormal basis of all that is orthogonal to one row, shape (n, n - 1).

    The reflection that carries the first axis into the row carries the others into the basis (Householder): written
    out rather than taken from a decomposition, whose choice among all bases differs from library to library.
    """
    mirror = row / np.linalg.norm(row)
    mirror[0] += 1.0
    return (np.eye(len(row)) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror))[:, 1:]
