"""Identify a robot's model from a run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Literal

import numpy as np
import scipy

from jointbench.dynamics import base_parameters
from jointbench.errors import FitError
from jointbench.identification.least_squares import weighted_least_squares
from jointbench.identification.model import Model
from jointbench.identification.observations import Observations, observe
from jointbench.identification.settings import FitSettings
from jointbench.identification.torque_error import torque_error
from jointbench.recording.run import Run
from jointbench.robot import Robot

ESTIMATORS = ("wls",)


def fit(
    run: Run, robot: Robot | None = None, *, estimator: Literal["wls"] = "wls", settings: FitSettings | None = None
) -> Model:
    """Identify base parameters of links and drives from a run, with error bars and a verdict.

    tau = regressor(q, dq, ddq) @ parameters, by least squares with each joint weighted by its residual.

    Args:
        run: of a motion that excites the robot.
        robot: the robot that was recorded; None: the one the run names.
        estimator: "wls".
        settings: None: those of the run's mapping where it was imported with some, else `FitSettings()`.

    Returns:
        The model; look at its verdicts before using it.

    Raises:
        FitError: the run lacks a signal, has too few rows, or does not belong to the robot.
        SignalError: the cut-off does not suit the sample rate.
        UnclearRank: the robot's geometry is nearly degenerate.
    """
    if estimator not in ESTIMATORS:
        raise FitError(f"estimator {estimator!r} is not known; the estimators are {', '.join(ESTIMATORS)}")
    robot = robot or run.robot
    base = base_parameters(robot)
    rows = observe(run, robot, base, settings or run_settings(run))
    _check_enough(run, robot, rows)
    estimate = weighted_least_squares(rows.regressor, rows.torque, rows.moving)
    predicted = rows.regressor @ estimate.parameters
    everywhere = rows.complete[:, None] & robot.modelled
    return Model(
        robot=robot,
        base=base,
        parameters=estimate.parameters,
        covariance=estimate.covariance,
        condition_number=estimate.condition_number,
        error=torque_error(rows.torque, predicted, rows.moving, rows.complete),
        error_all=torque_error(rows.torque, predicted, everywhere, rows.complete),
        noise_rms=rows.noise,
        lags=estimate.lags,
        rows=tuple(int(count) for count in rows.moving.sum(axis=0)),
        estimator=estimator,
        settings=rows.settings,
        provenance=provenance(run),
    )


def run_settings(run: Run) -> FitSettings:
    """The settings a run was imported with, or the defaults."""
    given: Mapping[str, Any] = run.provenance.get("fit", {})
    return FitSettings.from_dict(given)


def provenance(run: Run) -> dict[str, Any]:
    """Where a result comes from: the run, its hash, what was recorded about it, and what computed the result."""
    versions = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "jointbench": _installed_version(),
    }
    return {"run": str(run.path), "sha256": run.sha256, "recorded": dict(run.provenance), "versions": versions}


def _installed_version() -> str:
    try:
        return metadata.version("jointbench")
    except metadata.PackageNotFoundError:
        return "not installed"


def _check_enough(run: Run, robot: Robot, rows: Observations) -> None:
    """Refuse a fit with fewer rows than parameters that act on them."""
    used = int(rows.moving.sum())
    rank = rows.regressor.shape[2]
    if used <= rank:
        per_joint = ", ".join(
            f"{name} {count}" for name, count in zip(robot.joint_names, rows.moving.sum(axis=0), strict=True)
        )
        raise FitError(
            f"run {run.path} gives {used} rows away from rest ({per_joint}) for {rank} parameters; "
            f"record more motion, or lower velocity_threshold"
        )
