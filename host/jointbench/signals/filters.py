"""Linear filters for torque and regressor columns alike: zero-phase low-pass, inertial filter, five-point smoother."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import Any, cast

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.lazy_numba import compiled

_FADED = 0.01
"""The filter has settled where the rest of its impulse response has this share of the whole one's norm."""

_GONE = 1e-16
"""An edge is forgotten where the slowest part of the response to it has this share left: less than rounding."""

_MANY = 1 << 16
"""Values from which on compiled loops are worth the second that it takes to load what compiles them."""

_INNER = np.array([-3.0, 12.0, 17.0, 12.0, -3.0]) / 35.0

_FIRST = np.array([69.0, 4.0, -6.0, 4.0, -1.0]) / 70.0

_SECOND = np.array([2.0, 27.0, 12.0, -8.0, 2.0]) / 35.0


@dataclass(frozen=True)
class LowPass:
    """A Butterworth low-pass run forwards and backwards, so that it delays nothing (|H|² of the single pass).

    Parallel filtering: tau = W pi stays true when this one filter is applied to tau and to every column of W,
    because the filter is linear and pi is constant. So it costs a fit no bias, however much it smooths.

    Attributes:
        cutoff_Hz: where the single pass has -3 dB (and the double pass -6 dB).
        sample_period: [s].
        order: of the single pass.

    Raises:
        SignalError: the cut-off is not between 0 and half the sample rate, or the order not 1..8.
    """

    cutoff_Hz: float
    sample_period: float
    order: int = 4

    def __post_init__(self) -> None:
        """Refuse what scipy would turn into an unstable or an empty filter."""
        nyquist = 0.5 / self.sample_period
        if not 0.0 < self.cutoff_Hz < nyquist:
            raise SignalError(
                f"cut-off {self.cutoff_Hz:g} Hz must be above 0 and below half the sample rate, {nyquist:g} Hz; "
                f"set cutoff_Hz between them"
            )
        if not 1 <= self.order <= 8:
            raise SignalError(f"filter order {self.order} must be 1 to 8; 4 suits most recordings")

    def apply(self, values: Array) -> Array:
        """Filter along axis 0.

        Args:
            values: shape (n, ...), n above `settling`.

        Returns:
            The filtered values, same shape; the first and last `settling` of them feel the edge.

        Raises:
            SignalError: too few samples.
        """
        if len(values) <= self.settling:
            raise SignalError(
                f"{len(values)} samples are too few for a low-pass at {self.cutoff_Hz:g} Hz, which needs more than "
                f"{self.settling}; record longer without a gap or raise cutoff_Hz"
            )
        if values.size < _MANY or np.iscomplexobj(values):
            return cast(Array, scipy.signal.sosfiltfilt(self._sections, values, axis=0, padlen=self.settling))
        pad, columns = self.settling, values.reshape(len(values), -1)
        longer = np.empty((len(values) + 2 * pad, columns.shape[1]))
        longer[pad:-pad] = columns
        longer[:pad] = 2.0 * columns[0] - columns[pad:0:-1]
        longer[-pad:] = 2.0 * columns[-1] - columns[-2 : -pad - 2 : -1]
        forwards_and_backwards(self._sections, self._steady, longer)
        return longer[pad:-pad].reshape(values.shape)

    @property
    def settling(self) -> int:
        """How many samples away an edge (or a step) is still felt, at the level of 1 %."""
        return self._settling

    @property
    def memory(self) -> int:
        """How many samples away an edge is not felt at all, but for rounding: where a long log may be cut to pieces."""
        return max(self.settling, int(np.ceil(np.log(_GONE) / np.log(self._slowest_pole))))

    @property
    def stride(self) -> int:
        """Keep every stride-th filtered sample: two per period of the cut-off.

        White noise through the filter is then nearly white again; more samples would only repeat each other.
        """
        return max(1, int(1.0 / (2.0 * self.cutoff_Hz * self.sample_period)))

    @cached_property
    def _sections(self) -> Any:
        return scipy.signal.butter(self.order, self.cutoff_Hz, fs=1.0 / self.sample_period, output="sos")

    @cached_property
    def _steady(self) -> Array:
        return cast(Array, scipy.signal.sosfilt_zi(self._sections))

    @cached_property
    def _slowest_pole(self) -> float:
        _, poles, _ = scipy.signal.butter(self.order, self.cutoff_Hz, fs=1.0 / self.sample_period, output="zpk")
        return float(np.abs(poles).max())

    @cached_property
    def _settling(self) -> int:
        length = int(np.ceil(4.0 * self.order / (self.cutoff_Hz * self.sample_period)))
        impulse = np.zeros(2 * length + 1)
        impulse[length] = 1.0
        response = cast(Array, scipy.signal.sosfiltfilt(self._sections, impulse, padlen=0))
        energy = np.cumsum(response[length:][::-1] ** 2)[::-1]
        return max(1, int(np.argmax(energy < _FADED**2 * energy[0])))


@dataclass(frozen=True)
class InertialFilter:
    """A causal first-order low-pass, y' = (u - y) / time_constant, exact where u runs straight between its samples.

    y[k] = a y[k-1] + (1 - c) u[k] + (c - a) u[k-1] with a = exp(-h/T) and c = (1 - a) T/h. Slow signals come out later
    by exactly T, and unchanged. What is fitted to them goes through the same filter, which is linear: so it costs no
    bias at any frequency, and T only says when a row happened.

    Attributes:
        time_constant: T [s]; 0 lets everything pass as it is.
        sample_period: h [s].

    Raises:
        SignalError: the time constant is negative or not finite, or the sample period not above 0.

    Source: Wu & Gao, J. Harbin Institute of Technology 53(7), 2021, filter forces so; the first-order hold as in
    Åström & Wittenmark, Computer-Controlled Systems, 1997, sec. 2.9.
    """

    time_constant: float
    sample_period: float

    def __post_init__(self) -> None:
        """Refuse what is no filter."""
        if not (0.0 <= self.time_constant < np.inf and 0.0 < self.sample_period < np.inf):
            raise SignalError(
                f"an inertial filter needs a time constant of 0 s or more and a sample period above 0 s; they are "
                f"{self.time_constant:g} s and {self.sample_period:g} s"
            )

    def apply(self, values: Array) -> Array:
        """Filter along axis 0, at rest at the first value before it began.

        Args:
            values: evenly sampled without gaps, shape (n, ...), n >= 1.

        Returns:
            The filtered values, same shape.
        """
        if self.time_constant == 0.0:
            return values.copy()
        kept, mean = self._kept, (1.0 - self._kept) * self.time_constant / self.sample_period
        forward, feedback = [1.0 - mean, mean - kept], [1.0, -kept]
        filtered, _ = scipy.signal.lfilter(forward, feedback, values, axis=0, zi=mean * values[:1])
        return cast(Array, filtered)

    @property
    def delay(self) -> float:
        """By how much slow signals come out later [s]."""
        return self.time_constant

    @property
    def settling(self) -> int:
        """After how many samples 1 % of what was before is left."""
        return 0 if self.time_constant == 0.0 else int(np.ceil(log(_FADED) / log(self._kept)))

    @property
    def _kept(self) -> float:
        return exp(-self.sample_period / self.time_constant)


def cubic_smooth(values: Array, passes: int = 1) -> Array:
    """Smooth by the cubic that fits each five neighbours best, several passes in a row.

    y_k = (-3 x_{k-2} + 12 x_{k-1} + 17 x_k + 12 x_{k+1} - 3 x_{k+2}) / 35; the first and last two samples are those of
    the cubic through the five outermost. It delays nothing, is linear, and keeps every cubic exactly, up to the ends.
    So it may be applied to torque and regressor columns alike. Twenty passes suit torque sampled at 100 Hz.

    Args:
        values: evenly spaced, without gaps, shape (n, ...), n >= 5.
        passes: how often, 0 for not at all.

    Returns:
        The smoothed values, same shape.

    Raises:
        SignalError: fewer than five samples, or a negative number of passes.

    Source: Savitzky & Golay, Analytical Chemistry 36(8), 1964, and for the ends Hildebrand, Introduction to Numerical
    Analysis, 1974, sec. 7.13.
    """
    if passes < 0:
        raise SignalError(f"passes = {passes} of the five-point smoother must be 0 or more; 20 suit noisy torque")
    if len(values) < 5:
        raise SignalError(f"{len(values)} samples are too few for the five-point smoother; it needs at least 5")
    smooth = np.array(values, dtype=np.float64)
    for _ in range(passes):
        inner = sum(weight * smooth[k : len(smooth) - 4 + k] for k, weight in enumerate(_INNER))
        head, tail = smooth[:5].copy(), smooth[-5:][::-1].copy()
        smooth[2:-2] = inner
        for end, five in ((smooth, head), (smooth[::-1], tail)):
            end[0], end[1] = np.tensordot(_FIRST, five, axes=1), np.tensordot(_SECOND, five, axes=1)
    return smooth


def cubic_smoother_gain(cycles: Array, passes: int = 1) -> Array:
    """Gain of the smoother away from the ends; it is real, for nothing is delayed.

    Args:
        cycles: frequency times sample period, within 0..0.5.
        passes: as of `cubic_smooth`.
    """
    angle = 2.0 * np.pi * np.asarray(cycles)
    return np.asarray(((17.0 + 24.0 * np.cos(angle) - 6.0 * np.cos(2.0 * angle)) / 35.0) ** passes)


@compiled
def forwards_and_backwards(sections: Array, steady: Array, values: Array) -> None:
    """Filter columns in place, forwards and then backwards, each time at rest at the first value before.

    To the bit what SciPy's `sosfiltfilt` makes of them without padding, in a seventh of its time: all columns of a row
    are worked off beside each other.

    Args:
        sections: b0, b1, b2, 1, a1, a2 of each, shape (n_sections, 6).
        steady: their states when the input has always been 1, shape (n_sections, 2).
        values: shape (n, n_columns), C-contiguous.
    """
    n, width = values.shape
    first, second = np.empty((len(sections), width)), np.empty((len(sections), width))
    for backwards in range(2):
        at = (n - 1) * backwards
        for s in range(len(sections)):
            for c in range(width):
                first[s, c] = steady[s, 0] * values[at, c]
                second[s, c] = steady[s, 1] * values[at, c]
        for _ in range(n):
            row = values[at]
            for s in range(len(sections)):
                b0, b1, b2 = sections[s, 0], sections[s, 1], sections[s, 2]
                a1, a2 = sections[s, 4], sections[s, 5]
                one, two = first[s], second[s]
                for c in range(width):
                    x = row[c]
                    y = b0 * x + one[c]
                    one[c] = b1 * x - a1 * y + two[c]
                    two[c] = b2 * x - a2 * y
                    row[c] = y
            at += 1 - 2 * backwards
