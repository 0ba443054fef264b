"""Velocities and accelerations from what is known of the motion: that it is a Fourier series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.motion import Motion


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
