"""Fit friction laws to each joint of a run, or to a CSV of speeds and torques, and say which explains best."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.identification import load_model
from jointbench.identification.friction import (
    METHODS,
    WAYS,
    FrictionData,
    FrictionFit,
    LawComparison,
    compare_laws,
    friction_law,
    friction_of_run,
    read_friction_csv,
)
from jointbench.identification.judgement import Verdict
from jointbench.recording import open_run

VERB = "friction"
EXAMPLE = "jointbench friction runs/2026-05-04T101500Z-cobot6-sweep"


@dataclass(frozen=True)
class _Source:
    """Source of friction: its joints, how it came about in words, and whether its run may be used."""

    joints: Mapping[str, tuple[FrictionData, bool]]
    told_by: str
    left_out: Mapping[str, str]
    is_valid: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SOURCE, laws, and how friction is told from all else."""
    parser.add_argument("source", metavar="RUN|CSV", help="a run directory, or a CSV with velocity_rad_s and torque_Nm")
    parser.add_argument("--law", metavar="LAW", action="append", help="such as makkar+load, repeatable (all that suit)")
    parser.add_argument("--method", choices=METHODS, default=METHODS[0], help="%(default)s unless said otherwise")
    parser.add_argument("--by", choices=WAYS, help="how friction is told from all else in a run (the first possible)")
    parser.add_argument("--model", metavar="FILE", help="a fitted model of the robot, for --by model")
    parser.add_argument("--cutoff-Hz", type=float, default=20.0, help="low-pass on a run's signals (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the particle swarm (%(default)s)")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Fits each joint's friction; exit code 1 when a joint's is refused or the run is invalid."""
    source = _of_run(options, console) if Path(options.source).is_dir() else _of_csv(options)
    console.say(f"friction told by {source.told_by}")
    fields: dict[str, Any] = {}
    verdicts: list[Verdict] = []
    for name, (data, slides) in source.joints.items():
        laws = [friction_law(law, data) for law in options.law] if options.law else None
        compared = compare_laws(data, laws, method=options.method, seed=options.seed)
        verdict = Verdict(name, compared.best_fit.verdict.word, compared.best_fit.verdict.reason)
        verdicts.append(verdict)
        _say(console, name, data, compared, slides, verdict)
        fields[name] = _fields(compared, slides)
    for name, reason in source.left_out.items():
        console.say(f"  {name} left out: {reason}")
    refused = not source.is_valid or any(verdict.is_refused for verdict in verdicts)
    summary = {"told_by": source.told_by, "joints": fields, "left_out": dict(source.left_out)}
    return Result("friction", options.seed, fields=summary, refused=refused)


def _of_csv(options: argparse.Namespace) -> _Source:
    data, slides = read_friction_csv(options.source)
    moving = data.moving()
    still = data.n_rows - moving.n_rows
    at_rest = f"; {still} rows at rest are left out" if still else ""
    kind = "rows in time" if data.in_time else "each row a measurement of its own"
    return _Source({Path(options.source).stem: (moving, slides)}, f"the file, {kind}{at_rest}", {})


def _of_run(options: argparse.Namespace, console: Console) -> _Source:
    run = open_run(options.source)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    model = load_model(options.model) if options.model else None
    friction = friction_of_run(run, way=options.by, model=model, cutoff_Hz=options.cutoff_Hz)
    kinds = {joint.name: joint.kind == "prismatic" for joint in run.robot.independent_joints}
    joints = {name: (data, kinds[name]) for name, data in friction.joints.items()}
    return _Source(joints, friction.way, friction.left_out, run.is_valid)


def _say(
    console: Console, name: str, data: FrictionData, compared: LawComparison, slides: bool, verdict: Verdict
) -> None:
    unit = "N" if slides else "N·m"
    speed = "m/s" if slides else "rad/s"
    speeds = abs(data.velocity)
    console.say()
    console.say(f"{name}: {data.n_rows} rows, {speeds.min():.3g} to {speeds.max():.3g} {speed}")
    rows = [
        [
            ("* " if fit is compared.best_fit else "  ") + fit.law.name, f"{len(fit.parameters)}", f"{fit.rms:.4g}",
            f"{fit.r_squared:.4f}", f"{fit.bic:.1f}", f"{held_out:.4g}",
        ]
        for fit, held_out in zip(compared.fits, compared.held_out_rms, strict=True)
    ]  # fmt: skip
    console.say(table(("law", "parameters", f"rms [{unit}]", "R²", "BIC", f"held out [{unit}]"), rows))
    console.say(f"  {compared.sentence}")
    console.say(parameter_table(compared.best_fit, slides))
    console.say(f"  {verdict}")


def parameter_table(fit: FrictionFit, slides: bool = False) -> str:
    """Every parameter with its unit, standard deviation and verdict."""
    rows = [
        [parameter.name, parameter.unit[slides], f"{value:.4g}", f"{sigma:.2g}", verdict.word]
        for parameter, value, sigma, verdict in zip(
            fit.law.parameters, fit.parameters, fit.sigma, fit.parameter_verdicts, strict=True
        )
    ]
    return table(("parameter", "unit", "value", "σ", "verdict"), rows)


def _fields(compared: LawComparison, slides: bool) -> dict[str, Any]:
    """Return what a joint's friction tells in JSON."""
    return {
        "best": compared.best_fit.law.name,
        "chosen_by": compared.by,
        "why": compared.sentence,
        "laws": {
            fit.law.name: _fit_fields(fit, slides) | {"held_out_rms": held_out}
            for fit, held_out in zip(compared.fits, compared.held_out_rms.tolist(), strict=True)
        },
    }


def _fit_fields(fit: FrictionFit, slides: bool) -> dict[str, Any]:
    return {
        "method": fit.method,
        "rows": fit.n_rows,
        "rms": fit.rms,
        "relative": fit.relative,
        "r_squared": fit.r_squared,
        "bic": fit.bic,
        "verdict": fit.verdict.word,
        "parameters": {
            parameter.name: {
                "value": value,
                "sigma": sigma if math.isfinite(sigma) else None,
                "unit": parameter.unit[slides],
                "verdict": verdict.word,
                "reason": verdict.reason,
            }
            for parameter, value, sigma, verdict in zip(
                fit.law.parameters, fit.parameters.tolist(), fit.sigma.tolist(), fit.parameter_verdicts, strict=True
            )
        },
    }
