"""Fitting many runs from the command line: what `jointbench fit RUN RUN…` does, and the table of what differs."""

from __future__ import annotations

import argparse
import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.judgement import finite
from jointbench.errors import FitError
from jointbench.files import replacing
from jointbench.identification.comparison import check_comparable
from jointbench.identification.fleet import Fleet, FleetMember, fit_fleet
from jointbench.identification.random_effects import Family, Spread
from jointbench.model import load_robot
from jointbench.recording import is_pattern, local_directory

_MANY = 20
"""Members that are listed one by one when nothing is wrong with them."""


def is_fleet(runs: Sequence[str]) -> bool:
    """Return whether names of runs mean several, or one that is not simply a folder."""
    return len(runs) > 1 or is_pattern(runs[0]) or local_directory(runs[0]) is None or "://" in runs[0]


def add_fleet_arguments(parser: argparse.ArgumentParser) -> None:
    """Who fits many runs, and where the table goes."""
    group = parser.add_argument_group("many runs", "each is fitted by itself, and what differs between them is told")
    group.add_argument("--jobs", dest="workers", type=int, metavar="N", help="fit in N processes of this machine (1)")
    group.add_argument("--scheduler", metavar="URL", help="on a Dask cluster instead, such as tcp://10.0.0.1:8786")
    group.add_argument("--csv", metavar="FILE", help="write the table of unit-to-unit spread there")


def fit_many(options: argparse.Namespace, console: Console, fit_options: Mapping[str, Any]) -> Result:
    """Fits each run, writes its model, prints what differs; exit code 1 where a run has no model or a refused one."""
    if options.workers is not None and options.scheduler is not None:
        raise FitError("--jobs are processes of this machine, --scheduler has its own; leave one out")

    if options.csv and not Path(options.csv).absolute().parent.is_dir():
        raise FitError(f"--csv {options.csv}: no folder {Path(options.csv).parent}; make it, or name another")

    def told(member: FleetMember, done: int, of: int) -> None:
        console.progress(f"{done} of {of} runs, {member.name} last", done / of)

    fleet = fit_fleet(
        options.run,
        load_robot(options.robot) if options.robot else None,
        workers=1 if options.workers is None else options.workers,
        scheduler=options.scheduler,
        out=options.out,
        told=told,
        **fit_options,
    )
    console.say(members_text(fleet))
    for family in fleet.families:
        console.say()
        console.say(family_text(family))
        if family is not fleet.families[0]:
            console.say(apart_text(fleet.families[0], family))
    if options.csv:
        write_csv(Path(options.csv), fleet.families)
        console.say(f"table: {options.csv}")
    refused = any(member.model.verdict.is_refused for member in fleet.fitted if member.model is not None)
    return Result("fit", fields=fleet_fields(fleet), refused=refused or bool(fleet.failed) or fleet.interrupted)


def members_text(fleet: Fleet) -> str:
    """Return how many runs were fitted, and what is wrong with those that were not."""
    lines = [f"{len(fleet.fitted)} of {len(fleet.members)} runs fitted{', stopped by Ctrl-C' * fleet.interrupted}"]
    lines += [f"  no model of {member.name}: {member.failure}" for member in fleet.failed]
    for member in fleet.fitted:
        verdict = member.model.verdict if member.model is not None else None
        if verdict is not None and (verdict.word != "identified" or len(fleet.members) <= _MANY):
            lines.append(f"  {member.name}: {verdict.word} ({verdict.reason}), {member.path}")
        lines += [f"  warning: {member.name}: {warning}" for warning in member.warnings]
    return "\n".join(lines)


def family_text(family: Family) -> str:
    """Each parameter's mean and spread from unit to unit, and the units that stand out."""
    heads = ("parameter", "units", "mean", "± σ", "spread", "95 % of it", "of the mean", "equal units, p", "σ of one")
    text = table(heads, [_row(spread) for spread in family.spreads])
    robot = family.models[0].robot.name
    outliers = "\n".join(f"  {outlier}" for outlier in family.outliers)
    standing = f"units that stand out:\n{outliers}" if outliers else "no unit stands out"
    return f"{len(family.units)} units of {robot}\n{text}\n{standing if len(family.units) > 2 else ''}".rstrip()


def apart_text(first: Family, family: Family) -> str:
    """Return the lines on units that are not of the first family, with the reasons."""
    try:
        check_comparable(first.models[0], family.models[0])
    except FitError as error:
        return f"{', '.join(family.units)} not with {first.units[0]}: {error}"
    return ""


def _row(spread: Spread) -> list[str]:
    if not spread.count:
        return [spread.name, "0", *["–"] * 7]
    mean = [f"{spread.mean:.4g}", f"{spread.mean_sigma:.2g}"]
    if spread.count < 2:
        return [spread.name, str(spread.count), *mean, *["–"] * 4, f"{spread.sigma:.2g}"]
    known = abs(spread.mean) > 2.0 * spread.mean_sigma  # a share of nothing says nothing
    share = f"{spread.spread / abs(spread.mean):.1%}" if known else "–"
    limits = f"{spread.lowest:.2g} … {spread.highest:.2g}"
    figures = [f"{spread.spread:.3g}", limits, share, f"{spread.p_value:.2g}", f"{spread.sigma:.2g}"]
    return [spread.name, str(spread.count), *mean, *figures]


def fleet_fields(fleet: Fleet) -> dict[str, object]:
    """Return what a fleet tells in JSON."""
    return {
        "interrupted": fleet.interrupted,
        "runs": {
            member.name: {
                "run": member.url,
                "model": member.path,
                "failure": member.failure or None,
                "warnings": member.warnings,
                "verdict": member.model.verdict.word if member.model is not None else None,
                "verdict_reason": member.model.verdict.reason if member.model is not None else None,
            }
            for member in fleet.members
        },
        "families": [
            {
                "robot": family.models[0].robot.name,
                "units": family.units,
                "parameters": {
                    spread.name: _plain(dataclasses.asdict(spread))
                    | {"values": dict(zip(family.units, map(finite, values.tolist()), strict=True))}
                    for spread, values in zip(
                        family.spreads, np.where(np.isfinite(family.sigmas), family.values, np.nan), strict=True
                    )
                },
                "outliers": [_plain(dataclasses.asdict(outlier)) for outlier in family.outliers],
            }
            for family in fleet.families
        ],
    }


def write_csv(path: Path, families: Sequence[Family]) -> None:
    """The table of spreads, a row per family and parameter; what is not known is left empty."""
    names = [field.name for field in dataclasses.fields(Spread)]
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["robot", *names, "outliers"])
        for family in families:
            for spread in family.spreads:
                values = _plain(dataclasses.asdict(spread))
                outliers = " ".join(outlier.unit for outlier in family.outliers if outlier.parameter == spread.name)
                cells = ["" if values[name] is None else values[name] for name in names]
                writer.writerow([family.models[0].robot.name, *cells, outliers])


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: finite(value) if isinstance(value, float) else value for name, value in values.items() if name != "values"
    }
