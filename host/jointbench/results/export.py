"""A model as a file of another program's kind, chosen by the file's suffix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from jointbench.errors import ExportError, ImpossibleParameters, PhysicalSolverFailed
from jointbench.files import write_file
from jointbench.identification import Model
from jointbench.identification.predictor import leading_parameters
from jointbench.results.c_header import c_header_text
from jointbench.results.full_model import FullModel
from jointbench.results.mjcf import mjcf_text
from jointbench.results.plain import json_text, plain_tables, toml_tables
from jointbench.results.urdf import write_urdf
from jointbench.robot import Robot

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


def export(
    what: Model | FullModel | Robot, path: str | Path, *, source: str | Path | None = None, zeros: ArrayLike = 0.0
) -> Path:
    """Write a model for other programs: .urdf, .xml or .mjcf, .h, .json, .toml.

    URDF and MJCF take parameters of all links and drives: of a fitted model physically possible ones that give its base
    parameters. The C header computes the model's own torques, whatever its parameters.

    Args:
        what: a fitted model, a robot with all parameters, or a robot whose file gives its inertias.
        path: where it goes; the suffix says what it becomes.
        source: a URDF of the robot, whose text a .urdf keeps but for the inertias; where not given, the file that the
            robot was read from, if it is one and there; else the URDF is written from scratch, without meshes.
        zeros: positions of that file's joints where the robot's are zero [rad or m], in the robot's order,
            shape (n_joints,), or one for all.

    Returns:
        The path.

    Raises:
        ExportError: the suffix is another one, or the format cannot hold the model.
        ImpossibleParameters: nothing that is physically possible is near the fitted model (.urdf, .xml, .mjcf).
        PhysicalSolverFailed: the search for it ends without an answer (likewise).
        RobotFileError: `source` cannot be read.
        FileNotWritten: the file cannot be written; it is as it was.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> print(jb.export(model, "arm.h").read_text().splitlines()[0])
    /* Inverse dynamics of cobot6_2: fitted, verdict identified.
    >>> jb.export(model, "arm.urdf").read_text().count("<inertia ")
    2
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        kinds = ", ".join(f"{suffix} ({meaning})" for suffix, meaning in SUFFIXES.items())
        raise ExportError(f"{path.name}: nothing is exported as {path.suffix or 'a file without suffix'}; use {kinds}")
    if source is not None and path.suffix != ".urdf":
        raise ExportError(
            f"{path.name} keeps nothing of {Path(source).name}; only a .urdf takes the text of another one"
        )
    if path.suffix == ".urdf":
        full = _full(what)
        kept = Path(source) if source is not None else own_urdf(full.robot)
        if kept is not None and path.is_file() and kept.is_file() and path.samefile(kept):
            raise ExportError(f"{path} is the file whose text is kept, and would be lost; write to another one")
        return write_urdf(full, path, kept, zeros)
    return write_file(path, _text(what, path.suffix))


def own_urdf(robot: Robot) -> Path | None:
    """The URDF that a robot was read from, if it was and the file is there (by its name in the current directory)."""
    path = Path(robot.source)
    return path if path.suffix == ".urdf" and path.is_file() else None


def _text(what: Model | FullModel | Robot, suffix: str) -> str:
    match suffix:
        case ".h":
            return _header(what)
        case ".json":
            return json_text(_tables(what))
        case ".toml":
            return toml_tables(_tables(what))
        case _:
            return mjcf_text(_full(what))


def _full(what: Model | FullModel | Robot) -> FullModel:
    if isinstance(what, FullModel):
        return what
    return FullModel.of_robot(what) if isinstance(what, Robot) else FullModel.of_model(what)


def _tables(what: Model | FullModel | Robot) -> dict[str, Any]:
    if isinstance(what, Model):
        try:
            what = FullModel.of_model(what)
        except (ImpossibleParameters, PhysicalSolverFailed) as error:
            # What was fitted is worth a file even where no robot can have it.
            return plain_tables(what.robot, None, what) | {"no_standard_parameters": str(error)}
    full = _full(what)
    return plain_tables(full.robot, full, full.fitted)


def _header(what: Model | FullModel | Robot) -> str:
    if isinstance(what, Model):
        laws = () if what.friction is None else what.friction.elements
        origin = f"fitted, verdict {what.verdict.word}"
        return c_header_text(what.robot, *leading_parameters(what), laws=laws, memory=what.memory, origin=origin)
    full = _full(what)
    laws = () if full.friction is None else full.friction.elements
    origin = "" if full.fitted is None else f"{full.robot.source}; {'; '.join(full.unsaid)}".removesuffix("; ")
    return c_header_text(
        full.robot,
        full.standard_parameters,
        full.drive_parameters,
        full.compensation_parameters,
        laws=laws,
        origin=origin,
    )
