"""Joint velocity and acceleration from measured position: central differences, Fourier series, and motion bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.filters import LowPass

_BANDWIDTH_POWER_SHARE = 0.99
"""Share of the velocity's power below the bandwidth. The last percent may be noise and vibration: encoder quantisation
alone holds more than a thousandth of it in slow or coarsely measured motion."""

_MEDIAN_WINDOW = 5
"""Samples of the median filter that bridges a repeated sample and the double step behind it."""

_JUMP_THRESHOLD = 0.25
"""Deviation from the median velocity, as a share of the joint's largest median speed, above which a step is a jump;
encoder steps stay below it in all but the coarsest recordings."""

_ROUNDING = 1e-9
"""Median speed, as a share of the largest step, that is only rounding: so coarse an encoder does not show jumps."""


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
    resolved = top_speed > _ROUNDING * np.abs(velocity).max(axis=-2, keepdims=True)
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
