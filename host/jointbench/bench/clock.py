"""The target's time: nothing here or above ever sleeps or times out on another clock."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from jointbench.bench.line import Line, Port
from jointbench.errors import BenchLost

_POLL_US = 1000  # between looks at ports that cannot be waited on

_Arrival = tuple[Port, bytes, int]
"""Bytes that came at a port, and when [µs]."""
# Wall time, as a last resort against a bench that hangs: a wait of a second takes it well under one second.
_BENCH_TIMEOUT_S = 60.0


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
        """Bytes that have come at the first arrival or the time-out."""
        ready = self._poll.poll(timeout_us * 1e-6)  # by the whole millisecond, rounded up
        ports = [self._waited_on[descriptor] for descriptor, _ in ready] + self._looked_at
        return [(port, data, self.now_us()) for port in ports if (data := self._read(port))]

    def _read(self, port: Port) -> bytes:
        data = port.read()
        if port.lost:
            self._looked_at = [polled for polled in self._looked_at if polled is not port]
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
    was_given = False
    for port in ports:
        if (due_us := port.next_due_us) is not None and due_us <= now_us:
            was_given = port.deliver(b"", now_us) or was_given
    return was_given


class LockstepClock:
    """The control socket of a virtual bench (JSON lines)."""

    name = "virtual"

    def __init__(self, control: Path, ports: Sequence[Port], common_ticks: bool = True) -> None:
        """Take control of the bench's time.

        Args:
            control: path of the socket.
            ports: all that are open.
            common_ticks: whether the bench's boards all count the same ticks.

        Raises:
            BenchLost: nobody listens at the socket, or it has a client already.
        """
        self.common_ticks = common_ticks
        self._ports = tuple(ports)
        self._pending = bytearray()
        self._now_us = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_BENCH_TIMEOUT_S)
        for port in ports:
            port.now_us = self.now_us
        try:
            self._connect(control)
            self._discard_old_bytes()
        except BaseException:
            self._socket.close()
            raise

    def now_us(self) -> int:
        """Virtual time [µs]."""
        return self._now_us

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        """Let virtual time advance until a board has sent something, or for the time-out; nothing is gathered.

        Raises:
            BenchLost: the bench has ended or hangs.
        """
        if deliver_due(self._ports, self._now_us):
            return
        wait_us = until_due(self._ports, self._now_us, int(timeout_us))
        answer = self.ask({"wait_us": wait_us, "written": {port.key: port.written for port in self._ports}})
        self._now_us = int(answer["time_us"])
        for port in self._ports:
            size = int(answer["sent"].get(port.key, 0)) - self._sent_before[port.key] - port.received
            if size > 0 and (data := port.read_exactly(size, _BENCH_TIMEOUT_S)):
                port.deliver(data, self._now_us)
            for node in port.nodes:
                if reason := answer["dead"].get(str(node)):
                    port.dead[node] = f"its process has ended: {reason}"
        deliver_due(self._ports, self._now_us)

    def restart(self, node: int) -> None:
        """Take a board's power and give it back.

        Raises:
            BenchLost: the bench cannot start it again, or has ended.
        """
        self.ask({"restart": node})
        for port in self._ports:
            port.dead.pop(node, None)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have the bench do something besides, such as break a sensor (docs/faults.md says what it can do).

        Returns:
            Its answer.

        Raises:
            BenchLost: it refuses, with its reason; or it has ended or hangs.
        """
        try:
            with contextlib.suppress(BrokenPipeError):  # a bench that closes the connection has said why before
                self._socket.sendall(json.dumps(request).encode() + b"\n")
            while b"\n" not in self._pending:
                received = self._socket.recv(65536)
                if not received:
                    raise BenchLost("virtual bench: it has ended, or was stopped; start it again with `./run sim`")
                self._pending += received
        except BenchLost:  # an OSError itself, and says it already
            raise
        except TimeoutError as error:
            raise BenchLost(f"virtual bench: no answer for {_BENCH_TIMEOUT_S:g} s of real time; stop it") from error
        except OSError as error:
            raise BenchLost(f"virtual bench: connection lost ({error}); start it again with `./run sim`") from error
        line, _, rest = bytes(self._pending).partition(b"\n")
        self._pending = bytearray(rest)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BenchLost(f"virtual bench: {answer['error']}")
        return answer

    def close(self) -> None:
        """Give the bench's time back, and wait until it knows: what goes to its ports then is nobody's client's."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(65536):
                pass
        self._socket.close()

    def _connect(self, control: Path) -> None:
        try:
            self._socket.connect(str(control))
        except OSError as error:
            raise BenchLost(
                f"virtual bench: nobody listens at its control socket {control} ({error.strerror}); "
                "start it with `./run sim` and use the bench file it prints"
            ) from error

    def _discard_old_bytes(self) -> None:
        """Start level: what boards sent to nobody is no answer to us."""
        answer = self.ask({"wait_us": 0, "written": dict.fromkeys((port.key for port in self._ports), 0)})
        self._now_us = int(answer["time_us"])
        for port in self._ports:
            port.discard()
        self._sent_before = {port.key: int(answer["sent"].get(port.key, 0)) for port in self._ports}


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
