"""Identify a robot's model from a run: parameters with error bars, and a verdict on each."""

from __future__ import annotations

import argparse
import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.checks import Result
from jointbench.cli import fit_options
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import friction_fields, friction_table
from jointbench.cli.judgement import (
    by_name,
    finite,
    information_fields,
    residual_fields,
    two_errors_fields,
    two_errors_sentence,
    verdict_fields,
)
from jointbench.errors import FitError
from jointbench.files import replacing
from jointbench.identification import Model, without_external
from jointbench.identification import fit as identify
from jointbench.identification.comparison import check_comparable
from jointbench.identification.fleet import Fleet, FleetMember, fit_fleet
from jointbench.identification.judgement import TwoErrors
from jointbench.identification.log_check import check_log
from jointbench.identification.random_effects import Family, Spread
from jointbench.model import load_robot
from jointbench.model.model_columns import parameter_unit
from jointbench.recording import Run, is_pattern, local_directory, open_run

VERB = "fit"
EXAMPLE = "jointbench fit runs/2026-05-04T101500Z-cobot6-excitation"
WRITES = ("out", "csv")

_MANY = 20
"""Members that are listed one by one when nothing is wrong with them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUNs, where models go, the estimator and its rows."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    fit_options.add_arguments(parser)
    add_fleet_arguments(parser)


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits, prints verdicts, writes the model; exit code 1 when the one verdict is "refused"."""
    chosen = fit_options.fit_options(options)
    if is_fleet(options.run) and not options.together:
        if options.external:
            raise FitError("--external is of one fit; give one RUN, or --together with several on which it acted")
        return fit_many(options, console, chosen._asdict())
    runs = [_opened(name, console) for name in options.run]
    if options.external:
        runs = [without_external(each, options.external) for each in runs]
    with console.working(f"fitting {runs[0].robot.name} by {chosen.estimator or 'default'}"):
        model = identify(runs, load_robot(options.robot) if options.robot else None, **chosen._asdict())
    path = Path(options.out or Path(options.run[0]) / "model.json")
    console.keep_earlier(path, options.out)
    model.save(path)
    console.say(parameters_table(model))
    if model.friction is not None:
        console.say(friction_table(model.friction))
    console.say()
    for line in words(model):
        console.say(line)
    for line in model.verdict.lines():
        console.say(line)
    console.say(f"model: {path}")
    return Result("fit", fields=fit_fields(model) | {"model": path}, refused=model.verdict.is_refused)


def _opened(name: str, console: Console) -> Run:
    """A run, with what looks wrong about it said."""
    run = open_run(name)
    for warning in (*run.warnings, *check_log(run).warnings):
        console.say(f"warning: {warning}")
    return run


def words(model: Model) -> list[str]:
    """Return what a model says about itself, line by line."""
    joints = model.robot.joint_names
    lines = [f"  {verdict}" for verdict in model.joint_verdicts]
    lines.append(two_errors_sentence("together", TwoErrors(model.error_all, model.error)))
    if model.memory is not None:
        lines.append(two_errors_sentence("with Coulomb and viscous friction", model.memory.plain))
    lines.append(model.whiteness.sentence(joints))
    runs = [f" of {Path(run['run']).name}" for run in model.provenance.get("runs", ())] or [""]
    lines += [f"delay{run}: {delay.source}, {delay.reason}" for run, delay in zip(runs, model.delays, strict=True)]
    if model.outliers.any():
        n = len(joints)
        listed = ", ".join(
            f"{name} {position} of position and {torque} of torque"
            for name, position, torque in zip(joints, model.outliers[:n], model.outliers[n:], strict=True)
            if position or torque
        )
        lines.append(f"outliers left out of the averages over periods: {listed}")
    lines += [f"estimator: {model.estimator}", *(f"  {note}" for note in model.notes)]
    lines.append(calibration_sentence(model))
    lines.append(str(model.physical_verdict))
    lines += [str(part) for part in model.verdict.parts if part.name in ("log check", "parameters", "held-out error")]
    return lines


def calibration_sentence(model: Model) -> str:
    """Say what the error bars contain of the calibration, and how to change that."""
    if model.calibration is None:
        return (
            "calibration: counts as exact, so that σ is that of another recording of the same bench; say how well it "
            "is known by --tolerance zero_deg=0.5, or [tolerances] in the robot's file"
        )
    words = model.calibration.words(model.robot, model.settings.torque)
    return (
        f"calibration: σ contains standard deviations of {words}; change them by "
        f"--tolerance, or [tolerances] in the robot's or the mapping file"
    )


def calibration_fields(model: Model) -> dict[str, object] | None:
    """Return tolerances, zeros and the shares of each parameter's variance in JSON."""
    calibration = model.calibration
    if calibration is None:
        return None
    joints, zeros = model.robot.joint_names, calibration.zeros
    return {
        "tolerances": calibration.to_dict()["tolerances"],
        "zeros": None
        if zeros is None
        else {"values": by_name(joints, zeros.values), "sigma": by_name(joints, zeros.sigma)},
        "variance_shares": {
            name: dict(zip(("noise", "model", "calibration"), calibration.shares(k), strict=True))
            for k, name in enumerate(model.names)
            if np.isfinite(model.sigma[k])
        },
    }


def fit_fields(model: Model) -> dict[str, object]:
    """Return what a fit tells in JSON."""
    joints = model.robot.joint_names
    return {
        "estimator": {"name": model.estimator, "options": model.options, "figures": model.figures},
        "notes": model.notes,
        "condition_number": finite(model.condition_number),
        "fit_errors": two_errors_fields(joints, TwoErrors(model.error_all, model.error)),
        "friction_with_memory": memory_fields(model),
        "fit_rms": by_name(joints, model.fit_rms),
        "fit_relative": by_name(joints, model.fit_relative),
        "fit_r_squared": by_name(joints, model.error.r_squared),
        "rows": dict(zip(joints, model.rows, strict=True)),
        "lags": model.lags,
        "delays": [
            {"seconds": by_name(joints, delay.seconds), "sigma": by_name(joints, delay.sigma), "source": delay.source}
            for delay in model.delays
        ],
        "outliers": model.outliers,
        "physical": {"word": model.physical_verdict.word, "reason": model.physical_verdict.reason},
        **verdict_fields(model.verdict, model.joint_verdicts),
        **residual_fields(joints, model.whiteness),
        **information_fields(joints, model.information),
        "parameters": {
            name: {"value": value, "sigma": finite(sigma), "verdict": verdict.word, "reason": verdict.reason}
            for name, value, sigma, verdict in zip(
                model.names, model.parameters.tolist(), model.sigma.tolist(), model.parameter_verdicts, strict=True
            )
        },
        "friction": friction_fields(model.friction),
        "calibration": calibration_fields(model),
    }


def memory_fields(model: Model) -> dict[str, object] | None:
    """Return what friction with memory is made of, and what it errs beside Coulomb and viscous friction, in JSON."""
    memory, joints = model.memory, model.robot.joint_names
    if memory is None:
        return None
    return {
        "axes": {
            axis.name: {"family": friction.family, "weights": friction.used, "held_out_rms": friction.held_out_rms}
            for axis, friction in memory.axes
        },
        "held_out_rms": by_name(joints, memory.held_out_rms),
        "coulomb_viscous_held_out_rms": by_name(joints, memory.plain_held_out_rms),
        "coulomb_viscous": two_errors_fields(joints, memory.plain),
    }


def parameters_table(model: Model) -> str:
    """Every base parameter with its unit, standard deviation and verdict, but those that friction laws stand for.

    Beside σ stand the shares of its square that are noise, what the model lacks, and calibration, where that is known.
    """
    replaced = {} if model.friction is None else model.friction.replaced
    rows = [
        [name, parameter_unit(model.robot, name), f"{value:.4g}", f"{sigma:.2g}", verdict.word]
        + ([] if model.calibration is None else [_shares(model, k)])
        for k, (name, value, sigma, verdict) in enumerate(
            zip(model.names, model.parameters, model.sigma, model.parameter_verdicts, strict=True)
        )
        if name not in replaced
    ]
    heads = ("parameter", "unit", "value", "σ", "verdict")
    if model.calibration is None:
        return table(heads, rows)
    return f"{table((*heads, 'of σ² [%]'), rows)}\n  of σ²: noise/what the model lacks/calibration"


def _shares(model: Model, parameter: int) -> str:
    """Shares of a parameter's variance in percent, a dash where it has none."""
    assert model.calibration is not None
    if not np.isfinite(model.sigma[parameter]):
        return "–"
    return "/".join(f"{100.0 * share:.0f}" for share in model.calibration.shares(parameter))


def is_fleet(runs: Sequence[str]) -> bool:
    """Return whether names of runs mean several, or one that is not simply a folder."""
    return len(runs) > 1 or is_pattern(runs[0]) or local_directory(runs[0]) is None or "://" in runs[0]


def add_fleet_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a fit of many runs: its workers, and the file of its table."""
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
    heads = ("parameter", "unit", "of", "mean", "± σ", "spread", "95 % of it", "of the mean", "equal, p", "σ of one")
    robot = family.models[0].robot
    rows = [[name, parameter_unit(robot, name), *cells] for name, *cells in map(_row, family.spreads)]
    text = table(heads, rows)
    outliers = "\n".join(f"  {outlier}" for outlier in family.outliers)
    standing = f"units that stand out:\n{outliers}" if outliers else "no unit stands out"
    return f"{len(family.units)} units of {robot.name}\n{text}\n{standing if len(family.units) > 2 else ''}".rstrip()


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
