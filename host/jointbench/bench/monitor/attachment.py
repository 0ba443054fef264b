"""The page's attachment to a bench: the feed of whoever holds it, or an idle bench that it holds and watches itself."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from jointbench.bench.bench import Bench
from jointbench.bench.bench_file import read_bench_file
from jointbench.bench.feed import FeedClient, open_feed
from jointbench.bench.feed_server import Feed
from jointbench.bench.tally import Tally
from jointbench.errors import BenchLost, BoardError, JointbenchError
from jointwire import Chunk, Frame

_TURN_US = 40_000
_PING_TURNS = 25  # a second: only the clock figures need them
_TROUBLES = (JointbenchError, OSError, RuntimeError)  # the latter two where the machine has no more files or threads
_LOOK_S = 0.1  # between two looks for a feed
_RETRY_S = 1.0  # after a bench could not be watched
_TAKER_S = 3.0  # who asked for the ports has them, and a feed, by then


def watch(bench_file: str | Path, until: threading.Event) -> None:
    """Hold an idle bench and serve its feed, until somebody asks for its ports or `until` is set.

    Boards are told to stream and, at the end, to do what they did before; nothing else of them is changed. Only a
    board that is found driving is stopped: nobody is there who knows what for. Any thread may do this.

    Raises:
        FileError: the file is wrong.
        BoardLost: a port cannot be opened; another program may have it.
        BoardSilent, BoardRefused, BoardRefused: as in `Bench.connect`.
        BenchLost: the virtual bench does not answer, or has ended.
        FeedError: the feed's socket cannot be made.
    """
    with Bench(read_bench_file(bench_file), watching=True) as bench:
        bench.connect()
        feed = Feed(bench, watching=True)
        bench.subscribers.append(feed)
        _Watch(bench, feed).run(until)


class _Watch:
    def __init__(self, bench: Bench, feed: Feed) -> None:
        self._bench, self._feed = bench, feed
        self._tally = Tally({board.node: board.joint for board in bench.all_boards})
        self._began_us, self._began_s = bench.clock.now_us(), time.monotonic()

    def run(self, until: threading.Event) -> None:
        """Let boards stream, look for what is asked, and leave all as it was."""
        always_before = {
            board: board.facts.registers["stream.always"] for board in self._bench.all_boards if board.facts
        }
        try:
            for board in always_before:
                board.listen(self._count)
                with suppress(BoardError):  # one that is gone by now is shown as that
                    board.write_register("stream.always", 1)
            turn = 0
            while not until.is_set() and not self._feed.release_asked:
                self._turn(turn, until)
                turn += 1
        finally:
            for board, raw in always_before.items():
                board.listen(None)
                with suppress(BoardError, BenchLost):
                    board.write_register("stream.always", raw)

    def _turn(self, turn: int, until: threading.Event) -> None:
        clock = self._bench.clock
        end_us = clock.now_us() + _TURN_US
        if turn % _PING_TURNS == 0:
            for board in self._bench.all_boards:
                board.keep_alive()
        while (left_us := end_us - clock.now_us()) > 0:
            clock.wait(left_us, left_us)
        if clock.name == "virtual":  # whose time would fly
            until.wait((end_us - self._began_us) * 1e-6 - (time.monotonic() - self._began_s))
        self._bench.publish("received", tally=self._tally)
        if self._feed.stop_asked:
            self._bench.stop()

    def _count(self, time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame):
            self._tally.add(chunk.content)
        else:
            self._tally.add_noise(node)


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
        link = {"kind": "link", "up": up, "own": own, "why": why}
        if link != self._told:
            self._told = link
            self._tell(link)
