"""A delay line: bytes arrive later than they were sent, in order, as behind a USB adapter."""

from collections import deque
from collections.abc import Iterator

import numpy as np

NEVER = 2**63 - 1  # [µs]


class Delay:
    """One direction of an adapter: a transfer takes `latency_us`, and up to `jitter_us` more (uniform, seeded).

    Attributes:
        next_us: when the next bytes arrive [µs], or `NEVER`.
    """

    def __init__(self, latency_us: int, jitter_us: int, chance: np.random.Generator) -> None:
        """Start with nothing under way."""
        self._latency_us = latency_us
        self._jitter_us = jitter_us
        self._chance = chance
        self._under_way: deque[tuple[int, bytes]] = deque()
        self._last_us = 0
        self.next_us = NEVER

    def send(self, data: bytes, time_us: int) -> None:
        """Take one transfer; it does not overtake the one before."""
        late = int(self._chance.integers(self._jitter_us + 1)) if self._jitter_us else 0
        self._last_us = max(self._last_us, time_us + self._latency_us + late)
        self._under_way.append((self._last_us, data))
        self.next_us = self._under_way[0][0]

    def arrived(self, time_us: int) -> Iterator[tuple[int, bytes]]:
        """Hand out what has arrived by `time_us`, each transfer with its time."""
        while self.next_us <= time_us:
            transfer = self._under_way.popleft()
            self.next_us = self._under_way[0][0] if self._under_way else NEVER
            yield transfer

    def clear(self) -> None:
        """Forget what is under way."""
        self._under_way.clear()
        self.next_us = NEVER
