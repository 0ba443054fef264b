"""Cells side by side in processes of their own, and what came of all of them."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jointbench.checks import Check
from jointbench.testing.requirements import load
from tools.faults.cell import Cell
from tools.faults.errors import WorkerLost
from tools.faults.run_cell import run_cell
from tools.faults.verdict import Verdict
from tools.requirements import FOLDER

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Campaign:
    """The verdicts, in the order of the matrix."""

    verdicts: tuple[Verdict, ...]

    def checks(self, whole: bool) -> tuple[Check, ...]:
        """What must hold (hil_tests/requirements/campaign.toml); of a `whole` campaign also that it was one."""
        required, cells = load(FOLDER), len(self.verdicts)
        counts = {
            "campaign.missed": sum(bool(each.missed) for each in self.verdicts),
            "campaign.unsafe": sum(bool(each.unsafe) for each in self.verdicts),
            "campaign.misnamed": sum(bool(each.misnamed) for each in self.verdicts),
            "campaign.stopped": sum(bool(each.stopped) for each in self.verdicts),
            "campaign.lost_records": sum(bool(each.lost) for each in self.verdicts),
            "campaign.open_ledgers": sum(bool(each.unaccounted) for each in self.verdicts),
            "campaign.stuck": sum(bool(each.stuck) for each in self.verdicts),
        }
        return (
            required["campaign.cells"].check(cells) if whole else Check("cells", cells, ">=", 1),
            *(required[id].check(count) for id, count in counts.items()),
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """Every cell as plain values."""
        return [verdict.to_dict() for verdict in self.verdicts]


def run_campaign(
    cells: Sequence[Cell], out: Path, workers: int, note: Callable[[Verdict], None] = lambda _: None
) -> Campaign:
    """Run cells.

    Args:
        cells: which.
        out: folder for those that fail.
        workers: how many at a time.
        note: called with each verdict as it comes.

    Raises:
        WorkerLost: a process ended without its verdict.
        CellNotRun: a cell could not be run at all.
    """
    return Campaign(tuple(side_by_side(partial(run_cell, out=out), cells, workers, note)))


def side_by_side(
    act: Callable[[Item], Result], items: Sequence[Item], workers: int, note: Callable[[Result], None] = lambda _: None
) -> list[Result]:
    """Do something with each of some items, some at a time, in processes of their own.

    Args:
        act: does it, and can be pickled.
        items: in order.
        workers: how many at a time.
        note: called with each result as it comes.

    Returns:
        The results, in the order of their items.

    Raises:
        WorkerLost: a process ended without its result.
    """
    results: dict[int, Result] = {}
    context = multiprocessing.get_context("fork")  # with everything imported; each item forks in turn
    with ProcessPoolExecutor(workers, context, usual_signals) as pool:
        running = {pool.submit(act, item): number for number, item in enumerate(items)}
        try:
            for done in as_completed(running):
                results[running[done]] = done.result()
                note(results[running[done]])
        except BrokenProcessPool as error:
            raise WorkerLost(f"a process ended without a verdict; run again with --workers 1: {error}") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return [results[number] for number in sorted(results)]


def usual_signals() -> None:
    """Have signals end this process, as its pool takes for granted, and not whatever it does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
