"""Who searches: this process, several of this machine, or a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

from jointbench.errors import ExcitationError, SchedulerUnreachable
from jointbench.excitation.search.local_search import Found, Told
from jointbench.extras import need

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
