"""A model as a JSON file, with all it needs to predict and to judge."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import is_sealed, json_values, sealed_json, text_of, what_changed, write_file
from jointbench.identification.calibration import Calibration
from jointbench.identification.delay import Delay, given_delay
from jointbench.identification.friction import ModelFriction, ModelMemory
from jointbench.identification.judgement import HeldOutError, TorqueError, TorqueInformation
from jointbench.identification.model import Model
from jointbench.identification.rows import felt_by_sensor
from jointbench.identification.settings import FitSettings
from jointbench.identification.verdict import Part
from jointbench.identification.whiteness import Whiteness
from jointbench.model import (
    Capsule,
    Compensation,
    Coupling,
    Drive,
    Foot,
    Frame,
    Joint,
    Link,
    LinkAxis,
    LinkKind,
    Mimic,
    Robot,
    base_parameters,
)
from jointbench.model.compensation import KINDS
from jointbench.model.robot import Tolerances


def plain(value: Any) -> Any:
    """Return values that JSON knows: no arrays, no tuples, and null in place of numbers that are not finite."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast(list[Any], value)]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def floats(values: Sequence[Any], missing: float) -> Array:
    """Floats of any depth, null as `missing`."""
    array = np.array(values, dtype=np.float64)  # null has become nan
    return np.where(np.isnan(array), missing, array)


def check_type(value: Any, hint: Any, where: str) -> None:
    """Refuse a value that is not what the type of a record's field says, to any depth.

    Args:
        value: of the field, or the record.
        hint: its type: of numbers, texts, tuples, literals and records, or None beside one of them.
        where: it is, for the message.

    Raises:
        TypeError: names the field.
    """
    parts: tuple[Any, ...] = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        if value is None:
            return
        hint = next(part for part in parts if part is not NoneType)
        parts = get_args(hint)
    if is_dataclass(hint) and isinstance(value, cast(type, hint)):
        for name, of_field in get_type_hints(hint).items():
            check_type(getattr(value, name), of_field, f"{where}.{name}")
    elif get_origin(hint) is tuple and isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        kinds = parts[:1] * len(items) if Ellipsis in parts else parts
        if len(items) != len(kinds):
            raise TypeError(f"{where} has {len(items)} entries, and must have {len(kinds)}")
        for number, (item, kind) in enumerate(zip(items, kinds, strict=True)):
            check_type(item, kind, f"{where}[{number}]")
    elif get_origin(hint) is Literal:
        if value not in parts:
            raise TypeError(f"{where} is {value!r}, and must be one of {', '.join(map(repr, parts))}")
    else:
        kinds = (int, float) if hint is float else hint if hint in (bool, int, str) else ()
        if not isinstance(value, cast(type, kinds)) or (isinstance(value, bool) and hint is not bool):
            raise TypeError(f"{where} is {value!r}, and must be of type {getattr(hint, '__name__', hint)}")


def frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values whose lists, of any depth, are tuples again, as frozen records have them."""

    def tuples(value: Any) -> Any:
        return tuple(tuples(item) for item in cast(list[Any], value)) if isinstance(value, list) else value

    return {key: tuples(value) for key, value in values.items()}


def robot_values(robot: Robot) -> dict[str, Any]:
    """All fields of a robot, with compensations by their kind and names."""
    compensations = [_compensation_values(compensation) for compensation in robot.compensations]
    return dataclasses.asdict(dataclasses.replace(robot, compensations=())) | {"compensations": compensations}


def robot_from(values: Mapping[str, Any], compensations: Sequence[Compensation] = ()) -> Robot:
    """The robot of `robot_values`, also where JSON has made lists of its tuples.

    Args:
        values: its fields.
        compensations: those that are functions of one's own, which the values only name.

    Raises:
        FileError: such a function is not given.
        KeyError, TypeError, ValueError: the values are not a robot's.
    """
    own = {compensation.name: compensation for compensation in compensations}
    parts: dict[str, Any] = {
        "joints": tuple(_joint(joint) for joint in values["joints"]),
        "drives": tuple(Drive(**drive) for drive in values["drives"]),
        "couplings": tuple(_coupling(coupling) for coupling in values["couplings"]),
        "frames": tuple(Frame(**frozen(frame)) for frame in values["frames"]),
        # Files written before robots had capsules, bases that move, feet or kinds of links, have none.
        "capsules": tuple(Capsule(**frozen(capsule)) for capsule in values.get("capsules", ())),
        "base_link": Link(**frozen(base_link)) if (base_link := values.get("base_link")) else None,
        "compensations": tuple(_compensation(each, own) for each in values.get("compensations", ())),
        "feet": tuple(Foot(**frozen(foot)) for foot in values.get("feet", ())),
        "link_kinds": tuple(_link_kind(kind) for kind in values.get("link_kinds", ())),
        "tolerances": Tolerances.from_dict(tolerances) if (tolerances := values.get("tolerances")) else None,
    }
    robot = Robot(**frozen(values) | parts)
    check_type(dataclasses.replace(robot, compensations=()), Robot, "robot")
    for k, joint in enumerate(robot.joints):
        if not -1 <= joint.parent < k:
            raise ValueError(f"joint {joint.name!r} has the parent {joint.parent}, and must have one before it")
    return robot


def _compensation_values(compensation: Compensation) -> dict[str, Any]:
    """All but the function, which `_compensation` finds by the kind."""
    return {name: getattr(compensation, name) for name in ("name", "joints", "parameters", "kind")}


def _compensation(values: dict[str, Any], own: Mapping[str, Compensation]) -> Compensation:
    name, joints, parameters = values["name"], tuple(values["joints"]), tuple(values["parameters"])
    if values["kind"] in KINDS:
        return KINDS[values["kind"]](name, *joints)
    given = own.get(name)
    if given is None or (given.joints, given.parameters) != (joints, parameters):
        raise FileError(
            f"the model has the compensation {name!r} of joints {', '.join(joints)} with parameters "
            f"{', '.join(parameters)}, a function that no file holds; give it: "
            f"load_model(path, compensations=[Compensation({name!r}, {joints!r}, {parameters!r}, columns)])"
        )
    return given


def _coupling(values: dict[str, Any]) -> Coupling:
    parts: dict[str, Any] = {"more": tuple(Drive(**drive) for drive in values.get("more", ()))}
    return Coupling(**frozen(values) | parts)


def _joint(values: dict[str, Any]) -> Joint:
    mimic = values["mimic"]
    parts: dict[str, Any] = {"link": Link(**frozen(values["link"])), "mimic": Mimic(**mimic) if mimic else None}
    return Joint(**frozen(values) | parts)


def _link_kind(values: Mapping[str, Any]) -> LinkKind:
    return LinkKind(values["name"], tuple(LinkAxis(**frozen(axis)) for axis in values["links"]))


_base_parameters = functools.lru_cache(maxsize=16)(base_parameters)
"""Of a fleet's models all have the same robot."""

_Kind = TypeVar("_Kind", Whiteness, TorqueInformation)
_Judgement = TypeVar("_Judgement", Whiteness, TorqueInformation, TorqueError, HeldOutError)

FORMAT = "jointbench model"
VERSION = 6
_READ = (2, 3, 4, 5, 6)
"""Version 2 knew of no estimator but one, and nothing of delays, outliers, whiteness and information; 3 of no
compensations; 4 had no digest; 5 no friction with memory."""
_SEALED = 5


def write_model(model: Model, path: Path) -> Path:
    """Write a model; numbers that are not finite become null."""
    return write_file(path, _model_text(model))


def model_digest(model: Model) -> str:
    """Return the SHA-256 in the last line of the file that `Model.save` writes of this model."""
    return _model_text(model).rpartition('"digest": "')[2].partition('"')[0]


def _model_text(model: Model) -> str:
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
        "verdict": model.verdict.to_dict(),
        "run_parts": [dataclasses.asdict(part) for part in model.run_parts],
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
        "held_out": None if model.held_out is None else model.held_out.to_dict(),
        "calibration": None if model.calibration is None else model.calibration.to_dict(),
        "provenance": model.provenance,
    }
    return sealed_json(plain(values))


def as_model(model: Model | str | Path) -> Model:
    """Return a model as it is, or read the file whose path is given.

    Raises:
        FileError: as `load_model`; or it is neither a model nor a path.
    """
    if isinstance(model, Model):
        return model
    if not isinstance(model, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FileError(f"{type(model).__name__} is given as a model; give one of fit or load_model, or its file")
    return load_model(model)


def load_model(path: str | Path, *, compensations: Sequence[Compensation] = ()) -> Model:
    """Read a model that `Model.save` wrote.

    Args:
        path: of the file.
        compensations: those of the model's robot that are functions of one's own, which the file only names.

    Raises:
        FileError: the file cannot be read, is no model, was changed after it was written, or groups its
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
        raise FileError(f"model file {path} cannot be read: {why}; give one of `jointbench fit`") from error
    except ValueError as error:
        raise FileError(
            f"model file {path} is no JSON ({error}); give a file that `jointbench fit` wrote, or fit the run again"
        ) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FileError(f'{path} is no model file: "format" is not {FORMAT!r}; give one that Model.save wrote')
    if values.get("version") not in _READ:
        known = ", ".join(map(str, _READ))
        raise FileError(f"model file {path} has version {values.get('version')!r}; this release reads {known}")
    sealed = values["version"] >= _SEALED or is_sealed(text)
    if sealed and (changed := what_changed(text, cast(dict[str, Any], values))):
        raise FileError(f"model file {path} {changed}; fit the run again, or take the file from a copy")
    try:
        return _model(path, cast(dict[str, Any], values), compensations)
    except FileError:
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise FileError(f"model file {path} is damaged: {type(error).__name__} {error}; fit the run again") from error


def _model(path: Path, values: dict[str, Any], compensations: Sequence[Compensation]) -> Model:
    robot = robot_from(values["robot"], compensations)
    settings = FitSettings.from_dict({"delay": 0.0} | values["settings"])
    base = _base_parameters(robot)
    if settings.torque == "joint":
        base = felt_by_sensor(base)
    if list(base.leading_names) != values["names"]:
        raise FileError(
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
        held_out=_of_joints("held_out", HeldOutError.from_dict(left), robot)
        if (left := values.get("held_out"))
        else None,
        calibration=Calibration.from_dict(given) if (given := values.get("calibration")) else None,
        run_parts=tuple(Part(**part) for part in values.get("run_parts", ())),
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
