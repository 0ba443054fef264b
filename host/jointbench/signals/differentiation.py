"""Velocities and accelerations from measured positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.filters import LowPass

_MOTION_SHARE = 0.99
"""Share of the velocity's power that counts as the motion. The last percent may be noise and vibration: an encoder's
steps alone hold more than a thousandth of it in slow or coarsely measured motion."""

_MEDIAN_OF = 5
"""Samples of the median that tells what is steady beside a doubled sample and the double step behind it."""

_JUMP = 0.25
"""Share of a joint's largest steady speed by which a jump differs from the median; an encoder's steps
stay below in all but the coarsest recordings."""

_ROUNDING = 1e-9
"""Share of the largest step below which the steady speed is rounding: an encoder so coarse tells no steady motion."""


@dataclass(frozen=True)
class Motion:
    """Joint positions and their derivatives, shape (n, n_joints) each [rad, rad/s, rad/s²; or m for sliding joints]."""

    q: Array
    dq: Array
    ddq: Array


def smooth_motion(position: Array, low_pass: LowPass) -> Motion:
    """Positions smoothed without delay, and their derivatives by central differences.

    dq[k] = (q[k+1] - q[k-1]) / 2h and ddq[k] = (q[k+1] - 2 q[k] + q[k-1]) / h², both of the filtered q: one chain
    for all three, so that they belong to each other. At frequency f the differences lack (2 pi f h)²/6 and /12.

    Args:
        position: [rad or m], shape (n, n_joints), sampled evenly and without gaps.
        low_pass: its `sample_period` is h.

    Returns:
        The motion, same length; edges as in `LowPass.apply`.

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


def bandwidth(position: Array, sample_period: float) -> float:
    """Frequency [Hz] below which 99 % of the velocity's power lies, over all joints together.

    Each joint counts alike (its spectrum is scaled to its own power); joints that do not move count nothing. What one
    sample does and the next takes back is no motion: steps of lost or doubled samples are left out.

    Args:
        position: [rad or m], shape (n, n_joints), without gaps, n >= 3; or pieces of a long log, whose power is added,
            shape (n_pieces, n, n_joints).
        sample_period: [s].

    Returns:
        The frequency; the resolution 1/(n h) where nothing moves.
    """
    velocity = np.diff(position, axis=-2)
    steady = scipy.ndimage.median_filter(velocity, _MEDIAN_OF, mode="mirror", axes=(velocity.ndim - 2,))
    fastest = np.abs(steady).max(axis=-2, keepdims=True)
    jumps = (np.abs(velocity - steady) > _JUMP * fastest) & (
        fastest > _ROUNDING * np.abs(velocity).max(axis=-2, keepdims=True)
    )
    velocity = np.where(jumps, steady, velocity) * np.hanning(velocity.shape[-2])[:, None]
    power = np.abs(np.fft.rfft(velocity, axis=-2)) ** 2
    frequencies = np.fft.rfftfreq(velocity.shape[-2], sample_period)
    power = power.reshape(-1, *power.shape[-2:]).sum(axis=0)
    total = power.sum(axis=0)
    moving = total > 0.0
    if not np.any(moving):
        return float(frequencies[1])
    cumulated = np.cumsum((power[:, moving] / total[moving]).mean(axis=1))
    return float(frequencies[max(1, int(np.searchsorted(cumulated, _MOTION_SHARE)))])


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A Fourier series through measured positions.

    Attributes:
        motion: the series and its derivatives at the times of the samples.
        harmonics: how many it has; as many as the data tell from noise, and at least those planned.
        residual: of the positions about it, root mean square per joint [rad or m], shape (n_joints,).
    """

    motion: Motion
    harmonics: int
    residual: Array


def fourier_motion(
    time: Array, position: Array, valid: NDArray[np.bool_], period: float, *, least: int, most: int
) -> FourierMotion:
    """Project positions on a Fourier series, and differentiate that: no noise of differences, no filter.

    q(t) ≈ c + Σ_{l=1..L} a_l sin(ωlt) + b_l cos(ωlt), ω = 2π/period, by least squares for each joint. A servo plays a
    series with some more harmonics than it was given, most of all where friction turns over; L is the one with the
    least Bayesian information criterion over all joints, n ln(residual²) + 2 L ln n each.

    Args:
        time: [s], shape (n,).
        position: [rad or m], shape (n, n_joints).
        valid: samples to use, shape (n,); the series is given at the others too.
        period: of the first harmonic [s].
        least: smallest L, that of the plan.
        most: largest L.

    Returns:
        The series at all times.

    Raises:
        SignalError: fewer than two good samples per coefficient, or `most` below `least`.

    Source: Swevers et al., IEEE T-RA 13(5), 1997; Schwarz, Annals of Statistics 6(2), 1978.
    """
    if not 1 <= least <= most:
        raise SignalError(f"harmonics from {least} to {most} are none to choose from; at least 1 is needed")
    count = int(valid.sum())
    if count < 2 * (1 + 2 * least):
        raise SignalError(f"{count} good samples are too few for {least} harmonics; record the whole period")
    most = max(least, min(most, (count // 2 - 1) // 2))
    frequencies = 2.0 * np.pi / period * np.arange(1, most + 1, dtype=np.float64)
    q, r = np.linalg.qr(_waves(time[valid], frequencies)[0])
    center = position[valid].mean(axis=0)
    about = position[valid] - center
    explained = (q.T @ about) ** 2
    # Columns come as c, then pairs: after pair l, what is left is the total less all before.
    left = np.sum(about**2, axis=0) - np.cumsum(explained, axis=0)[2 * least :: 2]
    moves = np.sum(about**2, axis=0) > 0.0
    floor = np.finfo(np.float64).eps * np.sum(about**2, axis=0)
    orders = np.arange(least, most + 1)
    misfit = np.log(np.maximum(left, floor)[:, moves]).sum(axis=1)
    chosen = int(orders[np.argmin(count * misfit + 2.0 * orders * np.log(count) * moves.sum())])
    kept = 1 + 2 * chosen
    coefficients = np.linalg.solve(r[:kept, :kept], q[:, :kept].T @ about)
    values = [columns @ coefficients for columns in _waves(time, frequencies[:chosen])]
    residual = np.sqrt(np.mean((values[0][valid] - about) ** 2, axis=0))
    return FourierMotion(Motion(values[0] + center, values[1], values[2]), chosen, residual)


def _waves(time: Array, frequencies: Array) -> tuple[Array, Array, Array]:
    """One, and sine and cosine of each frequency in turn, with two derivatives, shape (n, 1 + 2 n_frequencies)."""
    angle = np.outer(time, frequencies)
    sine, cosine = np.sin(angle), np.cos(angle)
    turns = (
        (sine, cosine),
        (cosine * frequencies, -sine * frequencies),
        (-sine * frequencies**2, -cosine * frequencies**2),
    )
    columns: list[Array] = []
    for derivative, (first, second) in enumerate(turns):
        values = np.empty((len(time), 1 + 2 * len(frequencies)))
        values[:, 0] = derivative == 0
        values[:, 1::2], values[:, 2::2] = first, second
        columns.append(values)
    return columns[0], columns[1], columns[2]
