"""Bit-exact integer twins of a joint board: its current filters, and motor velocity from encoder counts.

Currents have 16 bits, coefficients Q27, sums wrap at 32 bits; velocity comes from an alpha-beta tracking observer or
from M/T counting. The twins keep their state from one block to the next. board_filter.py has the current filters as
frequency responses; docs/filters.md describes all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array, lazy_njit
from jointbench.signals.board_filter import OVERSAMPLING, QuantisedBiquad

ADC_MIDSCALE = 2048
"""Reading of the 12-bit converter at zero current."""

_CIC_SHIFT = 4
"""The triangle's weights sum to 256; four bits less leave the scale of a sum of 16 readings."""

_RAMP = np.arange(1, OVERSAMPLING + 1, dtype=np.int64)


MAX_EDGE_INTERVAL = 1 << 22
"""Longest time between two edges [capture clock counts]; beyond it the motor counts as standing still."""

MAX_IDLE_TICKS = 257
"""Ticks without an edge after which the next edge only starts an interval: the capture clock may have wrapped."""

_ALPHA_ONE, _BETA_ONE = 1 << 8, 1 << 12


def boxcar(readings: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the sum of each tick's readings about mid-scale, x = sum_i s_i - 16 * 2048 (decimator of order 1).

    Args:
        readings: of the 12-bit ADC, oldest first, shape (n, 16).

    Returns:
        -32768 to 32752, shape (n,).
    """
    # einsum sums short rows several times faster than sum(axis=1).
    return np.einsum("ij->i", readings, dtype=np.int64) - OVERSAMPLING * ADC_MIDSCALE


@dataclass
class Cic:
    """Decimator of order 2: a triangle over the readings of two ticks.

    t = A_prev + (16 S - A) - 256 * 2048 + r,  x = t >> 4,  r = t & 15,  with S = sum_i s_i and A = sum_i i s_i over the
    readings i = 1..16 of a tick. The remainder r is carried to the next tick, so that dropping four bits causes no
    bias.

    Attributes:
        previous_ramp_sum: A of the tick before.
        remainder: r, 0 to 15.
    """

    previous_ramp_sum: int = 0
    remainder: int = 0

    def run(self, readings: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Decimate a block of ticks.

        Args:
            readings: of the 12-bit ADC, oldest first, shape (n, 16), n >= 1.

        Returns:
            -32768 to 32752 on the scale of `boxcar`, shape (n,); the first one after a start lacks half of its weight.
        """
        ramp_sum = np.einsum("ij,j->i", readings, _RAMP, dtype=np.int64)
        triangle = (
            np.concatenate([[self.previous_ramp_sum], ramp_sum[:-1]]) - ramp_sum + OVERSAMPLING * boxcar(readings)
        )
        # With carried remainders, an output is the step of the truncated running sum.
        running_sum = np.concatenate([[self.remainder], self.remainder + np.cumsum(triangle)])
        self.previous_ramp_sum, self.remainder = int(ramp_sum[-1]), int(running_sum[-1] % 2**_CIC_SHIFT)
        return np.diff(running_sum >> _CIC_SHIFT)


@dataclass
class Biquads:
    """Cascade of second-order sections with error feedback.

    Each coefficient c is split into hi * 2**13 + lo, so that all products fit 32 bits. A section's output is rounded to
    16 bits, but the rounding error e is fed back through the denominator: the recursion keeps 14 more bits, and the
    poles of a slow filter do not amplify the rounding.

        low = sum lo * v + 2**12 - ((hi_a1 e1 + hi_a2 e2) >> 1)
        acc = sum hi * v + (low >> 13)               v: x, x1, x2, -y1, -y2 for b0, b1, b2, a1, a2
        t   = (acc + 2**13) >> 14,  e = acc - t * 2**14,  y = t clipped to 16 bits

    Only a filter that overshoots to four times full scale notices that sums wrap at 32 bits.

    Attributes:
        sections: in order.
        delay_line: last two inputs and last two outputs of each section, newest first, shape (n_sections + 1, 2).
        rounding_errors: last two of each section, newest first, Q14, shape (n_sections, 2).
    """

    sections: tuple[QuantisedBiquad, ...]
    delay_line: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    rounding_errors: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def __post_init__(self) -> None:
        """Start from zero unless a state is given."""
        if not len(self.delay_line):
            self.delay_line = np.zeros((len(self.sections) + 1, 2), np.int64)
        if not len(self.rounding_errors):
            self.rounding_errors = np.zeros((len(self.sections), 2), np.int64)

    def run(self, values: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Filter a block of samples.

        Args:
            values: -32768 to 32767, shape (n,).

        Returns:
            Same range and shape.
        """
        coefficients = np.array(self.sections, dtype=np.int64)
        values = np.ascontiguousarray(values, dtype=np.int64)
        return _run_biquads(values, coefficients, self.delay_line, self.rounding_errors)


@lazy_njit
def _run_biquads(
    values: NDArray[np.int64], sections: NDArray[np.int64], delay_line: NDArray[np.int64], errors: NDArray[np.int64]
) -> NDArray[np.int64]:
    out = np.empty_like(values)
    for k in range(len(values)):
        v = values[k]
        for s in range(len(sections)):
            b0, b1, b2, a1, a2 = sections[s]
            x1, x2 = delay_line[s]
            y1, y2 = delay_line[s + 1]
            feedback = (a1 >> 13) * errors[s, 0] + (a2 >> 13) * errors[s, 1]
            low = (b0 & 8191) * v + (b1 & 8191) * x1 + (b2 & 8191) * x2 - (a1 & 8191) * y1 - (a2 & 8191) * y2
            acc = (b0 >> 13) * v + (b1 >> 13) * x1 + (b2 >> 13) * x2 - (a1 >> 13) * y1 - (a2 >> 13) * y2
            acc += (low + 4096 - (feedback >> 1)) >> 13
            t = (((acc + 8192 + 2**31) & 0xFFFFFFFF) - 2**31) >> 14
            errors[s, 1] = errors[s, 0]
            errors[s, 0] = ((acc + 8192) & 16383) - 8192
            delay_line[s, 1] = x1
            delay_line[s, 0] = v
            v = min(max(t, -32768), 32767)
        delay_line[-1, 1] = delay_line[-1, 0]
        delay_line[-1, 0] = v
        out[k] = v
    return out


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
