"""Integer twins of the board's current filters: boxcar, CIC and second-order sections.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.lazy_numba import compiled
from jointbench.signals.board_filter import OVERSAMPLES, Section

CENTRE = 2048
"""What the 12-bit converter reads at no current."""

Integers = NDArray[np.int64]

_EXTRA_BITS = 4  # 256 samples' worth of weight, but 16 samples' worth of scale

_RISING = np.arange(1, OVERSAMPLES + 1, dtype=np.int64)


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


def boxcar(samples: NDArray[np.integer[Any]]) -> Integers:
    """Decimated samples x = Σ s_i - 16·2048, as the board has them.

    Args:
        samples: 12-bit ADC samples, oldest first, shape (n, 16).

    Returns:
        Centred sums, -32768 to 32752, shape (n,).
    """
    return np.einsum("ij->i", samples, dtype=np.int64) - OVERSAMPLES * CENTRE  # quicker than sum over short rows


@dataclass
class Cic:
    """The board's decimator of order 2; it goes on from where the last block left it.

    t = A_before + (16 S - A) - 256·2048 + r,  x = t >> 4,  r = t & 15,  with S = Σ s_i and A = Σ i s_i of a block. The
    remainder goes into the next tick, so that cutting off four bits costs no bias.

    Attributes:
        before: A of the block before.
        remainder: r, 0 to 15.
    """

    before: int = 0
    remainder: int = 0

    def run(self, samples: NDArray[np.integer[Any]]) -> Integers:
        """Decimated samples.

        Args:
            samples: 12-bit ADC samples, oldest first, shape (n, 16), n >= 1.

        Returns:
            Centred values on the scale of sums of 16, -32768 to 32752 (the first after a start knows half its weight),
            shape (n,).
        """
        rising = np.einsum("ij,j->i", samples, _RISING, dtype=np.int64)
        both = np.concatenate([[self.before], rising[:-1]]) - rising + OVERSAMPLES * boxcar(samples)
        # Remainders that are handed on: all that came so far, without what was given out already.
        total = np.concatenate([[self.remainder], self.remainder + np.cumsum(both)])
        self.before, self.remainder = int(rising[-1]), int(total[-1] % 2**_EXTRA_BITS)
        return np.diff(total >> _EXTRA_BITS)
