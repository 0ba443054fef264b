"""A board's clock that is known exactly, and what a host hears of it over a line with USB-like delays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.sync import Exchange, Pulse

WORD = 1 << 32
TICK_US = 1000
PING_US = 100_000
LEAST_US, MOST_US = 125, 1000  # a USB full-speed frame is 1 ms, a high-speed microframe 0.125 ms


@dataclass(frozen=True)
class TrueClock:
    """Board time = (1 + drift) * host time + offset; tick 0 begins at `tick_zero_us` of it."""

    drift_ppm: float
    offset_us: float
    tick_zero_us: int

    @staticmethod
    def random(rng: np.random.Generator) -> TrueClock:
        """Up to 100 ppm off, boot anywhere in the 32 bits, ticks anywhere in theirs."""
        offset = float(rng.uniform(0, WORD))
        tick_zero = round(offset) - TICK_US * int(rng.integers(0, WORD)) - int(rng.integers(0, TICK_US))
        return TrueClock(float(rng.uniform(-100, 100)), offset, tick_zero)

    def board_us(self, host_us):
        """What it shows, not wrapped."""
        return host_us * (1.0 + 1e-6 * self.drift_ppm) + self.offset_us

    def tick_host_us(self, tick):
        """Host time of a tick, not wrapped."""
        board = self.tick_zero_us + TICK_US * np.asarray(tick)
        return (board - self.offset_us) / (1.0 + 1e-6 * self.drift_ppm)

    def ticks_at(self, host_us):
        """Where a time of the host's clock lies on its ticks, not wrapped."""
        return (self.board_us(host_us) - self.tick_zero_us) / TICK_US

    def tick(self, host_us) -> int:
        """The last tick before a time of the host's clock, not wrapped."""
        return int((self.board_us(host_us) - self.tick_zero_us) // TICK_US)

    def exchanges(self, rng: np.random.Generator, span_us: int, start_us: int = 0) -> list[Exchange]:
        """PINGs each 100 ms, dithered, with delays of USB: in bursts one way is slower by some milliseconds."""
        result: list[Exchange] = []
        slow = np.zeros(2)
        for k in range(max(span_us // PING_US, 1)):
            if k % 7 == 0:  # a burst lasts 0.7 s; most stretches have none
                slow = rng.choice([0.0, 0.0, 0.0, 5000.0], 2)
            sent = start_us + k * PING_US + int(rng.integers(0, 2 * TICK_US))
            there, back = rng.uniform(LEAST_US, MOST_US, 2) + slow * rng.uniform(0, 1, 2)
            board = self.board_us(sent + there)
            received = sent + int(there + back)
            result.append(Exchange(sent, received, self.tick(sent + there) % WORD, int(board) % WORD))
        return result

    def stamps(self, start_us: int, end_us: int) -> list[tuple[int, int]]:
        """Ticks each 64 and the clock at them, wrapped, as frames have them."""
        ticks = range(self.tick(start_us), self.tick(end_us), 64)
        return [(tick % WORD, (self.tick_zero_us + TICK_US * tick) % WORD) for tick in ticks]

    def pulses(self, rng: np.random.Generator, instants_us: Array, jitter_us: float = 2.0) -> list[Pulse]:
        """Edges at these times, stamped to a microsecond with the jitter of an interrupt, told some time later."""
        stamped = self.board_us(instants_us) + rng.uniform(-jitter_us, jitter_us, len(instants_us))
        return [
            Pulse(edge, int(stamp) % WORD, int(at + rng.uniform(500, 80_000)))
            for edge, (stamp, at) in enumerate(zip(stamped, instants_us, strict=True), start=1)
        ]
