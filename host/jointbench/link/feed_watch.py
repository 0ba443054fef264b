"""Holding an idle bench so that it can be looked at: its boards stream, and nothing moves."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

from jointbench.errors import BenchLost, BoardError
from jointbench.link.bench import Bench
from jointbench.link.bench_file import read_bench_file
from jointbench.link.feed_server import Feed
from jointbench.link.tally import Tally
from jointwire import Chunk, Frame

_TURN_US = 40_000
_PING_TURNS = 25  # a second: only the clock figures need them


def watch(bench_file: str | Path, until: threading.Event) -> None:
    """Hold an idle bench and serve its feed, until somebody asks for its ports or `until` is set.

    Boards are told to stream and, at the end, to do what they did before; nothing else of them is changed. Only a
    board that is found driving is stopped: nobody is there who knows what for. Any thread may do this.

    Raises:
        BenchFileError: the file is wrong.
        BoardLost: a port cannot be opened; another program may have it.
        BoardSilent, SchemaMismatch, ConfigurationDiffers: as in `Bench.connect`.
        BenchLost: the virtual bench does not answer, or has ended.
        FeedError: the feed's socket cannot be made.
    """
    with Bench(read_bench_file(bench_file), watching=True) as bench:
        bench.connect()
        assert bench.feed is not None  # a bench that is to be watched connects with a feed or not at all
        _Watch(bench, bench.feed).run(until)


class _Watch:
    def __init__(self, bench: Bench, feed: Feed) -> None:
        self._bench, self._feed = bench, feed
        self._tally = Tally({board.node: board.joint for board in bench.all_boards})
        self._began_us, self._began_s = bench.clock.now_us(), time.monotonic()

    def run(self, until: threading.Event) -> None:
        """Let boards stream, look for what is asked, and leave all as it was."""
        before = {board: board.facts.registers["stream.always"] for board in self._bench.all_boards if board.facts}
        try:
            for board in before:
                board.listen(self._count)
                with suppress(BoardError):  # one that is gone by now is shown as that
                    board.write_register("stream.always", 1)
            turn = 0
            while not until.is_set() and not self._feed.release_asked:
                self._turn(turn, until)
                turn += 1
        finally:
            for board, raw in before.items():
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
        self._feed.count(self._tally)
        if self._feed.stop_asked:
            self._bench.stop()

    def _count(self, time_us: int, node: int, chunk: Chunk) -> None:
        if isinstance(chunk.content, Frame):
            self._tally.add(chunk.content)
        else:
            self._tally.add_noise(node)
