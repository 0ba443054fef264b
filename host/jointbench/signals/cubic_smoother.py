"""The five-point cubic smoother, which takes noise and leaves polynomials of the third degree as they are."""

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import SignalError

_INNER = np.array([-3.0, 12.0, 17.0, 12.0, -3.0]) / 35.0
_FIRST = np.array([69.0, 4.0, -6.0, 4.0, -1.0]) / 70.0
_SECOND = np.array([2.0, 27.0, 12.0, -8.0, 2.0]) / 35.0


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
