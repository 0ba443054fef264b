"""Cells side by side in processes of their own, each from power on to its verdict, and what came of all of them."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hil_tests.virtual_bench.errors import BenchError
from jointbench.checks import Check
from jointbench.errors import JointbenchError
from jointbench.testing.requirements import load
from jointwire import State, Trip
from tools.faults.cell import Cell, CellNotRun, WorkerLost
from tools.faults.commands import forked_bench
from tools.faults.program import meet_program
from tools.faults.session import LAST_WORDS, Session, last_words, strikes_of
from tools.faults.subject import JOINT, NODE, Recovery, bench_of, recover
from tools.faults.verdict import Evidence, Verdict, judge, read_recorded
from tools.requirements import FOLDER


def run_cell(cell: Cell, out: Path) -> Verdict:
    """Run a cell in a folder of its own, which is kept where it fails.

    Raises:
        CellNotRun: it could not be run at all; says which and why.
    """
    folder = out / cell.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with forked_bench(bench_of(cell, folder), cell.own_seed, folder / "bench") as live:
            evidence = _evidence(cell, live, folder)
    except (JointbenchError, BenchError) as error:
        raise CellNotRun(f"{cell.id}: {error}") from error
    verdict = judge(cell, evidence)
    if verdict.ok:
        shutil.rmtree(folder)
    return verdict


def _evidence(cell: Cell, live: Path, folder: Path) -> Evidence:
    if cell.fault.way == "program":
        evidence = meet_program(cell, live, folder)
        return replace(evidence, recovery=recover(live, cell.state in cell.fault.power).problem)
    return _killed(cell, live, folder) if cell.fault.setting == "killed" else _met(cell, live, folder)


def _met(cell: Cell, live: Path, folder: Path) -> Evidence:
    """The host meets the fault, and lives to tell."""
    session = Session(cell, live, folder)
    try:
        session.run()
        outputs = session.outputs()
    finally:
        session.close()
    evidence = Evidence(
        outputs=tuple(outputs),
        shown=session.shown,
        armed=session.armed_us // 1000,
        started=session.started_us // 1000,
        off_after=None,
        error=type(session.error).__name__ if session.error else "",
        trip=session.trip,
        second_error=session.second_error,
        latched=0,
        taken=session.taken_at_strike if cell.fault.setting == "disk_full" else session.taken,
        recorded=read_recorded(folder / "run", JOINT, NODE),
        recovery="",
        text=str(session.error or ""),
        strikes=strikes_of(session),
        done=session.done,
    )
    return replace(evidence, recovery=recover(live, cell.state in cell.fault.power).problem)


def _killed(cell: Cell, live: Path, folder: Path) -> Evidence:
    """The host is a process of its own, and dies of the fault."""
    child = os.fork()
    if child == 0:
        try:
            Session(cell, live, folder).run()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if not (folder / LAST_WORDS).exists():
        raise WorkerLost(f"{cell.id}: the host that was to be killed ended before")
    words = last_words(folder)
    found: Recovery = recover(live, cell.state in cell.fault.power)
    return Evidence(
        outputs=(),
        shown=words["shown"],
        armed=0,
        started=0,
        off_after=(found.since_us - words["time_us"]) // 1000,
        error="",
        trip=0,
        second_error="",
        latched=0 if cell.state is State.FAULT and found.latched == Trip.TEMPERATURE else found.latched,
        taken=words["taken"],
        recorded=read_recorded(folder / "run", JOINT, NODE),
        recovery=found.problem,
        text="",
        strikes=int(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL),
        done=False,
    )


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
