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
from jointbench.errors import ExcitationError, FitError
from jointbench.excitation.search.problem import ExcitationProblem
from jointbench.excitation.search.sqp import minimize_sqp
from jointbench.extras import need

SearchCallback: TypeAlias = Callable[[int, float], None]
"""Told the iterations so far and the objective: of its smooth stand-in, which is a little above the truth, the least at
any motion so far that keeps the limits or nearly does."""

_SHARPNESS_STAGES = ((4.0, 2e-3), (30.0, 5e-4))
"""Sharpness, and the fall of the log that is hardly anything there. At a good motion several small eigenvalues meet:
a blunt stand-in lifts all of them at once, and a sharp one ends where the least of them is as large as can be."""

_NEARLY_FEASIBLE = 1e-3
"""Share of the limits, all that are broken taken together, that costs next to nothing to win back."""

_SMOOTH_OBJECTIVES = ("d_optimal",)
"""Objectives that need no stand-in."""

Progress: TypeAlias = Callable[[int, int, float], None]
"""Called as progress(start, iterations, best): after each iteration of a search in this process, and as each search
ends. Best is the least value of the objective so far, of whichever search."""


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """A feasible motion.

    Attributes:
        weights: shape (n_joints, basis.size).
        value: of the objective, as it is reported; the less the better.
        iterations: that it took.
    """

    weights: Array
    value: float
    iterations: int = 0


def local_search(
    problem: ExcitationProblem,
    initial_weights: Array,
    iterations: int,
    deadline: float = math.inf,
    callback: SearchCallback | None = None,
) -> LocalOptimum:
    """Search for the local optimum that lies downhill from a feasible motion.

    Args:
        problem: what is searched.
        initial_weights: feasible weights, shape (n_joints, basis.size).
        iterations: most steps of the descent.
        deadline: time.time() [s] after which the search ends with what it has.
        callback: see `SearchCallback`.

    Returns:
        The motion at the end of the descent, moved to where it is certain to keep the limits; or the first, if better.
    """
    iterations_done, start = 0, LocalOptimum(initial_weights, problem.value(initial_weights))
    least_value = start.value

    def report_progress(value: float, constraint_violation: float) -> bool:
        nonlocal iterations_done, least_value
        iterations_done += 1
        if constraint_violation < _NEARLY_FEASIBLE:
            least_value = min(least_value, problem.objective.reported_value(value))
        if callback is not None:
            callback(iterations_done, least_value)
        return time.time() > deadline

    x = problem.point(initial_weights)
    stages = _SHARPNESS_STAGES[-1:] if problem.objective.name in _SMOOTH_OBJECTIVES else _SHARPNESS_STAGES
    for sharpness, tolerance in stages:
        if iterations_done < iterations and time.time() < deadline:
            x, _ = minimize_sqp(
                problem.smooth_objective(sharpness),
                problem.constraints,
                x,
                iterations - iterations_done,
                tolerance,
                report_progress,
            )
    if not iterations_done:
        return start
    weights = problem.feasible(problem.weights(x))
    optimum = LocalOptimum(weights, problem.value(weights), iterations_done)
    return optimum if optimum.value < start.value else LocalOptimum(initial_weights, start.value, iterations_done)


Search: TypeAlias = Callable[[SearchCallback | None], LocalOptimum]
"""A search that is yet to be done; it goes to another process, so what it holds must be picklable."""

Pool: TypeAlias = Callable[[Sequence[Search], Callable[[int, int, float], None]], Iterator[tuple[int, LocalOptimum]]]
"""Called as pool(searches, callback): yields (index, optimum) as each search ends.

In this process, callback(index, iterations, value) is called after every iteration.
"""

_CONNECT_TIMEOUT_S = 10
"""Longest wait for a scheduler's answer."""


@contextmanager
def worker_pool(workers: int = 1, scheduler: str | None = None) -> Iterator[Pool]:
    """Pool of workers that run searches, until the end of the context.

    Args:
        workers: processes of this machine; 1 for this one alone. Where there are more, each computes on one core.
        scheduler: address of a Dask cluster, such as "tcp://10.0.0.1:8786"; then all of its workers search.

    Raises:
        ExcitationError: workers is below 1, or not 1 beside a scheduler.
        MissingExtra: Dask is not installed.
        FitError: nobody answers at the address.
    """
    if workers < 1 or (scheduler is not None and workers > 1):
        raise ExcitationError(
            f"workers = {workers} must be at least 1, and 1 beside a scheduler, which has workers of its own"
        )
    if workers == 1 and scheduler is None:
        yield _run_serially
        return
    from joblib import Parallel, parallel_config

    with ExitStack() as context:
        backend: dict[str, Any] = {"backend": "loky", "n_jobs": workers, "inner_max_num_threads": 1}
        if scheduler is not None:
            client = context.enter_context(_client(scheduler))
            backend = {"backend": "dask", "n_jobs": -1, "client": client}
        context.enter_context(parallel_config(**backend))
        parallel = context.enter_context(Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all"))
        yield partial(_run_in_parallel, parallel)


def _run_serially(
    searches: Sequence[Search], callback: Callable[[int, int, float], None]
) -> Iterator[tuple[int, LocalOptimum]]:
    for index, search in enumerate(searches):
        yield index, search(partial(callback, index))


def _run_in_parallel(
    parallel: Any, searches: Sequence[Search], callback: Callable[[int, int, float], None]
) -> Iterator[tuple[int, LocalOptimum]]:
    from joblib import delayed

    results = parallel(delayed(_indexed_search)(index, search) for index, search in enumerate(searches))
    try:
        for result in results:  # noqa: UP028 - an interrupt must not close `results` before the line below
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that searches were given up, which an interrupt is for
            results.close()


def _indexed_search(index: int, search: Search) -> tuple[int, LocalOptimum]:
    return index, search(None)


def _client(scheduler: str) -> Any:
    need("dask", "a scheduler", "distributed")
    from distributed import Client

    try:
        return Client(scheduler, timeout=_CONNECT_TIMEOUT_S)
    except (OSError, ValueError, TypeError) as error:
        raise FitError(
            f"no Dask scheduler answers at {scheduler!r} ({error}); start one with `dask scheduler`, which prints its "
            f"address, such as tcp://127.0.0.1:8786, and workers with `dask worker ADDRESS`"
        ) from error


@dataclass(frozen=True)
class SearchBudget:
    """Budget of a search.

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


def multistart(
    problem: ExcitationProblem, effort: SearchBudget, seed: int, pool: Pool, progress: Progress | None = None
) -> LocalOptimum:
    """Search until the effort is spent; an interrupt (Ctrl-C) ends it as the deadline does, once something was found.

    Args:
        problem: what is searched.
        effort: how much.
        seed: of all that is random.
        pool: who searches.
        progress: see `Progress`.

    Returns:
        The best motion found; where there was no time for a search, a random one.

    Raises:
        InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.
        KeyboardInterrupt: before anything was found.
    """
    optima: dict[int, LocalOptimum] = {}
    best = math.inf

    def report_progress(start: int, iterations: int, value: float) -> None:
        nonlocal best
        best = min(best, value)
        if progress is not None:
            progress(start, iterations, best)

    try:
        for initial_weights in range(0, effort.starts, effort.batch):
            if optima and time.time() > effort.deadline:
                break
            centre = _best_optimum(optima).weights if optima else None
            starts = range(initial_weights, min(initial_weights + effort.batch, effort.starts))
            searches: list[Search] = [partial(_search, problem, effort, (seed, start), centre) for start in starts]
            for index, optimum in pool(
                searches,
                lambda index, *progress_values, initial_weights=initial_weights: report_progress(
                    initial_weights + index, *progress_values
                ),
            ):
                optima[initial_weights + index] = optimum
                report_progress(initial_weights + index, optimum.iterations, optimum.value)
    except KeyboardInterrupt:
        if not optima:
            raise
    return _best_optimum(optima)


def _search(
    problem: ExcitationProblem,
    effort: SearchBudget,
    seed: tuple[int, int],
    centre: Array | None,
    callback: SearchCallback | None,
) -> LocalOptimum:
    """Run one search, in any process."""
    rng = np.random.default_rng(seed)
    initial_weights = problem.random(rng) if centre is None else problem.perturbed(centre, rng)
    return local_search(problem, initial_weights, effort.iterations, effort.deadline, callback)


def _best_optimum(optima: dict[int, LocalOptimum]) -> LocalOptimum:
    """Best optimum; of equals the one that started earliest, whatever order they came in."""
    return min(sorted(optima.items()), key=lambda item: item[1].value)[1]
