"""Turn logs of any robot (CSV, Parquet, MCAP, rosbag2) into a run, and say what looks wrong; or propose a mapping."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import FileError, FitError
from jointbench.files import write_file
from jointbench.identification.settings import FitSettings
from jointbench.recording import import_csv, is_bag, mapping_and_folder
from jointbench.results import ENDINGS, import_converted

VERB = "import"
EXAMPLE = (
    "jointbench import --robot arm.urdf --log log.csv --propose mapping.toml; "
    "jointbench import mapping.toml --out runs/my-robot"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MAPPING, where its files are, and where the run goes; or the robot and the files to propose a mapping for."""
    parser.add_argument(
        "mapping",
        metavar="MAPPING|FILE",
        nargs="?",
        help="a mapping .toml, or the name of a shipped one such as tx40; or a file that `jointbench convert` wrote",
    )
    parser.add_argument(
        "--data",
        metavar="DIR|LOG",
        help="folder of the log's files (that of the mapping), or the one file or bag to take instead",
    )
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    parser.add_argument(
        "--propose", metavar="FILE", help="write a mapping for the files of --log there, to look through"
    )
    parser.add_argument("--robot", metavar="ROBOT", help="with --propose: name or file of the robot that was recorded")
    parser.add_argument(
        "--log",
        "--csv",
        dest="logs",
        metavar="LOG",
        nargs="+",
        help="with --propose: the log's files: .csv, .parquet, .mcap, .db3, .bag, or the folder of a rosbag2",
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Proposes, or imports and checks; exit code 1 when something looks wrong (the run is saved nevertheless)."""
    proposing = [options.propose, options.robot, options.logs]
    if options.mapping is not None and not any(proposing):
        return _import(options, console)
    if options.mapping is None and all(proposing):
        return _propose(options, console)
    raise FileError(
        "give a mapping to import (jointbench import mapping.toml), or --robot, --log and --propose together to have "
        "one proposed"
    )


def _import(options: argparse.Namespace, console: Console) -> Result:
    from jointbench.identification.log_check import check_log

    if Path(options.mapping).suffix.lower() in ENDINGS or is_bag(Path(options.mapping)):
        return _converted(options, console)
    _check_settings(options)
    run = import_csv(options.mapping, options.out, data=options.data)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    samples = run.samples
    console.say(
        f"{len(samples.time)} samples of {len(samples.joint_names)} joints over "
        f"{samples.time[-1] - samples.time[0]:.3f} s, {int((~samples.valid).any(axis=1).sum())} marked invalid"
    )
    check = check_log(run)
    for line in check.lines():
        console.say(line)
    console.say(f"run: {run.path}")
    fields = {"run": run.path, "samples": len(samples.time), "sha256": run.sha256, "log": check.to_dict()}
    return Result("import", fields=fields, refused=check.word == "wrong")


def _converted(options: argparse.Namespace, console: Console) -> Result:
    """A run back from another format: what was recorded is known already, so nothing is checked."""
    if options.data is not None:
        raise FileError("--data goes with a mapping; a file that `jointbench convert` wrote needs none")
    with console.working(f"reading {options.mapping}"):
        run = import_converted(options.mapping, options.out)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    ledger = "" if run.ledger is None else f", {run.ledger.verdict}"
    console.say(f"{run.samples.n_samples} samples of {run.samples.n_joints} joints{ledger}")
    console.say(f"run: {run.path}")
    fields = {"run": run.path, "samples": run.samples.n_samples, "sha256": run.sha256}
    return Result("import", fields=fields, refused=not run.is_valid)


def _check_settings(options: argparse.Namespace) -> None:
    """Refuse settings of the fit that no fit would take, before they are in a run."""
    mapping, _ = mapping_and_folder(options.mapping, options.data)
    try:
        FitSettings.from_dict(mapping.fit)
    except FitError as error:
        raise FileError(f"mapping {options.mapping}, [fit]: {error}") from error


def _propose(options: argparse.Namespace, console: Console) -> Result:
    from jointbench.recording import propose_mapping

    path = Path(options.propose)
    if path.exists():
        raise FileError(f"{path} exists; a mapping is never overwritten, name another file")
    proposal = propose_mapping(options.robot, options.logs, path.parent)
    write_file(path, proposal.text)
    for line in proposal.lines():
        console.say(line)
    console.say(f"mapping: {path}")
    fill_in = [f"{entry.table}.{entry.key}".lstrip(".") for entry in proposal.to_fill_in]
    steps = f", fill in {', '.join(fill_in)}" if fill_in else ""
    console.say(f"next: look through it{steps}, then: jointbench import {path}")
    for other in proposal.alike:
        console.say(f"      other logs of these columns: jointbench import {path} --data {path.parent / other}")
    fields = {
        "mapping": path,
        "guessed": [f"{entry.table}.{entry.key}".lstrip(".") for entry in proposal.guesses],
        "to_fill_in": fill_in,
    }
    return Result("import", fields=fields)
