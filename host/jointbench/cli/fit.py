"""Identify a robot's model from a run: parameters with error bars, and a verdict on each."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.cli.console import Console
from jointbench.cli.result import Result
from jointbench.cli.tables import table
from jointbench.identification import Model
from jointbench.identification import fit as identify
from jointbench.recording import open_run
from jointbench.robot import load_robot

VERB = "fit"
EXAMPLE = "jointbench fit runs/2026-05-04T101500Z-cobot6-excitation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN, and where the model goes."""
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument("--robot", metavar="ROBOT", help="another robot file than the run's own copy")
    parser.add_argument("--out", metavar="FILE", help="where the model goes (model.json in the run directory)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits, prints verdicts, writes the model; exit code 1 when a joint is refused or the run is invalid."""
    run = open_run(options.run)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    model = identify(run, load_robot(options.robot) if options.robot else None)
    path = model.save(options.out or Path(options.run) / "model.json")
    console.say(parameters_table(model))
    console.say()
    for verdict in model.joint_verdicts:
        console.say(f"  {verdict}")
    console.say(f"model: {path}")
    refused = model.verdict.word == "refused" or not run.is_valid
    return Result("fit", fields=fit_fields(model) | {"model": path}, refused=refused)


def fit_fields(model: Model) -> dict[str, object]:
    """What a fit tells in JSON."""
    return {
        "condition_number": model.condition_number,
        "fit_rms": dict(zip(model.robot.joint_names, model.fit_rms.tolist(), strict=True)),
        "fit_relative": dict(zip(model.robot.joint_names, model.fit_relative.tolist(), strict=True)),
        "parameters": {
            name: {"value": value, "sigma": sigma, "verdict": verdict.word}
            for name, value, sigma, verdict in zip(
                model.names, model.parameters.tolist(), model.sigma.tolist(), model.parameter_verdicts, strict=True
            )
        },
    }


def parameters_table(model: Model) -> str:
    """Every base parameter with its standard deviation and verdict."""
    rows = [
        [name, f"{value:.4g}", f"{sigma:.2g}", verdict.word]
        for name, value, sigma, verdict in zip(
            model.names, model.parameters, model.sigma, model.parameter_verdicts, strict=True
        )
    ]
    return table(("parameter", "value", "σ", "verdict"), rows)
