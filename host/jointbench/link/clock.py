"""The target's time: nothing here or above ever sleeps or times out on another clock."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Protocol

from jointbench.link.port import Port

_POLL_US = 1000  # between looks at ports that cannot be waited on

_Arrival = tuple[Port, bytes, int]
"""Bytes that came at a port, and when [µs]."""


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

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """Hand what arrives to the ports' sinks; returns after the first arrival or the time-out.

        Args:
            timeout_us: how long at most.
            gather_us: hand over together what arrives in this time. Twelve boards send 700 pieces a second; to turn to
                each by itself costs a computer more than what is in them.
            timed_us: the time of each is to be known if it arrives so soon; of the others only that of the last is.
        """
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
        self._start_ns = time.monotonic_ns()
        for port in ports:
            port.now_us = self.now_us
            port.discard()
        self._waited_on = {port.descriptor: port for port in ports if port.descriptor is not None}
        self._poll = select.epoll()
        for descriptor in self._waited_on:
            self._poll.register(descriptor, select.EPOLLIN)
        self._looked_at = [port for port in ports if port.descriptor is None]
        self._faulty = tuple(port for port in ports if port.faults)

    def now_us(self) -> int:
        """Time since the bench was opened [µs]."""
        return (time.monotonic_ns() - self._start_ns) // 1000

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """Hand what arrives to the ports' sinks; returns after the first arrival or the time-out."""
        began_us = self.now_us()
        timeout_us = until_due(self._faulty, began_us, timeout_us)
        if self._looked_at:
            gather_us, timeout_us = 0, min(timeout_us, _POLL_US)
        gather_us = min(gather_us, timeout_us)
        arrived: list[_Arrival] = []
        while (left_us := began_us + min(timed_us, gather_us) - self.now_us()) > 0:
            arrived += self._arrivals(left_us)
        if (left_us := began_us + gather_us - self.now_us()) > 0:
            time.sleep(left_us * 1e-6)
        arrived += self._arrivals(0 if arrived else timeout_us - gather_us)
        for port, data, time_us in arrived:
            port.deliver(data, time_us)
        deliver_due(self._faulty, self.now_us())

    def close(self) -> None:
        """Wait no more; the ports stay open."""
        self._poll.close()

    def _arrivals(self, timeout_us: int) -> list[_Arrival]:
        """What has come at the first arrival or the time-out."""
        ready = self._poll.poll(timeout_us * 1e-6)  # by the whole millisecond, rounded up
        ports = [self._waited_on[descriptor] for descriptor, _ in ready] + self._looked_at
        return [(port, data, self.now_us()) for port in ports if (data := self._read(port))]

    def _read(self, port: Port) -> bytes:
        data = port.read()
        if port.lost:
            self._looked_at = [each for each in self._looked_at if each is not port]
            if port.descriptor is not None:
                self._poll.unregister(port.descriptor)
        return data


def until_due(ports: Sequence[Port], now_us: int, timeout_us: int) -> int:
    """Time-out [µs] of a wait that must not sleep over what faults let pass."""
    for port in ports:
        if (due_us := port.next_due_us) is not None:
            timeout_us = min(timeout_us, due_us - now_us)
    return max(timeout_us, 0)


def deliver_due(ports: Sequence[Port], now_us: int) -> bool:
    """Pass on what faults let pass by now; returns whether a sink was given anything."""
    given = False
    for port in ports:
        if (due_us := port.next_due_us) is not None and due_us <= now_us:
            given = port.deliver(b"", now_us) or given
    return given
