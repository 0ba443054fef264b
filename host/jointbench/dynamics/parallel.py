"""Long batches are shared by the processor's cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jointbench.dynamics.kernels.sharing import Counters

    Job = Callable[[int, Counters], None]

_WORTHWHILE = 6
"""Pieces for which others are called: to set up and to wait for them takes about as long as one piece."""


def share(job: Job, pieces: int) -> None:
    """Call job(thread, counters) on this thread, as thread 0, and on others; return when all pieces are done.

    Python's threads rather than Numba's own: those end the process when two threads call them at a time, while kernels
    hold no lock of the interpreter.

    Args:
        job: takes pieces by `counters` until none is left (`kernels.sharing`).
        pieces: how many there are.
    """
    from jointbench.dynamics.kernels.sharing import close, new_counters, wait

    crew = _crew(os.getpid()) if pieces >= _WORTHWHILE and n_threads() > 1 else None
    if crew is None:
        job(0, new_counters())
        return
    try:
        if crew.begin(job):
            job(0, crew.counters)
            wait(crew.counters, pieces)
        else:
            job(0, new_counters())
    except BaseException:
        if crew.job is job:
            close(crew.counters)
        raise
    finally:
        # No call, as Ctrl-C may come before any: then the crew would keep a job whose caller is gone.
        if crew.job is job:
            crew.job = None


@cache
def n_threads() -> int:
    """How many threads there are: as many as Numba would have, which NUMBA_NUM_THREADS says or the processor."""
    from numba import config

    return int(vars(config)["NUMBA_NUM_THREADS"])


class _Crew:
    """Threads that help with one job at a time.

    To wake a thread takes some 50 us, in which this one has often done it all: so they stay awake for a moment after
    each job, as the next often follows at once, and hear of it from its counters, without the interpreter's lock.

    Attributes:
        counters: of the job's pieces.
        job: what they help with; its caller takes it away again.
    """

    def __init__(self) -> None:
        from jointbench.dynamics.kernels.sharing import new_counters

        self.counters = new_counters()
        self._lock = Lock()
        # Not an Event: Ctrl-C inside of one can leave it locked for ever; these calls are single instructions.
        self._calls: SimpleQueue[None] = SimpleQueue()
        self.job: Job | None = None
        with suppress(RuntimeError):  # the system allows no more threads: those that there are do it all
            for thread in range(1, n_threads()):
                Thread(target=self._work, args=(thread,), name="jointbench", daemon=True).start()

    def begin(self, job: Job) -> bool:
        """Call for help with a job; false where they still have another one."""
        from jointbench.dynamics.kernels.sharing import announce, are_back

        with self._lock:
            if self.job is not None or not are_back(self.counters):
                return False
            listening = announce(self.counters)
            self.job = job
        for _ in range(n_threads() - 1 - listening - self._calls.qsize()):
            self._calls.put(None)
        return True

    def _work(self, thread: int) -> None:
        from jointbench.dynamics.kernels.sharing import hear_of_next

        while True:
            self._calls.get()
            last, helped = self._help(thread)
            # One that came just as this thread stopped listening did not call it.
            while hear_of_next(self.counters, last, helped) or self._number() != last:
                last, helped = self._help(thread)

    def _help(self, thread: int) -> tuple[int, bool]:
        """Do what is left of the job; returns its number, and whether there was one."""
        from jointbench.dynamics.kernels.sharing import join, number_of

        with self._lock:
            job, number = self.job, number_of(self.counters)
            if job is not None:
                join(self.counters)
        if job is not None:
            with suppress(MemoryError):  # then the others do it: a kernel takes pieces only when it has all it needs
                job(thread, self.counters)
        return number, job is not None

    def _number(self) -> int:
        from jointbench.dynamics.kernels.sharing import number_of

        with self._lock:
            return number_of(self.counters)


@cache
def _crew(process: int) -> _Crew:
    """The helpers of this process: threads do not come along when a process forks."""
    return _Crew()
