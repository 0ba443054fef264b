"""Identify a Kinova Gen3 from its public recordings, and predict its torque sensors better than the vendor's model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from jointbench import Model, fit
from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.fit import fit_fields
from jointbench.cli.main import carry_out
from jointbench.errors import FileError
from jointbench.identification.fit import run_settings
from jointbench.model import inverse_dynamics
from jointbench.recording import LogFile, Run, import_csv, read_csv_table
from jointbench.signals import LowPass, smooth_motion

WITHOUT_SENSORS = ("RecordTrajectory_quadratic", "Trajectory1")
WITH_SENSORS = ("RunTrajectory1", "opti_traj_testing1")
TRAINING = (*WITHOUT_SENSORS, *WITH_SENSORS)
"""Logs to fit, all together."""

TEST = "opti_traj_testing2"
ESTIMATOR, OPTIONS = "physical", {"weight": 1.0}
"""The motions are few and short, 2 to 5 s, and leave many parameters to what the robot's file says of them. A weight of
1: the file may be wrong by as much as itself. With "held_out" the training logs choose the same."""

VENDOR_RMS_NM = np.array([1.78, 3.57, 0.68, 1.62, 0.74, 0.43, 0.22])
"""Error of the vendor's model (the log's columns Torque) of the sensors in the test, joints 1 to 7, as published."""

ROUNDED_NM = 0.005
"""Half a unit of the last digit of those figures."""

ENDS = 100
"""Rows left off at either end, as those figures do."""

LEAST_BETTER = 6

CUTOFFS_HZ = (5.0, 10.0, 20.0, 40.0)
"""Octaves, from above the commanded motions, which end below 2 Hz."""

ROUNDING = 1e-6
"""Of parameters of about 1, of what an interior-point solver leaves."""


class Errors(NamedTuple):
    """Root mean square errors of the sensors' torque in the test [N·m], shape (7,) each."""

    ours: Array
    vendor: Array
    file: Array


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run kinova`."""
    options = argparse.ArgumentParser(prog="./run kinova", description=__doc__)
    options.add_argument("data", metavar="DIR", nargs="?", help="folder with the logs (.csv) and gen3.urdf")
    options.add_argument("--out", metavar="DIR", help="folder to create for runs and model (they are not kept)")
    options.add_argument("--cutoffs", action="store_true", help="also compare cut-offs on the training logs alone")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Import, fit, predict; 0, 1 when a check says no, 2 when it could not be done."""
    return carry_out("kinova", parser().parse_args(arguments), identify)


def identify(options: argparse.Namespace, console: Console) -> Result:
    """A model of the training logs, held against the vendor's on the test log, which the fit has not seen."""
    if options.data is None or not Path(options.data).is_dir():
        given = f"{options.data} is no folder" if options.data else "the recordings' folder is missing"
        raise FileError(
            f"{given}; give the folder that holds gen3.urdf and the logs of the public Kinova Gen3 recordings "
            f"(wissem01chiha/dynamic-identification): ./run kinova DIR"
        )
    with TemporaryDirectory() as scratch:
        folder, data = Path(options.out or scratch), Path(options.data)
        runs = {name: imported(name, data, folder) for name in (*TRAINING, TEST)}
        model = trained([runs[name] for name in TRAINING])
        if options.out:
            console.say(f"model: {model.save(folder / 'model.json')}")
        errors = judge(model, runs[TEST], data)
        compared = cutoffs_compared(runs) if options.cutoffs else {}
    for line in (*model.notes, "", comparison(model, errors), *words(model)):
        console.say(line)
    for cutoff, error in compared.items():
        console.say(f"cut-off {cutoff:g} Hz: training logs predicted from the others to {error:.2f} N·m")
    checks = checks_of(model, errors)
    for check in checks:
        console.say(str(check))
    fields = {
        **fit_fields(model),
        "estimator": {"name": model.estimator, "options": dict(model.options), "figures": dict(model.figures)},
        "notes": model.notes,
        "cutoff_Hz": model.settings.cutoff_Hz,
        "cutoffs_compared_Nm": {f"{cutoff:g}": error for cutoff, error in compared.items()},
        "test_rms_Nm": errors.ours,
        "vendor_rms_Nm": errors.vendor,
        "robot_file_rms_Nm": errors.file,
        "physical": str(model.physical_verdict),
        "standard_parameters": model.physical.standard_parameters,
    }
    return Result("kinova", None, checks, fields)


def imported(name: str, data: Path, folder: Path) -> Run:
    """One of the logs as a run."""
    mapping = "kinova_gen3_currents" if name in WITHOUT_SENSORS else "kinova_gen3"
    return import_csv(mapping, folder / name, data=data / f"{name}.csv")


def trained(runs: Sequence[Run], cutoff_Hz: float | None = None) -> Model:
    """The model of these logs, with the mappings' cut-off or another."""
    settings = [run_settings(run) for run in runs]
    if cutoff_Hz is not None:
        settings = [replace(each, cutoff_Hz=cutoff_Hz) for each in settings]
    return fit(runs, estimator=ESTIMATOR, options=OPTIONS, settings=settings)


def sensor_torque(run: Run) -> Array:
    """Raw torque of the sensors [N·m] but for the log's ends, nan of sensors that are silent, shape (n, 7)."""
    measured = run.samples.joint_torque
    assert measured is not None
    return np.where(np.ptp(measured, axis=0) > 0.0, measured, np.nan)[ENDS:-ENDS]


def motion_of(run: Run, model: Model) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration, smoothed as for the model's fit."""
    cutoff, samples = model.settings.cutoff_Hz, run.samples
    assert cutoff is not None
    low_pass = LowPass(cutoff, samples.sample_period, model.settings.filter_order)
    motion = smooth_motion(samples.motor_position, low_pass)
    return motion.q, motion.dq, motion.ddq


def root_mean_square(measured: Array, predicted: Array) -> Array:
    """Root mean square of the error, joint by joint [N·m], the log's ends left off the prediction, shape (7,)."""
    return np.sqrt(np.mean((measured - predicted[ENDS:-ENDS]) ** 2, axis=0))


def judge(model: Model, test: Run, data: Path) -> Errors:
    """Errors of the model, of the vendor's, and of the inertias in the robot's file, in the test."""
    measured, motion, robot = sensor_torque(test), motion_of(test, model), model.robot
    columns = [f"Torque{joint}" for joint in range(1, robot.n_joints + 1)]
    vendor = read_csv_table(data / f"{TEST}.csv", LogFile(f"{TEST}.csv", ",", header=True), columns).values
    assert robot.standard_parameters is not None
    of_file = inverse_dynamics(robot, *motion, robot.standard_parameters)
    return Errors(*(root_mean_square(measured, each) for each in (model.predict(*motion), vendor, of_file)))


def cutoffs_compared(runs: Mapping[str, Run]) -> dict[float, float]:
    """Error by cut-off [Hz] of each training log with sensors as predicted from the other logs, all together.

    Looks at the training logs alone, and so may choose.
    """
    errors: dict[float, float] = {}
    for cutoff in CUTOFFS_HZ:
        squares = 0.0
        for left_out in WITH_SENSORS:
            model = trained([runs[name] for name in TRAINING if name != left_out], cutoff)
            predicted = model.predict(*motion_of(runs[left_out], model))
            squares += float(np.nansum(root_mean_square(sensor_torque(runs[left_out]), predicted) ** 2))
        errors[cutoff] = squares**0.5
    return errors


def comparison(model: Model, errors: Errors) -> str:
    """Our errors beside those of others, joint by joint."""
    rows = [
        [name, *(f"{each:.2f}" for each in of_joint)]
        for name, *of_joint in zip(model.robot.joint_names, *errors, strict=True)
    ]
    rows.append(["total", *(f"{np.linalg.norm(each):.2f}" for each in errors)])
    return table(("error of the sensors in the test [N·m]", "ours", "vendor's", "the URDF's"), rows)


def words(model: Model) -> list[str]:
    """Line on the number of identified parameters, the names of the others, and whether a robot can have them."""
    lines: list[str] = []
    for word in ("identified", "poorly excited", "not observable", "refused"):
        names = [verdict.name for verdict in model.parameter_verdicts if verdict.word == word]
        lines.append(f"{len(names)} parameters {word}" + (f": {', '.join(names)}" if word != "identified" else ""))
    return [*lines, str(model.physical_verdict)]


def checks_of(model: Model, errors: Errors) -> tuple[Check, ...]:
    """The test's errors against the vendor's, and whether a robot can have these parameters."""
    better = int(np.sum(errors.ours < VENDOR_RMS_NM))
    off = float(np.max(np.abs(errors.vendor - VENDOR_RMS_NM)))
    total, of_vendor = (float(np.linalg.norm(each)) for each in (errors.ours, VENDOR_RMS_NM))
    possible = int(np.sum(model.physical.smallest_eigenvalues > 0.0))
    moved = float(np.max(np.abs(model.physical.base_parameters - model.parameters)))
    return (
        Check("the vendor's errors off their published figures", off, "<=", ROUNDED_NM, "N·m"),
        Check("joints predicted better than by the vendor's model", better, ">=", LEAST_BETTER),
        Check("error of all joints together", total, "<=", of_vendor, "N·m"),
        Check("links that are bodies", possible, "==", model.robot.n_links),
        Check("parameters off those that bodies have", moved, "<=", ROUNDING, "SI"),
    )


if __name__ == "__main__":
    sys.exit(main())
