"""Many searches, and the best of what they find: first from random motions, then from the best one, disturbed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation.search.local_search import Found, Told, search_from
from jointbench.excitation.search.problem import Problem
from jointbench.excitation.search.workers import Crew, Search

Progress: TypeAlias = Callable[[int, int, float], None]
"""Called as progress(start, iterations, best): after each iteration of a search in this process, and as each search
ends. Best is the least value of the objective so far, of whichever search."""


@dataclass(frozen=True)
class Effort:
    """How much is searched.

    Attributes:
        starts: most searches.
        iterations: most steps of each.
        batch: how many searches begin from what is known at one time. Those of the first batch begin from random
            motions, all others from the best motion that the batches before have found, disturbed; so the result does
            not depend on how many are searched at once.
        deadline: time.time() [s] after which the best so far counts; on a cluster, by the clocks of its machines.
    """

    starts: int
    iterations: int
    batch: int = 4
    deadline: float = math.inf


def best_found(problem: Problem, effort: Effort, seed: int, crew: Crew, progress: Progress | None = None) -> Found:
    """Search until the effort is spent; an interrupt (Ctrl-C) ends it as the deadline does, once something was found.

    Args:
        problem: what is searched.
        effort: how much.
        seed: of all that is random.
        crew: who searches.
        progress: see `Progress`.

    Returns:
        The best motion found; where there was no time for a search, a random one.

    Raises:
        InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.
        KeyboardInterrupt: before anything was found.
    """
    found: dict[int, Found] = {}
    best = math.inf

    def tell(start: int, iterations: int, value: float) -> None:
        nonlocal best
        best = min(best, value)
        if progress is not None:
            progress(start, iterations, best)

    try:
        for first in range(0, effort.starts, effort.batch):
            if found and time.time() > effort.deadline:
                break
            around = _best(found).weights if found else None
            starts = range(first, min(first + effort.batch, effort.starts))
            searches: list[Search] = [partial(_search, problem, effort, (seed, start), around) for start in starts]
            for index, each in crew(searches, lambda index, *what, first=first: tell(first + index, *what)):
                found[first + index] = each
                tell(first + index, each.iterations, each.value)
    except KeyboardInterrupt:
        if not found:
            raise
    return _best(found)


def _search(problem: Problem, effort: Effort, seed: tuple[int, int], around: Array | None, told: Told | None) -> Found:
    """One search; it runs in whichever process."""
    rng = np.random.default_rng(seed)
    first = problem.random(rng) if around is None else problem.disturbed(around, rng)
    return search_from(problem, first, effort.iterations, effort.deadline, told)


def _best(found: dict[int, Found]) -> Found:
    """The best; of equals the earliest, in whatever order they came."""
    return min(sorted(found.items()), key=lambda item: item[1].value)[1]
