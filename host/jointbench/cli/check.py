"""Say whether the boards of a bench are fit to move, and what to do where they are not; no motor is switched on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from jointbench.bench import BoardFinding, check_up, read_bench_file
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.excitation import load_excitation

VERB = "check"
EXAMPLE = "jointbench check bench.toml --plan excitation.json"
WHEN_STOPPED = "no motor was switched on"

_COLUMNS = ("firmware", "state", "link", "clock", "current", "position", "supply", "temperature")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, a plan, and how long to listen."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument("--plan", metavar="FILE", help="also whether the boards can play this plan")
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="S",
        help="how long to listen to the boards (%(default)g); turn each joint by hand meanwhile, and the directions of "
        "its encoders are compared, too",
    )  # fmt: skip


def run(options: argparse.Namespace, console: Console) -> Result:
    """Greets, listens and judges; exit code 1 when something is not as it should be."""
    plan = load_excitation(options.plan) if options.plan else None
    file = read_bench_file(options.bench)
    with console.working(f"listening to {len(file.boards)} boards"):
        findings = check_up(file, plan, options.seconds)
    console.say(findings_table(findings))
    wrong = [finding for finding in findings if not finding.ok]
    for finding in wrong:
        console.say(f"NO  {finding.joint}, {finding.name}: {finding.text}")
    if plan and plan.not_checked:
        console.say(f"{options.plan}: {plan.not_checked}")
    unfit = list(dict.fromkeys(finding.joint for finding in wrong))
    what = f"{len(file.boards)} boards" if plan is None else f"{len(file.boards)} boards and {options.plan}"
    console.say(f"not fit to move: {', '.join(unfit)}" if unfit else f"ok: {what} are fit to move")
    checks = tuple(Check(f"{each.joint}: {each.name}", float(each.ok), "==", 1) for each in findings)
    fields = {"bench": file.name, "fit": not unfit, "findings": [asdict(each) for each in findings]}
    return Result("check", checks=checks, fields=fields)


def findings_table(findings: Sequence[BoardFinding]) -> str:
    """A line a board with the figures of what was looked at; those that are not as they should be are marked."""
    by_joint: dict[str, dict[str, BoardFinding]] = {}
    for finding in findings:
        by_joint.setdefault(finding.joint, {})[finding.name] = finding
    rows = [
        [joint, *(_cell(checks_by_name.get(name)) for name in _COLUMNS)]
        for joint, checks_by_name in by_joint.items()
        if "firmware" in checks_by_name
    ]
    return table(("joint", *_COLUMNS), rows)


def _cell(finding: BoardFinding | None) -> str:
    if finding is None:
        return "–"
    return finding.figure if finding.ok else f"NO {finding.figure}"
