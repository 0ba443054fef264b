"""Identify a Stäubli TX40 from its public recording, and compare with what its authors published."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tomllib
from pathlib import Path

from jointbench import FitSettings, Model, fit, validate
from jointbench.cli.carry_out import carry_out
from jointbench.cli.console import Console
from jointbench.cli.fit import fit_fields
from jointbench.cli.result import Check, Result
from jointbench.cli.tables import table
from jointbench.errors import ImportedDataError
from jointbench.recording import Run, import_csv

PUBLISHED = Path(__file__).with_name("tx40_published.toml")
LIMIT_PERCENT = 10.0
LIMITS_PERCENT = {"j6.coulomb": 20.0}
CHECKED = ("viscous", "coulomb", "wrist")
TOTAL_LIMIT_PERCENT = 7.9
TRAINING_S, TEST_S = (0.0, 5.2), (5.2, 8.0)
"""The split of the recording that published comparisons use."""


def parser() -> argparse.ArgumentParser:
    """What `./run tx40` takes."""
    options = argparse.ArgumentParser(prog="./run tx40", description=__doc__)
    options.add_argument("data", metavar="DIR", nargs="?", help="folder with pos_read_data.csv and curr_data.csv")
    options.add_argument("--out", metavar="DIR", help="run directory to create (a new one under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Import, fit, compare; 0, 1 when a check says no, 2 when it could not be done."""
    return carry_out("tx40", parser().parse_args(arguments), identify)


def identify(options: argparse.Namespace, console: Console) -> Result:
    """The comparison, with the mapping's settings: those of the recording's authors."""
    if options.data is None or not Path(options.data).is_dir():
        given = f"{options.data} is no folder" if options.data else "the recording's folder is missing"
        raise ImportedDataError(
            f"{given}; give the folder that holds pos_read_data.csv and curr_data.csv of the public TX40 recording "
            f"(thanhndv212/figaroh-examples): ./run tx40 DIR"
        )
    run = import_csv("tx40", options.out, data=options.data)
    console.say(f"imported {run.samples.n_samples} samples of {run.samples.n_joints} joints: {run.path}")
    model = fit(run)
    model.save(run.path / "model.json")
    published = read_published()
    console.say(comparison(model, published))
    checks = make_checks(model, published)
    held_out = held_out_error(run, model.settings)
    console.say(f"fitted to the first {TRAINING_S[1]:g} s, error up to {TEST_S[1]:g} s: {held_out:.1%}")
    for verdict in model.joint_verdicts:
        console.say(f"  {verdict}")
    for check in checks:
        console.say(str(check))
    fields = {
        **fit_fields(model),
        "total_relative": model.error.total_relative,
        "total_relative_all_rows": model.error_all.total_relative,
        "rows_fitted_share": model.error.share,
        "held_out_relative": held_out,
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


def make_checks(model: Model, published: dict[str, float]) -> tuple[Check, ...]:
    """Friction and coupling parameters within their limits, and the total torque error."""
    checks = [
        Check(f"{name} off the published value", off_percent(model, name, value), "<=", limit(name), "%")
        for name, value in published.items()
        if name.split(".")[0] in CHECKED or name.split(".")[1] in CHECKED
    ]
    total = Check("total relative torque error", 100.0 * model.error.total_relative, "<=", TOTAL_LIMIT_PERCENT, "%")
    return (*checks, total)


def limit(name: str) -> float:
    """Largest deviation allowed, in percent."""
    return LIMITS_PERCENT.get(name, LIMIT_PERCENT)


def off_percent(model: Model, name: str, published: float) -> float:
    """Distance from the published value in percent of it."""
    return 100.0 * abs(model.value(name) / published - 1.0)


def comparison(model: Model, published: dict[str, float]) -> str:
    """Ours beside theirs, for every published parameter that is one of the base parameters by itself."""
    rows = [
        [name, f"{model.value(name):.4g}", f"{model.sigma[model.names.index(name)]:.2g}", f"{value:.4g}",
         f"{100.0 * (model.value(name) / value - 1.0):+.1f}"]
        for name, value in published.items()
        if name in model.names
    ]
    return table(("parameter [SI]", "ours", "σ", "published", "difference %"), rows)


def held_out_error(run: Run, settings: FitSettings) -> float:
    """Total relative torque error on the later part of the recording of a model fitted to the earlier part."""
    trained = fit(run, settings=dataclasses.replace(settings, interval=TRAINING_S))
    return validate(trained, run, settings=dataclasses.replace(settings, interval=TEST_S)).total_relative


if __name__ == "__main__":
    sys.exit(main())
