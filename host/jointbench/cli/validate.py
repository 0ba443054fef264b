"""Judge models on motion they were not fitted to, at one cut-off."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import add_external_argument, add_judging_arguments, cutoff_sentence
from jointbench.cli.judgement import (
    by_name,
    finite,
    information_fields,
    residual_fields,
    two_errors_fields,
    two_errors_sentence,
    verdict_fields,
)
from jointbench.identification import TorqueError, Validation, load_model, validate_models, without_external
from jointbench.identification.validation import check_held_out
from jointbench.model.model_columns import torque_units
from jointbench.recording import open_run
from jointbench.results import Evidence, headline

VERB = "validate"
EXAMPLE = "jointbench validate model.json runs/2026-05-04T101700Z-cobot6-verification"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODELs and RUN, and at which cut-off they are judged."""
    parser.add_argument("model", metavar="MODEL", nargs="+", help="a model.json, or several to judge alike")
    parser.add_argument("run", metavar="RUN", help="a run of another motion than the models were fitted to")
    add_judging_arguments(parser)
    parser.add_argument(
        "--in-sample", action="store_true",
        help="also on a run that a model was fitted to, which is refused else: the errors are labelled in-sample",
    )  # fmt: skip
    add_external_argument(parser)


def run(options: argparse.Namespace, console: Console) -> Result:
    """Compares predicted with measured torque; exit code 1 when the one verdict on a model is "refused"."""
    run = open_run(options.run)
    for warning in run.warnings:
        console.say(f"warning: {warning}")
    models = [(str(name), load_model(name)) for name in options.model]
    for name, model in () if options.in_sample else models:
        check_held_out(model, run, options.interval, name)
    if options.external:
        run = without_external(run, options.external)
    validations = validate_models(
        [model for _, model in models],
        run,
        cutoff_Hz=options.cutoff_Hz,
        interval=options.interval,
        in_sample=options.in_sample,
    )
    refused = False
    fields: list[dict[str, object]] = []
    for (name, model), validation in zip(models, validations, strict=True):
        if len(models) > 1:
            console.say(f"{name}:")
        evidence = Evidence(model, run, validation, run, None)
        say(evidence, console)
        refused |= validation.verdict.is_refused
        fields.append(validation_fields(validation))
    cutoff = validations[0].cutoff_Hz
    if len(models) > 1:
        console.say(models_table([name for name, _ in models], validations))
    console.say(cutoff_sentence(cutoff, models, asked=options.cutoff_Hz is not None))
    whole = (
        fields[0]
        if len(models) == 1
        else {"models": {name: each for (name, _), each in zip(models, fields, strict=True)}}
    )
    return Result("validate", fields=whole | {"cutoff_Hz": cutoff, "interval": options.interval}, refused=refused)


def say(evidence: Evidence, console: Console) -> None:
    """Print what a validation found."""
    model, validation = evidence.model, evidence.validation
    for edit in model.edits:
        console.say(f"warning: the model was {edit}")
    if validation.in_sample:
        console.say(
            "in-sample: the model was fitted to samples of this run: the errors say nothing about other motions"
        )
    console.say(validation_table(validation))
    if validation.coulomb_viscous is not None:
        console.say(two_errors_sentence("with Coulomb and viscous friction", validation.coulomb_viscous))
    all_rows, moving = validation.as_measured
    console.say(
        f"against the torque as measured, without the low-pass: torque error {all_rows.total_relative:.1%} over all "
        f"samples, {moving.total_relative:.1%} where the joints move"
    )
    console.say(validation.whiteness.sentence(validation.joint_names, held_out=not validation.in_sample))
    console.say(headline(evidence))
    for line in validation.verdict.lines():
        console.say(line)


def validation_fields(validation: Validation) -> dict[str, object]:
    """Return what a validation tells in JSON."""
    names = validation.joint_names
    return {
        "held_out": not validation.in_sample,
        "verification_rms": by_name(names, validation.rms),
        "verification_relative": by_name(names, validation.relative),
        "verification_relative_all_rows": by_name(names, validation.error_all.relative),
        "verification_rms_all_rows": by_name(names, validation.error_all.rms),
        "verification_total_relative": finite(validation.total_relative),
        "verification_total_relative_all_rows": finite(validation.error_all.total_relative),
        "verification_as_measured": two_errors_fields(names, validation.as_measured),
        "verification_coulomb_viscous": two_errors_fields(names, validation.coulomb_viscous),
        "verification_r_squared": by_name(names, validation.r_squared),
        "verification_r_squared_all_rows": by_name(names, validation.error_all.r_squared),
        "verdicts": {verdict.name: verdict.word for verdict in validation.joint_verdicts},
        **verdict_fields(validation.verdict, validation.joint_verdicts),
        **residual_fields(names, validation.whiteness),
        **information_fields(names, validation.information),
    }


def validation_table(validation: Validation) -> str:
    """Torque error a joint over all rows, then where it moves, each filtered and as measured, and its verdict."""
    names, raw, unit = validation.joint_names, validation.as_measured, torque_units(validation.model.robot)
    everywhere, moving = validation.error_all, validation.error
    of_all = [[name, *_error_cells(everywhere, raw.all, j), f"{moving.share[j]:.0%}"] for j, name in enumerate(names)]
    of_moving = [
        [name, *_error_cells(moving, raw.moving, j), word, verdict.word]
        for j, (name, word, verdict) in enumerate(
            zip(names, validation.whiteness.words, validation.joint_verdicts, strict=True)
        )
    ]
    heads = (f"rms [{unit}]", "relative", "unfiltered", "R²")
    everywhere_table = table(("all", *heads, "moving"), of_all)
    return f"{everywhere_table}\n\n{table(('moving', *heads, 'residual', 'verdict'), of_moving)}"


def _error_cells(filtered: TorqueError, unfiltered: TorqueError, joint: int) -> tuple[str, ...]:
    """Rms error, its share of the torque, that share without the low-pass, and R² of a joint."""
    return (
        f"{filtered.rms[joint]:.3f}", f"{filtered.relative[joint]:.1%}", f"{unfiltered.relative[joint]:.1%}",
        f"{filtered.r_squared[joint]:.4f}",
    )  # fmt: skip


def models_table(names: Sequence[str], validations: Sequence[Validation]) -> str:
    """Torque errors of several models, of all joints together, over all rows and where joints move."""
    rows = [
        [name, *(f"{error.total_relative:.1%}" for error in _four_errors(validation)), validation.verdict.word]
        for name, validation in zip(names, validations, strict=True)
    ]
    return table(("model", "all rows", "unfiltered", "moving", "unfiltered", "verdict"), rows)


def _four_errors(validation: Validation) -> tuple[TorqueError, ...]:
    raw = validation.as_measured
    return validation.error_all, raw.all, validation.error, raw.moving
