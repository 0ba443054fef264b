"""One cell, from power on to the verdict: a bench of its own, a host that meets the fault, one that comes after."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

from hil_tests.virtual_bench.errors import BenchError
from jointbench.errors import JointbenchError
from jointwire import State, Trip
from tools.faults.cell import Cell
from tools.faults.errors import CellNotRun, WorkerLost
from tools.faults.evidence import Evidence, read_recorded
from tools.faults.forked_bench import forked_bench
from tools.faults.program import meet_program
from tools.faults.recovery import Recovery, recover
from tools.faults.session import Session
from tools.faults.strikes import LAST_WORDS, last_words, strikes_of
from tools.faults.subject import JOINT, NODE, bench_of
from tools.faults.verdict import Verdict, judge


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
