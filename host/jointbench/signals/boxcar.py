"""The plain mean of a tick's ADC samples: the decimator of order 1, as the board computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.signals.taps import Taps

OVERSAMPLES = 16
"""ADC samples between two ticks."""

CENTRE = 2048
"""What the 12-bit converter reads at no current."""

Integers = NDArray[np.int64]


def boxcar(samples: NDArray[np.integer[Any]]) -> Integers:
    """Decimated samples x = Σ s_i - 16·2048, as the board has them.

    Args:
        samples: 12-bit ADC samples, oldest first, shape (n, 16).

    Returns:
        Centred sums, -32768 to 32752, shape (n,).
    """
    return np.einsum("ij->i", samples, dtype=np.int64) - OVERSAMPLES * CENTRE  # quicker than sum over short rows


def boxcar_taps(window: float) -> Taps:
    """The instants whose mean it is: the middles of 16 equal parts of the ADC's window, which ends at the tick.

    H(f) = exp(-iπ f w) sin(π f w) / (16 sin(π f w / 16)), and its delay is w/2.

    Args:
        window: w [s].
    """
    return Taps(np.full(OVERSAMPLES, 1.0 / OVERSAMPLES), window * before_the_end())


def before_the_end() -> NDArray[np.float64]:
    """How far before the window's end its samples lie, as shares of the window, oldest first."""
    return (OVERSAMPLES - 0.5 - np.arange(OVERSAMPLES)) / OVERSAMPLES
