"""Fourier series at rest at their ends: by constraints on their weights, or between two ramps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import (
    HIGHEST_DERIVATIVE,
    Repetition,
    check_duration,
    check_order,
    check_series,
    grid_between,
    times_between,
)
from jointbench.excitation.families.splines import coefficients_at_start, septic_bounds, septic_values


def harmonic_orders(harmonics: int | tuple[int, ...]) -> Array:
    """Multiples of the base frequency: 1 to n for a number n, otherwise those chosen; shape (n_harmonics,)."""
    chosen = range(1, harmonics + 1) if isinstance(harmonics, int) else harmonics
    return np.array(chosen, dtype=np.float64)


def repetitions_per_period(harmonics: int | tuple[int, ...]) -> int:
    """Repetitions of a series within its period: several where all its harmonics have a common divisor."""
    return int(np.gcd.reduce(harmonic_orders(harmonics).astype(np.int64)))


def describe_harmonics(harmonics: int | tuple[int, ...]) -> str:
    """Describe the harmonics: '5 harmonics', or 'harmonics 1, 2, 3, 5, 7' where they were chosen."""
    return f"{harmonics} harmonics" if isinstance(harmonics, int) else f"harmonics {', '.join(map(str, harmonics))}"


def waves(time: Array, frequencies: Array, order: int) -> list[tuple[Array, Array]]:
    """Derivatives 0 to `order` of sin(ωt)/ω and -cos(ωt)/ω, shape (n_times, n_harmonics) each.

    Each derivative turns the pair by a quarter and multiplies it with ω.
    """
    angle = np.outer(time, frequencies)
    pair = np.sin(angle) / frequencies, -np.cos(angle) / frequencies
    derivatives = [pair]
    for _ in range(order):
        pair = -frequencies * pair[1], frequencies * pair[0]
        derivatives.append(pair)
    return derivatives


def wave_bounds(sine: Array, cosine: Array, frequencies: Array, order: int) -> Array:
    """Bounds of derivatives 0 to `order` of Σ a/ω sin(ωt) - b/ω cos(ωt), shape (order + 1, n_joints).

    No sum of waves is larger than the sum of their amplitudes.

    Args:
        sine, cosine: a and b, shape (n_joints, n_harmonics).
        frequencies: ω [rad/s].
        order: of the last derivative.
    """
    amplitudes = np.hypot(sine, cosine)
    return np.stack([amplitudes @ frequencies ** (k - 1.0) for k in range(order + 1)])


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
        times = repetitions_per_period(self.harmonics)
        return Repetition(0.0, self.period / times, times)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        return f"Fourier series of {describe_harmonics(self.harmonics)}, period {self.period:g} s"

    @cached_property
    def orders(self) -> Array:
        """Multiples l of the base frequency, shape (n_harmonics,)."""
        return harmonic_orders(self.harmonics)

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
        null_spaces = self._null_spaces
        return np.hstack([sine @ null_spaces[0], cosine @ null_spaces[1]])

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
        odd_only = bool(np.all(self.orders / repeated.times % 2 == 1))
        return times_between(np.linspace(0.0, repeated.period, 3 if odd_only else 2).tolist(), samples)


def _orthogonal_to(row: Array) -> Array:
    """Orthonormal basis of all that is orthogonal to one row, shape (n, n - 1).

    The reflection that carries the first axis into the row carries the others into the basis (Householder): written
    out rather than taken from a decomposition, whose choice among all bases differs from library to library.
    """
    mirror = row / np.linalg.norm(row)
    mirror[0] += 1.0
    return (np.eye(len(row)) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror))[:, 1:]


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
        check_series(self.harmonics, self.period, min_harmonics=1)
        check_duration("ramp", self.ramp, "2 s is usual")
        if self.periods < 1:
            raise ExcitationError(f"periods = {self.periods}: the series must be played at least once")

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return 1 + 2 * len(self.orders)

    @property
    def duration(self) -> float:
        """Duration of the whole motion, both ramps included [s]."""
        return 2.0 * self.ramp + self.periods * self.period

    @property
    def fastest_cycle(self) -> float:
        """Cycle of the highest harmonic [s]."""
        return self.period / float(self.orders.max())

    @property
    def repetition(self) -> Repetition:
        """The series between its ramps."""
        times = repetitions_per_period(self.harmonics)
        return Repetition(self.ramp, self.period / times, self.periods * times)

    @property
    def description(self) -> str:
        """The family and its settings in words."""
        times = "once" if self.periods == 1 else f"{self.periods} times"
        return (
            f"Fourier series of {describe_harmonics(self.harmonics)}, period {self.period:g} s, {times} between ramps "
            f"of {self.ramp:g} s"
        )

    @cached_property
    def orders(self) -> Array:
        """Multiples l of the base frequency, shape (n_harmonics,)."""
        return harmonic_orders(self.harmonics)

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
        intersample_bound = ~(entering | leaving)
        values = tuple(np.empty((len(time), self.size)) for _ in range(order + 1))
        series = self._series(time[intersample_bound] - self.ramp, order)
        into = septic_values(time[entering] / self.ramp, self.ramp, order)
        back = septic_values((time[leaving] - leaves) / self.ramp, self.ramp, order)
        ramp_in, ramp_out = self._ramps
        for phi, phi_series, first, last in zip(values, series, into, back, strict=True):
            phi[intersample_bound], phi[entering], phi[leaving] = phi_series, first @ ramp_in, last @ ramp_out
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
