"""Say whether two models of a robot differ, in which parameters and by how much torque."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jointbench.checks import Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit_options import add_judging_arguments, cutoff_sentence
from jointbench.cli.judgement import finite, two_errors_fields
from jointbench.errors import FitError
from jointbench.identification import Model, TorqueError, Validation, load_model, validate_models
from jointbench.identification.comparison import LEVEL, Comparison, check_comparable, compare
from jointbench.identification.judgement import GOOD_RELATIVE_ERROR, TwoErrors
from jointbench.identification.observations import observe
from jointbench.identification.validation import common_cutoff, judging_settings
from jointbench.model import Robot
from jointbench.model.model_columns import parameter_unit, torque_units
from jointbench.recording import PROVENANCE, Run, open_run
from jointbench.signals import Motion

_MODEL = "model.json"

VERB = "compare"
EXAMPLE = "jointbench compare runs/before runs/after"


def model_file(given: Path) -> Path:
    """A model's file: as given, or the one in a run directory.

    Raises:
        FitError: the directory holds none.
    """
    if not given.is_dir():
        return given
    if not (given / _MODEL).is_file():
        raise FitError(
            f"{given} holds no {_MODEL}; fit the run first, `jointbench fit {given}`, or give a model file in its place"
        )
    return given / _MODEL


def own_run(place: Path, model: Model) -> Path | None:
    """The run a model was fitted to, where it is still there: the folder the model is in, or what the model names."""
    for folder in (place.parent, Path(str(model.provenance.get("run", "")) or "-")):
        if (folder / PROVENANCE).is_file() and _is_fitted_to(model, open_run(folder)):
            return folder
    return None


def _is_fitted_to(model: Model, run: Run) -> bool:
    """Return whether a run is one of those that a model was fitted to."""
    return run.sha256 in {source.get("sha256") for source in (model.provenance, *model.provenance.get("runs", ()))}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A and B, the motion on which torques are compared, and what counts as different."""
    parser.add_argument("a", metavar="A", help="a model.json, or a run directory with its model")
    parser.add_argument("b", metavar="B", help="another one, of the same robot or one of its kind")
    parser.add_argument(
        "--on", metavar="RUN", help="the run on whose motion torques are compared (A's own, or any within the limits)"
    )
    add_judging_arguments(parser)
    often = "how often equal models are called different (%(default)g)"
    parser.add_argument("--level", type=float, default=LEVEL, metavar="P", help=often)
    enough = "share of a joint's torque up to which a difference does not matter (%(default)g)"
    parser.add_argument("--margin", type=float, default=GOOD_RELATIVE_ERROR, metavar="SHARE", help=enough)


def run(options: argparse.Namespace, console: Console) -> Result:
    """Compares and prints; exit code 1 when the models differ."""
    places = [model_file(Path(given)) for given in (options.a, options.b)]
    a, b = (load_model(place) for place in places)
    check_comparable(a, b)
    for name, model in (("A", a), ("B", b)):
        for edit in model.edits:
            console.say(f"warning: {name} was {edit}")
    place = options.on or own_run(places[0], a)
    source = open_run(place) if place else None
    if source is None and (options.interval is not None or options.cutoff_Hz is not None):
        raise FitError("--interval and --cutoff-Hz are about a run, and the one that A was fitted to is gone: --on RUN")
    cutoff = common_cutoff((a, b)) if options.cutoff_Hz is None else options.cutoff_Hz
    motion = None if source is None else motion_of(source, a, cutoff, options.interval)
    comparison = compare(a, b, motion=motion, level=options.level, margin=options.margin)
    console.say(parameters_table(comparison, a.robot))
    console.say()
    console.say(torques_table(comparison, a.robot))
    console.say(f"  on {f'the motion of {place}' if source else 'random states within the limits of the robot'}")
    errors: tuple[Validation, ...] = ()
    if source is not None and a.settings.torque == b.settings.torque:
        errors = validate_models((a, b), source, cutoff_Hz=cutoff, interval=options.interval, in_sample=True)
        console.say()
        console.say(errors_table(errors))
        for name, model in (("A", a), ("B", b)):
            if _is_fitted_to(model, source):
                console.say(f"  {name} was fitted to this run: its errors say nothing about other motions")
    if source is not None:
        console.say(f"  {cutoff_sentence(cutoff, [('A', a), ('B', b)], asked=options.cutoff_Hz is not None)}")
    if comparison.same_data:
        console.say("both were fitted to one recording, so that their errors are correlated: σ is its upper bound")
    console.say(f"{comparison.answer}: {comparison.reason}")
    fields = comparison_fields(comparison) | {"a": places[0], "b": places[1], "motion": place or "random states"}
    fields |= {"cutoff_Hz": cutoff if source else None, "interval": options.interval}
    fields |= {
        "errors": {name: _errors(validation) for name, validation in zip("ab"[: len(errors)], errors, strict=True)}
    }
    return Result("compare", fields=fields, refused=comparison.differs)


def motion_of(run: Run, model: Model, cutoff_Hz: float, interval: tuple[float, float] | None) -> Motion:
    """The motion of a run, filtered at this cut-off."""
    rows = observe(run, model.robot, model.base, judging_settings(model, cutoff_Hz, interval))
    return Motion(*(values[rows.complete] for values in (rows.motion.q, rows.motion.dq, rows.motion.ddq)))


def _errors(validation: Validation) -> dict[str, object]:
    """Errors of a model's torque, against the filtered one and as measured."""
    names = validation.joint_names
    return {
        "filtered": two_errors_fields(names, TwoErrors(validation.error_all, validation.error)),
        "as_measured": two_errors_fields(names, validation.as_measured),
    }


def errors_table(validations: Sequence[Validation]) -> str:
    """Each joint's torque error by either model over all rows, then where it moves, filtered | unfiltered."""
    columns = [
        [f"{smooth:.1%} | {raw:.1%}" for smooth, raw in zip(*map(_by_joint, errors), strict=True)]
        for errors in (
            *((validation.error_all, validation.as_measured.all) for validation in validations),
            *((validation.error, validation.as_measured.moving) for validation in validations),
        )
    ]
    names = (*validations[0].joint_names, "together")
    heads = ("joint", "A, all rows", "B, all rows", "A, moving", "B, moving")
    rows = [[name, *cells] for name, *cells in zip(names, *columns, strict=True)]
    return f"  torque error as a share of the torque, filtered | unfiltered:\n{table(heads, rows)}"


def _by_joint(error: TorqueError) -> list[float]:
    """Relative errors of the joints, then of all together."""
    return [*error.relative.tolist(), error.total_relative]


def comparison_fields(comparison: Comparison) -> dict[str, object]:
    """Return what a comparison tells in JSON."""
    return {
        "verdict": comparison.answer,
        "verdict_reason": comparison.reason,
        "p_value": finite(comparison.p_value),
        "chi_square": comparison.test.chi_square,
        "degrees_of_freedom": comparison.test.freedom,
        "same_data": comparison.same_data,
        "different": comparison.different,
        "parameters": {name: _parameter(comparison, k) for k, name in enumerate(comparison.names)},
        "torque": {name: _torque(comparison, joint) for joint, name in enumerate(comparison.joint_names)},
    }


def _parameter(comparison: Comparison, k: int) -> dict[str, float | None]:
    a, b = (float(value) if np.isfinite(sigma) else None for value, sigma in zip(
        comparison.values[:, k], comparison.sigmas[:, k], strict=True
    ))  # fmt: skip
    return {
        "a": a,
        "b": b,
        "difference": None if a is None or b is None else b - a,
        "sigma": finite(float(comparison.sigma[k])),
        "p_value": finite(float(comparison.p_values[k])),
        "detectable": finite(float(comparison.detectable[k])),
    }


def _torque(comparison: Comparison, joint: int) -> dict[str, object]:
    differences = {
        part: {"rms": float(torque.rms[joint]), "sigma": float(torque.sigma[joint])}
        for part, torque in comparison.torques.items()
    }
    torque_rms = float(comparison.torques["all"].torque[joint])
    return {"torque_rms": torque_rms, "at_most": finite(float(comparison.at_most[joint])), "difference": differences}


def parameters_table(comparison: Comparison, robot: Robot) -> str:
    """Every parameter in both models with its unit, their difference by its σ, and whether it is one."""
    rows = [
        [
            name,
            parameter_unit(robot, name),
            f"{a:.4g}" if np.isfinite(sigma_a) else "–",
            f"{b:.4g}" if np.isfinite(sigma_b) else "–",
            *([f"{b - a:+.3g}", f"{sigma:.2g}", f"{(b - a) / sigma:+.1f}"] if np.isfinite(sigma) else ["–"] * 3),
            "differs" if name in comparison.different else "" if np.isfinite(sigma) else "not in both",
        ]
        for name, a, b, sigma_a, sigma_b, sigma in zip(
            comparison.names, *comparison.values, *comparison.sigmas, comparison.sigma, strict=True
        )
    ]
    return table(("parameter", "unit", "A", "B", "B - A", "σ", "in σ", ""), rows)


def torques_table(comparison: Comparison, robot: Robot) -> str:
    """Each joint's difference of torque beside what chance makes of it, and what it is made of."""
    torques = comparison.torques
    rows = [
        [
            name,
            f"{torques['all'].torque[joint]:.3g}",
            *(f"{torques[part].rms[joint]:.2g}±{torques[part].sigma[joint]:.1g}" for part in torques),
            f"{comparison.at_most[joint]:.1%}" if np.isfinite(comparison.at_most[joint]) else "not known",
        ]
        for joint, name in enumerate(comparison.joint_names)
    ]
    heads = ("joint", "torque", *("difference" if part == "all" else f"of {part}" for part in torques), "at most")
    return f"  torques and their differences, rms [{torque_units(robot)}]:\n{table(heads, rows)}"
