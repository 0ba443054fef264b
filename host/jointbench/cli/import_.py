"""Turn logs of any robot (CSV, Parquet, MATLAB, bags) into a run, and say what looks wrong; or propose a mapping."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.errors import FileError, FitError
from jointbench.files import toml_values, write_file
from jointbench.identification.settings import FitSettings
from jointbench.model import read_locks
from jointbench.recording import (
    Mapping,
    Proposal,
    Run,
    import_mapped,
    is_bag,
    mapping_and_folder,
    parse_mapping,
    propose_mapping,
)
from jointbench.results import ENDINGS, import_converted

VERB = "import"
EXAMPLE = (
    "jointbench import --robot arm.urdf log.csv --out runs/my-robot; "
    "jointbench import --robot arm.urdf log.csv --propose mapping.toml; "
    "jointbench import mapping.toml --out runs/my-robot"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MAPPING, where its files are, and where the run goes; or the robot and its logs, to import or to propose for."""
    parser.add_argument(
        "sources",
        metavar="MAPPING|LOG",
        nargs="*",
        help="a mapping .toml, or the name of a shipped one such as tx40; or a file that `jointbench convert` wrote; "
        "with --robot, the log's files: .csv, .parquet, .mat, .mcap, .db3, .bag, or the folder of a rosbag2 or of a "
        "LeRobot dataset",
    )
    parser.add_argument(
        "--data",
        metavar="DIR|LOG",
        help="folder of the log's files (that of the mapping), or the one file or bag to take instead",
    )
    parser.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    parser.add_argument("--robot", metavar="ROBOT", help="name or file of the robot that was recorded")
    parser.add_argument(
        "--propose", metavar="FILE", help="with --robot: import nothing, write a mapping there to look through"
    )
    parser.add_argument(
        "--log", "--csv", dest="logs", metavar="LOG", nargs="+", default=[], help="with --robot: the log's files, too"
    )
    parser.add_argument(
        "--lock",
        metavar="JOINT",
        nargs="+",
        default=[],
        help="with --robot: joints that stood still and are not in the log; JOINT=POSITION [rad or m] if not at home",
    )
    parser.add_argument(
        "--set",
        dest="answers",
        metavar="ENTRY=VALUE",
        nargs="+",
        default=[],
        help="with --robot: entries of the mapping, such as torque.side=motor or torque.gain=9.1,9.1,5.9",
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Proposes, or imports and checks; exit code 1 when something looks wrong (the run is saved nevertheless)."""
    logs = [*options.sources, *options.logs]
    if options.robot is not None and logs and options.data is None:
        proposal = _proposal(options, logs)
        return _propose(options, console, proposal) if options.propose else _import_logs(options, console, proposal)
    of_robot = [options.robot, options.propose, *options.logs, *options.lock, *options.answers]
    if len(options.sources) == 1 and not any(of_robot):
        return _import(options, console, options.sources[0])
    raise FileError(
        "give a mapping to import (jointbench import mapping.toml), or the robot and its log (jointbench import "
        "--robot arm.urdf log.csv), with --propose mapping.toml to have the mapping written instead"
    )


def _import(options: argparse.Namespace, console: Console, source: str) -> Result:
    if Path(source).suffix.lower() in ENDINGS or is_bag(Path(source)):
        return _converted(options, console, source)
    mapping, folder = mapping_and_folder(source, options.data)
    _check_settings(mapping, source)
    return _checked(import_mapped(mapping, folder, options.out), console)


def _proposal(options: argparse.Namespace, logs: list[str]) -> Proposal:
    """Propose a mapping for the logs, with the answers that the options give."""
    lock = read_locks(",".join(options.lock)) if options.lock else {}
    beside = Path(options.propose).parent if options.propose else Path()
    return propose_mapping(options.robot, logs, beside, lock).answered(dict(map(_answer, options.answers)))


def _answer(text: str) -> tuple[str, Any]:
    """Entry and value of a text such as "torque.side=motor"; numbers, lists and tables are as in TOML."""
    name, given, value = text.partition("=")
    if not name.strip() or not given:
        raise FileError(f"--set {text!r}: give ENTRY=VALUE, an entry of the mapping, such as torque.side=motor")
    values = [_value(part) for part in value.split(",")]
    return name.strip(), _value(value) if len(values) == 1 or value.lstrip().startswith("[") else values


def _value(text: str) -> Any:
    try:
        return toml_values(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _import_logs(options: argparse.Namespace, console: Console, proposal: Proposal) -> Result:
    """Import logs by the mapping proposed, unless it has a question that only its user can answer."""
    for line in proposal.lines():
        console.say(line)
    if questions := proposal.to_fill_in:
        asked = "".join(f"\n  {entry.name}: {entry.why}" for entry in questions)
        answers = " ".join(f"{entry.name}=…" for entry in questions)
        raise FileError(
            f"the log leaves {len(questions)} question{'s' if len(questions) > 1 else ''} open; answer with --set "
            f"{answers}, or have the mapping written with --propose mapping.toml and fill it in:{asked}"
        )
    mapping = parse_mapping(proposal.text, Path("proposed.toml"))
    _check_settings(mapping, "proposed")
    result = _checked(import_mapped(mapping, Path(), options.out), console)
    for other in proposal.alike:
        console.say(f"another log of the same columns, not imported: {other}")
    return result


def _checked(run: Run, console: Console) -> Result:
    """Say what was imported, and what looks wrong with it."""
    from jointbench.identification.log_check import check_log

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


def _converted(options: argparse.Namespace, console: Console, source: str) -> Result:
    """A run back from another format: what was recorded is known already, so nothing is checked."""
    if options.data is not None:
        raise FileError("--data goes with a mapping; a file that `jointbench convert` wrote needs none")
    with console.working(f"reading {source}"):
        run = import_converted(source, options.out)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    ledger = "" if run.ledger is None else f", {run.ledger.verdict}"
    console.say(f"{run.samples.n_samples} samples of {run.samples.n_joints} joints{ledger}")
    console.say(f"run: {run.path}")
    fields = {"run": run.path, "samples": run.samples.n_samples, "sha256": run.sha256}
    return Result("import", fields=fields, refused=not run.is_valid)


def _check_settings(mapping: Mapping, name: str) -> None:
    """Refuse settings of the fit that no fit would take, before they are in a run."""
    try:
        FitSettings.from_dict(mapping.fit)
    except FitError as error:
        raise FileError(f"mapping {name}, [fit]: {error}") from error


def _propose(options: argparse.Namespace, console: Console, proposal: Proposal) -> Result:
    path = Path(options.propose)
    if path.exists():
        raise FileError(f"{path} exists; a mapping is never overwritten, name another file")
    write_file(path, proposal.text)
    for line in proposal.lines():
        console.say(line)
    console.say(f"mapping: {path}")
    fill_in = [entry.name for entry in proposal.to_fill_in]
    steps = f", fill in {', '.join(fill_in)}" if fill_in else ""
    console.say(f"next: look through it{steps}, then: jointbench import {path}")
    for other in proposal.alike:
        console.say(f"      other logs of these columns: jointbench import {path} --data {path.parent / other}")
    fields = {"mapping": path, "guessed": [entry.name for entry in proposal.guesses], "to_fill_in": fill_in}
    return Result("import", fields=fields)
