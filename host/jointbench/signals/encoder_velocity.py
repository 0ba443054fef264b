"""Motor velocity from encoder counts as the board computes it: alpha-beta tracking observer and M/T counting.

Both are bit-exact integer twins that keep their state from one block to the next; docs/filters.md describes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.lazy_numba import lazy_njit

MAX_EDGE_INTERVAL = 1 << 22
"""Longest time between two edges [capture clock counts]; beyond it the motor counts as standing still."""

MAX_IDLE_TICKS = 257
"""Ticks without an edge after which the next edge only starts an interval: the capture clock may have wrapped."""

_ALPHA_ONE, _BETA_ONE = 1 << 8, 1 << 12


@dataclass
class TrackingObserver:
    """Alpha-beta observer of position and velocity.

    Each tick it extrapolates position and velocity, then corrects both by shares of the innovation e:
    e += (increment << 8) - (v >> 4), clamped to +-2**20;  v += e beta >> 8;  e -= e alpha >> 8.
    v is Q12; v >> 4 is the output. It is linear except for the clamp, which an e above 4096 counts meets.

    Attributes:
        alpha: position gain, Q8, 1 to 256.
        beta: velocity gain, Q12, 1 to 1023.
        counter: last reading of the 16-bit encoder counter.
        velocity: v [counts/tick, Q12].
        innovation: e [counts, Q8].
    """

    alpha: int
    beta: int
    counter: int = 0
    velocity: int = 0
    innovation: int = 0

    def run(self, counters: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the velocity at each tick [counts/tick, Q8].

        Args:
            counters: readings of the 16-bit encoder counter, shape (n,), n >= 1.
        """
        state = np.array([self.velocity, self.innovation], dtype=np.int64)
        velocity = _run_observer(_counter_increments(self.counter, counters), self.alpha, self.beta, state)
        self.counter = int(counters[-1])
        self.velocity, self.innovation = (int(value) for value in state)
        return velocity

    def response(self, frequency: Array, period: float) -> NDArray[np.complex128]:
        """Return the frequency response from the true velocity at the tick to the output, without rounding.

        H(f) = b / (1 - (2 - a - b) z + (1 - a) z²) (1 - z) / (2 pi i f h), z = exp(-2 pi i f h), a = alpha/2⁸,
        b = beta/2¹².

        Args:
            frequency: [Hz], above 0, shape (n,).
            period: h, one tick [s].
        """
        a, b = self.alpha / _ALPHA_ONE, self.beta / _BETA_ONE
        _, observer = scipy.signal.freqz([b], [1.0, a + b - 2.0, 1.0 - a], worN=2.0 * np.pi * frequency * period)
        return cast(NDArray[np.complex128], observer * moving_average_response(frequency, period))

    def delay(self, period: float) -> float:
        """Return the delay of slow motion, (a/b - 1/2) ticks with a = alpha/2⁸, b = beta/2¹² [s].

        Args:
            period: one tick [s].
        """
        a, b = self.alpha / _ALPHA_ONE, self.beta / _BETA_ONE
        return (a / b - 0.5) * period


@dataclass
class MtVelocity:
    """M/T counting: encoder counts between two edges over the time between them.

    The newest edge of each tick is timed by a capture clock. A tick that brought edges gives the counts since the
    newest edge before, over the time since then: the mean velocity over exactly that interval T. Because T follows the
    motion, this is no linear filter; its effect is `moving_average_response`, its resolution one clock count in T and
    1/256 count per tick. With N = |increment| C and D the clock counts since the newest edge before:
    |v| = (N // D << 8) + ((N % D) << 8) // D; after n ticks without edges |v| = min(|v|, 256 // n), 0 from 257 on.

    Attributes:
        clocks_per_tick: C, counts of the capture clock in a tick.
        counter: last reading of the 16-bit encoder counter.
        edge_time: of the newest edge [capture clock counts].
        idle_ticks: ticks since the last one that brought an edge, at most 257.
        velocity: [counts/tick, Q8].
    """

    clocks_per_tick: int
    counter: int = 0
    edge_time: int = 0
    idle_ticks: int = MAX_IDLE_TICKS
    velocity: int = 0

    def run(self, counters: NDArray[np.integer[Any]], edge_times: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the velocity at each tick [counts/tick, Q8].

        Args:
            counters: readings of the 16-bit encoder counter, shape (n,), n >= 1.
            edge_times: time of the newest edge at each tick [capture clock counts], wraps at 2³², shape (n,).
        """
        state = np.array([self.edge_time, self.idle_ticks, self.velocity], dtype=np.int64)
        times = np.asarray(edge_times).astype(np.int64)
        max_increment = (2**31 - 1) // max(self.clocks_per_tick, 1)  # its product with the clock counts fits 32 bits
        increments = _counter_increments(self.counter, counters)
        velocity = _run_mt_counting(increments, times, self.clocks_per_tick, max_increment, state)
        self.counter = int(counters[-1])
        self.edge_time, self.idle_ticks, self.velocity = (int(value) for value in state)
        return velocity


def moving_average_response(frequency: Array, interval: float) -> NDArray[np.complex128]:
    """Return the response of a mean over the last interval, exp(-pi i f T) sin(pi f T) / (pi f T).

    Args:
        frequency: [Hz], shape (n,).
        interval: T [s]; for M/T counting the time between two edges, at least that to the next edge.

    Returns:
        Relative to the signal at the end of the interval, shape (n,).
    """
    cycles = np.asarray(frequency) * interval
    return cast(NDArray[np.complex128], np.exp(-1j * np.pi * cycles) * np.sinc(cycles))


def _counter_increments(previous: int, counters: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the counts moved in each tick, -32768 to 32767, from readings of a wrapping 16-bit counter."""
    readings = np.concatenate([[previous], counters]).astype(np.int64)
    return (np.diff(readings) + 2**15) % 2**16 - 2**15


@lazy_njit
def _run_observer(
    increments: NDArray[np.int64], alpha: int, beta: int, state: NDArray[np.int64]
) -> NDArray[np.int64]:  # fmt: skip
    out = np.empty_like(increments)
    v, e = state
    for k in range(len(increments)):
        e = min(max(e + (increments[k] << 8) - (v >> 4), -(2**20)), 2**20)
        v = ((v + (e * beta >> 8) + 2**31) & 0xFFFFFFFF) - 2**31
        e -= e * alpha >> 8
        out[k] = v >> 4
    state[0], state[1] = v, e
    return out


@lazy_njit
def _run_mt_counting(
    increments: NDArray[np.int64], times: NDArray[np.int64], clocks_per_tick: int, max_increment: int,
    state: NDArray[np.int64],
) -> NDArray[np.int64]:  # fmt: skip
    out = np.empty_like(increments)
    edge_time, idle_ticks, velocity = state
    for k in range(len(increments)):
        if increments[k] != 0:
            interval = ((times[k] - edge_time + 2**31) & 0xFFFFFFFF) - 2**31
            if interval == 0:
                interval = 1
            velocity = 0
            if interval > 0 and interval <= MAX_EDGE_INTERVAL and idle_ticks < MAX_IDLE_TICKS:
                scaled_counts = min(abs(increments[k]), max_increment) * clocks_per_tick
                whole = scaled_counts // interval
                velocity = (min(whole, 32767) << 8) + ((scaled_counts - whole * interval) << 8) // interval
                if increments[k] < 0:
                    velocity = -velocity
            edge_time = times[k]
            idle_ticks = 0
        else:
            idle_ticks = min(idle_ticks + 1, MAX_IDLE_TICKS)
            bound = 256 // idle_ticks
            velocity = max(min(velocity, bound), -bound)
        out[k] = velocity
    state[0], state[1], state[2] = edge_time, idle_ticks, velocity
    return out
