"""What the board did to the motor current before it sent it, done again to the regressor's columns."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import signal

from jointbench.robot import Array


@dataclass(frozen=True)
class BoardFilter:
    """The board's path from motor current to sample: the mean over the ADC's window, then one biquad.

    The ADC's samples span the window that ends at the tick, so the decimated sample is the mean current over it: for
    a window of one tick the mean of the values at both its ends, up to (2 pi f h)²/12. A fit that ignores this delay of
    half a tick and the biquad's lag would find too much inertia.

    Attributes:
        numerator, denominator: b and a of the biquad as quantised on the board; ((1,), (1,)) for none.
        window: ADC window in sample periods, 0 (a sample in an instant) to 1.
    """

    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    window: float

    def apply(self, values: Array) -> Array:
        """Filter causally along axis 0, at rest at the first value before it began.

        Args:
            values: shape (n, ...), at the board's sample rate.

        Returns:
            The values as the board would have sent them, same shape.
        """
        mean = values.copy()
        mean[1:] += 0.5 * self.window * (values[:-1] - values[1:])
        if len(self.numerator) == len(self.denominator) == 1:
            return mean * (self.numerator[0] / self.denominator[0])
        state = np.asarray(signal.lfilter_zi(self.numerator, self.denominator))
        shape = (-1,) + (1,) * (mean.ndim - 1)
        start = state.reshape(shape) * mean[:1]
        filtered, _ = signal.lfilter(self.numerator, self.denominator, mean, axis=0, zi=start)
        return cast(Array, filtered)

    @property
    def gain(self) -> float:
        """Gain at standstill: 1 up to the quantisation of the coefficients."""
        return sum(self.numerator) / sum(self.denominator)
