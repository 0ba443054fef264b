"""Velocity from encoder counts as the board computes it: M/T counting and an alpha-beta tracking observer.

The newest edge of each tick is timed by a capture clock. Where a tick brought edges, the velocity is the counts since
the newest edge before over the time since it: the mean velocity over exactly that interval, whatever the ticks. Where
it brought none, the motor is slower than one count over the ticks since, and the velocity shrinks with them.

So it is no linear filter: its interval follows the motion. What it does to a motion of frequency f within an interval
T is `mean_response`: a delay of T/2 and, while f T is small, nothing else to speak of. Its resolution is one count of
the capture clock in T, then 1/256 count per tick.

The board keeps an estimate of position and velocity, lets it run on for a tick, and corrects both by what the encoder
then says otherwise: the position by alpha of the difference e, the velocity by beta of it. All is linear but for a
clamp of e, which only a difference above 4096 counts meets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.lazy_numba import compiled
from jointbench.signals.board_filter import section_delay, section_response
from jointbench.signals.fixed_point_filters import Integers

SLOWEST_EDGE = 1 << 22
"""Counts of the capture clock between two edges, above which the motor stands."""

LONG_STILL = 257
"""Ticks without an edge after which the next one only begins an interval: the capture clock may have wrapped."""

_ALPHA_ONE, _BETA_ONE = 1 << 8, 1 << 12


@dataclass
class MtVelocity:
    """The board's counting; it goes on from where the last block left it.

    With N = |move|·C of a tick that brought edges and D the clock's counts since the newest edge before:
    |v| = (N // D << 8) + ((N % D) << 8) // D; without edges for n ticks |v| = min(|v|, 256 // n), 0 from 257 on.

    Attributes:
        clocks: C, counts of the capture clock in a tick.
        counter: last reading of the 16-bit encoder counter.
        edge_time: of the newest edge [counts of the capture clock].
        still: ticks since the last one that brought an edge, at most 257.
        velocity: [counts/tick, Q8].
    """

    clocks: int
    counter: int = 0
    edge_time: int = 0
    still: int = LONG_STILL
    velocity: int = 0

    def run(self, counters: NDArray[np.integer[Any]], edge_times: NDArray[np.integer[Any]]) -> Integers:
        """Velocities [counts/tick, Q8].

        Args:
            counters: readings of the 16-bit encoder counter, shape (n,), n >= 1.
            edge_times: time of the newest edge at each tick [counts of the capture clock], wraps at 2³², shape (n,).
        """
        moves = counter_moves(self.counter, counters)
        state = np.array([self.edge_time, self.still, self.velocity], dtype=np.int64)
        times = np.asarray(edge_times).astype(np.int64)
        out = _run_counting(moves, times, self.clocks, largest_move(self.clocks), state)
        self.counter = int(counters[-1])
        self.edge_time, self.still, self.velocity = (int(value) for value in state)
        return out


def largest_move(clocks: int) -> int:
    """Counts in a tick whose product with the capture clock's counts still fits 32 bits."""
    return (2**31 - 1) // max(clocks, 1)


def mean_response(frequency: Array, interval: float) -> NDArray[np.complex128]:
    """What counting over an interval does to a velocity of this frequency: exp(-πi f T) sin(π f T) / (π f T).

    Args:
        frequency: [Hz], shape (n,).
        interval: T, between the two edges; at least the time to one more edge [s].

    Returns:
        Relative to the true velocity at the later edge, shape (n,).
    """
    turns = np.asarray(frequency) * interval
    return cast(NDArray[np.complex128], np.exp(-1j * np.pi * turns) * np.sinc(turns))


@compiled
def _run_counting(moves: Integers, times: Integers, clocks: int, most: int, state: Integers) -> Integers:
    out = np.empty_like(moves)
    edge_time, still, velocity = state
    for k in range(len(moves)):
        if moves[k] != 0:
            span = ((times[k] - edge_time + 2**31) & 0xFFFFFFFF) - 2**31
            if span == 0:
                span = 1
            velocity = 0
            if span > 0 and span <= SLOWEST_EDGE and still < LONG_STILL:
                counts = min(abs(moves[k]), most) * clocks
                whole = counts // span
                velocity = (min(whole, 32767) << 8) + ((counts - whole * span) << 8) // span
                if moves[k] < 0:
                    velocity = -velocity
            edge_time = times[k]
            still = 0
        else:
            still = min(still + 1, LONG_STILL)
            slowest = 256 // still
            velocity = max(min(velocity, slowest), -slowest)
        out[k] = velocity
    state[0], state[1], state[2] = edge_time, still, velocity
    return out


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
        out = _run_observer(moves, self.alpha, self.beta, state)
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
def _run_observer(moves: Integers, alpha: int, beta: int, state: Integers) -> Integers:
    out = np.empty_like(moves)
    v, e = state
    for k in range(len(moves)):
        e = min(max(e + (moves[k] << 8) - (v >> 4), -(2**20)), 2**20)
        v = ((v + (e * beta >> 8) + 2**31) & 0xFFFFFFFF) - 2**31
        e -= e * alpha >> 8
        out[k] = v >> 4
    state[0], state[1] = v, e
    return out
