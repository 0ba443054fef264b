"""Write one HTML page with the verdict, the pictures and the ledger of a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.identification import load_model, validate
from jointbench.recording import open_run

VERB = "report"
EXAMPLE = "jointbench report model.json FIT_RUN VERIFICATION_RUN --out report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, the two runs, and where the page goes."""
    parser.add_argument("model", metavar="MODEL", help="a model.json")
    parser.add_argument("fit_run", metavar="FIT_RUN", help="the run it was fitted to")
    parser.add_argument("verification_run", metavar="VERIFICATION_RUN", help="a run of another motion")
    parser.add_argument("--out", metavar="FILE", default="report.html", help="where the page goes (%(default)s)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Validates afresh and writes the page."""
    from jointbench.report import write_report  # plotting is an extra, and slow to import

    model, verification = load_model(options.model), open_run(options.verification_run)
    fit_run = open_run(options.fit_run)
    path = write_report(Path(options.out), model, fit_run, validate(model, verification), verification)
    console.say(f"report: {path}")
    return Result("report", fields={"report": path})
