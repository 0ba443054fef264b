"""Local searches from many starting points, in this process, in several, or on a Dask cluster."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, SchedulerUnreachable
from jointbench.excitation.search.problem import Problem
from jointbench.excitation.search.sqp import descend
from jointbench.extras import need

Told: TypeAlias = Callable[[int, float], None]
"""Told the iterations so far and the objective: of its smooth stand-in, which is a little above the truth, the least at
any motion so far that keeps the limits or nearly does."""

_STAGES = ((4.0, 2e-3), (30.0, 5e-4))
"""Sharpness, and the fall of the log that is hardly anything there. At a good motion several small eigenvalues meet:
a blunt stand-in lifts all of them at once, and a sharp one ends where the least of them is as large as can be."""

_NEARLY_FEASIBLE = 1e-3
"""Share of the limits, all that are broken taken together, that costs next to nothing to win back."""

_SMOOTH = ("d_optimal",)
"""Objectives that need no stand-in."""

Progress: TypeAlias = Callable[[int, int, float], None]
"""Called as progress(start, iterations, best): after each iteration of a search in this process, and as each search
ends. Best is the least value of the objective so far, of whichever search."""


@dataclass(frozen=True, eq=False)
class Found:
    """A feasible motion.

    Attributes:
        weights: shape (n_joints, basis.size).
        value: of the objective, as it is reported; the less the better.
        iterations: that it took.
    """

    weights: Array
    value: float
    iterations: int = 0


def search_from(
    problem: Problem, first: Array, iterations: int, deadline: float = math.inf, told: Told | None = None
) -> Found:
    """Search for the local optimum that lies downhill from a feasible motion.

    Args:
        problem: what is searched.
        first: feasible weights, shape (n_joints, basis.size).
        iterations: most steps of the descent.
        deadline: time.time() [s] after which the search ends with what it has.
        told: see `Told`.

    Returns:
        The motion at the end of the descent, moved to where it is certain to keep the limits; or the first, if better.
    """
    done, start = 0, Found(first, problem.value(first))
    least = start.value

    def tell(value: float, broken: float) -> bool:
        nonlocal done, least
        done += 1
        if broken < _NEARLY_FEASIBLE:
            least = min(least, problem.objective.reported(value))
        if told is not None:
            told(done, least)
        return time.time() > deadline

    x = problem.point(first)
    stages = _STAGES[-1:] if problem.objective.name in _SMOOTH else _STAGES
    for sharpness, tolerance in stages:
        if done < iterations and time.time() < deadline:
            x, _ = descend(problem.stand_in(sharpness), problem.room, x, iterations - done, tolerance, tell)
    if not done:
        return start
    weights = problem.feasible(problem.weights(x))
    reached = Found(weights, problem.value(weights), done)
    return reached if reached.value < start.value else Found(first, start.value, done)


Search: TypeAlias = Callable[[Told | None], Found]
"""A search that is yet to be done; it goes to another process, so what it holds must be picklable."""

Crew: TypeAlias = Callable[[Sequence[Search], Callable[[int, int, float], None]], Iterator[tuple[int, Found]]]
"""Called as crew(searches, told): yields (index, what was found) as each search ends.

In this process, told(index, iterations, value) is called after every iteration.
"""

_PATIENCE_S = 10
"""How long a scheduler may take to answer."""


@contextmanager
def crew_of(workers: int = 1, scheduler: str | None = None) -> Iterator[Crew]:
    """Those who search, until the end of the context.

    Args:
        workers: processes of this machine; 1 for this one alone. Where there are more, each computes on one core.
        scheduler: address of a Dask cluster, such as "tcp://10.0.0.1:8786"; then all of its workers search.

    Raises:
        ExcitationError: workers is below 1, or not 1 beside a scheduler.
        MissingExtra: Dask is not installed.
        SchedulerUnreachable: nobody answers at the address.
    """
    if workers < 1 or (scheduler is not None and workers > 1):
        raise ExcitationError(f"workers = {workers} must be at least 1, and left out where there is a scheduler")
    if workers == 1 and scheduler is None:
        yield _here
        return
    from joblib import Parallel, parallel_config

    with ExitStack() as context:
        backend: dict[str, Any] = {"backend": "loky", "n_jobs": workers, "inner_max_num_threads": 1}
        if scheduler is not None:
            client = context.enter_context(_client(scheduler))
            backend = {"backend": "dask", "n_jobs": -1, "client": client}
        context.enter_context(parallel_config(**backend))
        parallel = context.enter_context(Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all"))
        yield partial(_elsewhere, parallel)


def _here(searches: Sequence[Search], told: Callable[[int, int, float], None]) -> Iterator[tuple[int, Found]]:
    for index, search in enumerate(searches):
        yield index, search(partial(told, index))


def _elsewhere(
    parallel: Any, searches: Sequence[Search], told: Callable[[int, int, float], None]
) -> Iterator[tuple[int, Found]]:
    from joblib import delayed

    results = parallel(delayed(_numbered)(index, search) for index, search in enumerate(searches))
    try:
        for result in results:  # noqa: UP028 - an interrupt must not close `results` before the line below
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that searches were given up, which an interrupt is for
            results.close()


def _numbered(index: int, search: Search) -> tuple[int, Found]:
    return index, search(None)


def _client(scheduler: str) -> Any:
    need("dask", "a scheduler", "distributed")
    from distributed import Client

    try:
        return Client(scheduler, timeout=_PATIENCE_S)
    except (OSError, ValueError, TypeError) as error:
        raise SchedulerUnreachable(
            f"no Dask scheduler answers at {scheduler!r} ({error}); start one with `dask scheduler`, which prints its "
            f"address, such as tcp://127.0.0.1:8786, and workers with `dask worker ADDRESS`"
        ) from error


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
