"""A model for other programs: URDF, MJCF, C, JSON and TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import FitError, NumericalError
from jointbench.files import write_file
from jointbench.identification import Model
from jointbench.identification.feedforward import sensor_offset
from jointbench.identification.friction import ModelFriction, ModelMemory
from jointbench.identification.friction.law import FORMS
from jointbench.identification.model_file import as_model
from jointbench.identification.predictor import leading_parameters
from jointbench.model import PARAMETER_NAMES, Joint, Robot
from jointbench.model.model_columns import (
    compensation_parameter_names,
    drive_parameter_names,
    parameter_unit,
    torque_unit,
)
from jointbench.recording import toml_text
from jointbench.results.c_header import c_header_text
from jointbench.results.full_model import FullModel
from jointbench.results.mjcf import mjcf_text
from jointbench.results.origin import origin_lines, parameter_lines
from jointbench.results.urdf import write_urdf

FORMAT = "jointbench export"
VERSION = 1

SUFFIXES = {
    ".urdf": "links with inertia, joints with limits and friction",
    ".xml": "MJCF for MuJoCo",
    ".mjcf": "the same",
    ".h": "C99 that computes the torques",
    ".json": "everything, with units",
    ".toml": "the same",
}

BODIES = (".urdf", ".xml", ".mjcf")
"""Kinds that hold bodies, and so only what bodies can have."""

MJCF = (".xml", ".mjcf")
"""Kinds that are read by MuJoCo."""


def plain_tables(robot: Robot, full: FullModel | None, model: Model | None) -> dict[str, Any]:
    """All that is known of a robot's dynamics.

    Args:
        robot: whose dynamics.
        full: values of all parameters of links and drives, where there are such.
        model: base parameters with their covariance and verdicts, where they were fitted.

    Returns:
        Nested tables of text, numbers and lists; None where a value is not known, inf where a σ is.
    """
    tables: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "robot": {
            "name": robot.name,
            "description": robot.description,
            "source": robot.source,
            "gravity_m_s2": robot.gravity,
            "joints": [_joint(robot, joint) for joint in robot.joints],
            "compensations": [
                {
                    "name": compensation.name,
                    "kind": compensation.kind,
                    "joints": compensation.joints,
                    "parameters": compensation.parameters,
                }
                for compensation in robot.compensations
            ],
        },
    }
    if full is not None:
        tables |= _full(full)
    if model is not None:
        tables |= _fitted(model)
    return tables


def json_text(tables: Mapping[str, Any]) -> str:
    """JSON; numbers that are not finite become null."""
    return json.dumps(_finite(tables), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def toml_tables(tables: Mapping[str, Any]) -> str:
    """TOML; what is not known is left out."""
    return toml_text(_known(tables))


def _joint(robot: Robot, joint: Joint) -> dict[str, Any]:
    return {
        "name": joint.name,
        "kind": joint.kind,
        "link": joint.link.name,
        "parent": robot.joints[joint.parent].name if joint.parent >= 0 else "base",
        "rotation": joint.rotation,
        "origin_m": joint.origin,
        "axis": joint.axis,
        "passive": joint.passive,
        "mimic": None
        if joint.mimic is None
        else {
            "joint": robot.joints[joint.mimic.joint].name,
            "factor": joint.mimic.factor,
            "offset": joint.mimic.offset,
        },
    }


def _full(full: FullModel) -> dict[str, Any]:
    robot = full.robot
    rows = full.standard_parameters.reshape(-1, 10).tolist()
    physical = full.physical and {"verdict": full.physical.word, "reason": full.physical.reason}
    return {
        "physical": physical,
        "standard_parameters": [
            {
                "joint": joint.name,
                "link": joint.link.name,
                **dict(zip(PARAMETER_NAMES, row, strict=True)),
                "units": {name: parameter_unit(robot, f"{joint.name}.{name}") for name in PARAMETER_NAMES},
            }
            for joint, row in zip(robot.joints, rows, strict=True)
        ],
        "drive_parameters": _values(robot, drive_parameter_names(robot), full.drive_parameters),
        "compensation_parameters": _values(robot, compensation_parameter_names(robot), full.compensation_parameters),
    }


def _values(robot: Robot, names: tuple[str, ...], values: Array) -> list[dict[str, Any]]:
    return [
        {"name": name, "value": None if math.isnan(value) else value, "unit": parameter_unit(robot, name)}
        for name, value in zip(names, values.tolist(), strict=True)
    ]


def _fitted(model: Model) -> dict[str, Any]:
    base = zip(
        model.names, model.base.names, model.parameters.tolist(), model.sigma.tolist(), model.parameter_verdicts,
        strict=True,
    )  # fmt: skip
    error, robot = model.error, model.robot
    every = model.error_all
    joints = zip(
        robot.joint_names, every.rms.tolist(), every.relative.tolist(), error.rms.tolist(), error.relative.tolist(),
        model.joint_verdicts, strict=True,
    )  # fmt: skip
    return {
        "base_parameters": [
            {
                "name": name,
                "group": group,
                "value": value,
                "sigma": sigma,
                "unit": parameter_unit(model.robot, name),
                "verdict": verdict.word,
                "reason": verdict.reason,
            }
            for name, group, value, sigma, verdict in base
        ],
        "covariance": model.covariance.tolist(),
        "friction": [] if model.friction is None else _friction(model.friction),
        "friction_with_memory": None if model.memory is None else _memory(model.memory),
        "condition_number": model.condition_number,
        "estimator": model.estimator,
        "verdict": model.verdict.to_dict(),
        "joints": [
            {
                "name": name,
                "torque_error_rms_all": rms_all,
                "relative_all": relative_all,
                "torque_error_rms": rms,
                "unit": torque_unit(robot, j),
                "relative": relative,
                "verdict": verdict.word,
                "reason": verdict.reason,
            }
            for j, (name, rms_all, relative_all, rms, relative, verdict) in enumerate(joints)
        ],
        "settings": model.settings.to_dict(),
        "provenance": dict(model.provenance),
    }


def _friction(friction: ModelFriction) -> list[dict[str, Any]]:
    """Laws in place of the joints' Coulomb and viscous friction, with the elements that they are the sum of."""
    return [
        {
            "joint": joint,
            "law": law.name,
            "verdict": verdict.word,
            "reason": verdict.reason,
            "fitted_speeds": list(friction.speeds[joint]),
            "parameters": [
                {
                    "name": name,
                    "value": value,
                    "sigma": sigma,
                    "unit": unit,
                    "verdict": each.word,
                    "reason": each.reason,
                }
                for name, value, sigma, unit, each in zip(
                    law.names,
                    friction.parameters[part].tolist(),
                    friction.sigma[part].tolist(),
                    friction.units[part],
                    friction.of_joint(joint),
                    strict=True,
                )
            ],
            "elements": [
                {"form": FORMS[form], "coefficient": coefficient, "s": shape, "direction": direction}
                for form, coefficient, shape, direction in law.elements(friction.parameters[part])
            ],
        }
        for (joint, law), part, verdict in zip(
            friction.laws.laws.items(), friction.laws.parts.values(), friction.law_verdicts, strict=True
        )
    ]


def _memory(memory: ModelMemory) -> dict[str, Any]:
    """Friction with memory, with the base parameters beside it."""
    return {
        "torque": "base parameters, then share * sum(weight * carrier * amplitude) of each axis, at each joint",
        "carriers": "tanh(v / width); stop / threshold, stop = min(max(stop + x - x_before, -threshold), threshold)",
        "amplitudes": "1; |load|, the joint's torque before friction; exp(-(v / s)^2)",
        "x_and_v": "shares @ position and shares @ velocity of the joints",
        "state": f"{memory.n_stops} stops and the positions of the sample before",
        "base_parameters": [
            {"name": name, "value": value, "unit": parameter_unit(memory.base.robot, name)}
            for name, value in zip(memory.base.leading_names, memory.parameters.tolist(), strict=True)
        ],
        "axes": [
            {
                "name": axis.name,
                "shares": axis.shares.tolist(),
                "widths": list(friction.carriers.widths),
                "thresholds": list(friction.carriers.thresholds),
                "stribeck_speeds": list(friction.carriers.stribeck_speeds),
                "load": friction.carriers.load,
                "weights_order": list(friction.carriers.names),
                "weights": friction.weights.tolist(),
            }
            for axis, friction in memory.axes
        ],
        "coulomb_viscous_relative_all": memory.plain.all.relative.tolist(),
        "coulomb_viscous_relative": memory.plain.moving.relative.tolist(),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast(list[Any], value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _known(value: Any) -> Any:
    """Leave out None, which TOML does not have; in lists it becomes nan."""
    if isinstance(value, Mapping):
        return {str(key): _known(item) for key, item in cast(Mapping[Any, Any], value).items() if item is not None}
    if isinstance(value, list | tuple):
        return [math.nan if item is None else _known(item) for item in cast(list[Any], value)]
    return value


def export(
    what: Model | FullModel | Robot | str | Path,
    path: str | Path,
    *,
    source: str | Path | None = None,
    zeros: ArrayLike = 0.0,
    resistance: ArrayLike | None = None,
) -> Path:
    """Write a model for other programs: .urdf, .xml or .mjcf, .h, .json, .toml.

    URDF and MJCF take parameters of all links and drives: of a fitted model physically possible ones that give its base
    parameters. The C header computes the model's own torques, whatever its parameters.

    Args:
        what: a fitted model or its file, a robot with all parameters, or a robot whose file gives its inertias.
        path: where it goes; the suffix says what it becomes.
        source: a URDF of the robot, whose text a .urdf keeps but for the inertias; where not given, the file that the
            robot was read from, if it is one and there; else the URDF is written from scratch, without meshes.
        zeros: positions of that file's joints where the robot's are zero [rad or m], in the robot's order,
            shape (n_joints,), or one for all.
        resistance: of the motors' windings [Ω], shape (n_motors,), or one for all: MJCF gets `dcmotor` actuators.

    Returns:
        The path.

    Raises:
        FitError: the suffix is another one, the format cannot hold the model, or nothing that is physically possible is
            near the fitted model (.urdf, .xml, .mjcf).
        NumericalError: the search for it ends without an answer (likewise).
        FileError: `source`, or the file that is named as model, cannot be read.
        FileNotWritten: the file cannot be written; it is as it was.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> print(jb.export(model, "arm.h").read_text().splitlines()[0])
    /* Inverse dynamics of cobot6_2: fitted, verdict identified.
    >>> jb.export(model, "arm.urdf").read_text().count("<inertia ")
    2
    """
    if not isinstance(what, (FullModel, Robot)):
        what = as_model(what)
    path = Path(path)
    if path.suffix not in SUFFIXES:
        kinds = ", ".join(f"{suffix} ({meaning})" for suffix, meaning in SUFFIXES.items())
        raise FitError(f"{path.name}: nothing is exported as {path.suffix or 'a file without suffix'}; use {kinds}")
    if source is not None and path.suffix != ".urdf":
        raise FitError(f"{path.name} keeps nothing of {Path(source).name}; only a .urdf takes the text of another one")
    if path.suffix == ".urdf":
        full = _full_model(what)
        kept = Path(source) if source is not None else own_urdf(full.robot)
        if kept is not None and path.is_file() and kept.is_file() and path.samefile(kept):
            raise FitError(f"{path} is the file whose text is kept, and would be lost; write to another one")
        return write_urdf(full, path, kept, zeros)
    if resistance is not None and path.suffix not in MJCF:
        raise FitError(f"{path.name} has no place for the motors' resistance; only .xml and .mjcf do")
    return write_file(path, _text(what, path.suffix, resistance))


def own_urdf(robot: Robot) -> Path | None:
    """The URDF that a robot was read from, if it was and the file is there (by its name in the current directory)."""
    path = Path(robot.source)
    return path if path.suffix == ".urdf" and path.is_file() else None


def _text(what: Model | FullModel | Robot, suffix: str, resistance: ArrayLike | None) -> str:
    match suffix:
        case ".h":
            return header_text(what)
        case ".json":
            return json_text(_tables(what))
        case ".toml":
            return toml_tables(_tables(what))
        case _:
            return mjcf_text(_full_model(what), resistance)


def _full_model(what: Model | FullModel | Robot) -> FullModel:
    if isinstance(what, FullModel):
        return what
    return FullModel.of_robot(what) if isinstance(what, Robot) else FullModel.of_model(what)


def _tables(what: Model | FullModel | Robot) -> dict[str, Any]:
    if isinstance(what, Model):
        try:
            what = FullModel.of_model(what)
        except (FitError, NumericalError) as error:
            # What was fitted is worth a file even where no robot can have it.
            return plain_tables(what.robot, None, what) | {"no_standard_parameters": str(error)}
    full = _full_model(what)
    return plain_tables(full.robot, full, full.fitted)


def header_text(what: Model | FullModel | Robot) -> str:
    """Return the C header of a fitted model, a robot with all parameters, or one whose file gives its inertias.

    Raises:
        FitError: a compensation is a Python function, or a link has no inertia.
    """
    if isinstance(what, Model):
        laws = () if what.friction is None else what.friction.elements
        origin = f"fitted, verdict {what.verdict.word}"
        about = (*origin_lines(what.robot, what), *parameter_lines(what))
        return c_header_text(
            what.robot, *leading_parameters(what), laws=laws, memory=what.memory, origin=origin, about=about,
            left_out=sensor_offset(what),
        )  # fmt: skip
    full = _full_model(what)
    laws = () if full.friction is None else full.friction.elements
    origin = "" if full.fitted is None else f"{full.robot.source}; {'; '.join(full.unsaid)}".removesuffix("; ")
    return c_header_text(
        full.robot,
        full.standard_parameters,
        full.drive_parameters,
        full.compensation_parameters,
        laws=laws,
        origin=origin,
        about=origin_lines(full.robot, full.fitted),
        left_out=None if full.fitted is None else sensor_offset(full.fitted),
    )
