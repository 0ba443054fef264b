"""Stalls: for a while nothing passes, and then everything that waited."""

from __future__ import annotations

from collections.abc import Sequence


class Stall:
    """Times at which nothing passes.

    Attributes:
        struck: how many stalls have held something up.
    """

    def __init__(self, starts_us: Sequence[int], every_us: int, length_us: int) -> None:
        """Stalls begin at given times, or (without any) at each multiple of `every_us`, and last `length_us`."""
        self.struck: int = 0
        self._starts_us, self._every_us, self._length_us = sorted(starts_us), every_us, length_us
        self._last_us = -1

    def end_us(self, due_us: int) -> int:
        """When something passes that is due at this time."""
        while (start_us := self._start_us(due_us)) is not None:
            due_us = start_us + self._length_us
            if start_us > self._last_us:
                self.struck += 1
                self._last_us = start_us
        return due_us

    def _start_us(self, due_us: int) -> int | None:
        """Start of the stall that holds up what is due at this time."""
        if self._starts_us:
            running = [start for start in self._starts_us if start <= due_us < start + self._length_us]
            return running[-1] if running else None
        periods = due_us // self._every_us
        start_us = periods * self._every_us
        return start_us if periods and due_us < start_us + self._length_us else None
