"""Turn CSV logs of any robot into a run, as a mapping file describes them, and say what looks wrong; or propose one."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.errors import FitError, MappingError
from jointbench.identification.settings import FitSettings
from jointbench.recording import import_csv
from jointbench.recording.mapping import read_mapping

VERB = "import"
EXAMPLE = (
    "jointbench import --robot arm.urdf --csv log.csv --propose mapping.toml; "
    "jointbench import mapping.toml --out runs/my-robot"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MAPPING, where its files are, and where the run goes; or the robot and the files to propose a mapping for."""
    parser.add_argument(
        "mapping", metavar="MAPPING", nargs="?", help="a mapping .toml, or the name of a shipped one such as tx40"
    )
    parser.add_argument(
        "--data",
        metavar="DIR|CSV",
        help="folder of the CSV files (that of the mapping), or the one file to take instead",
    )
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    parser.add_argument(
        "--propose", metavar="FILE", help="write a mapping for the files of --csv there, to look through"
    )
    parser.add_argument("--robot", metavar="ROBOT", help="with --propose: name or file of the robot that was recorded")
    parser.add_argument("--csv", metavar="CSV", nargs="+", help="with --propose: the log's files")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Proposes, or imports and checks; exit code 1 when something looks wrong (the run is saved nevertheless)."""
    proposing = [options.propose, options.robot, options.csv]
    if options.mapping is not None and not any(proposing):
        return _import(options, console)
    if options.mapping is None and all(proposing):
        return _propose(options, console)
    raise MappingError(
        "give a mapping to import (jointbench import mapping.toml), or --robot, --csv and --propose together to have "
        "one proposed"
    )


def _import(options: argparse.Namespace, console: Console) -> Result:
    from jointbench.identification.log_check import check_log

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


def _check_settings(options: argparse.Namespace) -> None:
    """Refuse settings of the fit that no fit would take, before they are in a run."""
    place = Path(options.data) if options.data else Path(options.mapping).parent
    if not place.exists():  # import says so
        return
    mapping = read_mapping(options.mapping, place.parent if place.is_file() else place)
    try:
        FitSettings.from_dict(mapping.fit)
    except FitError as error:
        raise MappingError(f"mapping {options.mapping}, [fit]: {error}") from error


def _propose(options: argparse.Namespace, console: Console) -> Result:
    from jointbench.recording.proposal import propose_mapping

    path = Path(options.propose)
    if path.exists():
        raise MappingError(f"{path} exists already; a mapping is never written over, name another")
    proposal = propose_mapping(options.robot, options.csv, path.parent)
    path.write_text(proposal.text, encoding="utf-8")
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
