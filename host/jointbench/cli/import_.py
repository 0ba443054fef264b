"""Turn CSV logs of any robot into a run, as a mapping file describes them."""

from __future__ import annotations

import argparse

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.recording import import_csv

VERB = "import"
EXAMPLE = "jointbench import mapping.toml --data logs/ --out runs/my-robot"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MAPPING, where its files are, and where the run goes."""
    parser.add_argument("mapping", metavar="MAPPING", help="a mapping .toml, or the name of a shipped one such as tx40")
    parser.add_argument("--data", metavar="DIR", help="folder of the CSV files (that of the mapping)")
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Imports, and says what is in the run."""
    run = import_csv(options.mapping, options.out, data=options.data)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    samples = run.samples
    console.say(
        f"{len(samples.time)} samples of {len(samples.joint_names)} joints over "
        f"{samples.time[-1] - samples.time[0]:.3f} s, {int((~samples.valid).any(axis=1).sum())} marked invalid"
    )
    console.say(f"run: {run.path}")
    return Result("import", fields={"run": run.path, "samples": len(samples.time), "sha256": run.sha256})
