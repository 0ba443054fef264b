"""Low-passes for the board: Butterworth's design as the whole numbers the board computes with."""

from __future__ import annotations

from typing import cast

import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.biquad import COEFFICIENT_BITS, PASS_THROUGH, Section

SECTIONS = 2
"""How many the board has."""

ONE = 1 << COEFFICIENT_BITS
_LOWEST, _HIGHEST = 1e-3, 0.45
"""Cut-offs as shares of the sample rate. Below, rounding a denominator to Q27 would move the cut-off by more than
1e-4 of it; above, nothing would be left to filter."""


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
