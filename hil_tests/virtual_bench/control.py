"""The control socket: how a client moves virtual time, and so gets the same bytes in every run.

A client connects, sends a first request (wait_us 0 will do) and writes to the ports only after its answer: by then the
bench has forgotten the bytes of the client before. All totals count from there. Time is in whole µs: an answer comes at
the µs at which bytes reach the client, or when the time asked for is over. Ports are named by the lowest node on them.
"""

import contextlib
import json
import os
import select
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hil_tests.virtual_bench.errors import BenchError, ControlError
from hil_tests.virtual_bench.hardware_faults import parse_injection

_LONGEST_LINE = 65536
_LONGEST_PATH = 107  # of a UNIX socket, sun_path without its closing zero
_ABOUT_A_BOARD = ("restart", "heal", "outputs")
LONGEST_WAIT_US = 60_000_000  # bounds what a slip of a unit costs


class ControlSocket:
    """A UNIX stream socket for JSON lines, one client at a time."""

    def __init__(self, path: Path) -> None:
        """Listen at `path`, or in a temporary folder where it is longer than the system lets a socket's path be.

        Raises:
            BenchError: the socket cannot be made there.
        """
        self._own_folder = None
        if len(os.fsencode(path)) > _LONGEST_PATH:
            self._own_folder = tempfile.TemporaryDirectory(prefix="jointbench-")
            path = Path(self._own_folder.name) / path.name
        self.path = path
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(str(path))
        except OSError as error:
            raise BenchError(f"control socket {path} cannot be made ({error}); choose another --out") from error
        self._listener.listen(4)
        self._client: socket.socket | None = None
        self._pending = b""

    @property
    def connected(self) -> bool:
        """Whether a client holds the bench."""
        return self._client is not None

    def sources(self) -> list[socket.socket]:
        """Sockets to wait on for the next request or client."""
        return [self._listener] if self._client is None else [self._listener, self._client]

    def serve(self, ready: list[Any]) -> list[bytes]:
        """Handle one of the sockets in `ready`: return complete request lines, or admit or refuse a newcomer.

        A client that has gone is seen before the next one is admitted: `connected` is False in between.
        """
        if self._client is not None and self._client in ready:
            return self._read(self._client)
        if self._listener in ready:
            self._admit()
        return []

    def answer(self, reply: Mapping[str, Any]) -> None:
        """Send one line to the client; a client that has gone is noticed at the next `serve`."""
        if self._client is not None:
            _send(self._client, reply)

    def client_waits(self) -> bool:
        """Whether the client is still there while the bench works on its request."""
        if self._client is None:
            return False
        ready, _, _ = select.select([self._client], [], [], 0.0)
        try:
            return not ready or bool(self._client.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def close(self) -> None:
        """Close the socket and remove its file."""
        if self._client is not None:
            self._client.close()
        self._listener.close()
        self.path.unlink(missing_ok=True)
        if self._own_folder is not None:
            self._own_folder.cleanup()

    def _read(self, client: socket.socket) -> list[bytes]:
        try:
            data = client.recv(_LONGEST_LINE)
        except OSError:
            data = b""
        *lines, self._pending = (self._pending + data).split(b"\n")
        if not data or len(self._pending) > _LONGEST_LINE:
            client.close()
            self._client, self._pending = None, b""
            return []
        return lines

    def _admit(self) -> None:
        newcomer, _ = self._listener.accept()
        if self._client is None:
            self._client = newcomer
            return
        _send(newcomer, {"error": "this bench already has a client; close the other connection first"})
        newcomer.close()


def parse_request(line: bytes, ports: frozenset[str], nodes: frozenset[int]) -> dict[str, Any]:
    """Check one request line: {"wait_us": …, "written": {port: total, …}}, {"truth": true}, or one about a board:
    {"restart": node}, {"inject": {…}} (hardware_faults.py), {"heal": node}, {"outputs": node} (output_trace.py).

    Raises:
        ControlError: it is something else; the text says what.
    """
    try:
        request = json.loads(line)
    except ValueError as error:
        raise ControlError(f"request is not a line of JSON: {error}") from error
    if request == {"truth": True}:
        return {"truth": True}
    if isinstance(request, dict) and len(cast(dict[str, Any], request)) == 1:
        ((kind, value),) = cast(dict[str, Any], request).items()
        if kind == "inject":
            return {"inject": parse_injection(value, nodes)}
        if kind in _ABOUT_A_BOARD:
            if not _is_count(value) or value not in nodes:
                raise ControlError(
                    f"{kind} = {value!r} is no board; this bench has {', '.join(map(str, sorted(nodes)))}"
                )
            return {kind: value}
    form = (
        '{"wait_us": microseconds, "written": {"port": bytes, …}}, {"truth": true}, {"restart": node}, '
        '{"inject": {"node": node, "fault": name, …}}, {"heal": node} or {"outputs": node}'
    )
    if not isinstance(request, dict) or set(cast(dict[str, Any], request)) != {"wait_us", "written"}:
        raise ControlError(f"request {line[:80]!r} is of none of the forms: {form}")
    wait_us, written = request["wait_us"], request["written"]
    if not _is_count(wait_us) or wait_us > LONGEST_WAIT_US:
        raise ControlError(f"wait_us = {wait_us!r} must be a whole number from 0 to {LONGEST_WAIT_US}")
    if not isinstance(written, dict) or not all(_is_count(total) for total in cast(dict[str, Any], written).values()):
        raise ControlError(f"written = {written!r} must give each port the total of bytes written to it")
    unknown = sorted(set(cast(dict[str, Any], written)) - ports)
    if unknown:
        raise ControlError(
            f"written names port {unknown[0]!r}; this bench has {', '.join(sorted(ports, key=int))}, each named by its "
            "lowest node"
        )
    return {"wait_us": wait_us, "written": written}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _send(client: socket.socket, reply: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # it may have gone; reading from it says so
        client.sendall(json.dumps(reply).encode() + b"\n")
