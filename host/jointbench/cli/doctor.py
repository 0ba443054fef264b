"""Verify a run directory and say what is damaged, what is still usable and what to do."""

from __future__ import annotations

import argparse

from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.recording import examine

VERB = "doctor"
EXAMPLE = "jointbench doctor runs/2026-05-04T101500Z-cobot6-excitation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN, which is only read."""
    parser.add_argument("run", metavar="RUN", help="a run directory; it is only read")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Examines the run; exit code 1 when anything is damaged."""
    diagnosis = examine(options.run)
    console.say(diagnosis.text())
    checks = tuple(Check(f"{finding.name} is sound", float(finding.ok), "==", 1) for finding in diagnosis.findings)
    return Result("doctor", checks=checks, fields=diagnosis.to_dict())
