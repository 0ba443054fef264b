"""Sines and cosines of a Fourier series with all their derivatives."""

import numpy as np

from jointbench.arrays import Array


def orders_of(harmonics: int | tuple[int, ...]) -> Array:
    """Multiples of the base frequency: 1 to n for a number n, otherwise those chosen; shape (n_harmonics,)."""
    chosen = range(1, harmonics + 1) if isinstance(harmonics, int) else harmonics
    return np.array(chosen, dtype=np.float64)


def repeats_within(harmonics: int | tuple[int, ...]) -> int:
    """How often a series comes within its period: more than once where all its harmonics have a common divisor."""
    return int(np.gcd.reduce(orders_of(harmonics).astype(np.int64)))


def in_words(harmonics: int | tuple[int, ...]) -> str:
    """Say which harmonics: '5 harmonics', or 'harmonics 1, 2, 3, 5, 7' where they were chosen."""
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
