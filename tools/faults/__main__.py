"""Every fault in every state of a board: motor safe in time, fault rightly named, nothing recorded lost, well again."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import BenchError
from hil_tests.virtual_bench.bench_file import EMULATED, QEMU, UNIX
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.main import carry_out
from jointbench.errors import JointbenchError
from jointbench.testing.requirements import load
from jointwire import State
from tools.faults.campaign import run_campaign, side_by_side
from tools.faults.cell import MOMENTS_US, Cell, Fault, UnknownCell, all_cells, chosen_cells, read_matrix
from tools.faults.chip_cuts import CutVerdict, Update, cut_power, cut_table, read_verdicts, take_down_update
from tools.faults.commands import make_store
from tools.faults.disk import disk_cells, disk_table, run_disk_cell
from tools.faults.kills import Kill, KillVerdict, kill_checks, kill_table, prepare, run_kill
from tools.faults.mutations import MUTATIONS, control_cell, mutated_cells
from tools.faults.verdict import NONE, Verdict
from tools.requirements import FOLDER

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "fault_campaign.md"
BEGIN, END = "<!-- matrix: ./run faults --page -->", "<!-- end of the matrix -->"
GOOD, BAD = "·", "NO"


def table_of(verdicts: Sequence[Verdict]) -> str:
    """A line for each fault and kind of board: a dot for each state that is well, and the longest time to off."""
    rows: list[list[str]] = []
    keys = dict.fromkeys((each.cell.fault.name, each.cell.board) for each in verdicts)
    for name, board in keys:
        own = {each.cell.state: each for each in verdicts if (each.cell.fault.name, each.cell.board) == (name, board)}
        ticks = [each.ticks for each in own.values() if each.ticks is not None]
        within = next(iter(own.values())).cell.fault.within
        rows.append([name, board, *[_mark(own.get(state)) for state in MOMENTS_US],
                     f"{max(ticks)} of {within}" if ticks else ""])  # fmt: skip
    return table(("fault", "board", *[state.name for state in MOMENTS_US], "ticks to off"), rows)


def _mark(verdict: Verdict | None) -> str:
    return "" if verdict is None else GOOD if verdict.ok else BAD


def matrix_text(matrix: Mapping[str, Fault]) -> str:
    """What is expected, as Markdown."""
    lines = ["| Fault | Named | Within (ticks) | Why |", "| --- | --- | --- | --- |"]
    for fault in matrix.values():
        within = str(fault.within) if _stops(fault) else "–"
        why = f"{fault.why} From START: {fault.from_start}" if fault.from_start else fault.why
        lines.append(f"| `{fault.name}` | {_names(fault)} | {within} | {why} |")
    names = [name for fault in matrix.values() for name in fault.named.values()]
    nothing = names.count(NONE)
    told = f"Of {len(names)} cells {nothing} expect `{NONE}`: the fault struck, and nothing came of it."
    return "\n".join([*lines, "", told])


def _stops(fault: Fault) -> bool:
    return fault.within > 0 or any(name not in ("NONE", "BoardRefused") for name in fault.named.values())


def _names(fault: Fault) -> str:
    """The commonest name alone, or names by state."""
    by_name: dict[str, list[State]] = {}
    for state, name in fault.named.items():
        by_name.setdefault(name, []).append(state)
    if len(by_name) == 1:
        return next(iter(by_name))
    ordered = sorted(by_name.items(), key=lambda item: len(item[1]))
    told = [f"{name} in {', '.join(state.name for state in states)}" for name, states in ordered[:-1]]
    return f"{'; '.join(told)}; otherwise {ordered[-1][0]}"


def render(matrix: Mapping[str, Fault], page: Path = PAGE) -> None:
    """Write the matrix into its place on the page."""
    page.write_text(rendered(matrix, page.read_text(encoding="utf-8")), encoding="utf-8")


def rendered(matrix: Mapping[str, Fault], text: str) -> str:
    """The page's text with the matrix in its place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{matrix_text(matrix)}\n\n{END}{rest.partition(END)[2]}"


ERRORS = (JointbenchError, BenchError)
SAMPLE = 13  # of the cells, each so many-th is run on a QEMU board, too
OUT = Path(tempfile.gettempdir()) / "jointbench-faults"


def parser() -> argparse.ArgumentParser:
    """What `./run faults` takes."""
    options = argparse.ArgumentParser(prog="./run faults", description=__doc__)
    options.add_argument("--cell", action="append", default=[], metavar="FAULT@STATE", help="only this one; repeatable")
    options.add_argument("--without", choices=MUTATIONS, help="take this rule out of the boards' firmware")
    options.add_argument("--only", default="", metavar="NAME", help="only a group, a fault or a state")
    options.add_argument(
        "--board", choices=EMULATED, help="what emulates the board; unix: boards run every cell, qemu: a sample of them"
    )
    options.add_argument(
        "--mutations",
        action="store_true",
        help="take rules out of the firmware, one by one: cells must turn red",
    )
    options.add_argument(
        "--kills", type=int, metavar="N",
        help="instead kill record, fit, export and flash N times, by KILL, TERM, HUP and cut power, at random moments",
    )  # fmt: skip
    options.add_argument(
        "--cuts", choices=("rp2040",),
        help="instead cut the power at every write of a flash of an emulated chip: a whole image starts",
    )  # fmt: skip
    options.add_argument(
        "--every", type=int, default=1, metavar="N", help="with --cuts, each N-th of the writes (%(default)s)"
    )
    options.add_argument(
        "--resume", action="store_true", help="with --cuts, go on with those that an interrupted one left in DIR"
    )
    options.add_argument("--seed", type=int, default=0, help="same seed, same bytes (%(default)s)")
    options.add_argument("--workers", type=int, default=2, help="cells at a time (%(default)s)")
    options.add_argument("--out", default=str(OUT), metavar="DIR", help="where cells that fail are kept (%(default)s)")
    options.add_argument("--page", action="store_true", help=f"only write the matrix into {PAGE.name}")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; 0, 1 when a cell fails, 2 when it could not be done."""
    return carry_out("faults", parser().parse_args(arguments), faults, ERRORS)


def faults(options: argparse.Namespace, console: Console) -> Result:
    """What was asked for."""
    if options.page:
        render(read_matrix())
        return Result("faults")
    if options.kills is not None:
        return kills(options, console)
    if options.cuts:
        return cuts(options, console)
    return mutations(options, console) if options.mutations else matrix(options, console)


def matrix(options: argparse.Namespace, console: Console) -> Result:
    """The campaign proper: the boards' cells, then the disk's."""
    part = options.cell or options.only or options.without or (options.board and EMULATED[options.board] != UNIX)
    named = [name for name in options.cell if name.startswith("disk.")]
    options.cell = [name for name in options.cell if name not in named]
    on_disk = disk_cells(named) if named or options.only == "disk" or not part else []
    cells = cells_of(options) if options.cell or not (part and on_disk) else []
    out, total = Path(options.out), len(cells) + len(on_disk)
    console.say(f"{total} cells, {options.workers} at a time; those that fail are kept in {options.out}")
    checks: tuple[Check, ...] = ()
    fields: dict[str, Any] = {}
    if cells:
        campaign = run_campaign(cells, out, options.workers, told_by(console, total))
        console.say(table_of(campaign.verdicts))
        nothing = sum(verdict.named == NONE for verdict in campaign.verdicts)
        console.say(f"{len(cells) - nothing} of {len(cells)} faults had a name; of {nothing} nothing came")
        for verdict in campaign.verdicts:
            if not verdict.ok:
                console.say(f"{verdict.cell.id} ({verdict.cell.board}): {'; '.join(verdict.problems)}")
                console.say(f"  again: {verdict.cell.command}")
        checks += campaign.checks(not part)
        fields["cells"] = campaign.to_dicts()
    if on_disk:
        console.progress("a small run for the commands that write")
        store = make_store(out / "store")
        disks = side_by_side(partial(run_disk_cell, store=store, out=out), on_disk, options.workers)
        console.say(disk_table(disks))
        for disk in disks:
            if disk.problem:
                console.say(f"{disk.id}: {disk.problem}")
                console.say(f"  again: ./run faults --cell {disk.id}")
        checks += (load(FOLDER)["campaign.disk"].check(sum(bool(disk.problem) for disk in disks)),)
        fields["disk"] = [disk.to_dict() for disk in disks]
    return said("faults", options, console, checks, fields)


def kills(options: argparse.Namespace, console: Console) -> Result:
    """Commands that are killed at random moments."""
    if options.kills < 1:
        raise UnknownCell(f"--kills {options.kills}: give a number of kills, 1 or more")
    out = Path(options.out)
    console.say(f"{options.kills} kills, {options.workers} at a time; what is left of wrong ones is kept in {out}")
    console.progress("a small run for the commands that are killed")
    store = make_store(out / "store")
    prepare(store)
    chosen = [Kill(number, options.seed) for number in range(options.kills)]
    count = 0

    def note(verdict: KillVerdict) -> None:
        nonlocal count
        count += 1
        console.progress(f"{count} of {len(chosen)}: {verdict.kill.name}", count / len(chosen))
        if verdict.problem:
            console.say(f"NO  {verdict.kill.name}: {verdict.problem}")

    verdicts = side_by_side(partial(run_kill, store=store, out=out), chosen, options.workers, note)
    console.say(kill_table(verdicts))
    fields = {"kills": [verdict.to_dict() for verdict in verdicts]}
    return said("faults --kills", options, console, kill_checks(verdicts), fields)


def cuts(options: argparse.Namespace, console: Console) -> Result:
    """Power cuts of a chip that is being flashed."""
    if options.every < 1:
        raise UnknownCell(f"--every {options.every}: give a number of writes, 1 or more")
    out = Path(options.out) / "chip"
    noted = out / "verdicts.jsonl"
    if options.resume:
        update = Update.load(out)
        done = read_verdicts(noted)
    else:
        shutil.rmtree(out, ignore_errors=True)  # of an earlier run
        console.progress("a flash of a chip, whose writes are taken down")
        update, done = take_down_update(out / "update"), []
        update.save(out)
        noted.touch()
    before = {verdict.cut for verdict in done}
    chosen = [cut for cut in update.cuts if cut.number % options.every == 0 and cut not in before]
    erases = sum(write.data is None for write in update.writes)
    console.say(
        f"{len(update.writes)} writes: {erases} sectors erased, {len(update.writes) - erases} pages programmed; "
        f"{len(chosen)} cuts, {options.workers} at a time" + (f", after {len(done)} before" if done else "")
    )
    count = 0

    def note(verdict: CutVerdict) -> None:
        nonlocal count
        count += 1
        console.progress(f"{count} of {len(chosen)} cuts", count / len(chosen))
        with noted.open("a", encoding="utf-8") as file:
            file.write(json.dumps(verdict.to_dict()) + "\n")
        if verdict.problem:
            console.say(f"NO  {verdict.cut.name}: {verdict.problem}")

    verdicts = [*done, *cut_power(chosen, update, out, options.seed, options.workers, done, note)]
    console.say(cut_table(verdicts, update))
    fields = {"writes": len(update.writes), "cuts": [verdict.to_dict() for verdict in verdicts]}
    bad = load(FOLDER)["flash.chip_cuts"].check(sum(bool(verdict.problem) for verdict in verdicts))
    return said("faults --cuts", options, console, (bad,), fields)


def mutations(options: argparse.Namespace, console: Console) -> Result:
    """The firmware without a rule, for each of some rules: its cells must turn red, and no others."""
    known = read_matrix()
    checks: list[Check] = []
    found: list[dict[str, Any]] = []
    for name, mutation in MUTATIONS.items():
        cells = mutated_cells(known, name, options.seed)
        others = [*(replace(cell, mutation="") for cell in cells), control_cell(known, name, options.seed)]
        green = run_campaign(others, Path(options.out), options.workers)
        campaign = run_campaign(cells, Path(options.out), options.workers)
        red = [verdict for verdict in campaign.verdicts if mutation.is_seen(verdict)]
        console.say(f"without the rule that {mutation.rule}: {len(red)} of {len(cells)} cells turn red")
        for verdict in (*campaign.verdicts, *(each for each in green.verdicts if not each.ok)):
            console.say(f"  {verdict.cell.id}: {'; '.join(verdict.problems) or 'nothing wrong'}")
            console.say(f"    again: {verdict.cell.command}")
        as_what = "misnamed" if mutation.safe else "unsafe"
        checks.append(Check(f"{as_what} cells without {name}", len(red), "==", len(cells)))
        wrongly_red = sum(not each.ok for each in green.verdicts)
        checks.append(Check(f"red cells with {name}, or that do not ask for it", wrongly_red, "==", 0))
        found.append({"mutation": name, "rule": mutation.rule, "cells": campaign.to_dicts()})
    return said("faults --mutations", options, console, tuple(checks), {"mutations": found})


def cells_of(options: argparse.Namespace) -> Sequence[Cell]:
    """The cells that were asked for; without a word every one on unix: boards, and a sample on qemu:."""
    known = read_matrix()
    if options.without:
        unchanged = chosen_cells(all_cells(known, options.board or UNIX, options.seed), options.cell, options.only)
        return [replace(cell, mutation=options.without) for cell in unchanged]
    if options.cell or options.only or options.board:
        cells = chosen_cells(all_cells(known, options.board or UNIX, options.seed), options.cell, options.only)
        sampled = options.board and EMULATED[options.board] == QEMU and not (options.cell or options.only)
        return sample(cells) if sampled else cells
    return [*all_cells(known, UNIX, options.seed), *sample(all_cells(known, QEMU, options.seed))]


def sample(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of all groups and states; without the hang, which on a QEMU board is another one."""
    return [cell for cell in cells[::SAMPLE] if cell.fault.name != "board.hang"]


def told_by(console: Console, total: int):
    """A line that counts verdicts as they come."""
    count = 0

    def note(verdict: Verdict) -> None:
        nonlocal count
        count += 1
        console.progress(f"{count} of {total}: {verdict.cell.id}")
        if not verdict.ok:
            console.say(f"NO  {verdict.cell.id}: {'; '.join(verdict.problems)}")

    return note


def said(
    command: str, options: argparse.Namespace, console: Console, checks: tuple[Check, ...], fields: dict[str, Any]
) -> Result:
    """The result, after its checks."""
    for check in checks:
        console.say(str(check))
    return Result(command, options.seed, checks, fields | {"python": platform.python_version()})


if __name__ == "__main__":
    sys.exit(main())
