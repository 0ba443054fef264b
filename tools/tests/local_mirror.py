"""What the tests of the set-up share: bare checkouts in a folder whose name has a space, programs, and a mirror."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tools.setup.command import RemoteFile

ROOT = Path(__file__).resolve().parents[2]


def bare_checkout(folder: Path) -> Path:
    """Return a fresh checkout in which nothing is set up."""
    root = folder / "my bench"
    shutil.copytree(ROOT / "tools" / "setup", root / "tools" / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("run", "requirements.lock", "pyproject.toml", "tools/__init__.py"):
        shutil.copy2(ROOT / name, root / name)
    return root


def start(root: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start `run` in a session of its own, without the settings of pip, uv and the bench that hold here."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "JOINTBENCH_"))}
    return subprocess.Popen(
        [root / "run", *arguments],
        env=env | {"PIP_CONFIG_FILE": os.devnull} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests run in the background, the shell has Ctrl-C ignored, and children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def script(path: Path, text: str) -> Path:
    """Write a shell script that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


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
