"""A lockstep client of a few lines for tests of the bench itself: it knows ports and control socket, not the wire."""

import json
import socket
import tomllib
from pathlib import Path
from types import TracebackType
from typing import Any

import serial


class RawClient:
    """Opens every port of a live bench file and its control socket.

    A port that boards share is known by the lowest of their nodes, in `ports` as in what `wait` returns.
    """

    def __init__(self, live: Path) -> None:
        """Connect."""
        self.bench = tomllib.loads(live.read_text(encoding="utf-8"))
        self.ports: dict[int, serial.Serial] = {}
        self._port_of: dict[int, int] = {}
        port_at: dict[str, int] = {}
        for board in sorted(self.bench["board"], key=lambda board: board["node"]):
            node, url = board["node"], board["url"]
            if url not in port_at:
                port_at[url] = node
                self.ports[node] = serial.Serial(url, board["baud"], timeout=0)
            self._port_of[node] = port_at[url]
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.bench["control"])
        self._lines = self.socket.makefile("rb")
        self._written = dict.fromkeys(self.ports, 0)
        self._read = dict.fromkeys(self.ports, 0)
        self.time_us = 0
        self.dead: dict[str, str] = {}
        self.wait(0)  # before the first write: the bench is ours from the answer on

    def write(self, node: int, data: bytes) -> None:
        """Write to a board's port."""
        port = self._port_of[node]
        self._written[port] += self.ports[port].write(data) or 0

    def ask(self, request: Any) -> Any:
        """Send one control line (text as it is, anything else as JSON) and return the answer."""
        text = request if isinstance(request, str) else json.dumps(request)
        self.socket.sendall(text.encode() + b"\n")
        return json.loads(self._lines.readline())

    def wait(self, wait_us: int) -> dict[int, bytes]:
        """Let virtual time pass until something is sent or `wait_us` are over; return what came from each port."""
        written = {str(node): total for node, total in self._written.items()}
        reply = self.ask({"wait_us": wait_us, "written": written})
        assert "error" not in reply, reply
        self.time_us, self.dead = reply["time_us"], reply["dead"]
        received: dict[int, bytes] = {}
        for name, total in reply["sent"].items():
            node, data = int(name), b""
            while len(data) < total - self._read[node]:
                data += self.ports[node].read(total - self._read[node] - len(data))
            self._read[node] = total
            received[node] = data
        return received

    def pass_time(self, duration_us: int) -> dict[int, bytes]:
        """Let exactly this virtual time pass; return what came from each port in it."""
        received = dict.fromkeys(self.ports, b"")
        end = self.time_us + duration_us
        while self.time_us < end:
            for node, data in self.wait(end - self.time_us).items():
                received[node] += data
        return received

    def close(self) -> None:
        """Close the control connection, then the ports."""
        self._lines.close()
        self.socket.close()
        for port in self.ports.values():
            port.close()

    def __enter__(self) -> "RawClient":
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        self.close()
