"""A process that works without end and one that waits without end: how long either is waited for."""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from hil_tests.virtual_bench.board import Patience


@contextmanager
def started(program: str) -> Generator[int]:
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def wait(patience: Patience) -> float:
    """How long [s] it lasted."""
    began = time.monotonic()
    while not patience.is_over:
        time.sleep(0.01)
    return time.monotonic() - began


def test_work_without_end_is_ended_by_its_own_processor_time() -> None:
    with started("while True: pass") as pid:
        patience = Patience(pid, own=0.3, wall=60.0)
        # One thread cannot use more of a processor than passes; times are in hundredths.
        assert 0.25 < wait(patience) < 60.0
    assert str(patience) == "0.3 s of its processor time or 60 s of the wall clock"


def test_a_wait_without_end_is_ended_by_the_wall_clock() -> None:
    with started("import time; time.sleep(99)") as pid:
        assert 0.3 <= wait(Patience(pid, own=60.0, wall=0.3)) < 60.0
