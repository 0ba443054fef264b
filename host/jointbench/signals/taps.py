"""A weighted mean over instants before a tick: what sampling and decimating do to a signal that goes on in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array


@dataclass(frozen=True, eq=False)
class Taps:
    """y(t) = Σ weight_j x(t - delay_j).

    Attributes:
        weights: shape (n,), sum 1.
        delays: how long before the tick each instant lies [s], none negative, shape (n,).
    """

    weights: Array
    delays: Array

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        return float(self.weights @ self.delays)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """H(f) = Σ weight_j exp(-2πi f delay_j), exact at any frequency.

        Args:
            frequency: [Hz], shape (n,).
        """
        return cast(NDArray[np.complex128], np.exp(-2j * np.pi * np.outer(frequency, self.delays)) @ self.weights)

    def apply(self, values: Array, period: float) -> Array:
        """The mean of a signal of which only the values at the ticks are known.

        Between ticks it runs along the cubic through its four nearest values, which at frequency f is wrong by about
        (2 pi f h)⁴/65; before the first value it rested, after the last it goes on as it came.

        Args:
            values: along axis 0, shape (n, ...), n >= 1.
            period: h, from one value to the next [s].

        Returns:
            The means at the same ticks, same shape.
        """
        weights = self._of_ticks(period)
        after = 2.0 * values[-1:] - values[-2:-1] if len(values) > 1 else values
        before = np.repeat(values[:1], len(weights) - 2, axis=0)
        known = np.concatenate([before, values, after])
        mean = np.zeros_like(values)
        for lag, weight in enumerate(weights):  # the first of them is the tick to come
            start = len(weights) - 1 - lag
            mean += weight * known[start : start + len(values)]
        return mean

    def _of_ticks(self, period: float) -> Array:
        """Weights of the values at ticks -1 (the one to come), 0, 1, 2 … before."""
        late = self.delays / period
        whole = np.floor(late).astype(np.int64)
        f = late - whole  # of the way from a tick to the one before it
        cubic = (
            f * (f - 1.0) * (f - 2.0) / -6.0,
            (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0,
            (f + 1.0) * f * (f - 2.0) / -2.0,
            (f + 1.0) * f * (f - 1.0) / 6.0,
        )
        weights = np.zeros(int(whole.max()) + 4)
        for place, share in enumerate(cubic):
            np.add.at(weights, whole + place, self.weights * share)
        return weights
