"""A clock around the target's that calls back once, at a given moment of it: there the fault strikes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jointbench.link.clock import Clock, LockstepClock


class MomentClock:
    """The target's clock, with something that happens at a moment, whoever waits on it then.

    Attributes:
        target: the clock behind.
        moment_us: when it is to happen [µs].
        struck_us: when it happened [µs], None before.
    """

    def __init__(self, clock: Clock, moment_us: int, strike: Callable[[], None]) -> None:
        """Wait for the moment; it may be now."""
        assert isinstance(clock, LockstepClock)
        self.target = clock
        self.name = clock.name
        self.common_ticks = clock.common_ticks
        self.struck_us: int | None = None
        self.moment_us = moment_us
        self._strike = strike

    def now_us(self) -> int:
        """Time of the target [µs]."""
        return self.target.now_us()

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """As any clock, but never past the moment; what happens there happens before time goes on."""
        left_us = self.moment_us - self.target.now_us()
        if self.struck_us is None and left_us <= 0:
            self.struck_us = self.target.now_us()
            self._strike()
        self.target.wait(min(timeout_us, left_us) if left_us > 0 else timeout_us, gather_us, timed_us)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have the bench do something besides."""
        return self.target.ask(request)

    def close(self) -> None:
        """Let the target go."""
        self.target.close()
