"""Identify a Stäubli TX40 from its public recording, and compare with what its authors published."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tomllib
from pathlib import Path

from jointbench import FitSettings, Model, Validation, fit, validate
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit import fit_fields
from jointbench.cli.judgement import two_errors_sentence
from jointbench.cli.main import carry_out
from jointbench.errors import FileError
from jointbench.identification.delay import Delay
from jointbench.identification.judgement import TwoErrors
from jointbench.identification.observations import observe
from jointbench.recording import Run, import_csv

PUBLISHED = Path(__file__).with_name("tx40_published.toml")
LIMIT_PERCENT = 6.0
LIMITS_PERCENT = {"j6.coulomb": 20.0}
CHECKED = ("viscous", "coulomb", "wrist")
DELAY_LIMITS_MS = (1.5, 2.5)
TOTAL_LIMIT_PERCENT, HELD_OUT_LIMIT_PERCENT = 6.6, 8.7
"""Of ‖error‖ / ‖torque‖ over all joints and all samples. The recording's authors leave those near rest out."""

TRAINING_S, TEST_S = (0.0, 5.2), (5.2, 8.0)
"""The split of the recording that published comparisons use."""


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run tx40`."""
    options = argparse.ArgumentParser(prog="./run tx40", description=__doc__)
    options.add_argument("data", metavar="DIR", nargs="?", help="folder with pos_read_data.csv and curr_data.csv")
    options.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Import, fit, compare; 0, 1 when a check says no, 2 when it could not be done."""
    return carry_out("tx40", parser().parse_args(arguments), identify)


def identify(options: argparse.Namespace, console: Console) -> Result:
    """The comparison, with the mapping's settings: those of the recording's authors.

    They used no prior, and took no delay between torque and motion out. So their values are held against a fit without
    either, and the errors of torque are those of the fit with the delay that the recording tells, whose friction has
    memory.
    """
    if options.data is None or not Path(options.data).is_dir():
        given = f"{options.data} is no folder" if options.data else "the recording's folder is missing"
        raise FileError(
            f"{given}; give the folder that holds pos_read_data.csv and curr_data.csv of the public TX40 recording "
            f"(thanhndv212/figaroh-examples): ./run tx40 DIR"
        )
    run = import_csv("tx40", options.out, data=options.data)
    console.say(f"imported {run.samples.n_samples} samples of {run.samples.n_joints} joints: {run.path}")
    model = fit(run)
    model.save(run.path / "model.json")
    delay = estimated_delay(run, model)
    own = dataclasses.replace(model.settings, delay=0.0)
    as_published = fit(run, estimator="wls", settings=own, friction="coulomb_viscous")
    published = read_published()
    console.say(comparison(as_published, model, published))
    console.say(delay.reason)
    held_out, its_delay = held_out_error(run, model.settings)
    checks = (*published_checks(as_published, published), *torque_checks(model, held_out, delay))
    console.say(f"fitted to the first {TRAINING_S[1]:g} s (delay {1e3 * its_delay:.3f} ms), up to {TEST_S[1]:g} s:")
    for what, errors in ways(model, held_out).items():
        console.say(two_errors_sentence(f"  {what}", errors))
    for verdict in model.joint_verdicts:
        console.say(f"  {verdict}")
    for check in checks:
        console.say(str(check))
    fields = {
        **fit_fields(model),
        "total_relative": model.error.total_relative,
        "total_relative_all_rows": model.error_all.total_relative,
        "rows_moving_share": model.error.share,
        "held_out_relative": held_out.total_relative,
        "held_out_relative_all_rows": held_out.error_all.total_relative,
        "errors": {
            what: {"all": errors.all.total_relative, "moving": errors.moving.total_relative}
            for what, errors in ways(model, held_out).items()
        },
        "held_out_delay_s": its_delay,
        "delay_s": float(delay.seconds[0]),
        "delay_sigma_s": float(delay.sigma[0]),
        "total_relative_without_delay": as_published.error.total_relative,
        "settings": model.settings.to_dict(),
        "run": run.path,
    }
    return Result("tx40", None, checks, fields)


def read_published() -> dict[str, float]:
    """Published values by parameter name, such as "j3.viscous" or "wrist.coulomb"."""
    values = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    wrist = {f"wrist.{kind}": float(value) for kind, value in values["wrist"].items()}
    kinds = ("viscous", "coulomb", "rotor_inertia", "offset")
    return {f"{joint}.{kind}": float(value) for kind in kinds for joint, value in values[kind].items()} | wrist


def published_checks(model: Model, published: dict[str, float]) -> tuple[Check, ...]:
    """Friction and coupling parameters of a fit as the authors made it within their limits."""
    return tuple(
        Check(f"{name} off the published value", off_percent(model, name, value), "<=", limit(name), "%")
        for name, value in published.items()
        if name.split(".")[0] in CHECKED or name.split(".")[1] in CHECKED
    )


def ways(model: Model, held_out: Validation) -> dict[str, TwoErrors]:
    """Errors of both kinds of friction on the whole recording and on the part held out."""
    found = {"whole recording": TwoErrors(model.error_all, model.error)}
    plain = model.coulomb_viscous
    found["whole recording, Coulomb and viscous friction"] = TwoErrors(plain.error_all, plain.error)
    found["held out"] = TwoErrors(held_out.error_all, held_out.error)
    if held_out.coulomb_viscous is not None:
        found["held out, Coulomb and viscous friction"] = held_out.coulomb_viscous
    return found


def torque_checks(model: Model, held_out: Validation, delay: Delay) -> tuple[Check, ...]:
    """The torque's errors with the delay taken out, and that delay."""
    late = 1e3 * float(delay.seconds[0])
    return (
        Check("delay of the motion behind the torque", late, ">=", DELAY_LIMITS_MS[0], "ms"),
        Check("delay of the motion behind the torque", late, "<=", DELAY_LIMITS_MS[1], "ms"),
        Check("torque error, all samples", 100.0 * model.error_all.total_relative, "<=", TOTAL_LIMIT_PERCENT, "%"),
        Check(
            "held-out torque error, all samples",
            100.0 * held_out.error_all.total_relative,
            "<=",
            HELD_OUT_LIMIT_PERCENT,
            "%",
        ),
    )


def limit(name: str) -> float:
    """Largest deviation allowed, in percent."""
    return LIMITS_PERCENT.get(name, LIMIT_PERCENT)


def off_percent(model: Model, name: str, published: float) -> float:
    """Distance from the published value in percent of it."""
    return 100.0 * abs(model.value(name) / published - 1.0)


def comparison(as_published: Model, model: Model, published: dict[str, float]) -> str:
    """Ours beside theirs, for every published parameter that is one of the base parameters by itself."""
    rows = [
        [
            name,
            f"{as_published.value(name):.4g}",
            f"{as_published.sigma[as_published.names.index(name)]:.2g}",
            f"{value:.4g}",
            f"{100.0 * (as_published.value(name) / value - 1.0):+.1f}",
            f"{model.value(name):.4g}",
            f"{100.0 * (model.value(name) / value - 1.0):+.1f}",
        ]
        for name, value in published.items()
        if name in model.names
    ]
    heads = ("parameter [SI]", "ours", "σ", "published", "difference %", "ours, delay taken out", "difference %")
    return table(heads, rows)


def estimated_delay(run: Run, model: Model) -> Delay:
    """What the recording tells of the delay, with the model's other settings."""
    return observe(run, model.robot, model.base, dataclasses.replace(model.settings, delay="estimate")).delay


def held_out_error(run: Run, settings: FitSettings) -> tuple[Validation, float]:
    """Judge a model of the earlier part of the recording on its later part; and the delay of the earlier part [s]."""
    trained = fit(run, settings=dataclasses.replace(settings, interval=TRAINING_S, delay="estimate"))
    assert isinstance(trained.settings.delay, float)
    test = validate(trained, run, settings=dataclasses.replace(trained.settings, interval=TEST_S))
    return test, trained.settings.delay


if __name__ == "__main__":
    sys.exit(main())
