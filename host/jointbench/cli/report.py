"""Write one HTML page on what a model is worth, or on what differs between two."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.checks import Result
from jointbench.cli.compare import model_file, own_run
from jointbench.cli.console import Console
from jointbench.errors import FitError
from jointbench.identification import Model, load_model, validate
from jointbench.identification.validation import fitted_runs
from jointbench.recording import Run, open_run
from jointbench.results import ComparisonEvidence, Evidence, headline, write_comparison, write_report

VERB = "report"
EXAMPLE = "jointbench report model.json FIT_RUN VERIFICATION_RUN --out report.html"
WRITES = ("out",)
PAGE = "report.html"
"""Name of a page's file where none is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model with its runs, or two models; and where the page goes."""
    parser.add_argument("first", metavar="MODEL|A", help="a model.json; of two, a run directory with its model too")
    parser.add_argument("second", metavar="RUN|B", help="the run MODEL was fitted to; or the model to compare A with")
    verify = "a run of another motion, to judge MODEL by (the run it was fitted to, which says less)"
    parser.add_argument("verification_run", metavar="VERIFY", nargs="?", help=verify)
    parser.add_argument("--out", metavar="FILE", help=f"where the page goes ({PAGE})")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Validates or compares afresh and writes the page; exit code 1 when the one verdict on a model is "refused".

    Two models, or two runs with theirs, are compared.
    """
    first, second = Path(options.first), Path(options.second)
    out: str | None = options.out
    with console.working("drawing the report"):
        if options.verification_run is None and (first.is_dir() or not second.is_dir()):
            return _of_two(first, second, out, console)
        return _of_one(first, second, options.verification_run, out, console)


def _of_one(first: Path, second: Path, verification: str | None, out: str | None, console: Console) -> Result:
    place = model_file(first)
    model = load_model(place)
    fit_run, verification_run = _runs(model, place, open_run(second), verification)
    validation = validate(model, verification_run, in_sample=True)  # the page says so where they are
    console.keep_earlier(out or PAGE, out)
    path = write_report(out or PAGE, model, fit_run, validation, verification_run)
    console.say(headline(Evidence(model, fit_run, validation, verification_run, None)))
    console.say(f"report: {path}")
    return Result("report", fields={"report": path}, refused=validation.verdict.is_refused)


def _of_two(first: Path, second: Path, out: str | None, console: Console) -> Result:
    places = model_file(first), model_file(second)
    a, b = load_model(places[0]), load_model(places[1])
    source = own_run(places[0], a)
    evidence = ComparisonEvidence.of(a, b, places, open_run(source) if source else None)
    console.keep_earlier(out or PAGE, out)
    path, comparison = write_comparison(out or PAGE, evidence), evidence.comparison
    console.say(f"A: {places[0]}")
    console.say(f"B: {places[1]}")
    console.say(f"{comparison.answer}: {comparison.reason}")
    console.say(f"report: {path}")
    return Result("report", fields={"report": path, "a": places[0], "b": places[1], "verdict": comparison.answer})


def _runs(model: Model, place: Path, given: Run, verification: str | None) -> tuple[Run, Run]:
    """The run a model was fitted to and the one it is judged by, of one run or two that were given."""
    if verification is not None:
        return given, open_run(verification)
    if any(fitted["sha256"] == given.sha256 for fitted in fitted_runs(model)):
        return given, given
    own = own_run(place, model)
    if own is None:
        raise FitError(
            f"{place} was not fitted to {given.path}, and the run that it was fitted to is no longer there; give both: "
            f"jointbench report {place} FIT_RUN {given.path}"
        )
    return open_run(own), given
