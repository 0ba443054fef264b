"""Virtual time: it advances only while this client waits, so the same run is the same bytes every time."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jointbench.errors import BenchLost
from jointbench.link.clock import deliver_due, until_due
from jointbench.link.port import Port

# Wall time, as a last resort against a bench that hangs: a wait of a second takes it well under one second.
_BENCH_TIMEOUT_S = 60.0


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
