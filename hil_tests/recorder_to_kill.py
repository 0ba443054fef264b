"""`python -m hil_tests.recorder_to_kill LIVE_BENCH`: a process for each run, which records until it is killed.

A line of standard input names a directory; the answers are lines: `pid N` of the process that records into it; then,
once samples stream, `received N` when the N things that this process received until then must all be in the file, and
`time T` [µs] after each wait for more; and `ended N` with the status it ended with. Forking saves the seconds that
importing takes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from hil_tests.link_helpers import wave
from jointbench.bench import Clock, open_bench
from jointbench.recording import Recorder
from jointwire import Chunk, Frame, FrameReader, MessageType

REPEATS = 2  # of a wave of about a second: nobody waits for the end


class TellingRecorder(Recorder):
    """Says what it must have written."""

    streaming = False
    received = 0

    def tell_time(self, clock: Clock) -> None:
        """Say before each wait what came until then, and after it what time it is."""
        wait = clock.wait

        def wait_and_tell(timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
            if self.streaming:
                _say(f"received {self.received}")
            wait(timeout_us)
            if self.streaming:
                _say(f"time {clock.now_us()}")

        clock.wait = wait_and_tell

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Count it, then record it."""
        content = chunk.content
        self.received += 1
        self.streaming |= isinstance(content, Frame) and content.type is MessageType.DATA
        super().chunk(time_us, node, chunk)


def main() -> None:
    """Serve until standard input ends."""
    live = sys.argv[1]
    list(FrameReader().feed(b"\x01\x00"))  # loads the compiled decoder, before there is anything to fork
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                _record(live, Path(line.strip()))
            finally:
                os._exit(1)  # it was not killed
        _say(f"pid {child}")
        _, status = os.waitpid(child, 0)
        _say(f"ended {os.waitstatus_to_exitcode(status)}")


def _record(live: str, directory: Path) -> None:
    with open_bench(live) as bench:
        bench.connect()
        bench.clear()
        bench.configure()
        start = bench.positions()  # where the last one was killed: go towards home from there
        motion = replace(wave(bench), start=start, way=np.where(start > bench.robot.home, -0.1, 0.1))
        recorder = TellingRecorder(directory, bench.provenance(repeats=REPEATS))
        recorder.tell_time(bench.clock)
        bench.play(motion, REPEATS, recorder)


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    main()
