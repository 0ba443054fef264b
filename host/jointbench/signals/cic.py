"""The triangular mean over the ADC samples of two ticks: the decimator of order 2, as the board computes it.

A cascade of two integrators and two combs (CIC) gives the same weights. Its zeros at multiples of the tick rate are
double: what the sampling would fold down to slow frequencies is damped by twice as many decibels as by the plain mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.signals.boxcar import OVERSAMPLES, Integers, before_the_end, boxcar
from jointbench.signals.taps import Taps

_GAIN = OVERSAMPLES**2
_EXTRA_BITS = 4  # 256 samples' worth of weight, but 16 samples' worth of scale
_RISING = np.arange(1, OVERSAMPLES + 1, dtype=np.int64)


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


def cic_taps(window: float, period: float) -> Taps:
    """The instants whose weighted mean it is: those of this tick's window and of the one before.

    Where the window fills the tick, H is the square of the plain mean's but for its delay, (1 + 1/32) ticks in all.

    Args:
        window: of the ADC, ends at the tick [s].
        period: from tick to tick [s].
    """
    late = window * before_the_end()
    weights = np.concatenate([_RISING, OVERSAMPLES - _RISING]) / _GAIN
    return Taps(weights, np.concatenate([period + late, late]))
