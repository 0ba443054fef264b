"""A virtual bench in a fork of this process: it starts in a twentieth of a second, with everything imported."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Generator
from pathlib import Path

from hil_tests.virtual_bench.bench import running_bench
from hil_tests.virtual_bench.bench_file import BenchFile
from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.stop import Stop

_PATIENCE_S = 60.0  # of the wall clock, for starting, and for ending
_LOOK_S = 0.002


@contextlib.contextmanager
def forked_bench(description: BenchFile, seed: int, folder: Path) -> Generator[Path]:
    """Run a virtual bench in virtual time while the context lasts; yields the path of its live bench file.

    Raises:
        BenchError: it did not start, with its own words why, or it did not end.
    """
    folder.mkdir(parents=True)
    log, live = folder / "bench.log", folder / "bench.toml"
    stdin, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        _serve(description, seed, folder, stdin, log)
    os.close(stdin)
    try:
        _await_start(child, live, log)
        yield live
    finally:
        os.close(held)  # its standard input ends, and so does it
        with contextlib.suppress(ChildProcessError):
            _await_end(child, log)


def _serve(description: BenchFile, seed: int, folder: Path, stdin: int, log: Path) -> None:
    """Be the bench until standard input ends; never returns."""
    try:
        os.setsid()  # Ctrl-C is for the campaign, which ends its benches
        os.dup2(stdin, 0)
        words = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        os.dup2(words, 1)
        os.dup2(words, 2)
        sys.stdin, sys.stderr = os.fdopen(0), os.fdopen(2, "w", buffering=1)  # a process of a pool has others
        try:
            running = running_bench(description, "harmonic", seed, False, folder)
            with Stop(attached=True) as stop, running as (_, bench, control):
                assert control is not None
                bench.serve_control(control, stop)
        except BenchError as error:
            print(f"error: {error}", file=sys.stderr)
        except Exception:
            traceback.print_exc()
    finally:
        os._exit(0)


def _await_start(child: int, live: Path, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not live.exists():
        if os.waitpid(child, os.WNOHANG)[0]:
            raise BenchError(log.read_text(encoding="utf-8").strip().removeprefix("error: "))
        if time.monotonic() > deadline:
            raise BenchError(f"virtual bench did not start within {_PATIENCE_S:g} s; its words are in {log}")
        time.sleep(_LOOK_S)


def _await_end(child: int, log: Path) -> None:
    """Wait for the bench, which ends its boards; one that hangs is ended with everything it started."""
    deadline = time.monotonic() + _PATIENCE_S
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise BenchError(f"virtual bench did not end within {_PATIENCE_S:g} s; its words are in {log}")
        time.sleep(_LOOK_S)
