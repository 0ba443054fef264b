"""A server of files on this machine that fails as it is told: for what set-up does when a network or a mirror fails."""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tools.setup.command import RemoteFile

HANG = "hang"  # send half, then nothing more
SHORT = "short"  # send half, then hang up
OTHER = "other"  # send other bytes


class Mirror(ThreadingHTTPServer):
    """Serves `files`. `faults` is what goes wrong with the next requests, one each: a status, HANG, SHORT or OTHER."""

    daemon_threads = False  # so that closing waits for them, and leaves no socket open

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.faults: list[int | str] = []
        self.asked: list[str] = []
        self.closing = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/debian"

    def add(self, path: str, content: bytes) -> RemoteFile:
        """Have a file served below the mirror's address."""
        self.files[f"/debian/{path}"] = content
        return RemoteFile(path, len(content), hashlib.sha256(content).hexdigest())


class _Handler(BaseHTTPRequestHandler):
    server: Mirror  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        asked_from = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked_from[1]) if asked_from else 0
        self.server.asked.append(f"{self.path} {start}" if start else self.path)
        fault = self.server.faults.pop(0) if self.server.faults else None
        content = self.server.files.get(self.path)
        if isinstance(fault, int) or content is None:
            self.send_error(fault if isinstance(fault, int) else 404)
            return
        content = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == OTHER:
            content = bytes(len(content))
        self.wfile.write(content[: len(content) // 2] if fault in (HANG, SHORT) else content)
        self.wfile.flush()
        if fault == HANG:
            self.server.closing.wait(60)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: `asked` is the log."""


@contextmanager
def mirror() -> Iterator[Mirror]:
    """A mirror that serves until the end of the block."""
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
