"""A clock under which shared lines give turns, whoever waits and for whatever."""

from __future__ import annotations

from collections.abc import Sequence

from jointbench.link.clock import Clock
from jointbench.link.line import Line


class AttendedClock:
    """Another clock, in whose waits the lines are served.

    Attributes:
        clock: the other one.
    """

    def __init__(self, clock: Clock, lines: Sequence[Line]) -> None:
        """Serve these lines in every wait."""
        self.name: str = clock.name
        self.common_ticks: bool = clock.common_ticks
        self.clock = clock
        self._lines = tuple(lines)

    def now_us(self) -> int:
        """Time since the bench was opened [µs]."""
        return self.clock.now_us()

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """Hand what arrives to the ports' sinks; returns after the first arrival, the time-out, or something due."""
        left = min(line.due_us() for line in self._lines) - self.clock.now_us()
        # Also when something is overdue: on a busy computer what a turn waits for may have come long ago.
        self.clock.wait(max(min(timeout_us, left), 0))
        for line in self._lines:
            line.serve()

    def close(self) -> None:
        """Let the target go."""
        self.clock.close()
