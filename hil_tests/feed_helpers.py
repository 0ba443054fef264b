"""Helpers of the tests of feed and monitor: programs that watch a bench, clients of its feed, a monitor's page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.bench import FeedClient, open_feed
from jointbench.bench.monitor.attachment import watch

if TYPE_CHECKING:
    from playwright.sync_api import Page


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


WATCHING, ATTACHED, LOST = "live: watching", "live: attached to", "lost since"
PATIENCE_MS = 120_000  # of a busy machine


@dataclass(frozen=True)
class Monitor:
    """A running one.

    Attributes:
        url: of its page.
        process: to end it by.
    """

    url: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def monitor(bench: Path, *options: str) -> Iterator[Monitor]:
    """Run `jointbench monitor BENCH` as long as the block lasts, and end it as Ctrl-C does."""
    process = python("-m", "jointbench", "monitor", str(bench), *options)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, line + process.stdout.read()
        yield Monitor(line.split()[-1], process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), rest
        assert "Traceback" not in rest, rest


def python(*arguments: str) -> subprocess.Popen[str]:
    """Start a program of this checkout; what it says, errors too, is read from its stdout."""
    path = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip


def wait_for_connection(page: Page, words: str) -> None:
    """Wait until the page says that of its connection."""
    page.wait_for_function(
        "words => document.getElementById('connection').textContent.includes(words)", arg=words, timeout=PATIENCE_MS
    )


def wait_for_doing(page: Page, words: str) -> None:
    """Wait until the page says that the bench does that."""
    page.wait_for_function(
        "words => document.getElementById('doing').textContent.includes(words)", arg=words, timeout=PATIENCE_MS
    )


def shown_time_us(page: Page) -> int:
    """Which state the table shows, by the bench's time."""
    seconds = page.inner_text("#time").split()[2]
    return round(float(seconds) * 1e6)


def shown(page: Page) -> dict[str, list[str]]:
    """The cells of each joint."""
    rows = page.locator("#boards tbody tr")
    return {
        str(row.locator("th").inner_text()): [cell.strip() for cell in row.locator("td").all_inner_texts()]
        for row in rows.all()
    }
