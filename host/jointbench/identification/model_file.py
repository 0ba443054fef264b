"""Models as JSON files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from jointbench.dynamics import base_parameters
from jointbench.errors import ModelFileError
from jointbench.files import write_file
from jointbench.foreign import json_values, text_of
from jointbench.identification.friction_in_model import ModelFriction, ModelMemory
from jointbench.identification.judgement.torque_error import TorqueError, TorqueInformation
from jointbench.identification.judgement.whiteness import Whiteness
from jointbench.identification.model import Model
from jointbench.identification.observations.delay import Delay, given_delay
from jointbench.identification.plain_values import floats, frozen, plain
from jointbench.identification.robot_values import robot_from, robot_values
from jointbench.identification.rows.motor_side import felt_by_sensor
from jointbench.identification.settings import FitSettings
from jointbench.robot import Compensation, Robot
from jointbench.sealed import is_sealed, sealed_json, what_changed

_base_parameters = functools.lru_cache(maxsize=16)(base_parameters)
"""Of a fleet's models all have the same robot."""

_Kind = TypeVar("_Kind", Whiteness, TorqueInformation)
_Judgement = TypeVar("_Judgement", Whiteness, TorqueInformation, TorqueError)

FORMAT = "jointbench model"
VERSION = 6
_READ = (2, 3, 4, 5, 6)
"""Version 2 knew of no estimator but one, and nothing of delays, outliers, whiteness and information; 3 of no
compensations; 4 had no digest; 5 no friction with memory."""
_SEALED = 5


def write_model(model: Model, path: Path) -> Path:
    """Write a model; numbers that are not finite become null."""
    values = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": model.estimator,
        "options": model.options,
        "figures": model.figures,
        "notes": model.notes,
        "names": model.names,
        "groups": model.base.names,
        "parameters": model.parameters,
        "sigma": model.sigma,
        "covariance": model.covariance,
        "verdicts": [dataclasses.asdict(verdict) for verdict in model.parameter_verdicts],
        "joint_verdicts": [dataclasses.asdict(verdict) for verdict in model.joint_verdicts],
        "condition_number": model.condition_number,
        "error": model.error.to_dict(),
        "error_all": model.error_all.to_dict(),
        "whiteness": model.whiteness.to_dict(),
        "information": model.information.to_dict(),
        "noise_rms": model.noise_rms,
        "lags": model.lags,
        "rows": model.rows,
        "settings": model.settings.to_dict(),
        "delays": [dataclasses.asdict(delay) for delay in model.delays],
        "outliers": model.outliers,
        "robot": robot_values(model.robot),
        "friction": None if model.friction is None else model.friction.to_dict(),
        "memory": None if model.memory is None else model.memory.to_dict(),
        "provenance": model.provenance,
    }
    return write_file(path, sealed_json(plain(values)))


def load_model(path: str | Path, *, compensations: Sequence[Compensation] = ()) -> Model:
    """Read a model that `Model.save` wrote.

    Args:
        path: of the file.
        compensations: those of the model's robot that are functions of one's own, which the file only names.

    Raises:
        ModelFileError: the file cannot be read, is no model, was changed after it was written, or groups its
            parameters otherwise than this release; or such a function is not given.

    >>> path = jb.fit(jb.open_run("runs/arm")).save("arm.json")
    >>> model = jb.load_model(path)
    >>> model.robot.name, model.verdict.word
    ('cobot6:2', 'identified')
    """
    path = Path(path)
    try:
        text = text_of(path)
        values: Any = json_values(text, finite=True)
    except OSError as error:
        why = error.strerror or error
        raise ModelFileError(f"model file {path} cannot be read: {why}; give one of `jointbench fit`") from error
    except ValueError as error:
        raise ModelFileError(
            f"model file {path} is no JSON ({error}); give a file that `jointbench fit` wrote, or fit the run again"
        ) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ModelFileError(f'{path} is no model file: "format" is not {FORMAT!r}; give one that Model.save wrote')
    if values.get("version") not in _READ:
        known = ", ".join(map(str, _READ))
        raise ModelFileError(f"model file {path} has version {values.get('version')!r}; this release reads {known}")
    sealed = values["version"] >= _SEALED or is_sealed(text)
    if sealed and (changed := what_changed(text, cast(dict[str, Any], values))):
        raise ModelFileError(f"model file {path} {changed}; fit the run again, or take the file from a copy")
    try:
        return _model(path, cast(dict[str, Any], values), compensations)
    except ModelFileError:
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"model file {path} is damaged: {type(error).__name__} {error}; fit the run again"
        ) from error


def _model(path: Path, values: dict[str, Any], compensations: Sequence[Compensation]) -> Model:
    robot = robot_from(values["robot"], compensations)
    settings = FitSettings.from_dict({"delay": 0.0} | values["settings"])
    base = _base_parameters(robot)
    if settings.torque == "joint":
        base = felt_by_sensor(base)
    if list(base.leading_names) != values["names"]:
        raise ModelFileError(
            f"model file {path} groups its parameters otherwise than this release ({len(values['names'])} names, "
            f"here {base.rank}); fit the run again"
        )
    parameters, covariance = floats(values["parameters"], np.nan), floats(values["covariance"], np.inf)
    noise_rms, rows = floats(values["noise_rms"], np.nan), np.array(values["rows"], dtype=np.intp)
    outliers = np.array(values.get("outliers", [0] * 2 * robot.n_joints), dtype=np.intp)
    for name, array, shape in (
        ("parameters", parameters, (base.rank,)),
        ("covariance", covariance, (base.rank, base.rank)),
        ("noise_rms", noise_rms, (robot.n_joints,)),
        ("rows", rows, (robot.n_joints,)),
        ("outliers", outliers, (2 * robot.n_joints,)),
    ):
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, and must have {shape}")
    if not np.all(np.isfinite(parameters)):
        raise ValueError("a parameter is no finite number")
    if np.isnan(covariance).any() or (np.diag(covariance) < 0.0).any():
        raise ValueError("a variance is negative, or a covariance no number")
    return Model(
        robot=robot,
        base=base,
        parameters=parameters,
        covariance=covariance,
        condition_number=float(floats([values["condition_number"]], np.inf)[0]),
        error=_of_joints("error", TorqueError.from_dict(values["error"]), robot),
        error_all=_of_joints("error_all", TorqueError.from_dict(values["error_all"]), robot),
        whiteness=_known(values, "whiteness", Whiteness, robot),
        information=_known(values, "information", TorqueInformation, robot),
        noise_rms=noise_rms,
        lags=int(values["lags"]),
        rows=tuple(rows.tolist()),
        estimator=values["estimator"],
        options=frozen(values.get("options", {})),
        figures=values.get("figures", {}),
        notes=tuple(values.get("notes", ())),
        settings=settings,
        delays=_delays(values, settings, robot),
        outliers=outliers,
        provenance=values["provenance"],
        friction=ModelFriction.from_dict(laws, base) if (laws := values.get("friction")) else None,
        memory=ModelMemory.from_dict(memory, base) if (memory := values.get("memory")) else None,
    )


def _known(values: dict[str, Any], name: str, kind: type[_Kind], robot: Robot) -> _Kind:
    return _of_joints(name, kind.from_dict(values[name]), robot) if name in values else kind.unknown(robot.n_joints)


def _of_joints(name: str, judgement: _Judgement, robot: Robot) -> _Judgement:
    """The judgement, once each of its arrays has an entry for each joint."""
    for field, found in vars(judgement).items():
        if isinstance(found, np.ndarray) and len(np.atleast_1d(found)) != robot.n_joints:
            raise ValueError(f"{name}.{field} has shape {found.shape}, and must have one entry for each joint")
    return judgement


def _delays(values: dict[str, Any], settings: FitSettings, robot: Robot) -> tuple[Delay, ...]:
    if "delays" not in values:
        seconds = np.broadcast_to(np.asarray(settings.delay, dtype=np.float64), (robot.n_joints,)).copy()
        return (given_delay(seconds, "as an older release wrote it, which did not say where it is from"),)
    return tuple(
        Delay(
            seconds=floats(delay["seconds"], np.nan),
            sigma=floats(delay["sigma"], np.nan),
            source=delay["source"],
            reason=delay["reason"],
            explained=float(floats([delay["explained"]], np.nan)[0]),
        )
        for delay in values["delays"]
    )
