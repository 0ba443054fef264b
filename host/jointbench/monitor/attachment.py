"""Always at the feed of whoever holds a bench; at our own, where nobody else does."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jointbench.errors import JointbenchError
from jointbench.link.feed import FeedClient, open_feed
from jointbench.link.feed_watch import watch

_TROUBLES = (JointbenchError, OSError, RuntimeError)  # the latter two where the machine has no more files or threads
_LOOK_S = 0.1  # between two looks for a feed
_RETRY_S = 1.0  # after a bench could not be watched
_TAKER_S = 3.0  # who asked for the ports has them, and a feed, by then


class Attachment:
    """Reads, in a thread of its own, the feed of a bench, and holds an idle bench in another.

    Beside the feed's lines it tells {"kind": "link", "up": bool, "own": bool, "why": text}: whether there is a feed,
    whether it is ours, and otherwise why there is none.
    """

    def __init__(self, bench: Path, tell: Callable[[dict[str, Any]], None]) -> None:
        """Begin; `tell` gets every line, in the reader's thread."""
        self._bench = bench
        self._tell = tell
        self._ended = threading.Event()
        self._feed: FeedClient | None = None
        self._watcher: threading.Thread | None = None
        self._told: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read_on, name="monitor: feed")
        self._reader.start()

    def ask(self, what: str) -> bool:
        """Ask whoever holds the bench; False where nobody does."""
        feed = self._feed
        if feed is None:
            return False
        try:
            feed.ask(what)
        except (JointbenchError, OSError):
            return False
        return True

    def close(self) -> None:
        """Let go of the bench: boards that we watched are as before."""
        self._ended.set()
        feed = self._feed
        if feed is not None:
            feed.close()
        self._reader.join()
        if self._watcher is not None:
            self._watcher.join()

    def _read_on(self) -> None:
        while not self._ended.is_set():
            try:
                self._look()
            except _TROUBLES as error:
                self._down(str(error), _RETRY_S)
            self._ended.wait(_LOOK_S)

    def _look(self) -> None:
        """Read the feed there is; where there is none, hold the bench."""
        feed = open_feed(self._bench)
        if feed is not None:
            self._read(feed)
        elif self._watcher is None or not self._watcher.is_alive():
            watcher = threading.Thread(target=self._watch, name="monitor: watch")
            watcher.start()
            self._watcher = watcher

    def _read(self, feed: FeedClient) -> None:
        """Tell the lines of one holder until it is gone."""
        self._feed = feed
        why = "it has ended"
        try:
            for line in feed.lines():
                if line["kind"] == "about":
                    self._link(up=True, own=line.get("pid") == os.getpid())
                if line["kind"] == "bye":
                    why = line.get("why") or why
                self._tell(line)
                if self._ended.is_set():
                    return
        finally:
            self._feed = None
            feed.close()
        self._down(why, 0.0)

    def _watch(self) -> None:
        """Hold the bench until another wants it, and give that one time to take it."""
        try:
            watch(self._bench, self._ended)
        except _TROUBLES as error:
            self._down(str(error), _RETRY_S)
            return
        self._ended.wait(_TAKER_S)

    def _down(self, why: str, pause_s: float) -> None:
        if not self._ended.is_set():
            self._link(up=False, why=why)
            self._ended.wait(pause_s)

    def _link(self, *, up: bool, own: bool = False, why: str = "") -> None:
        told = {"kind": "link", "up": up, "own": own, "why": why}
        if told != self._told:
            self._told = told
            self._tell(told)
