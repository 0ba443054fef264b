"""Accept a deliberate edit of a run's files: it is noted with the run, and whatever is made of the run says so."""

from __future__ import annotations

import argparse

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.recording import accept

VERB = "accept"
EXAMPLE = 'jointbench accept runs/2026-05-04T101500Z-cobot6-excitation --reason "gear ratio was mistyped"'
WHEN_STOPPED = "nothing was accepted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and why it was edited."""
    parser.add_argument("run", metavar="RUN", help="a run directory whose text files were edited")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why it was edited, for whoever reads it later")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Notes what was changed, and says it file by file."""
    changes = accept(options.run, options.reason)
    for change in changes:
        console.say(f"{change.file}: SHA-256 {_short(change.before)} → {_short(change.after)}")
        for name, before, after in change.values:
            console.say(f"  {name}: {_value(before)} → {_value(after)}")
    if changes:
        console.say(f"accepted: whatever is made of {options.run} says from now on that it was edited")
    else:
        console.say(f"{options.run} is as it was made: there is nothing to accept")
    fields = {"run": options.run, "reason": options.reason, "files": [change.to_dict() for change in changes]}
    return Result("accept", fields=fields)


def _short(sha256: str | None) -> str:
    return "none" if sha256 is None else f"{sha256[:16]}…"


def _value(value: object) -> str:
    return "nothing" if value is None else str(value)
