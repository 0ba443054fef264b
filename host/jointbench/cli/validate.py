"""Judge a model on motion it was not fitted to."""

from __future__ import annotations

import argparse

from jointbench.cli.console import Console
from jointbench.cli.judgement import by_name, finite, information_fields, residual_fields, verdict_fields
from jointbench.cli.result import Result
from jointbench.cli.tables import table
from jointbench.identification import Validation, load_model
from jointbench.identification import validate as judge
from jointbench.recording import open_run
from jointbench.report.evidence import Evidence
from jointbench.report.summary import headline

VERB = "validate"
EXAMPLE = "jointbench validate model.json runs/2026-05-04T101700Z-cobot6-verification"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL and RUN."""
    parser.add_argument("model", metavar="MODEL", help="a model.json")
    parser.add_argument("run", metavar="RUN", help="a run of another motion than the model was fitted to")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Compares predicted with measured torque; exit code 1 when a joint is refused or the run invalid."""
    run = open_run(options.run)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    model = load_model(options.model)
    for edit in model.edits:
        console.say(f"warning: the model was {edit}")
    validation = judge(model, run)
    evidence = Evidence(model, run, validation, run, None)
    held_out = evidence.held_out
    if not held_out:
        console.say("warning: the model was fitted to samples of this run: the errors say nothing about other motions")
    console.say(validation_table(validation))
    console.say(validation.whiteness.sentence(validation.joint_names, held_out=True))
    console.say(headline(evidence))
    console.say(f"verdict: {validation.verdict.word} ({validation.verdict.reason})")
    refused = validation.verdict.word == "refused" or not run.is_valid
    return Result("validate", fields=validation_fields(validation) | {"held_out": held_out}, refused=refused)


def validation_fields(validation: Validation) -> dict[str, object]:
    """What a validation tells in JSON."""
    names = validation.joint_names
    return {
        "verification_rms": by_name(names, validation.rms),
        "verification_relative": by_name(names, validation.relative),
        "verification_relative_all_rows": by_name(names, validation.error_all.relative),
        "verification_total_relative": finite(validation.total_relative),
        "verification_r_squared": by_name(names, validation.r_squared),
        "verdicts": {verdict.name: verdict.word for verdict in validation.joint_verdicts},
        **verdict_fields(validation.verdict, validation.joint_verdicts),
        **residual_fields(names, validation.whiteness),
        **information_fields(names, validation.information),
    }


def validation_table(validation: Validation) -> str:
    """Torque error a joint over all rows, then where it moves, and its verdict."""
    rows = [
        [name, f"{rms:.3f}", f"{relative:.1%}", f"{moving:.1%}", f"{share:.0%}", f"{r2:.4f}", word, verdict.word]
        for name, rms, relative, moving, share, r2, word, verdict in zip(
            validation.joint_names,
            validation.error_all.rms,
            validation.error_all.relative,
            validation.relative,
            validation.error.share,
            validation.r_squared,
            validation.whiteness.words,
            validation.joint_verdicts,
            strict=True,
        )
    ]
    heads = ("joint", "rms [N·m]", "relative", "moving: relative", "of the time", "R²", "residual", "verdict")
    return table(heads, rows)
