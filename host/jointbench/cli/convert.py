"""Write a run for other programs: MCAP (Foxglove, PlotJuggler, ROS 2), Parquet, CSV, or a scene for Rerun."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import FitError
from jointbench.recording import open_run
from jointbench.results import FORMATS, convert

VERB = "convert"
EXAMPLE = "jointbench convert runs/2026-05-04T101500Z-cobot6-excitation --to mcap -o run.mcap"
WHEN_STOPPED = "nothing was written"
WRITES = ("out",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN, the format, and the file."""
    parser.add_argument("run", metavar="RUN", help="a run directory")
    kinds = "; ".join(f"{name}: {purpose}" for name, (_, purpose) in FORMATS.items())
    parser.add_argument("--to", choices=tuple(FORMATS), help=f"the format (that of FILE's ending); {kinds}")
    parser.add_argument("-o", "--out", metavar="FILE", help="where it goes (the run's name, here)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Writes the file, and says what is in it."""
    source, to = Path(options.run), str(options.to or "")
    if not to and options.out is None:
        raise FitError(f"give a format, --to {'|'.join(FORMATS)}, or a file whose ending tells it, -o FILE")
    out = options.out or f"{Path(os.path.realpath(source)).name}{FORMATS[to][0]}"
    opened = open_run(source)
    for warning in opened.warnings:
        console.say(f"warning: {warning}")
    console.keep_earlier(out, options.out)
    with console.working(f"writing {out}"):
        written = convert(opened, out, to or None)
    samples = opened.samples
    missing = int((~samples.valid).any(axis=1).sum())
    kept = f", {missing} of them missing for a joint and kept so" if missing else ""
    console.say(f"{samples.n_samples} samples of {samples.n_joints} joints{kept}")
    for path in written:
        console.say(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return Result("convert", fields={"run": source, "files": written, "samples": samples.n_samples})
