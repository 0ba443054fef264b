"""The target's time: nothing here or above ever sleeps or times out on another clock."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Protocol

from jointbench.link.port import Port

_POLL_S = 0.001  # between looks at ports that cannot be waited on


class Clock(Protocol):
    """Time of the boards, and waiting for what they send.

    Attributes:
        name: "virtual" or "wall", as in bench files.
        common_ticks: whether all boards count the same ticks.
    """

    name: str
    common_ticks: bool

    def now_us(self) -> int:
        """Time since the bench was opened [µs]."""
        ...

    def wait(self, timeout_us: int) -> None:
        """Hand what arrives to the ports' sinks; returns after the first arrival or the time-out."""
        ...

    def close(self) -> None:
        """Let the target go."""
        ...


class WallClock:
    """Real boards, or a virtual bench in real time: the target's time is the host's monotonic clock."""

    name = "wall"
    common_ticks = False

    def __init__(self, ports: Sequence[Port]) -> None:
        """Start at zero."""
        self._ports = tuple(ports)
        self._start_ns = time.monotonic_ns()
        for port in self._ports:
            port.discard()

    def now_us(self) -> int:
        """Time since the bench was opened [µs]."""
        return (time.monotonic_ns() - self._start_ns) // 1000

    def wait(self, timeout_us: int) -> None:
        """Hand what arrives to the ports' sinks; returns after the first arrival or the time-out."""
        for port in self._ready(timeout_us / 1e6):
            if data := port.read():
                port.sink(data, self.now_us())

    def close(self) -> None:
        """Nothing to let go of."""

    def _ready(self, timeout_s: float) -> Sequence[Port]:
        alive = [port for port in self._ports if not port.lost]
        descriptors = {number: port for port in alive if (number := port.fileno()) is not None}
        if len(descriptors) < len(alive) or not alive:
            time.sleep(min(timeout_s, _POLL_S))
            return alive
        ready = select.select(list(descriptors), [], [], timeout_s)[0]
        return [descriptors[descriptor] for descriptor in ready]
