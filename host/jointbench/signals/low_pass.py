"""The zero-phase low-pass that smooths positions, torques and regressor columns alike."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.zero_phase import forwards_and_backwards

_FADED = 0.01
"""The filter has settled where the rest of its impulse response has this share of the whole one's norm."""

_GONE = 1e-16
"""An edge is forgotten where the slowest part of the response to it has this share left: less than rounding."""

_MANY = 1 << 16
"""Values from which on compiled loops are worth the second that it takes to load what compiles them."""


@dataclass(frozen=True)
class LowPass:
    """A Butterworth low-pass run forwards and backwards, so that it delays nothing (|H|² of the single pass).

    Parallel filtering: tau = W pi stays true when this one filter is applied to tau and to every column of W,
    because the filter is linear and pi is constant. So it costs a fit no bias, however much it smooths.

    Attributes:
        cutoff_Hz: where the single pass has -3 dB (and the double pass -6 dB).
        sample_period: [s].
        order: of the single pass.

    Raises:
        SignalError: the cut-off is not between 0 and half the sample rate, or the order not 1..8.
    """

    cutoff_Hz: float
    sample_period: float
    order: int = 4

    def __post_init__(self) -> None:
        """Refuse what scipy would turn into an unstable or an empty filter."""
        nyquist = 0.5 / self.sample_period
        if not 0.0 < self.cutoff_Hz < nyquist:
            raise SignalError(
                f"cut-off {self.cutoff_Hz:g} Hz must be above 0 and below half the sample rate, {nyquist:g} Hz; "
                f"set cutoff_Hz between them"
            )
        if not 1 <= self.order <= 8:
            raise SignalError(f"filter order {self.order} must be 1 to 8; 4 suits most recordings")

    def apply(self, values: Array) -> Array:
        """Filter along axis 0.

        Args:
            values: shape (n, ...), n above `settling`.

        Returns:
            The filtered values, same shape; the first and last `settling` of them feel the edge.

        Raises:
            SignalError: too few samples.
        """
        if len(values) <= self.settling:
            raise SignalError(
                f"{len(values)} samples are too few for a low-pass at {self.cutoff_Hz:g} Hz, which needs more than "
                f"{self.settling}; record longer without a gap or raise cutoff_Hz"
            )
        if values.size < _MANY or np.iscomplexobj(values):
            return cast(Array, scipy.signal.sosfiltfilt(self._sections, values, axis=0, padlen=self.settling))
        pad, columns = self.settling, values.reshape(len(values), -1)
        longer = np.empty((len(values) + 2 * pad, columns.shape[1]))
        longer[pad:-pad] = columns
        longer[:pad] = 2.0 * columns[0] - columns[pad:0:-1]
        longer[-pad:] = 2.0 * columns[-1] - columns[-2 : -pad - 2 : -1]
        forwards_and_backwards(self._sections, self._steady, longer)
        return longer[pad:-pad].reshape(values.shape)

    @property
    def settling(self) -> int:
        """How many samples away an edge (or a step) is still felt, at the level of 1 %."""
        return self._settling

    @property
    def memory(self) -> int:
        """How many samples away an edge is not felt at all, but for rounding: where a long log may be cut to pieces."""
        return max(self.settling, int(np.ceil(np.log(_GONE) / np.log(self._slowest_pole))))

    @property
    def stride(self) -> int:
        """Keep every stride-th filtered sample: two per period of the cut-off.

        White noise through the filter is then nearly white again; more samples would only repeat each other.
        """
        return max(1, int(1.0 / (2.0 * self.cutoff_Hz * self.sample_period)))

    @cached_property
    def _sections(self) -> Any:
        return scipy.signal.butter(self.order, self.cutoff_Hz, fs=1.0 / self.sample_period, output="sos")

    @cached_property
    def _steady(self) -> Array:
        return cast(Array, scipy.signal.sosfilt_zi(self._sections))

    @cached_property
    def _slowest_pole(self) -> float:
        _, poles, _ = scipy.signal.butter(self.order, self.cutoff_Hz, fs=1.0 / self.sample_period, output="zpk")
        return float(np.abs(poles).max())

    @cached_property
    def _settling(self) -> int:
        length = int(np.ceil(4.0 * self.order / (self.cutoff_Hz * self.sample_period)))
        impulse = np.zeros(2 * length + 1)
        impulse[length] = 1.0
        response = cast(Array, scipy.signal.sosfiltfilt(self._sections, impulse, padlen=0))
        energy = np.cumsum(response[length:][::-1] ** 2)[::-1]
        return max(1, int(np.argmax(energy < _FADED**2 * energy[0])))
