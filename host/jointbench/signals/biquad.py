"""Second-order sections in a row, as the board computes them: 16-bit signals, Q27 coefficients, 32-bit arithmetic.

A coefficient c is split into hi·2¹³ + lo, so that all products fit 32 bits. A section's output is rounded to 16 bits,
but its error e goes back through the denominator: the recursion goes on with 14 bits more than it gives out, and the
rounding of a slow filter is not amplified by its poles.

    low = Σ lo·v + 2¹² - ((hi_a1 e1 + hi_a2 e2) >> 1)
    acc = Σ hi·v + (low >> 13)                          v: x, x1, x2, -y1, -y2 for b0, b1, b2, a1, a2
    t   = (acc + 2¹³) >> 14,  e = acc - t·2¹⁴,  y = t, at most 16 bits of it

Sums wrap at 32 bits, which a filter without overshoot above four times full scale never notices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.lazy_numba import compiled
from jointbench.signals.boxcar import Integers

Section = tuple[int, int, int, int, int]
"""b0, b1, b2, a1, a2 of one section in Q27, as registers hold them; a0 is 1."""

BiquadCoefficients = tuple[tuple[float, float, float], tuple[float, float, float]]
"""(b, a) of one section as numbers, a[0] = 1."""

COEFFICIENT_BITS = 27
PASS_THROUGH: Section = (1 << COEFFICIENT_BITS, 0, 0, 0, 0)


@dataclass
class Biquads:
    """The board's filter on one signal; it goes on from where the last block left it.

    Attributes:
        sections: in their order.
        delayed: the last two values of the input and of each section's output, newest first, (n_sections + 1, 2).
        errors: the last two rounding errors of each section, newest first, Q14, shape (n_sections, 2).
    """

    sections: tuple[Section, ...]
    delayed: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    errors: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def __post_init__(self) -> None:
        """At rest at zero where no other state was given."""
        if not len(self.delayed):
            self.delayed = np.zeros((len(self.sections) + 1, 2), np.int64)
        if not len(self.errors):
            self.errors = np.zeros((len(self.sections), 2), np.int64)

    def run(self, values: NDArray[np.integer[Any]]) -> Integers:
        """Filtered values.

        Args:
            values: -32768 to 32767, shape (n,).

        Returns:
            The same range and shape.
        """
        coefficients = np.array(self.sections, dtype=np.int64)
        return _run(np.ascontiguousarray(values, dtype=np.int64), coefficients, self.delayed, self.errors)


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


@compiled
def _run(values: Integers, sections: Integers, delayed: Integers, errors: Integers) -> Integers:
    out = np.empty_like(values)
    for k in range(len(values)):
        v = values[k]
        for s in range(len(sections)):
            b0, b1, b2, a1, a2 = sections[s]
            x1, x2 = delayed[s]
            y1, y2 = delayed[s + 1]
            back = (a1 >> 13) * errors[s, 0] + (a2 >> 13) * errors[s, 1]
            low = (b0 & 8191) * v + (b1 & 8191) * x1 + (b2 & 8191) * x2 - (a1 & 8191) * y1 - (a2 & 8191) * y2
            acc = (b0 >> 13) * v + (b1 >> 13) * x1 + (b2 >> 13) * x2 - (a1 >> 13) * y1 - (a2 >> 13) * y2
            acc += (low + 4096 - (back >> 1)) >> 13
            t = (((acc + 8192 + 2**31) & 0xFFFFFFFF) - 2**31) >> 14
            errors[s, 1] = errors[s, 0]
            errors[s, 0] = ((acc + 8192) & 16383) - 8192
            delayed[s, 1] = x1
            delayed[s, 0] = v
            v = min(max(t, -32768), 32767)
        delayed[-1, 1] = delayed[-1, 0]
        delayed[-1, 0] = v
        out[k] = v
    return out
