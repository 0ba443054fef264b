"""Filters between motor current (or joint torque) and sample on a joint board: design, response, effect on signals.

A board averages 16 readings of its ADC per tick (boxcar, or the triangle of a second-order CIC decimator) and runs two
second-order sections with Q27 coefficients. A fit applies the same filter to the regressor's columns; if it ignored the
half tick of delay and the lag of the sections, it would overestimate inertia. Bit-exact integer twins of what the board
computes are in board_twins.py; docs/filters.md describes the whole path.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.resampling import lagrange_weights

BiquadCoefficients = tuple[tuple[float, float, float], tuple[float, float, float]]
"""(b0, b1, b2), (a0, a1, a2) of a second-order section H(z) = b(1/z) / a(1/z), a0 = 1."""

QuantisedBiquad = tuple[int, int, int, int, int]
"""b0, b1, b2, a1, a2 of a second-order section in Q27, as the board's registers hold them; a0 = 1 is implied."""

FRACTION_BITS = 27
PASS_THROUGH: QuantisedBiquad = (1 << FRACTION_BITS, 0, 0, 0, 0)

OVERSAMPLING = 16
"""ADC readings per tick."""

_ONE = 1 << FRACTION_BITS
_N_SECTIONS = 2
"""Second-order sections of a board."""

_MIN_CUTOFF, _MAX_CUTOFF = 1e-3, 0.45
"""Range of the cut-off, as a share of the sample rate. Below it, rounding the denominator to Q27 would move the cut-off
by more than 1e-4 of its value; above it, the filter would pass the whole band."""

_ROUNDING = 1e-16
"""Share of a transient that remains when the filter's memory ends: less than double precision resolves."""

_CUBIC_POINTS = 4


@dataclass(frozen=True, kw_only=True)
class BoardFilter:
    """Path from motor current or joint torque to a sample: decimator, then second-order sections, in float64.

    Rounding to integers is not part of it: that is noise.

    Attributes:
        sections: in order, with the quantised coefficients of the board; may be empty.
        cic_order: of the decimator, 1 for the boxcar mean over a window, 2 for the triangle over two windows.
        window: of the ADC, ends at the tick [s]; 0 for an instantaneous sample.
        sample_period: one tick [s].

    Raises:
        SignalError: another order, or a window longer than a tick.
    """

    sections: tuple[BiquadCoefficients, ...]
    cic_order: int
    window: float
    sample_period: float

    def __post_init__(self) -> None:
        """Reject decimators that no board has."""
        if self.cic_order not in (1, 2):
            raise SignalError(f"adc.cic_order {self.cic_order} is not known; a board's decimator has order 1 or 2")
        if not 0.0 <= self.window <= self.sample_period:
            raise SignalError(
                f"adc.window {self.window:g} s must be from 0 to the tick, {self.sample_period:g} s; "
                f"correct the fact in the board's config.json"
            )

    def apply(self, values: Array) -> Array:
        """Filter along axis 0, starting from steady state at the first value.

        Args:
            values: signal at the ticks, shape (n, ...), n >= 1.

        Returns:
            Samples as the board would have sent them, same shape; the last one extrapolates the signal within its tick.
        """
        decimated = self._decimator.apply(values, self.sample_period)
        if not self.sections:
            return decimated
        sos = np.array([(*b, *a) for b, a in self.sections])
        steady_state = np.asarray(scipy.signal.sosfilt_zi(sos)).reshape(len(sos), 2, *(1,) * (decimated.ndim - 1))
        filtered, _ = scipy.signal.sosfilt(sos, decimated, axis=0, zi=steady_state * decimated[:1])
        return cast(Array, filtered)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """Return the frequency response from the continuous signal to its samples, exact at any frequency.

        Args:
            frequency: [Hz], shape (n,).
        """
        w = 2.0 * np.pi * np.asarray(frequency) * self.sample_period
        sections = [scipy.signal.freqz(b, a, worN=w)[1] for b, a in self.sections]
        return prod(sections, start=self._decimator.response(frequency))

    @property
    def memory(self) -> int:
        """Number of ticks after which the signal's past has decayed below rounding."""
        slowest_pole = max((float(np.abs(np.roots(a)).max()) for _, a in self.sections), default=0.0)
        decimator_ticks = int(np.ceil(self._decimator.delays.max() / self.sample_period)) + 2
        section_ticks = int(np.ceil(np.log(_ROUNDING) / np.log(slowest_pole))) if slowest_pole > 0.0 else 0
        return decimator_ticks + section_ticks

    @property
    def gain(self) -> float:
        """Gain at zero frequency: exactly one for sections of `butterworth_sections`."""
        return prod(sum(b) / sum(a) for b, a in self.sections)

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        ticks = sum(float(scipy.signal.group_delay((b, a), w=[0.0])[1][0]) for b, a in self.sections)
        return self._decimator.delay + ticks * self.sample_period

    @property
    def _decimator(self) -> DecimatorTaps:
        return boxcar_taps(self.window) if self.cic_order == 1 else cic_taps(self.window, self.sample_period)


@dataclass(frozen=True, eq=False)
class DecimatorTaps:
    """Weighted mean of a continuous signal at instants before a tick, y(t) = sum_j weights[j] x(t - delays[j]).

    Attributes:
        weights: sum 1, shape (n_taps,).
        delays: [s], not negative, shape (n_taps,).
    """

    weights: Array
    delays: Array

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        return float(self.weights @ self.delays)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """Return H(f) = sum_j weights[j] exp(-2 pi i f delays[j]), exact at any frequency.

        Args:
            frequency: [Hz], shape (n,).
        """
        return cast(NDArray[np.complex128], np.exp(-2j * np.pi * np.outer(frequency, self.delays)) @ self.weights)

    def apply(self, values: Array, period: float) -> Array:
        """Apply the mean to a signal that is known only at the ticks.

        Between ticks the signal follows the cubic through its four nearest values, which at frequency f errs by about
        (2 pi f h)⁴/65; before the first value it is constant, after the last it continues linearly.

        Args:
            values: along axis 0, shape (n, ...), n >= 1.
            period: h, one tick [s].

        Returns:
            The means at the same ticks, same shape.
        """
        # weights[0] belongs to the tick to come, weights[1] to the present one, weights[2] to the one before ...
        delay_ticks = self.delays / period
        whole = np.floor(delay_ticks).astype(np.intp)
        weights = np.zeros(int(whole.max()) + _CUBIC_POINTS)
        for k, share in enumerate(lagrange_weights(delay_ticks - whole + 1.0, _CUBIC_POINTS)):
            np.add.at(weights, whole + k, self.weights * share)

        n_past = len(weights) - 2
        next_value = 2.0 * values[-1:] - values[-2:-1] if len(values) > 1 else values
        extended = np.concatenate([np.repeat(values[:1], n_past, axis=0), values, next_value])
        mean = np.zeros_like(values)
        for lag, weight in enumerate(weights):
            start = n_past + 1 - lag
            mean += weight * extended[start : start + len(values)]
        return mean


def boxcar_taps(window: float) -> DecimatorTaps:
    """Return the taps of the first-order decimator: the centres of 16 equal parts of the window, equally weighted.

    H(f) = exp(-i pi f w) sin(pi f w) / (16 sin(pi f w / 16)); its delay is w/2.

    Args:
        window: w, ends at the tick [s].
    """
    return DecimatorTaps(np.full(OVERSAMPLING, 1.0 / OVERSAMPLING), _reading_delays(window))


def cic_taps(window: float, period: float) -> DecimatorTaps:
    """Return the taps of the second-order decimator: a triangle over the readings of this tick and the one before.

    A cascade of two integrators and two combs (CIC) has the same weights. If the window fills the tick, |H| is the
    square of the boxcar's, and the delay is 1 + 1/32 ticks.

    Args:
        window: of the ADC, ends at the tick [s].
        period: one tick [s].
    """
    delays = _reading_delays(window)
    ramp = np.arange(1, OVERSAMPLING + 1)
    weights = np.concatenate([ramp, OVERSAMPLING - ramp]) / OVERSAMPLING**2
    return DecimatorTaps(weights, np.concatenate([period + delays, delays]))


def butterworth_sections(order: int, cutoff_Hz: float, sample_rate_Hz: float) -> tuple[QuantisedBiquad, ...]:
    """Design a Butterworth low-pass as the two Q27 sections of a board.

    Each section has a gain of exactly one at zero frequency: its numerator is (1, 2, 1)/4 of the sum of its rounded
    denominator, b1 taking the remainder. A constant current is therefore not changed.

    Args:
        order: 2 (the second section passes everything) or 4.
        cutoff_Hz: -3 dB frequency [Hz].
        sample_rate_Hz: ticks per second [Hz].

    Raises:
        SignalError: another order, or a cut-off below 0.1 % or above 45 % of the sample rate.

    >>> butterworth_sections(2, 100.0, 1000.0)
    ((9053694, 18107386, 9053694, -153408247, 55405293), (134217728, 0, 0, 0, 0))
    """
    if order not in (2, 4):
        raise SignalError(f"filter order {order} does not suit the board's two sections; it must be 2 or 4")
    low, high = _MIN_CUTOFF * sample_rate_Hz, _MAX_CUTOFF * sample_rate_Hz
    if not low <= cutoff_Hz <= high:
        raise SignalError(
            f"cut-off {cutoff_Hz:g} Hz must be from {low:g} to {high:g} Hz on a board that samples at "
            f"{sample_rate_Hz:g} Hz; choose one between them, or no filter"
        )
    sos = cast(Array, scipy.signal.butter(order, cutoff_Hz, fs=sample_rate_Hz, output="sos"))
    sections = [_quantise_low_pass(float(row[4]), float(row[5])) for row in sos]
    return (*sections, *[PASS_THROUGH] * (_N_SECTIONS - len(sections)))


def dequantise_biquad(section: QuantisedBiquad) -> BiquadCoefficients:
    """Return the coefficients (b, a) of a quantised section, exactly.

    >>> dequantise_biquad((1 << 27, 0, 0, -1 << 26, 0))
    ((1.0, 0.0, 0.0), (1.0, -0.5, 0.0))
    """
    b0, b1, b2, a1, a2 = (coefficient / _ONE for coefficient in section)
    return (b0, b1, b2), (1.0, a1, a2)


def _quantise_low_pass(a1: float, a2: float) -> QuantisedBiquad:
    # 1 + a1 + a2 sets the cut-off of a slow filter: the sum itself is rounded, and a1 absorbs the rounding of a2.
    denominator_sum, a2_q27 = round((1.0 + a1 + a2) * _ONE), round(a2 * _ONE)
    b0 = round(denominator_sum / 4)
    return b0, denominator_sum - 2 * b0, b0, denominator_sum - _ONE - a2_q27, a2_q27


def _reading_delays(window: float) -> Array:
    """Return the time from each ADC reading to the end of the window [s], oldest first, shape (16,)."""
    return window * ((OVERSAMPLING - 0.5 - np.arange(OVERSAMPLING)) / OVERSAMPLING)
