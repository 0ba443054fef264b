"""The first-order low-pass of an inertia, as foot forces go through it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import cast

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import Array
from jointbench.errors import SignalError

_FADED = 0.01
"""The filter has settled where this share of a step is left."""


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
