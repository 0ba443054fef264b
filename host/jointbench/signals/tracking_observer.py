"""Velocity from encoder counts by an alpha-beta tracking observer, as the board computes it.

The board keeps an estimate of position and velocity, lets it run on for a tick, and corrects both by what the encoder
then says otherwise: the position by alpha of the difference e, the velocity by beta of it. All is linear but for a
clamp of e, which only a difference above 4096 counts meets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.lazy_numba import compiled
from jointbench.signals.biquad import section_delay, section_response
from jointbench.signals.boxcar import Integers

_ALPHA_ONE, _BETA_ONE = 1 << 8, 1 << 12


@dataclass
class TrackingObserver:
    """The board's observer; it goes on from where the last block left it.

    e += (move << 8) - (v >> 4), held within 2²⁰;  v += e beta >> 8;  e -= e alpha >> 8;  v is Q12, v >> 4 is given out.

    Attributes:
        alpha: gain on position, Q8, 1 to 256.
        beta: gain on velocity, Q12, 1 to 1023.
        counter: last reading of the 16-bit counter.
        velocity: v [counts/tick, Q12].
        innovation: e [counts, Q8].
    """

    alpha: int
    beta: int
    counter: int = 0
    velocity: int = 0
    innovation: int = 0

    def run(self, counters: NDArray[np.integer[Any]]) -> Integers:
        """Velocities [counts/tick, Q8].

        Args:
            counters: readings of the 16-bit encoder counter, shape (n,), n >= 1.
        """
        moves = counter_moves(self.counter, counters)
        state = np.array([self.velocity, self.innovation], dtype=np.int64)
        out = _run(moves, self.alpha, self.beta, state)
        self.counter = int(counters[-1])
        self.velocity, self.innovation = (int(value) for value in state)
        return out

    def response(self, frequency: Array, period: float) -> NDArray[np.complex128]:
        """What comes out over the true velocity at the tick; the board's rounding apart.

        H(f) = b / (1 - (2-a-b) q + (1-a) q²) (1-q) / (2πi f h), with q = exp(-2πi f h), a = alpha/2⁸, b = beta/2¹².

        Args:
            frequency: [Hz], above 0, shape (n,).
            period: h, from tick to tick [s].
        """
        numerator, denominator = self._section
        cycles = frequency * period
        moves = np.exp(-1j * np.pi * cycles) * np.sinc(cycles)  # the mean velocity over the tick that ended
        return section_response(numerator, denominator, cycles) * moves

    def delay(self, period: float) -> float:
        """Delay of slow motion at constant velocity [s].

        Args:
            period: from tick to tick [s].
        """
        return (section_delay(*self._section) + 0.5) * period

    @property
    def _section(self) -> tuple[Array, Array]:
        a, b = self.alpha / _ALPHA_ONE, self.beta / _BETA_ONE
        return np.array([b]), np.array([1.0, a + b - 2.0, 1.0 - a])


def counter_moves(before: int, counters: NDArray[np.integer[Any]]) -> Integers:
    """Counts moved in each tick, from readings of a 16-bit counter that wraps.

    Args:
        before: the reading before the first.
        counters: shape (n,).

    Returns:
        -32768 to 32767, shape (n,).
    """
    readings = np.concatenate([[before], counters]).astype(np.int64)
    return (np.diff(readings) + 2**15) % 2**16 - 2**15


@compiled
def _run(moves: Integers, alpha: int, beta: int, state: Integers) -> Integers:
    out = np.empty_like(moves)
    v, e = state
    for k in range(len(moves)):
        e = min(max(e + (moves[k] << 8) - (v >> 4), -(2**20)), 2**20)
        v = ((v + (e * beta >> 8) + 2**31) & 0xFFFFFFFF) - 2**31
        e -= e * alpha >> 8
        out[k] = v >> 4
    state[0], state[1] = v, e
    return out
