"""What the tests of the live feed share: programs that watch a bench, and a client as soon as there is a feed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jointbench.bench import FeedClient, open_feed
from jointbench.bench.monitor.attachment import watch

_PATIENCE_S = 60.0  # of the wall clock, for a program to start on a busy machine
WATCHER = """
import sys, threading
from jointbench.bench.monitor.attachment import watch
watch(sys.argv[1], threading.Event())
"""


@contextmanager
def watching(live: Path) -> Iterator[FeedClient]:
    """A thread that watches a bench, and a client of its feed."""
    until = threading.Event()
    thread = threading.Thread(target=watch, args=(live, until))
    thread.start()
    try:
        with feed_of(live) as client:
            yield client
    finally:
        until.set()
        thread.join()


@contextmanager
def watcher_process(live: Path) -> Iterator[subprocess.Popen[str]]:
    """The same as a program of its own, which may be killed."""
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", WATCHER, str(live)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **paths}) as process:
        try:
            yield process
        finally:
            process.kill()


def feed_of(live: Path) -> FeedClient:
    """The feed of whoever holds the bench, as soon as somebody does."""
    deadline = time.monotonic() + _PATIENCE_S
    while (client := open_feed(live)) is None:
        assert time.monotonic() < deadline, "nobody serves a feed"
        time.sleep(0.01)
    return client


def first(client: FeedClient, **fields: Any) -> dict[str, Any]:
    """The first line with these fields; a line that ends the feed before is none."""
    for line in client.lines():
        if all(line.get(name) == value for name, value in fields.items()):
            return line
    raise AssertionError(f"the feed ended before a line with {fields}")


def joint_lines(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The boards of a state, by joint."""
    return {board["joint"]: board for board in state["boards"]}
