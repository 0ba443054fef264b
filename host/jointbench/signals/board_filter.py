"""A board's filter of current and torque: its design, its response, and its effect on the regressor's columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError

_GONE = 1e-16
"""Share of what was before that is left in the slowest section: less than rounding."""

Section = tuple[int, int, int, int, int]
"""b0, b1, b2, a1, a2 of one section in Q27, as registers hold them; a0 is 1."""

BiquadCoefficients = tuple[tuple[float, float, float], tuple[float, float, float]]
"""(b, a) of one section as numbers, a[0] = 1."""

COEFFICIENT_BITS = 27

PASS_THROUGH: Section = (1 << COEFFICIENT_BITS, 0, 0, 0, 0)

OVERSAMPLES = 16
"""ADC samples between two ticks."""

SECTIONS = 2
"""How many the board has."""

ONE = 1 << COEFFICIENT_BITS

_LOWEST, _HIGHEST = 1e-3, 0.45
"""Cut-offs as shares of the sample rate. Below, rounding a denominator to Q27 would move the cut-off by more than
1e-4 of it; above, nothing would be left to filter."""


@dataclass(frozen=True, kw_only=True)
class BoardFilter:
    """A board's path from the motor current, or the joint's torque, to a sample: decimator, then second-order sections.

    A fit that ignored its delay of half a tick and the sections' lag would find too much inertia. Rounding to whole
    numbers is no part of it: that is noise (see `Biquads` for the board's own numbers).

    Attributes:
        sections: in their order, as quantised on the board; may be empty.
        cic_order: of the decimator, 1 the mean over a window, 2 the triangle over two of them.
        window: of the ADC, ends at the tick [s]; 0 for a sample in an instant.
        sample_period: from tick to tick [s].

    Raises:
        SignalError: another order, or a window longer than a tick.
    """

    sections: tuple[BiquadCoefficients, ...]
    cic_order: int
    window: float
    sample_period: float

    def __post_init__(self) -> None:
        """Refuse what no board does."""
        if self.cic_order not in (1, 2):
            raise SignalError(f"adc.cic_order {self.cic_order} is not known; a board's decimator has order 1 or 2")
        if not 0.0 <= self.window <= self.sample_period:
            raise SignalError(
                f"adc.window {self.window:g} s must be from 0 to the tick, {self.sample_period:g} s; "
                f"correct the fact in the board's config.json"
            )

    def apply(self, values: Array) -> Array:
        """Filter along axis 0, at rest at the first value before it began.

        Args:
            values: at the ticks, shape (n, ...), n >= 1.

        Returns:
            The values as the board would have sent them, same shape; the last one guesses how its tick went on.
        """
        mean = self._decimator.apply(values, self.sample_period)
        if not self.sections:
            return mean
        sos = np.array([(*b, *a) for b, a in self.sections])
        state = np.asarray(scipy.signal.sosfilt_zi(sos)).reshape(len(sos), 2, *(1,) * (mean.ndim - 1))
        filtered, _ = scipy.signal.sosfilt(sos, mean, axis=0, zi=state * mean[:1])
        return cast(Array, filtered)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """H(f) from a signal that goes on in time to the samples of it, exact at any frequency.

        Args:
            frequency: [Hz], shape (n,).
        """
        cycles = np.asarray(frequency) * self.sample_period
        sections = [section_response(np.array(b), np.array(a), cycles) for b, a in self.sections]
        return prod(sections, start=self._decimator.response(frequency))

    @property
    def memory(self) -> int:
        """How many ticks after the first value what was before it is forgotten, but for rounding."""
        slowest = max((float(np.abs(np.roots(a)).max()) for _, a in self.sections), default=0.0)
        taps = self._decimator.delays.max() / self.sample_period
        return int(np.ceil(taps)) + 2 + (int(np.ceil(np.log(_GONE) / np.log(slowest))) if slowest > 0.0 else 0)

    @property
    def gain(self) -> float:
        """Gain at rest: exactly one where the host designed the filter."""
        return prod(sum(b) / sum(a) for b, a in self.sections)

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        late = sum(section_delay(np.array(b), np.array(a)) for b, a in self.sections)
        return self._decimator.delay + late * self.sample_period

    @property
    def _decimator(self) -> Taps:
        if self.cic_order == 1:
            return boxcar_taps(self.window)
        return cic_taps(self.window, self.sample_period)


def section_pair(section: Section) -> BiquadCoefficients:
    """(b, a) of a section as numbers, exactly.

    >>> section_pair((1 << 27, 0, 0, -1 << 26, 0))
    ((1.0, 0.0, 0.0), (1.0, -0.5, 0.0))
    """
    b0, b1, b2, a1, a2 = (coefficient / (1 << COEFFICIENT_BITS) for coefficient in section)
    return (b0, b1, b2), (1.0, a1, a2)


def section_response(numerator: Array, denominator: Array, cycles: Array) -> NDArray[np.complex128]:
    """H = b(z⁻¹) / a(z⁻¹) on the unit circle.

    Args:
        numerator, denominator: b0, b1 … and a0, a1 …
        cycles: frequency in cycles per sample, shape (n,).
    """
    z = np.exp(-2j * np.pi * cycles)
    return cast(NDArray[np.complex128], np.polyval(numerator[::-1], z) / np.polyval(denominator[::-1], z))


def section_delay(numerator: Array, denominator: Array) -> float:
    """Delay of slow signals in samples: Σ k b_k / Σ b_k - Σ k a_k / Σ a_k."""
    return _centroid(numerator) - _centroid(denominator)


def _centroid(weights: Array) -> float:
    return float(np.arange(len(weights)) @ weights / weights.sum())


def boxcar_taps(window: float) -> Taps:
    """The instants whose mean it is: the middles of 16 equal parts of the ADC's window, which ends at the tick.

    H(f) = exp(-iπ f w) sin(π f w) / (16 sin(π f w / 16)), and its delay is w/2.

    Args:
        window: w [s].
    """
    return Taps(np.full(OVERSAMPLES, 1.0 / OVERSAMPLES), window * before_the_end())


def before_the_end() -> NDArray[np.float64]:
    """How far before the window's end its samples lie, as shares of the window, oldest first."""
    return (OVERSAMPLES - 0.5 - np.arange(OVERSAMPLES)) / OVERSAMPLES


def cic_taps(window: float, period: float) -> Taps:
    """The instants whose weighted mean it is: those of this tick's window and of the one before.

    Where the window fills the tick, H is the square of the plain mean's but for its delay, (1 + 1/32) ticks in all.

    Args:
        window: of the ADC, ends at the tick [s].
        period: from tick to tick [s].
    """
    late = window * before_the_end()
    rising = np.arange(1, OVERSAMPLES + 1)
    weights = np.concatenate([rising, OVERSAMPLES - rising]) / OVERSAMPLES**2
    return Taps(weights, np.concatenate([period + late, late]))


@dataclass(frozen=True, eq=False)
class Taps:
    """y(t) = Σ weight_j x(t - delay_j).

    Attributes:
        weights: shape (n,), sum 1.
        delays: how long before the tick each instant lies [s], none negative, shape (n,).
    """

    weights: Array
    delays: Array

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        return float(self.weights @ self.delays)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """H(f) = Σ weight_j exp(-2πi f delay_j), exact at any frequency.

        Args:
            frequency: [Hz], shape (n,).
        """
        return cast(NDArray[np.complex128], np.exp(-2j * np.pi * np.outer(frequency, self.delays)) @ self.weights)

    def apply(self, values: Array, period: float) -> Array:
        """The mean of a signal of which only the values at the ticks are known.

        Between ticks it runs along the cubic through its four nearest values, which at frequency f is wrong by about
        (2 pi f h)⁴/65; before the first value it rested, after the last it goes on as it came.

        Args:
            values: along axis 0, shape (n, ...), n >= 1.
            period: h, from one value to the next [s].

        Returns:
            The means at the same ticks, same shape.
        """
        weights = self._of_ticks(period)
        after = 2.0 * values[-1:] - values[-2:-1] if len(values) > 1 else values
        before = np.repeat(values[:1], len(weights) - 2, axis=0)
        known = np.concatenate([before, values, after])
        mean = np.zeros_like(values)
        for lag, weight in enumerate(weights):  # the first of them is the tick to come
            start = len(weights) - 1 - lag
            mean += weight * known[start : start + len(values)]
        return mean

    def _of_ticks(self, period: float) -> Array:
        """Weights of the values at ticks -1 (the one to come), 0, 1, 2 … before."""
        late = self.delays / period
        whole = np.floor(late).astype(np.int64)
        f = late - whole  # of the way from a tick to the one before it
        cubic = (
            f * (f - 1.0) * (f - 2.0) / -6.0,
            (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0,
            (f + 1.0) * f * (f - 2.0) / -2.0,
            (f + 1.0) * f * (f - 1.0) / 6.0,
        )
        weights = np.zeros(int(whole.max()) + 4)
        for place, share in enumerate(cubic):
            np.add.at(weights, whole + place, self.weights * share)
        return weights


def butterworth_sections(order: int, cutoff_Hz: float, sample_rate_Hz: float) -> tuple[Section, ...]:
    """Butterworth low-pass as the two sections of a board, Q27.

    Each section has a gain of exactly one at rest: its numerator is (1, 2, 1)/4 of the sum of its rounded denominator,
    and b1 takes the rest of that division. So a constant current comes out as it is.

    Args:
        order: 2 (the second section passes all through) or 4.
        cutoff_Hz: where the gain is -3 dB.
        sample_rate_Hz: of the filter, ticks in a second.

    Raises:
        SignalError: another order, or a cut-off below 0.1 % or above 45 % of the sample rate.

    >>> butterworth_sections(2, 100.0, 1000.0)
    ((9053694, 18107386, 9053694, -153408247, 55405293), (134217728, 0, 0, 0, 0))
    """
    if order not in (2, 4):
        raise SignalError(f"filter order {order} does not suit the board's two sections; it must be 2 or 4")
    low, high = _LOWEST * sample_rate_Hz, _HIGHEST * sample_rate_Hz
    if not low <= cutoff_Hz <= high:
        raise SignalError(
            f"cut-off {cutoff_Hz:g} Hz must be from {low:g} to {high:g} Hz on a board that samples at "
            f"{sample_rate_Hz:g} Hz; choose one between them, or no filter"
        )
    designed = cast(Array, scipy.signal.butter(order, cutoff_Hz, fs=sample_rate_Hz, output="sos"))
    sections = [_quantised(float(row[4]), float(row[5])) for row in designed]
    return (*sections, *[PASS_THROUGH] * (SECTIONS - len(sections)))


def _quantised(a1: float, a2: float) -> Section:
    # 1 + a1 + a2 sets the cut-off of a slow filter: it is rounded itself, and a1 takes what a2's rounding leaves.
    total, second = round((1.0 + a1 + a2) * ONE), round(a2 * ONE)
    outer = round(total / 4)
    return outer, total - 2 * outer, outer, total - ONE - second, second
