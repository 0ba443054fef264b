"""`jointbench` without a verb: what it found here, and the command that makes sense next."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.cli.found import Found, look

_RUN_BENCH = "hil_tests/benches/unix6.toml"
"""Where it is, the folder is a checkout, which has emulated boards."""


def run(options: argparse.Namespace, console: Console) -> Result:
    """Names the newest of each kind and the next command."""
    folder = Path.cwd()
    found = look(folder)
    command, why = next_command(found, folder)
    console.say(
        "jointbench: from the joint boards of a robot to its dynamic model; `jointbench --help` lists the verbs"
    )
    for line in _lines(found):
        console.say(f"  {line}")
    console.say(f"next: {command}")
    console.say(f"      {why}")
    fields = {
        "ports": found.ports, "benches": found.benches, "absent_benches": found.absent, "plans": found.plans,
        "runs": found.runs, "models": found.models, "next": command, "why": why,
    }  # fmt: skip
    return Result("jointbench", fields=fields)


def next_command(found: Found, folder: Path) -> tuple[str, str]:
    """What to type, and why: the step after the newest thing that there is."""
    newest, bench = found.newest, found.benches[-1] if found.benches else "BENCH"
    if newest is None:
        return _first_command(found, folder)
    if newest in found.models:
        others = [run for run in found.runs if run != newest.parent]
        if others:
            return f"jointbench validate {newest} {others[-1]}", "judge the newest model on motion it was not fitted to"
        return f"jointbench export {newest} --out arm.urdf", "give the newest model to other programs"
    if newest in found.runs:
        return f"jointbench fit {newest}", "make a model of the newest run, with error bars and a verdict"
    if newest in found.plans:
        if found.benches:
            return f"jointbench check {bench} --plan {newest}", f"then `jointbench run {bench} --plan {newest}`"
        return f"jointbench run BENCH --plan {newest}", "BENCH is a file that says where each joint's board is"
    return f"jointbench check {bench}", "see whether its boards are fit to move; motors stay off"


def _first_command(found: Found, folder: Path) -> tuple[str, str]:
    if found.ports:
        return f"jointbench flash {next(iter(found.ports))} --dry-run", "see what putting the firmware on it would do"
    if (folder / _RUN_BENCH).is_file():
        return "./run demo", "plan, play, record and identify on emulated boards; no hardware is needed"
    return "jointbench plan cobot6", "plan the motion that tells a robot's parameters apart; `jointbench list` has more"


def _lines(found: Found) -> list[str]:
    """One a kind: the newest, and how many more."""
    ports = tuple(f"{device} ({about})" for device, about in found.ports.items())
    kinds = {
        "boards at": ports, "bench": found.benches, "plan": found.plans, "run": found.runs, "model": found.models,
    }  # fmt: skip
    lines = [f"{kind:10} {group[-1]}{_more(len(group) - 1)}" for kind, group in kinds.items() if group]
    if found.absent and not found.benches:
        lines.append(f"{'bench':10} {found.absent[-1]}: its ports are not there; has it ended, is it plugged in?")
    return lines or ["nothing here yet: no board on USB, no bench file, no plan, no run, no model"]


def _more(others: int) -> str:
    return f" and {others} more, older" if others else ""
