"""Linear filters for recorded signals, and joint velocity and acceleration from measured position.

Filters are the zero-phase Butterworth low-pass, the first-order lag and the Savitzky-Golay smoother; derivatives come
from central differences of filtered positions, or from a Fourier series.

Parallel filtering: tau = W @ pi stays true when the same linear filter is applied to tau and to every column of the
regressor W, because pi is constant. Filtering therefore costs a fit no bias, however strongly it smooths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import cast

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, lazy_njit
from jointbench.errors import SignalError

_SETTLED = 0.01
"""Share of a step (or of the impulse response's norm) that remains when a filter counts as settled."""

_ROUNDING = 1e-16
"""Share of a transient that remains when a filter's memory ends: less than double precision resolves."""

_SMOOTHER_CENTRE = np.array([-3.0, 12.0, 17.0, 12.0, -3.0]) / 35.0
_SMOOTHER_ENDS = np.array([[69.0, 4.0, -6.0, 4.0, -1.0], [4.0, 54.0, 24.0, -16.0, 4.0]]) / 70.0
"""Weights of the five-point cubic smoother, inside and for the first two samples. `scipy.signal.savgol_filter` fits the
ends numerically: over twenty passes four times the rounding error there."""

_COMPILED_FROM = 1 << 16
"""Number of values from which the compiled low-pass repays loading Numba (about a second in a fresh process)."""

_BANDWIDTH_POWER_SHARE = 0.99
"""Share of the velocity's power below the bandwidth. The last percent may be noise and vibration: encoder quantisation
alone holds more than a thousandth of it in slow or coarsely measured motion."""

_MEDIAN_WINDOW = 5
"""Samples of the median filter that bridges a repeated sample and the double step behind it."""

_JUMP_THRESHOLD = 0.25
"""Deviation from the median velocity, as a share of the joint's largest median speed, above which a step is a jump;
encoder steps stay below it in all but the coarsest recordings."""

_SPEED_ROUNDING = 1e-9
"""Median speed, as a share of the largest step, that is only rounding: so coarse an encoder does not show jumps."""


@dataclass(frozen=True)
class LowPass:
    """Butterworth low-pass run forwards and backwards: zero phase, gain |H(f)|² of the single pass.

    Attributes:
        cutoff_Hz: -3 dB frequency of the single pass, -6 dB of the double pass [Hz].
        sample_period: [s].
        order: of the single pass, 1 to 8.

    Raises:
        SignalError: the cut-off is not between 0 and half the sample rate, or the order not 1 to 8.
    """

    cutoff_Hz: float
    sample_period: float
    order: int = 4

    def __post_init__(self) -> None:
        """Reject parameters that SciPy would turn into an unstable or empty filter."""
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
            values: evenly sampled without gaps, shape (n, ...), n > `settling`.

        Returns:
            Filtered values, same shape; edge transients affect the first and last `settling` samples.

        Raises:
            SignalError: too few samples.
        """
        if len(values) <= self.settling:
            raise SignalError(
                f"{len(values)} samples are too few for a low-pass at {self.cutoff_Hz:g} Hz, which needs more than "
                f"{self.settling}; record longer without a gap or raise cutoff_Hz"
            )
        pad = self.settling
        if values.size < _COMPILED_FROM or np.iscomplexobj(values):
            return cast(Array, scipy.signal.sosfiltfilt(self._sos, values, axis=0, padlen=pad))
        columns = values.reshape(len(values), -1)
        padded = np.pad(columns, ((pad, pad), (0, 0)), mode="reflect", reflect_type="odd")
        padded = np.ascontiguousarray(padded, dtype=np.float64)
        _filter_forwards_and_backwards(self._sos, scipy.signal.sosfilt_zi(self._sos), padded)
        return padded[pad:-pad].reshape(values.shape)

    @cached_property
    def settling(self) -> int:
        """Number of samples over which an edge or a step disturbs the result by more than 1 %."""
        half_width = int(np.ceil(4.0 * self.order / (self.cutoff_Hz * self.sample_period)))
        impulse = np.zeros(2 * half_width + 1)
        impulse[half_width] = 1.0
        impulse_response = cast(Array, scipy.signal.sosfiltfilt(self._sos, impulse, padlen=0))
        remaining_energy = np.cumsum(impulse_response[half_width:][::-1] ** 2)[::-1]
        return max(1, int(np.argmax(remaining_energy < _SETTLED**2 * remaining_energy[0])))

    @cached_property
    def memory(self) -> int:
        """Number of samples after which an edge has decayed below rounding; parts of a long log overlap by as many."""
        _, poles, _ = scipy.signal.butter(self.order, self.cutoff_Hz, fs=1.0 / self.sample_period, output="zpk")
        return max(self.settling, int(np.ceil(np.log(_ROUNDING) / np.log(np.abs(poles).max()))))

    @property
    def stride(self) -> int:
        """Decimation factor that keeps two filtered samples per period of the cut-off frequency.

        Filtered white noise is then nearly white again; further samples would only repeat each other.
        """
        return max(1, int(1.0 / (2.0 * self.cutoff_Hz * self.sample_period)))

    @cached_property
    def _sos(self) -> Array:
        return cast(Array, scipy.signal.butter(self.order, self.cutoff_Hz, fs=1.0 / self.sample_period, output="sos"))


@dataclass(frozen=True)
class FirstOrderLag:
    """Causal first-order low-pass, T dy/dt = u - y, exact for an input that is linear between its samples.

    y[k] = a y[k-1] + (1 - c) u[k] + (c - a) u[k-1],  a = exp(-h/T),  c = (1 - a) T/h. Slow signals are delayed by T and
    otherwise unchanged.

    Attributes:
        time_constant: T [s]; 0 leaves the signal as it is.
        sample_period: h [s].

    Raises:
        SignalError: the time constant is negative or not finite, or the sample period not above 0.

    Source: Wu & Gao, J. Harbin Institute of Technology 53(7), 2021 ("inertial filter" of foot forces); first-order hold
    as in Åström & Wittenmark, Computer-Controlled Systems, 1997, sec. 2.9.
    """

    time_constant: float
    sample_period: float

    def __post_init__(self) -> None:
        """Reject a negative or infinite time constant and a sample period that is not positive."""
        if not (0.0 <= self.time_constant < np.inf and 0.0 < self.sample_period < np.inf):
            raise SignalError(
                f"a first-order lag needs a time constant of 0 s or more and a sample period above 0 s; they are "
                f"{self.time_constant:g} s and {self.sample_period:g} s"
            )

    def apply(self, values: Array) -> Array:
        """Filter along axis 0, starting from steady state at the first value.

        Args:
            values: evenly sampled without gaps, shape (n, ...), n >= 1.

        Returns:
            Filtered values, same shape.
        """
        if self.time_constant == 0.0:
            return values.copy()
        a = self._pole
        c = (1.0 - a) * self.time_constant / self.sample_period
        filtered, _ = scipy.signal.lfilter([1.0 - c, c - a], [1.0, -a], values, axis=0, zi=c * values[:1])
        return cast(Array, filtered)

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        return self.time_constant

    @property
    def settling(self) -> int:
        """Number of samples after which 1 % of a step remains."""
        return 0 if self.time_constant == 0.0 else int(np.ceil(log(_SETTLED) / log(self._pole)))

    @property
    def _pole(self) -> float:
        return exp(-self.sample_period / self.time_constant)


def savitzky_golay(values: Array, passes: int = 1) -> Array:
    """Smooth with the five-point cubic Savitzky-Golay filter, several passes in a row.

    y[k] = (-3 x[k-2] + 12 x[k-1] + 17 x[k] + 12 x[k+1] - 3 x[k+2]) / 35; the two samples at each end are those of the
    cubic fitted to the outermost five. The filter is linear, has zero phase, and preserves cubics exactly up to the
    ends. Twenty passes suit torque sampled at 100 Hz.

    Args:
        values: evenly sampled without gaps, shape (n, ...), n >= 5.
        passes: number of passes, 0 for none.

    Returns:
        Smoothed values, same shape.

    Raises:
        SignalError: fewer than five samples, or a negative number of passes.

    Source: Savitzky & Golay, Analytical Chemistry 36(8), 1964; ends as in Hildebrand, Introduction to Numerical
    Analysis, 1974, sec. 7.13.
    """
    if passes < 0:
        raise SignalError(f"passes = {passes} of the five-point smoother must be 0 or more; 20 suit noisy torque")
    if len(values) < 5:
        raise SignalError(f"{len(values)} samples are too few for the five-point smoother; it needs at least 5")
    smoothed = np.array(values, dtype=np.float64)
    for _ in range(passes):
        head, tail = smoothed[:5].copy(), smoothed[-5:][::-1].copy()
        smoothed[2:-2] = sum(c * smoothed[k : len(smoothed) - 4 + k] for k, c in enumerate(_SMOOTHER_CENTRE))
        smoothed[:2] = np.tensordot(_SMOOTHER_ENDS, head, axes=1)
        smoothed[-2:] = np.tensordot(_SMOOTHER_ENDS, tail, axes=1)[::-1]
    return smoothed


def savitzky_golay_gain(cycles_per_sample: Array, passes: int = 1) -> Array:
    """Return the (real) gain of `savitzky_golay` away from the ends.

    H = ((17 + 24 cos w - 6 cos 2w) / 35)**passes, w = 2 pi cycles_per_sample.

    Args:
        cycles_per_sample: frequency times sample period, 0 to 0.5, any shape.
        passes: as in `savitzky_golay`.
    """
    w = 2.0 * np.pi * np.asarray(cycles_per_sample)
    return np.asarray(((17.0 + 24.0 * np.cos(w) - 6.0 * np.cos(2.0 * w)) / 35.0) ** passes)


@lazy_njit
def _filter_forwards_and_backwards(sos: Array, steady_state: Array, values: Array) -> None:
    """Run second-order sections over each column in place, forwards then backwards, from steady state at each end.

    Bit-identical to `scipy.signal.sosfiltfilt(..., padlen=0)`. Kept because a fit filters every column of the
    regressor: 60 000 x 120 values at order 4 take 0.03 s here and 0.4 s in SciPy (one core, one column at a time).

    Args:
        sos: rows b0, b1, b2, 1, a1, a2, shape (n_sections, 6).
        steady_state: section states for a constant input of one (`sosfilt_zi`), shape (n_sections, 2).
        values: shape (n, n_columns), C-contiguous; overwritten.
    """
    n_samples, n_columns = values.shape
    state1, state2 = np.empty((len(sos), n_columns)), np.empty((len(sos), n_columns))
    for backwards in range(2):
        k = (n_samples - 1) * backwards
        for s in range(len(sos)):
            for c in range(n_columns):
                state1[s, c] = steady_state[s, 0] * values[k, c]
                state2[s, c] = steady_state[s, 1] * values[k, c]
        for _ in range(n_samples):
            row = values[k]
            for s in range(len(sos)):
                b0, b1, b2 = sos[s, 0], sos[s, 1], sos[s, 2]
                a1, a2 = sos[s, 4], sos[s, 5]
                z1, z2 = state1[s], state2[s]
                for c in range(n_columns):
                    x = row[c]
                    y = b0 * x + z1[c]
                    z1[c] = b1 * x - a1 * y + z2[c]
                    z2[c] = b2 * x - a2 * y
                    row[c] = y
            k += 1 - 2 * backwards


@dataclass(frozen=True)
class Motion:
    """Joint positions, velocities and accelerations, shape (n, n_joints) each.

    Attributes:
        q: [rad; m for sliding joints].
        dq: [rad/s; m/s].
        ddq: [rad/s²; m/s²].
    """

    q: Array
    dq: Array
    ddq: Array


def smooth_motion(position: Array, low_pass: LowPass) -> Motion:
    """Low-pass positions with zero phase and differentiate them by central differences.

    dq[k] = (q[k+1] - q[k-1]) / 2h,  ddq[k] = (q[k+1] - 2 q[k] + q[k-1]) / h², both of the filtered q, so that the three
    are consistent. At frequency f the differences are too small by (2 pi f h)²/6 and (2 pi f h)²/12 of their value.

    Args:
        position: [rad or m], evenly sampled without gaps, shape (n, n_joints).
        low_pass: the filter; its `sample_period` is h.

    Returns:
        Motion of the same length; edge transients as in `LowPass.apply`.

    Raises:
        SignalError: too few samples for the filter.

    Source: Gautier, Numerical calculation of the base inertial parameters, and later works: "bandpass" derivatives.
    """
    q = low_pass.apply(position)
    dq = np.gradient(q, low_pass.sample_period, axis=0)
    ddq = np.empty_like(q)
    ddq[1:-1] = (q[2:] - 2.0 * q[1:-1] + q[:-2]) / low_pass.sample_period**2
    ddq[0], ddq[-1] = ddq[1], ddq[-2]
    return Motion(q, dq, ddq)


@dataclass(frozen=True, eq=False)
class FourierFit:
    """Fourier series fitted to measured positions.

    Attributes:
        motion: the series and its derivatives at the sample times.
        n_harmonics: number of harmonics L, chosen by the Bayesian information criterion.
        residual_rms: root mean square of measured position minus series [rad or m], shape (n_joints,).
    """

    motion: Motion
    n_harmonics: int
    residual_rms: Array


def fit_fourier_series(
    time: Array, position: Array, valid: NDArray[np.bool_], period: float, *, min_harmonics: int, max_harmonics: int
) -> FourierFit:
    """Fit a Fourier series to periodic positions and differentiate it analytically.

    q(t) = c + sum_{l=1..L} a_l sin(w l t) + b_l cos(w l t),  w = 2 pi / period, by least squares for each joint. A
    servo adds some harmonics to those of the plan, mostly where friction changes sign. L minimises the Bayesian
    information criterion summed over the moving joints, n ln(residual sum of squares) + 2 L ln n each.

    Args:
        time: [s], shape (n,).
        position: [rad or m], shape (n, n_joints).
        valid: samples to fit, shape (n,); the series is evaluated at all samples.
        period: of the first harmonic [s].
        min_harmonics: smallest L, usually that of the planned trajectory.
        max_harmonics: largest L.

    Returns:
        The series at all sample times.

    Raises:
        SignalError: fewer than two valid samples per coefficient, or max_harmonics below min_harmonics.

    Source: Swevers et al., IEEE T-RA 13(5), 1997; Schwarz, Annals of Statistics 6(2), 1978.
    """
    if not 1 <= min_harmonics <= max_harmonics:
        raise SignalError(
            f"min_harmonics = {min_harmonics} and max_harmonics = {max_harmonics} leave no series to choose; "
            f"1 <= min_harmonics <= max_harmonics is needed"
        )
    n_valid = int(valid.sum())
    if n_valid < 2 * (1 + 2 * min_harmonics):
        raise SignalError(f"{n_valid} good samples are too few for {min_harmonics} harmonics; record the whole period")
    max_harmonics = max(min_harmonics, min(max_harmonics, (n_valid // 2 - 1) // 2))
    harmonics = np.arange(min_harmonics, max_harmonics + 1)
    frequencies = 2.0 * np.pi / period * np.arange(1, max_harmonics + 1, dtype=np.float64)

    # One QR factorisation serves every L: the basis of L harmonics is the first 1 + 2 L columns.
    Q, R = np.linalg.qr(_fourier_basis(time[valid], frequencies)[0])
    mean = position[valid].mean(axis=0)
    centred = position[valid] - mean
    projection = Q.T @ centred
    total = np.sum(centred**2, axis=0)
    residual_sum = total - np.cumsum(projection**2, axis=0)[2 * min_harmonics :: 2]

    moving = total > 0.0
    floor = np.finfo(np.float64).eps * total
    log_residual = np.log(np.maximum(residual_sum, floor)[:, moving]).sum(axis=1)
    criterion = n_valid * log_residual + 2.0 * harmonics * np.log(n_valid) * moving.sum()
    n_harmonics = int(harmonics[np.argmin(criterion)])

    n_columns = 1 + 2 * n_harmonics
    coefficients = np.linalg.solve(R[:n_columns, :n_columns], projection[:n_columns])
    q, dq, ddq = (basis @ coefficients for basis in _fourier_basis(time, frequencies[:n_harmonics]))
    residual_rms = np.sqrt(np.mean((q[valid] - centred) ** 2, axis=0))
    return FourierFit(Motion(q + mean, dq, ddq), n_harmonics, residual_rms)


def bandwidth(position: Array, sample_period: float) -> float:
    """Return the frequency [Hz] below which 99 % of the velocity's power lies, averaged over the moving joints.

    Each joint's spectrum is normalised to its own power; joints at rest are left out. Jumps of single samples, as lost
    or repeated samples cause, are replaced by the median velocity first.

    Args:
        position: [rad or m], without gaps, shape (n, n_joints), n >= 3; or segments of a long log, whose power is
            added, shape (n_segments, n, n_joints).
        sample_period: h [s].

    Returns:
        The bandwidth; the frequency resolution 1/(n h) if nothing moves.
    """
    velocity = np.diff(position, axis=-2)
    median = scipy.ndimage.median_filter(velocity, _MEDIAN_WINDOW, mode="mirror", axes=(velocity.ndim - 2,))
    top_speed = np.abs(median).max(axis=-2, keepdims=True)
    resolved = top_speed > _SPEED_ROUNDING * np.abs(velocity).max(axis=-2, keepdims=True)
    jumps = (np.abs(velocity - median) > _JUMP_THRESHOLD * top_speed) & resolved
    n_steps = velocity.shape[-2]
    spectrum = np.fft.rfft(np.where(jumps, median, velocity) * np.hanning(n_steps)[:, None], axis=-2)
    power = (np.abs(spectrum) ** 2).reshape(-1, *spectrum.shape[-2:]).sum(axis=0)
    frequencies = np.fft.rfftfreq(n_steps, sample_period)
    total = power.sum(axis=0)
    moving = total > 0.0
    if not np.any(moving):
        return float(frequencies[1])
    cumulative = np.cumsum((power[:, moving] / total[moving]).mean(axis=1))
    return float(frequencies[max(1, int(np.searchsorted(cumulative, _BANDWIDTH_POWER_SHARE)))])


def _fourier_basis(time: Array, frequencies: Array) -> tuple[Array, Array, Array]:
    """Return the columns 1, sin(w1 t), cos(w1 t), sin(w2 t) ... and their first two derivatives.

    Args:
        time: [s], shape (n,).
        frequencies: w [rad/s], shape (n_harmonics,).

    Returns:
        Three arrays, shape (n, 1 + 2 n_harmonics).
    """
    w = frequencies
    sine, cosine = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    value, first, second = (np.zeros((len(time), 1 + 2 * len(w))) for _ in range(3))
    value[:, 0] = 1.0
    value[:, 1::2], value[:, 2::2] = sine, cosine
    first[:, 1::2], first[:, 2::2] = cosine * w, -sine * w
    second[:, 1::2], second[:, 2::2] = -sine * w**2, -cosine * w**2
    return value, first, second
