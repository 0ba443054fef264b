"""Origin of the numbers of an exported file: model, recordings, digests, date, errors and standard errors."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from jointbench.identification import Model
from jointbench.identification.model_file import model_digest
from jointbench.model import Robot
from jointbench.model.model_columns import parameter_unit
from jointbench.results.content import NOT_A_NUMBER, value_and_sigma

_DIGEST = 16
"""Hexadecimal digits shown of a digest."""


def origin_lines(robot: Robot, model: Model | None) -> tuple[str, ...]:
    """Lines on where the values of an exported file come from.

    Args:
        robot: whose file it is.
        model: that was fitted, or None where the robot's own file gives the values.

    Returns:
        Date and version of the export; of a model its verdict, digest and recordings, and the torque error of each
        joint. The date is that of SOURCE_DATE_EPOCH [s] where the environment has it, for files that are the same on
        any day.
    """
    written = f"Exported {_date()} by Jointbench {_version()}"
    if model is None:
        return (f"{written}; values of robot {robot.name}'s own file, not identified",)
    runs: list[Mapping[str, Any]] = list(model.provenance.get("runs") or [model.provenance])
    recordings = (f"{run['run']} (sha256 {str(run['sha256'])[:_DIGEST]})" for run in runs)
    errors = ", ".join(
        f"{name} {NOT_A_NUMBER if not math.isfinite(share) else f'{share:.1%}'}"
        for name, share in zip(robot.joint_names, model.error.relative.tolist(), strict=True)
    )
    return (
        f"{written}; model of {robot.name}: verdict {model.verdict.word}, estimator {model.estimator},",
        f"model digest {model_digest(model)[:_DIGEST]}, fitted to {', '.join(recordings)}",
        f"Torque error where the joints move, of the torque's root mean square: {errors}.",
    )


def parameter_lines(model: Model) -> tuple[str, ...]:
    """A line for each identified parameter: name, value and standard error with their unit, verdict."""
    own = zip(model.names, model.parameters.tolist(), model.sigma.tolist(), model.parameter_verdicts, strict=True)
    rows = [
        (name, value, sigma, parameter_unit(model.robot, name), verdict.word) for name, value, sigma, verdict in own
    ]
    if (laws := model.friction) is not None:
        words = [verdict.word for verdict in laws.parameter_verdicts]
        rows += zip(laws.names, laws.parameters.tolist(), laws.sigma.tolist(), laws.units, words, strict=True)
    memory = ", with Coulomb and viscous friction in place of that with memory" if model.memory is not None else ""
    lines = [f"Base parameters: value ± standard error{memory}"]
    for name, value, sigma, unit, word in rows:
        shown, error = value_and_sigma(value, sigma)
        number = f"{shown} ± {error} {unit}" if shown != NOT_A_NUMBER else "no value"
        lines.append(f"  {name}: {number} ({word})")
    return tuple(lines)


def _date() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return f"{moment:%Y-%m-%d}"


def _version() -> str:
    try:
        return metadata.version("jointbench")
    except metadata.PackageNotFoundError:
        return "(not installed)"
