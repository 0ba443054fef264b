"""Judge a model on motion it was not fitted to."""

from __future__ import annotations

import argparse

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import add_external_argument
from jointbench.cli.judgement import (
    by_name,
    finite,
    information_fields,
    residual_fields,
    two_errors_fields,
    two_errors_sentence,
    verdict_fields,
)
from jointbench.identification import Validation, load_model, without_external
from jointbench.identification import validate as judge
from jointbench.recording import open_run
from jointbench.results import Evidence, headline

VERB = "validate"
EXAMPLE = "jointbench validate model.json runs/2026-05-04T101700Z-cobot6-verification"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL and RUN."""
    parser.add_argument("model", metavar="MODEL", help="a model.json")
    parser.add_argument("run", metavar="RUN", help="a run of another motion than the model was fitted to")
    add_external_argument(parser)


def run(options: argparse.Namespace, console: Console) -> Result:
    """Compares predicted with measured torque; exit code 1 when a joint is refused or the run invalid."""
    run = open_run(options.run)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    model = load_model(options.model)
    for edit in model.edits:
        console.say(f"warning: the model was {edit}")
    if options.external:
        run = without_external(run, options.external)
    validation = judge(model, run)
    evidence = Evidence(model, run, validation, run, None)
    held_out = evidence.held_out
    if not held_out:
        console.say("warning: the model was fitted to samples of this run: the errors say nothing about other motions")
    console.say(validation_table(validation))
    if validation.coulomb_viscous is not None:
        console.say(two_errors_sentence("with Coulomb and viscous friction", validation.coulomb_viscous))
    console.say(validation.whiteness.sentence(validation.joint_names, held_out=True))
    console.say(headline(evidence))
    console.say(f"verdict: {validation.verdict.word} ({validation.verdict.reason})")
    refused = validation.verdict.is_refused or not run.is_valid
    return Result("validate", fields=validation_fields(validation) | {"held_out": held_out}, refused=refused)


def validation_fields(validation: Validation) -> dict[str, object]:
    """Return what a validation tells in JSON."""
    names = validation.joint_names
    return {
        "verification_rms": by_name(names, validation.rms),
        "verification_relative": by_name(names, validation.relative),
        "verification_relative_all_rows": by_name(names, validation.error_all.relative),
        "verification_rms_all_rows": by_name(names, validation.error_all.rms),
        "verification_total_relative": finite(validation.total_relative),
        "verification_total_relative_all_rows": finite(validation.error_all.total_relative),
        "verification_coulomb_viscous": two_errors_fields(names, validation.coulomb_viscous),
        "verification_r_squared": by_name(names, validation.r_squared),
        "verification_r_squared_all_rows": by_name(names, validation.error_all.r_squared),
        "verdicts": {verdict.name: verdict.word for verdict in validation.joint_verdicts},
        **verdict_fields(validation.verdict, validation.joint_verdicts),
        **residual_fields(names, validation.whiteness),
        **information_fields(names, validation.information),
    }


def validation_table(validation: Validation) -> str:
    """Torque error a joint over all rows, then where it moves, and its verdict."""
    rows = [
        [
            *(name, f"{rms:.3f}", f"{relative:.1%}", f"{r2_all:.4f}"),
            *(f"{rms_moving:.3f}", f"{moving:.1%}", f"{r2:.4f}", f"{share:.0%}", word, verdict.word),
        ]
        for name, rms, relative, r2_all, rms_moving, moving, r2, share, word, verdict in zip(
            validation.joint_names,
            validation.error_all.rms,
            validation.error_all.relative,
            validation.error_all.r_squared,
            validation.rms,
            validation.relative,
            validation.r_squared,
            validation.error.share,
            validation.whiteness.words,
            validation.joint_verdicts,
            strict=True,
        )
    ]
    of_all = ("rms [N·m]", "relative", "R²")
    of_moving = ("moving: rms", "relative", "R²", "of the time")
    return table(("joint", *of_all, *of_moving, "residual", "verdict"), rows)
