"""Models as JSON files."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from jointbench.dynamics import base_parameters
from jointbench.errors import ModelFileError
from jointbench.identification.friction_in_model import ModelFriction
from jointbench.identification.judgement.torque_error import TorqueError
from jointbench.identification.judgement.torque_information import TorqueInformation
from jointbench.identification.judgement.whiteness import Whiteness
from jointbench.identification.model import Model
from jointbench.identification.observations.delay import Delay, given_delay
from jointbench.identification.rows.motor_side import felt_by_sensor
from jointbench.identification.settings import FitSettings
from jointbench.robot import Array, Capsule, Compensation, Coupling, Drive, Frame, Joint, Link, Mimic, Robot
from jointbench.robot.compensation import KINDS

_base_parameters = functools.lru_cache(maxsize=16)(base_parameters)
"""Of a fleet's models all have the same robot."""

_Kind = TypeVar("_Kind", Whiteness, TorqueInformation)

FORMAT = "jointbench model"
VERSION = 4
_READ = (2, 3, 4)
"""Version 2 knew of no estimator but one, and nothing of delays, outliers, whiteness and information; 3 of no
compensations."""


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
        "robot": dataclasses.asdict(dataclasses.replace(model.robot, compensations=()))
        | {"compensations": [_compensation_values(each) for each in model.robot.compensations]},
        "friction": None if model.friction is None else model.friction.to_dict(),
        "provenance": model.provenance,
    }
    path.write_text(json.dumps(_plain(values), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path


def load_model(path: str | Path, *, compensations: Sequence[Compensation] = ()) -> Model:
    """Read a model that `Model.save` wrote.

    Args:
        path: of the file.
        compensations: those of the model's robot that are functions of one's own, which the file only names.

    Raises:
        ModelFileError: the file cannot be read, is no model, or groups its parameters otherwise than this release; or
            such a function is not given.
    """
    path = Path(path)
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or error
        raise ModelFileError(f"model file {path} cannot be read: {why}; give one of `jointbench fit`") from error
    except ValueError as error:
        raise ModelFileError(
            f"model file {path} is no JSON ({error}); give a file that `jointbench fit` wrote, or fit the run again"
        ) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ModelFileError(f"{path} is no model file: \"format\" is not {FORMAT!r}; give one that Model.save wrote")
    if values.get("version") not in _READ:
        known = ", ".join(map(str, _READ))
        raise ModelFileError(f"model file {path} has version {values.get('version')!r}; this release reads {known}")
    try:
        return _model(path, cast(dict[str, Any], values), compensations)
    except (KeyError, TypeError) as error:
        raise ModelFileError(
            f"model file {path} is damaged: {type(error).__name__} {error}; fit the run again"
        ) from error


def _model(path: Path, values: dict[str, Any], compensations: Sequence[Compensation]) -> Model:
    own = {each.name: each for each in compensations}
    robot = _robot(values["robot"], own)
    settings = FitSettings.from_dict({"delay": 0.0} | values["settings"])
    base = _base_parameters(robot)
    if settings.torque == "joint":
        base = felt_by_sensor(base)
    if list(base.leading_names) != values["names"]:
        raise ModelFileError(
            f"model file {path} groups its parameters otherwise than this release ({len(values['names'])} names, "
            f"here {base.rank}); fit the run again"
        )
    return Model(
        robot=robot,
        base=base,
        parameters=_array(values["parameters"], np.nan),
        covariance=_array(values["covariance"], np.inf),
        condition_number=float(_array([values["condition_number"]], np.inf)[0]),
        error=TorqueError.from_dict(values["error"]),
        error_all=TorqueError.from_dict(values["error_all"]),
        whiteness=_known(values, "whiteness", Whiteness, robot),
        information=_known(values, "information", TorqueInformation, robot),
        noise_rms=_array(values["noise_rms"], np.nan),
        lags=values["lags"],
        rows=tuple(values["rows"]),
        estimator=values["estimator"],
        options=_frozen(values.get("options", {})),
        figures=values.get("figures", {}),
        notes=tuple(values.get("notes", ())),
        settings=settings,
        delays=_delays(values, settings, robot),
        outliers=np.array(values.get("outliers", [0] * 2 * robot.n_joints), dtype=np.intp),
        provenance=values["provenance"],
        friction=ModelFriction.from_dict(laws, base) if (laws := values.get("friction")) else None,
    )


def _known(values: dict[str, Any], name: str, kind: type[_Kind], robot: Robot) -> _Kind:
    return kind.from_dict(values[name]) if name in values else kind.unknown(robot.n_joints)


def _delays(values: dict[str, Any], settings: FitSettings, robot: Robot) -> tuple[Delay, ...]:
    if "delays" not in values:
        seconds = np.broadcast_to(np.asarray(settings.delay, dtype=np.float64), (robot.n_joints,)).copy()
        return (given_delay(seconds, "as an older release wrote it, which did not say where it is from"),)
    return tuple(
        Delay(
            seconds=_array(delay["seconds"], np.nan),
            sigma=_array(delay["sigma"], np.nan),
            source=delay["source"],
            reason=delay["reason"],
            explained=float(_array([delay["explained"]], np.nan)[0]),
        )
        for delay in values["delays"]
    )


def _robot(values: dict[str, Any], own: Mapping[str, Compensation] | None = None) -> Robot:
    parts: dict[str, Any] = {
        "joints": tuple(_joint(joint) for joint in values["joints"]),
        "drives": tuple(Drive(**drive) for drive in values["drives"]),
        "couplings": tuple(_coupling(coupling) for coupling in values["couplings"]),
        "frames": tuple(Frame(**_frozen(frame)) for frame in values["frames"]),
        # Files written before robots had capsules, or bases that move, have none.
        "capsules": tuple(Capsule(**_frozen(capsule)) for capsule in values.get("capsules", ())),
        "base_link": Link(**_frozen(base_link)) if (base_link := values.get("base_link")) else None,
        "compensations": tuple(_compensation(each, own or {}) for each in values.get("compensations", ())),
    }
    return Robot(**_frozen(values) | parts)


def _compensation_values(compensation: Compensation) -> dict[str, Any]:
    """All but the function, which `_compensation` finds by the kind."""
    return {name: getattr(compensation, name) for name in ("name", "joints", "parameters", "kind")}


def _compensation(values: dict[str, Any], own: Mapping[str, Compensation]) -> Compensation:
    name, joints, parameters = values["name"], tuple(values["joints"]), tuple(values["parameters"])
    if values["kind"] in KINDS:
        return KINDS[values["kind"]](name, *joints)
    given = own.get(name)
    if given is None or (given.joints, given.parameters) != (joints, parameters):
        raise ModelFileError(
            f"the model has the compensation {name!r} of joints {', '.join(joints)} with parameters "
            f"{', '.join(parameters)}, a function that no file holds; give it: "
            f"load_model(path, compensations=[Compensation({name!r}, {joints!r}, {parameters!r}, columns)])"
        )
    return given


def _coupling(values: dict[str, Any]) -> Coupling:
    parts: dict[str, Any] = {"more": tuple(Drive(**drive) for drive in values.get("more", ()))}
    return Coupling(**_frozen(values) | parts)


def _joint(values: dict[str, Any]) -> Joint:
    mimic = values["mimic"]
    parts: dict[str, Any] = {"link": Link(**_frozen(values["link"])), "mimic": Mimic(**mimic) if mimic else None}
    return Joint(**_frozen(values) | parts)


def _frozen(values: dict[str, Any]) -> dict[str, Any]:
    """JSON's lists are the tuples of the frozen records."""

    def frozen(value: Any) -> Any:
        return tuple(frozen(item) for item in cast(list[Any], value)) if isinstance(value, list) else value

    return {key: frozen(value) for key, value in values.items()}


def _array(values: list[Any], missing: float) -> Array:
    """Floats of any depth, null as `missing`."""
    array = np.array(values, dtype=np.float64)  # null has become nan
    return np.where(np.isnan(array), missing, array)


def _plain(value: Any) -> Any:
    """What JSON knows: no arrays, no tuples, no numbers that are not finite."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast(list[Any], value)]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
