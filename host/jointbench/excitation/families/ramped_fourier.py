"""A free Fourier series that is entered from home and left to home by polynomial ramps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import (
    HIGHEST_DERIVATIVE,
    Repetition,
    check_order,
    grid_between,
    times_between,
)
from jointbench.excitation.families.septic import coefficients_at_start, septic_bounds, septic_values
from jointbench.excitation.families.waves import in_words, orders_of, repeats_within, wave_bounds, waves
from jointbench.excitation.settings import check_duration, check_series


@dataclass(frozen=True)
class RampedFourier:
    """Fourier series about a centre of its own, `periods` times in a row between two ramps; continuous to jerk.

    With s = t - ramp: q(t) = home + c/ω + Σ_l a_l/(ωl) sin(ωls) - b_l/(ωl) cos(ωls), ω = 2π/period, for s from 0 to
    periods * period. Before it a polynomial of degree 7 leads from rest at home to the state the series begins in, up
    to its jerk; after it another leads back. The weights are c, a and b, all in rad/s.

    Two durations must be told apart: `period` is that of the series, `duration` that of the whole motion,
    2 ramp + periods * period. The regressor is sampled over one period of the series; its ramps are not.

    Attributes:
        harmonics: number of harmonics, at least 1; or the multiples l of the base frequency that are to be used.
        period: of the series [s].
        ramp: how long each ramp takes [s].
        periods: how often the series is repeated between its ramps.

    Raises:
        ExcitationError: no harmonics, one twice or too high, a duration that is none, or no periods.

    Source: series of Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997.
    """

    harmonics: int | tuple[int, ...]
    period: float
    ramp: float
    periods: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no series, or no ramp."""
        check_series(self.harmonics, self.period, least=1)
        check_duration("ramp", self.ramp, "2 s is usual")
        if self.periods < 1:
            raise ExcitationError(f"periods = {self.periods}: the series must be played at least once")

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return 1 + 2 * len(self.orders)

    @property
    def duration(self) -> float:
        """Of the whole motion, both ramps included [s]."""
        return 2.0 * self.ramp + self.periods * self.period

    @property
    def fastest_cycle(self) -> float:
        """Cycle of the highest harmonic [s]."""
        return self.period / float(self.orders.max())

    @property
    def repetition(self) -> Repetition:
        """The series between its ramps."""
        times = repeats_within(self.harmonics)
        return Repetition(self.ramp, self.period / times, self.periods * times)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        times = "once" if self.periods == 1 else f"{self.periods} times"
        return (
            f"Fourier series of {in_words(self.harmonics)}, period {self.period:g} s, {times} between ramps of "
            f"{self.ramp:g} s"
        )

    @cached_property
    def orders(self) -> Array:
        """Multiples l of the base frequency, shape (n_harmonics,)."""
        return orders_of(self.harmonics)

    @property
    def frequencies(self) -> Array:
        """Angular frequency ωl of each harmonic [rad/s], shape (n_harmonics,)."""
        return 2.0 * np.pi / self.period * self.orders

    def coefficients(self, weights: Array) -> tuple[Array, Array, Array]:
        """Centre from home [rad], shape (n_joints,), and a, b [rad/s], shape (n_joints, n_harmonics)."""
        half = len(self.orders)
        return weights[:, 0] * self._per_center, weights[:, 1 : 1 + half], weights[:, 1 + half :]

    def weights_of(self, center: Array, sine: Array, cosine: Array) -> Array:
        """Weights, shape (n_joints, size), of a series whose centre is given from home."""
        return np.column_stack([center / self._per_center, sine, cosine])

    def evaluate(self, time: Array, order: int = 2) -> tuple[Array, ...]:
        """Values of phi and its first `order` derivatives at times [s], shape (n_times, size) each."""
        check_order(order)
        time = np.asarray(time, dtype=np.float64) % self.duration
        leaves = self.ramp + self.periods * self.period
        entering, leaving = time < self.ramp, time >= leaves
        between = ~(entering | leaving)
        values = tuple(np.empty((len(time), self.size)) for _ in range(order + 1))
        series = self._series(time[between] - self.ramp, order)
        into = septic_values(time[entering] / self.ramp, self.ramp, order)
        back = septic_values((time[leaving] - leaves) / self.ramp, self.ramp, order)
        ramp_in, ramp_out = self._ramps
        for whole, part, first, last in zip(values, series, into, back, strict=True):
            whole[between], whole[entering], whole[leaving] = part, first @ ramp_in, last @ ramp_out
        return values

    def grid(self, step: float) -> Array:
        """Times [s] from 0 to the duration, at most `step` apart, the ends of the ramps among them."""
        return grid_between((0.0, self.ramp, self.ramp + self.periods * self.period, self.duration), step)

    def bounds(self, weights: Array) -> Array:
        """Bounds of the derivatives 0 to 5 of q - home, shape (6, n_joints): of the series and of both ramps."""
        center, sine, cosine = self.coefficients(weights)
        series = wave_bounds(sine, cosine, self.frequencies, HIGHEST_DERIVATIVE)
        series[0] += np.abs(center)
        return np.maximum.reduce([series, *(septic_bounds(ramp @ weights.T, self.ramp) for ramp in self._ramps)])

    def sample_times(self, samples: int) -> Array:
        """Times [s] spread over the first period of the series: its repetitions say nothing new, its ramps little."""
        repeated = self.repetition
        return times_between((repeated.start, repeated.start + repeated.period), samples)

    @property
    def _per_center(self) -> float:
        """Radians of the centre per weight: so it has the unit, and about the reach, of the first harmonic's."""
        return self.period / (2.0 * np.pi)

    def _series(self, time: Array, order: int) -> list[Array]:
        derivatives = [
            np.hstack([np.zeros((len(time), 1)), sin, cos]) for sin, cos in waves(time, self.frequencies, order)
        ]
        derivatives[0][:, 0] = self._per_center
        return derivatives

    @cached_property
    def _ramps(self) -> tuple[Array, Array]:
        """Bernstein coefficients of both ramps per weight, shape (8, size) each: one end is the series', one rest."""
        state = np.vstack(self._series(np.zeros(1), 3))
        rest = np.zeros((4, self.size))
        into = np.vstack([rest, (coefficients_at_start(-self.ramp) @ state)[::-1]])
        return into, np.vstack([coefficients_at_start(self.ramp) @ state, rest])
