"""A board's clock and ticks on the host's clock, from the PINGs it answered and the SYNC pulses it saw.

A board counts microseconds in 32 bits, which wrap each 71 minutes, and ticks of its sampling period by the same
crystal. PINGs place it on the host's clock, no better than their delays differ there and back. Pulses on a SYNC wire
reach all boards at once: they tie boards to each other far better, and say nothing about the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointwire import Frame

_KEPT = 0.25  # the fastest answers were delayed least, in both directions
_BIN_EXCHANGES = 64  # in a bin on average, a quarter of which is kept
_BINS = 64
_BIN_KEPT = 16  # at most, so that all pairs of points of an hour still make a small table
_CRYSTAL_PPM = 200.0  # a board's crystal and the host's differ by less; a line that is known no better is none
_TIED, _JUDGED = 2, 5  # pulses from which a board is tied by them, and from which they can be judged by each other
_PULSE_JITTER_US = 10.0  # of two interrupts that stamp an edge; what is farther off than that is another edge
_WORD = 1 << 32


@dataclass(frozen=True)
class Exchange:
    """One PING and its PONG: sent and received by the host's clock [µs], the board's tick and clock in between."""

    sent_us: int
    received_us: int
    tick: int
    board_us: int

    @staticmethod
    def from_pong(frame: Frame, received_us: int, tick: int | None = None) -> Exchange:
        """An exchange from its PONG alone: the nonce is the low 32 bits of the time of sending.

        Args:
            frame: the PONG.
            received_us: when, by the host's clock.
            tick: the board's, past the 32 bits that the PONG has of it.
        """
        sent_us = received_us - ((received_us - frame.body.nonce) & (_WORD - 1))
        return Exchange(sent_us, received_us, frame.body.tick if tick is None else tick, frame.time_us)


@dataclass(frozen=True)
class Pulse:
    """An edge on the SYNC wire: its number since the board's boot, and the board's clock at it [µs]."""

    edge: int
    board_us: int
    received_us: int

    @staticmethod
    def from_sync(frame: Frame, received_us: int) -> Pulse:
        """The edge that a SYNC frame tells of, received at this time of the host's clock."""
        return Pulse(frame.body.edge, frame.body.edge_us, received_us)


@dataclass(frozen=True)
class BoardClock:
    """A board's clock as a line over the host's: board time - board_origin_us = (1 + drift) * (host - host_origin_us).

    Attributes:
        host_origin_us, board_origin_us: a moment near the middle of the exchanges, by both clocks; the board's is
            continued past its 32 bits.
        drift_ppm: how much faster the board's clock goes; 0 where the exchanges are too few or too near to tell.
        tick_period_us: of the board, by its own clock.
        tick_zero_us: the board's clock at its tick 0.
        round_trip_us: median of the exchanges that were used.
        scatter_us: robust standard deviation of the exchanges that were used about the line: of their delays, mostly.
        residual_us: what is left of that where exchanges are averaged, stretch by stretch: delays no longer count, and
            a clock that goes unevenly does. Where pulses tie the board to another one, of a pulse about its neighbours,
            of fewer than five pulses the largest step from one to the next; 0 for the board that others are tied to.
        bound_us: what the error of `host_us` stays below even if all of the delay is on one way.
        exchanges, pulses: how many were there; 0 pulses where they tie this board to no other.
        bends: (host time, correction) of each pulse, between which the clock is taken to go evenly [µs].
    """

    host_origin_us: float
    board_origin_us: float
    drift_ppm: float
    tick_period_us: float
    tick_zero_us: float
    round_trip_us: float
    scatter_us: float
    residual_us: float
    bound_us: float
    exchanges: int
    pulses: int = 0
    bends: tuple[tuple[float, float], ...] = ()

    @property
    def offset_us(self) -> float:
        """Board's clock at the host's 0 [µs]."""
        return float(self.board_us(0.0))

    def host_us(self, board_us: float | Array) -> Any:
        """Host time at a time of the board's clock, continued past its 32 bits as `extended` does [µs]."""
        host = self.host_origin_us + (board_us - self.board_origin_us) / self._rate
        return host + self._bend(host)

    def board_us(self, host_us: float | Array) -> Any:
        """Inverse of `host_us`."""
        even = host_us - self._bend(host_us)  # a bend changes by some µs in a second: its own shift does not matter
        return self.board_origin_us + (even - self.host_origin_us) * self._rate

    def tick_host_us(self, tick: float | Array | NDArray[np.int64]) -> Any:
        """Host time of a tick of the board, or of each of an array [µs]."""
        return self.host_us(self.tick_zero_us + np.multiply(tick, self.tick_period_us))

    def ticks_at(self, host_us: float | Array) -> Any:
        """Times of the host's clock on the board's ticks, in fractions of a tick."""
        return (self.board_us(host_us) - self.tick_zero_us) / self.tick_period_us

    def tick_at(self, host_us: float) -> int:
        """The board's tick nearest to a time of the host's clock."""
        return round(float(self.ticks_at(host_us)))

    def extended(self, board_us: int, host_us: float) -> int:
        """A 32-bit reading of the board's clock continued past 32 bits, taken about `host_us`, within 35 minutes."""
        near = round(float(self.board_us(host_us)))
        return near + int(_signed(board_us - near))

    def to_dict(self) -> dict[str, float]:
        """Figures of the clock for a reader of a run, as plain numbers."""
        values = asdict(self)
        names = ("drift_ppm", "round_trip_us", "scatter_us", "residual_us", "bound_us", "exchanges", "pulses")
        return {"offset_us": self.offset_us, **{name: values[name] for name in names}}

    @property
    def _rate(self) -> float:
        return 1.0 + 1e-6 * self.drift_ppm

    def _bend(self, host_us: float | Array) -> Any:
        if not self.bends:
            return 0.0
        at, by = zip(*self.bends, strict=True)
        return np.interp(host_us, at, by)


def board_clock(
    exchanges: Sequence[Exchange], tick_period_us: float, stamps: Sequence[tuple[int, int]] = ()
) -> BoardClock:
    """A board's clock from its exchanges: the line farthest from saying that one took less than no time on a way.

    Each board reading y lies between sending and receiving, so that line(sent) + d <= y <= line(received) - d for some
    d >= 0; the line has the largest d (Moon, Skelly & Towsley, INFOCOM 1999, with both ways at once). Waiting that only
    lengthens delays does not move it, however it is distributed. No line has such a d where a clock goes unevenly:
    then it is a robust one through the fastest quarter of each stretch of time, each taken half-way.
    Where the slope could not be told from a perfect crystal's, as with one exchange or some in quick succession, the
    drift is 0 and the bound says so.

    Args:
        exchanges: at least one.
        tick_period_us: of the board's ticks, by its own clock.
        stamps: ticks and the board's clock exactly at them, as STATUS frames have them. Without them a tick is known
            only to lie before each exchange that it was the last tick of, and its successor behind.

    Raises:
        ValueError: there are no exchanges.
    """
    if not exchanges:
        raise ValueError("a board's clock needs at least one answered PING; there is none")
    sent = np.array([each.sent_us for each in exchanges], dtype=np.int64)
    received = np.array([each.received_us for each in exchanges], dtype=np.int64)
    round_trip = (received - sent).astype(np.float64)
    host = sent + round_trip / 2.0
    first = exchanges[0]
    pairs = [(each.tick, each.board_us) for each in exchanges]
    ticks, board = _continued(pairs, (first.tick, first.board_us), tick_period_us)
    at_most, at_least = (board - sent).astype(np.float64), (board - received).astype(np.float64)  # of board less host
    fast = _fastest(host, round_trip)
    host, ahead, round_trip = host[fast], (board - host)[fast], round_trip[fast]
    origin, half = float(np.median(host)), float(np.median(round_trip)) / 2.0
    span = float(np.ptp(host))
    unknown = 1e-6 * _CRYSTAL_PPM * span / 2.0
    if len(host) > 2 and unknown > half:
        unknown = 0.0
        slope, offset, distance = _line_between(
            (sent - origin).astype(np.float64), at_most, (received - origin).astype(np.float64), at_least
        )
        if distance < 0.0:
            slope = _slope(host, ahead)
            offset = float(np.median(ahead - slope * (host - origin)))
    else:
        slope, offset = 0.0, float(at_most.min() + at_least.max()) / 2.0
    residual = ahead - slope * (host - origin) - offset
    scatter = _robust_sigma(residual)
    stamped = _continued(stamps, (first.tick, first.board_us), tick_period_us) if len(stamps) else None
    tick_zero_us, tick_bound = _tick_zero(ticks, board, stamped, tick_period_us)
    return BoardClock(
        host_origin_us=origin,
        board_origin_us=origin + offset,
        drift_ppm=1e6 * slope,
        tick_period_us=tick_period_us,
        tick_zero_us=tick_zero_us,
        round_trip_us=2.0 * half,
        scatter_us=scatter,
        residual_us=_averaged(residual, scatter),
        bound_us=half + scatter + unknown + tick_bound,
        exchanges=len(exchanges),
    )


def common_start_us(clocks: Sequence[BoardClock], start_us: int) -> int:
    """Moment from `start_us` on, less than a tick later, to which the boards' own nearest ticks lie closest [µs].

    Boards tick at phases of their own, and each starts at its tick nearest to the moment. That lies half a tick from
    the middle of the widest gap between phases, so that n boards start within 1 - 1/n ticks of each other at most.

    Args:
        clocks: of the boards, at least one, with one tick period.
        start_us: by the host's clock [µs].
    """
    phases = np.sort([clock.ticks_at(start_us) % 1.0 for clock in clocks])
    gaps = np.diff(phases, append=phases[0] + 1.0)
    widest = int(np.argmax(gaps))
    later = (0.5 - phases[widest] - gaps[widest] / 2.0) % 1.0
    return start_us + round(later * clocks[0].tick_period_us)


def tie_by_pulses(clocks: Sequence[BoardClock], pulses: Sequence[Sequence[Pulse]]) -> tuple[BoardClock, ...]:
    """Clocks of several boards on one timeline, tied to each other by the SYNC pulses that they saw together.

    The board with the most pulses keeps its place on the host's clock. Pulses of the others belong to that one of its
    pulses which is less than half a period away by the clocks as they are; between them clocks go evenly. Boards with
    fewer than two such pulses stay as they are.

    Args:
        clocks: of each board, from its exchanges.
        pulses: of each board, in the same order.
    """
    instants = [
        np.array(sorted({int(clock.extended(each.board_us, each.received_us)) for each in seen}), dtype=np.float64)
        for clock, seen in zip(clocks, pulses, strict=True)
    ]
    master = max(range(len(instants)), key=lambda index: len(instants[index]), default=0)
    if not instants or len(instants[master]) < _TIED:
        return tuple(clocks)
    master_us = np.asarray(clocks[master].host_us(instants[master]))
    tied = [
        clock if index == master else _tied(clock, np.asarray(clock.host_us(seen)), master_us, clocks[master])
        for index, (clock, seen) in enumerate(zip(clocks, instants, strict=True))
    ]
    if any(clock.pulses for clock in tied):
        tied[master] = replace(clocks[master], pulses=len(master_us), residual_us=0.0)
    return tuple(tied)


def _tied(clock: BoardClock, seen: Array, master_us: Array, master: BoardClock) -> BoardClock:
    """The clock moved so that the pulses it saw at `seen` lie where they lie for the master."""
    if not len(seen):
        return clock
    distance = np.abs(seen[:, None] - master_us)
    nearest = np.argmin(distance, axis=1)
    mutual = np.argmin(distance, axis=0)[nearest] == np.arange(len(seen))
    mutual &= np.min(distance, axis=1) < np.median(np.diff(master_us)) / 2.0
    at, by = seen[mutual], (master_us[nearest] - seen)[mutual]
    if len(at) < _TIED:
        return clock
    slope = _slope(at, by)
    if abs(slope) > 2e-6 * _CRYSTAL_PPM:  # no pair of crystals: one of few pulses was another edge
        slope = 0.0
    offset = float(np.median(by - slope * (at - clock.host_origin_us)))
    residual = by - slope * (at - clock.host_origin_us) - offset
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(residual, 2, mode="edge"), 5)
    off = residual - np.median(windows, axis=1)
    sigma = _robust_sigma(off)
    good = np.abs(off) <= max(5.0 * sigma, _PULSE_JITTER_US)
    moved = at + offset + slope * (at - clock.host_origin_us)
    return replace(
        clock,
        host_origin_us=clock.host_origin_us + offset,
        drift_ppm=1e6 * ((1.0 + 1e-6 * clock.drift_ppm) / (1.0 + slope) - 1.0),
        # Few pulses lie near any line that is drawn through them.
        residual_us=sigma if len(at) >= _JUDGED else max(_PULSE_JITTER_US, float(np.max(np.abs(np.diff(residual))))),
        bound_us=master.bound_us + float(np.max(np.abs(residual[good]))),
        pulses=int(good.sum()),
        bends=tuple(zip(moved[good].tolist(), residual[good].tolist(), strict=True)),
    )


def _continued(
    pairs: Sequence[tuple[int, int]], start: tuple[int, int], tick_period_us: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ticks and clock readings past their 32 bits, from `start` on: ticks tell which turn of the clock it is."""
    values = np.array(pairs, dtype=np.int64)
    ticks = start[0] + _signed(values[:, 0] - start[0])
    near = start[1] + np.round((ticks - start[0]) * tick_period_us).astype(np.int64)
    return ticks, near + _signed(values[:, 1] - near)


def _signed(difference: Any) -> Any:
    """A difference of two 32-bit counters, from -2^31 to 2^31 - 1."""
    return (difference + _WORD // 2) % _WORD - _WORD // 2


def _fastest(host: Array, round_trip: Array) -> NDArray[np.int64]:
    """Indices of the fastest quarter of each stretch of time, so that they are spread over all of it."""
    bins = int(np.clip(len(host) // _BIN_EXCHANGES, 1, _BINS))
    span = float(np.ptp(host)) or 1.0
    number = np.minimum(((host - host.min()) / span * bins).astype(int), bins - 1)
    fastest: list[NDArray[np.int64]] = []
    for index in range(bins):
        members = np.flatnonzero(number == index)
        count = min(int(np.ceil(_KEPT * len(members))), _BIN_KEPT)
        fastest.append(members[np.argsort(round_trip[members], kind="stable")[:count]])
    return np.sort(np.concatenate(fastest))


def _slope(x: Array, y: Array) -> float:
    """Theil's estimate: the median slope of all pairs of points; 29 % of them may be anywhere."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    return float(np.median((y[second] - y[first])[run != 0] / run[run != 0])) if run.any() else 0.0


def _line_between(x_above: Array, above: Array, x_below: Array, below: Array) -> tuple[float, float, float]:
    """Slope and offset of the line farthest from the points above and below it, and that distance along y."""
    scale, middle = float(max(np.abs(x_above).max(), np.abs(x_below).max())), float(np.median(above))
    rows = [
        np.column_stack((sign * x / scale, np.full(len(x), sign), np.ones(len(x))))
        for sign, x in ((1.0, x_above), (-1.0, x_below))
    ]
    bounds = np.concatenate((above - middle, middle - below))
    found = scipy.optimize.linprog((0.0, 0.0, -1.0), A_ub=np.concatenate(rows), b_ub=bounds, bounds=(None, None))
    slope, offset, distance = found.x
    return float(slope) / scale, float(offset) + middle, float(distance)


def _robust_sigma(values: Array) -> float:
    """Standard deviation of the bulk of normally distributed values."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _averaged(left: Array, scatter: float) -> float:
    """Residual of the medians of stretches from a line, and that which their noise alone would leave."""
    stretches = np.array_split(left, -(-len(left) // _BIN_KEPT))
    medians = np.array([np.median(stretch) for stretch in stretches])
    return float(np.hypot(np.sqrt(np.mean(medians**2)), scatter / np.sqrt(len(left))))


def _tick_zero(
    ticks: NDArray[np.int64],
    board: NDArray[np.int64],
    stamped: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    period: float,
) -> tuple[float, float]:
    """The board's clock at tick 0, and how far that may be off."""
    if stamped is not None:
        zeros = stamped[1] - period * stamped[0]
        # A stamp late by chance does no harm; ticks that slip against the clock move a good part of them.
        steps = [float(np.median(part)) for part in np.array_split(zeros, min(8, len(zeros)))]
        return float(np.median(zeros)), max(steps) - min(steps)
    zeros = board - period * ticks  # each from 0 to a period late
    earliest, latest = float(zeros.max()) - period, float(zeros.min())
    return (earliest + latest) / 2.0, abs(latest - earliest) / 2.0
