"""Load and soak: 24 boards, 4 kHz, six boards by the wall clock, an hour in one go: docs/evidence/limits.md."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import BenchError
from jointbench.checks import Check, Result
from jointbench.cli.carry_out import carry_out
from jointbench.cli.console import Console
from jointbench.cli.run import WHEN_STOPPED
from jointbench.errors import JointbenchError
from jointbench.recording import new_run_path
from jointbench.testing.requirements import load
from tools.load import lockstep
from tools.load.page import write_page
from tools.load.realtime import find_speeds
from tools.load.soak import soak
from tools.load.variation import HIL_TESTS
from tools.machine import machine

ERRORS = (JointbenchError, BenchError)
PARTS = ("lockstep", "realtime", "soak")
PAGE = HIL_TESTS.parent / "docs" / "evidence" / "limits.md"
SECONDS, QUICK_SECONDS = 12.0, 4.0  # of a motion
HOURS, QUICK_HOURS = 1.0, 0.1


def parser() -> argparse.ArgumentParser:
    """What `./run load` takes."""
    options = argparse.ArgumentParser(prog="./run load", description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all of them)")
    length = options.add_mutually_exclusive_group()
    length.add_argument("--hours", type=_hours, default=HOURS, help="of virtual time that the soak takes (%(default)g)")
    length.add_argument("--quick", action="store_true", help="short motions, and a soak of some minutes")
    options.add_argument("--write", action="store_true", help="write the parts' sections of docs/evidence/limits.md")
    options.add_argument("--seed", type=int, default=0, help="of the boards' imperfections and noise (%(default)s)")
    options.add_argument("--out", metavar="DIR", help="where everything goes (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measure; 0, 1 when a figure misses its limit, 2 when it could not be done."""
    command = parser()
    options = command.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            command.error(f"PART = {part!r}: there are {', '.join(PARTS)}")
    if options.write and options.quick:
        command.error("--write puts down what was measured in full; leave out --quick")
    return carry_out("load", options, measure, ERRORS, when_stopped=WHEN_STOPPED)


def measure(options: argparse.Namespace, console: Console) -> Result:
    """Each part that was asked for, one after the other."""
    out = Path(options.out) if options.out else new_run_path("runs", "boards", "load")
    seconds, hours = (QUICK_SECONDS, QUICK_HOURS) if options.quick else (SECONDS, options.hours)
    requirements = load(HIL_TESTS / "requirements")
    about = machine()  # before the load of its own
    fields: dict[str, Any] = {}
    checks: dict[str, list[Check]] = {}
    for part in [part for part in PARTS if part in (options.parts or PARTS)]:
        if part == "lockstep":
            carried = lockstep.carry_loads(out / part, seconds, options.seed, console)
            fields[part] = [each.to_dict() for each in carried]
            checks[part] = lockstep.checks(carried, requirements)
        elif part == "realtime":
            speeds = find_speeds(out / part, seconds, options.seed, console)
            fields[part], checks[part] = speeds.to_dict(), speeds.checks(requirements)
        else:
            soaked = soak(out / part, hours, options.seed, console)
            fields[part], checks[part] = soaked.to_dict(), soaked.checks(requirements, whole=not options.quick)
        for check in checks[part]:
            console.say(str(check))
    result = Result(
        "load",
        options.seed,
        tuple(check for each in checks.values() for check in each),
        {**fields, "parts": {part: [check.name for check in each] for part, each in checks.items()}, "machine": about},
    )
    if options.write:
        write_page(PAGE, result.to_dict(0.0))
        console.say(f"wrote {PAGE}")
    return result


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0.0 < hours <= 24.0:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0, and 24 at most")
    return hours
