"""Identify a robot's model from a run: parameters with error bars, and a verdict on each."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from jointbench.checks import Result
from jointbench.cli import fit_options
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import friction_fields, friction_table
from jointbench.cli.fleet import add_fleet_arguments, fit_many, is_fleet
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
from jointbench.identification import Model, without_external
from jointbench.identification import fit as identify
from jointbench.identification.judgement import TwoErrors
from jointbench.identification.log_check import check_log
from jointbench.model import load_robot
from jointbench.model.units import parameter_unit
from jointbench.recording import Run, open_run

VERB = "fit"
EXAMPLE = "jointbench fit runs/2026-05-04T101500Z-cobot6-excitation"
WRITES = ("out", "csv")


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
