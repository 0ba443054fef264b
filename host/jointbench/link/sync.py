"""How a board's ticks lie on the host's clock, from the PINGs it answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.robot import Array

_KEPT = 0.25  # the fastest answers were delayed least, in both directions


@dataclass(frozen=True)
class Exchange:
    """One PING and its PONG: sent and received by the host's clock [µs], the board's tick in between."""

    sent_us: int
    received_us: int
    tick: int

    @staticmethod
    def from_pong(nonce: int, tick: int, received_us: int) -> Exchange:
        """An exchange from its PONG alone: the nonce is the low 32 bits of the time of sending."""
        return Exchange(received_us - ((received_us - nonce) & 0xFFFFFFFF), received_us, tick)


@dataclass(frozen=True)
class TickOffset:
    """Board tick = host time / tick period + offset.

    Attributes:
        offset: [ticks], median of the fastest exchanges.
        drift: [ticks/s], how fast the offset changes.
        round_trip_us: median of the fastest exchanges; the offset is known no better than half of it.
    """

    offset: float
    drift: float
    round_trip_us: float

    def tick_at(self, time_us: float, tick_period_us: float) -> int:
        """The board's tick nearest to a time of the host's clock."""
        return round(time_us / tick_period_us + self.offset)


def tick_offset(exchanges: Sequence[Exchange], tick_period_us: float) -> TickOffset:
    """Offset of a board's ticks from at least one exchange.

    The board is taken to answer half-way between sending and receiving; only the fastest quarter counts.
    """
    sent = np.array([exchange.sent_us for exchange in exchanges], dtype=float)
    received = np.array([exchange.received_us for exchange in exchanges], dtype=float)
    ticks = np.array([exchange.tick for exchange in exchanges], dtype=float)
    round_trip = received - sent
    fast = round_trip <= np.quantile(round_trip, _KEPT)
    middle = (sent + received)[fast] / 2.0
    offsets = ticks[fast] - middle / tick_period_us
    return TickOffset(float(np.median(offsets)), _slope(middle * 1e-6, offsets), float(np.median(round_trip[fast])))


def _slope(times: Array, values: Array) -> float:
    spread = times - times.mean()
    moment = float(spread @ spread)
    return float(spread @ (values - values.mean())) / moment if moment > 0.0 else 0.0
