"""When a fault strikes: at a rate, every so often, or at given times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

NEVER = 1 << 62


@dataclass(frozen=True)
class Schedule:
    """When a fault strikes its units (bytes or frames).

    Attributes:
        rate: probability of each unit, None where it does not go by rate.
        every: each unit of this number is struck, None where it does not go by number.
        at_us: times; the first unit from each on is struck.
        from_us, until_us: strikes before or from these times on are left out.
    """

    rate: float | None = None
    every: int | None = None
    at_us: tuple[int, ...] = ()
    from_us: int = 0
    until_us: int = NEVER


class Trigger:
    """Counts units and says which of them are struck, the same ones however the stream is cut into pieces."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        """Start at the first unit; `random` is this trigger's alone."""
        self._schedule = schedule
        self._random = random
        self._times = sorted(schedule.at_us, reverse=True)
        self._left = self._gap() - 1  # units before the next that is struck

    def strikes(self, count: int, now_us: int) -> list[int]:
        """Which of the next `count` units, that pass at this time, are struck, as indices from 0."""
        if self._times:
            return self._due(now_us) if count else []
        struck: list[int] = []
        while self._left < count:
            struck.append(self._left)
            self._left += self._gap()
        self._left -= count
        in_time = self._schedule.from_us <= now_us < self._schedule.until_us
        return struck if in_time else []

    def _due(self, now_us: int) -> list[int]:
        due = False
        while self._times and self._times[-1] <= now_us:
            self._times.pop()
            due = True
        return [0] if due else []

    def _gap(self) -> int:
        """Units from one struck to the next: geometric for a rate, so that each unit has its own chance."""
        if self._schedule.every is not None:
            return self._schedule.every
        rate = self._schedule.rate
        if not rate:
            return NEVER
        if rate >= 1.0:
            return 1
        return 1 + int(math.log(1.0 - self._random.random()) / math.log1p(-rate))
