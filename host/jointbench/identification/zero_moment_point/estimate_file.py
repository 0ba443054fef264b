"""Estimates of a biped's reduced parameters as JSON files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import numpy as np

from jointbench.errors import ModelFileError
from jointbench.files import write_file
from jointbench.foreign import json_values, text_of
from jointbench.identification.judgement.verdict import Verdict
from jointbench.identification.plain_values import floats, frozen, plain
from jointbench.identification.robot_values import robot_from, robot_values
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate
from jointbench.sealed import is_sealed, sealed_json, what_changed

FORMAT = "jointbench stance estimate"
VERSION = 2
_READ = (1, 2)
"""Version 1 had no digest."""


def write_estimate(estimate: ZmpEstimate, path: Path) -> Path:
    """Write an estimate; numbers that are not finite become null."""
    fields = {field.name: getattr(estimate, field.name) for field in dataclasses.fields(estimate)}
    values = {"format": FORMAT, "version": VERSION} | fields
    values |= {
        "parameter_verdicts": [dataclasses.asdict(verdict) for verdict in estimate.parameter_verdicts],
        "verdict": dataclasses.asdict(estimate.verdict),
        "robot": robot_values(estimate.robot),
    }
    return write_file(path, sealed_json(plain(values)))


def load_stance_estimate(path: str | Path) -> ZmpEstimate:
    """Read an estimate that `ZmpEstimate.save` wrote.

    Raises:
        ModelFileError: the file cannot be read, or is none.
    """
    path = Path(path)
    again = "give one that `jointbench stance` wrote, or fit the runs again"
    try:
        text = text_of(path)
        values: Any = json_values(text)
    except OSError as error:
        raise ModelFileError(f"estimate {path} cannot be read: {error.strerror or error}; {again}") from error
    except ValueError as error:
        raise ModelFileError(f"estimate {path} is no JSON ({error}); {again}") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ModelFileError(f'{path} is no estimate of a stance: "format" is not {FORMAT!r}; {again}')
    if values.get("version") not in _READ:
        known = ", ".join(map(str, _READ))
        raise ModelFileError(
            f"estimate {path} has version {values.get('version')!r}; this release reads {known}; {again}"
        )
    if (values["version"] > 1 or is_sealed(text)) and (changed := what_changed(text, cast(dict[str, Any], values))):
        raise ModelFileError(f"estimate {path} {changed}; {again}")
    try:
        return _estimate(cast(dict[str, Any], values))
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"estimate {path} is damaged: {type(error).__name__} {error}; {again}") from error


def _estimate(values: dict[str, Any]) -> ZmpEstimate:
    fields = {field.name: values[field.name] for field in dataclasses.fields(ZmpEstimate)}
    parts: dict[str, Any] = {
        "robot": robot_from(values["robot"]),
        "values": floats(values["values"], np.nan),
        "covariance": floats(values["covariance"], np.inf),
        "standard_parameters": floats(values["standard_parameters"], np.nan),
        "parameter_verdicts": tuple(Verdict(**verdict) for verdict in values["parameter_verdicts"]),
        "verdict": Verdict(**values["verdict"]),
        "trace": tuple(map(tuple, floats(values["trace"], np.nan).tolist())),
    }
    size = len(values["names"])
    if parts["values"].shape != (size,) or parts["covariance"].shape != (size, size):
        raise TypeError(f"values and covariance are not of its {size} names")
    return ZmpEstimate(**frozen(fields) | parts)
