"""What a board did to current and torque before it sent them, done again to the regressor's columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import SignalError
from jointbench.signals.biquad import BiquadCoefficients, section_delay, section_response
from jointbench.signals.boxcar import boxcar_taps
from jointbench.signals.cic import cic_taps
from jointbench.signals.taps import Taps

_GONE = 1e-16
"""Share of what was before that is left in the slowest section: less than rounding."""


@dataclass(frozen=True, kw_only=True)
class BoardFilter:
    """A board's path from the motor current, or the joint's torque, to a sample: decimator, then second-order sections.

    A fit that ignored its delay of half a tick and the sections' lag would find too much inertia. Rounding to whole
    numbers is no part of it: that is noise (see `Biquads` for the board's own numbers).

    Attributes:
        sections: in their order, as quantised on the board; may be empty.
        cic_order: of the decimator, 1 the mean over a window, 2 the triangle over two of them.
        window: of the ADC, ends at the tick [s]; 0 for a sample in an instant.
        sample_period: from tick to tick [s].

    Raises:
        SignalError: another order, or a window longer than a tick.
    """

    sections: tuple[BiquadCoefficients, ...]
    cic_order: int
    window: float
    sample_period: float

    def __post_init__(self) -> None:
        """Refuse what no board does."""
        if self.cic_order not in (1, 2):
            raise SignalError(f"adc.cic_order {self.cic_order} is not known; a board's decimator has order 1 or 2")
        if not 0.0 <= self.window <= self.sample_period:
            raise SignalError(
                f"adc.window {self.window:g} s must be from 0 to the tick, {self.sample_period:g} s; "
                f"correct the fact in the board's config.json"
            )

    def apply(self, values: Array) -> Array:
        """Filter along axis 0, at rest at the first value before it began.

        Args:
            values: at the ticks, shape (n, ...), n >= 1.

        Returns:
            The values as the board would have sent them, same shape; the last one guesses how its tick went on.
        """
        mean = self._decimator.apply(values, self.sample_period)
        if not self.sections:
            return mean
        sos = np.array([(*b, *a) for b, a in self.sections])
        state = np.asarray(scipy.signal.sosfilt_zi(sos)).reshape(len(sos), 2, *(1,) * (mean.ndim - 1))
        filtered, _ = scipy.signal.sosfilt(sos, mean, axis=0, zi=state * mean[:1])
        return cast(Array, filtered)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """H(f) from a signal that goes on in time to the samples of it, exact at any frequency.

        Args:
            frequency: [Hz], shape (n,).
        """
        cycles = np.asarray(frequency) * self.sample_period
        sections = [section_response(np.array(b), np.array(a), cycles) for b, a in self.sections]
        return prod(sections, start=self._decimator.response(frequency))

    @property
    def memory(self) -> int:
        """How many ticks after the first value what was before it is forgotten, but for rounding."""
        slowest = max((float(np.abs(np.roots(a)).max()) for _, a in self.sections), default=0.0)
        taps = self._decimator.delays.max() / self.sample_period
        return int(np.ceil(taps)) + 2 + (int(np.ceil(np.log(_GONE) / np.log(slowest))) if slowest > 0.0 else 0)

    @property
    def gain(self) -> float:
        """Gain at rest: exactly one where the host designed the filter."""
        return prod(sum(b) / sum(a) for b, a in self.sections)

    @property
    def delay(self) -> float:
        """Delay of slow signals [s]."""
        late = sum(section_delay(np.array(b), np.array(a)) for b, a in self.sections)
        return self._decimator.delay + late * self.sample_period

    @property
    def _decimator(self) -> Taps:
        if self.cic_order == 1:
            return boxcar_taps(self.window)
        return cic_taps(self.window, self.sample_period)
