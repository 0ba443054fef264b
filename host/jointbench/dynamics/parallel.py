"""Long batches are shared by the processor's cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jointbench.dynamics.kernels.sharing import Counters

    Job = Callable[[int, Counters], None]

_WORTHWHILE = 8
"""Pieces for which another thread is woken: until it is awake, some 50 us later, this one has done about five."""


def share(job: Job, pieces: int) -> None:
    """Call job(thread, counters) on this thread, as thread 0, and on others; return when all pieces are done.

    Python's threads rather than Numba's own: those end the process when two threads call them at a time, while kernels
    hold no lock of the interpreter.

    Args:
        job: takes pieces by `counters` until none is left (`kernels.sharing`).
        pieces: how many there are.
    """
    from jointbench.dynamics.kernels.sharing import wait

    counters = np.zeros(2, dtype=np.int64)
    if pieces >= _WORTHWHILE:
        jobs = _jobs(os.getpid())
        for thread in range(1, n_threads()):
            jobs.put((job, thread, counters))
    job(0, counters)
    wait(counters, pieces)


@cache
def n_threads() -> int:
    """How many threads there are: as many as Numba would have, which NUMBA_NUM_THREADS says or the processor."""
    from numba import config

    return int(vars(config)["NUMBA_NUM_THREADS"])


@cache
def _jobs(process: int) -> SimpleQueue[tuple[Job, int, Counters]]:
    """Where other threads wait for work; one for each process, as threads do not come along when a process forks."""
    jobs: SimpleQueue[tuple[Job, int, Counters]] = SimpleQueue()
    for _ in range(1, n_threads()):
        Thread(target=_work, args=(jobs,), name="jointbench", daemon=True).start()
    return jobs


def _work(jobs: SimpleQueue[tuple[Job, int, Counters]]) -> None:
    while True:
        job, thread, counters = jobs.get()
        with suppress(MemoryError):  # then the others do it: a kernel takes pieces only when it has all it needs
            job(thread, counters)
        del job, counters  # and with them the arrays that it fills
