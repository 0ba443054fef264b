"""A robot with a value for every parameter: what files of other programs are written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array, Matrix3
from jointbench.errors import FitError, ShapeError
from jointbench.identification import Model
from jointbench.identification.friction import ModelFriction
from jointbench.identification.judgement import Verdict
from jointbench.model import Link, Robot
from jointbench.model.chosen_columns import DriveTerms
from jointbench.model.joint import as_matrix
from jointbench.model.model_columns import (
    compensation_parameter_names,
    drive_parameter_names,
    known_drive_parameters,
)

_MAGNITUDES = ("rotor_inertia", "viscous", "coulomb")


class JointDrive(NamedTuple):
    """Drive parameters at its joint, None where not known; units as of `drive_columns`."""

    rotor_inertia: float | None = None
    viscous: float | None = None
    coulomb: float | None = None
    offset: float | None = None


class SharedMotor(NamedTuple):
    """A motor that several joints turn: its speed is shares @ dq; what it does at that speed, None where not known."""

    name: str
    shares: Array
    rotor_inertia: float | None
    viscous: float | None
    coulomb: float | None


@dataclass(frozen=True, eq=False)
class FullModel:
    """A robot whose links, drives and compensations all have values.

    Attributes:
        robot: its kinematics; the inertias in it count for the base link alone.
        standard_parameters: ten per link in link order, shape (10 * n_links,).
        drive_parameters: in the order of `drive_parameter_names`, nan where not known, or where a friction law of the
            fitted model stands for them, shape (n_drive_parameters,).
        fitted: the model that they belong to, None where they come from somewhere else.
        physical: the word on how far they are from it.
        compensation_parameters: in the order of `compensation_parameter_names`, nan where not known.
    """

    robot: Robot
    standard_parameters: Array
    drive_parameters: Array
    fitted: Model | None = None
    physical: Verdict | None = None
    compensation_parameters: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Refuse arrays of other lengths.

        Raises:
            ShapeError: an array does not match the robot.
        """
        wanted = {
            "standard_parameters": 10 * self.robot.n_links,
            "drive_parameters": len(self._names),
            "compensation_parameters": len(compensation_parameter_names(self.robot)),
        }
        for name, size in wanted.items():
            shape = np.shape(getattr(self, name))
            if shape != (size,):
                raise ShapeError(f"{name} has shape {shape}; robot {self.robot.name!r} needs ({size},)")

    @staticmethod
    def of_robot(robot: Robot) -> FullModel:
        """The values that the robot's own file gives.

        Raises:
            FitError: it gives no inertia for a link.
        """
        values = robot.standard_parameters
        if values is None:
            unknown = [joint.link.name for joint in robot.joints if joint.link.standard_parameters is None]
            raise FitError(
                f"robot {robot.name!r}: no inertia is given for link {', '.join(unknown)}; write it into the robot's "
                f"file, or export a model that was fitted"
            )
        unknown = np.full(len(compensation_parameter_names(robot)), np.nan)
        return FullModel(robot, values, known_drive_parameters(robot), compensation_parameters=unknown)

    @staticmethod
    def of_model(model: Model) -> FullModel:
        """Values of all parameters that a robot can have and that give the model's base parameters, or next to them.

        Raises:
            FitError: the model is too far from everything that is physically possible.
            NumericalError: the search for what is possible ends without an answer.
        """
        physical = model.physical.require()
        drives = physical.drive_parameters
        if model.friction is not None:
            lawful = [name in model.friction.replaced for name in drive_parameter_names(model.robot)]
            drives = np.where(lawful, np.nan, drives)
        return FullModel(
            model.robot, physical.standard_parameters, drives, model, physical.verdict, physical.compensation_parameters
        )

    @property
    def full_parameters(self) -> Array:
        """All of them, in the order of `model_columns`."""
        return np.concatenate([self.standard_parameters, self.drive_parameters, self.compensation_parameters])

    @property
    def friction(self) -> ModelFriction | None:
        """Friction laws of the fitted model, where it has such."""
        return None if self.fitted is None else self.fitted.friction

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The moving links with these values; one whose ten are all zero has no inertia.

        Raises:
            FitError: no body can have the inertia of a link.
        """
        rows = self.standard_parameters.reshape(-1, 10)
        return tuple(_possible(_link(joint.link, row)) for joint, row in zip(self.robot.joints, rows, strict=True))

    @cached_property
    def base_link(self) -> Link | None:
        """The body that everything hangs on, where it is free to move.

        Raises:
            FitError: no body can have its inertia.
        """
        return self.robot.base_link and _possible(self.robot.base_link)

    @cached_property
    def drives(self) -> tuple[JointDrive, ...]:
        """Drives of the independent joints, next to a friction law where there is one; a passive joint's is unknown.

        Raises:
            FitError: a rotor's inertia or a friction is below zero.
        """
        known = dict(self._known)
        for joint, plain in ({} if self.friction is None else self.friction.nearest_plain).items():
            known |= {f"{joint}.coulomb": plain.coulomb, f"{joint}.viscous": plain.viscous}
        return tuple(
            JointDrive(*(known.get(f"{name}.{quantity}") for quantity in JointDrive._fields))
            for name in self.robot.joint_names
        )

    @property
    def without_memory(self) -> str:
        """Note of a file that cannot carry the state of friction with memory; nothing where there is none."""
        if self.fitted is None or self.fitted.memory is None:
            return ""
        own, plain = self.fitted, self.fitted.coulomb_viscous
        return (
            f"friction with memory of {', '.join(axis.name for axis, _ in self.fitted.memory.axes)}, whose state this "
            f"format cannot carry, is not here; here stands Coulomb and viscous friction, with a torque error of "
            f"{plain.error_all.total_relative:.1%} over all samples and {plain.error.total_relative:.1%} where the "
            f"joints move, instead of {own.error_all.total_relative:.1%} and {own.error.total_relative:.1%}: take .h, "
            f".json or .toml"
        )

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Parameters that files of links, Coulomb and viscous friction leave out."""
        known = dict(zip(compensation_parameter_names(self.robot), self.compensation_parameters.tolist(), strict=True))
        beside = tuple(
            f"compensation {compensation.name} ({compensation.kind}) at {', '.join(compensation.joints)} with "
            f"{_values({name: known[f'{compensation.name}.{name}'] for name in compensation.parameters})} [SI]: "
            f"its torque is not here"
            for compensation in self.robot.compensations
        )
        beside += (self.without_memory,) if self.without_memory else ()
        if self.friction is None:
            return beside
        friction = self.friction
        return beside + tuple(
            f"{joint}: friction law {law.name} with {_values(friction.of_law(joint))} [SI]; here stands Coulomb and "
            f"viscous friction next to it{' without load' if friction.laws.needs_load(joint) else ''}, "
            f"{friction.nearest_plain[joint].farthest:.3g} off at most"
            for joint, law in friction.laws.laws.items()
        )

    @cached_property
    def shared_motors(self) -> tuple[SharedMotor, ...]:
        """Motors of the couplings.

        Raises:
            FitError: a rotor's inertia or a friction is below zero.
        """
        terms, known, shared = DriveTerms.of(self.robot), self._known, list[SharedMotor]()
        of_joints = {f"{name}.coulomb" for name in self.robot.joint_names}
        for column, name in enumerate(self._names):
            if name.endswith(".coulomb") and name not in of_joints:
                entry = int(np.flatnonzero(terms.column[terms.rubbing] == column)[0])
                motor = name.removesuffix(".coulomb")
                values = (known.get(f"{motor}.{quantity}") for quantity in _MAGNITUDES)
                shared.append(SharedMotor(motor, terms.speeds[:, entry], *values))
        return tuple(shared)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return drive_parameter_names(self.robot)

    @cached_property
    def _known(self) -> dict[str, float]:
        known = {
            name: float(value)
            for name, value in zip(self._names, self.drive_parameters, strict=True)
            if np.isfinite(value)
        }
        for name, value in known.items():
            if name.rpartition(".")[2] in _MAGNITUDES and value < 0.0:
                raise FitError(
                    f"{name} = {value:.4g} of robot {self.robot.name!r} is below zero, which no drive's can be; "
                    f"fit again with --estimator physical"
                )
        return known


def _values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in values.items())


def _link(link: Link, row: Array) -> Link:
    if not np.any(row):
        return Link(link.name, neglected=True)
    mass = float(row[0])
    if mass <= 0.0:
        return replace(link, mass=mass, center_of_mass=(0.0, 0.0, 0.0), inertia_about_center_of_mass=_about(row[4:]))
    center = row[1:4] / mass
    x, y, z = center.tolist()
    moved = np.array(_about(row[4:])) - mass * (center @ center * np.eye(3) - np.outer(center, center))
    return replace(link, mass=mass, center_of_mass=(x, y, z), inertia_about_center_of_mass=as_matrix(moved))


def _about(upper: Array) -> Matrix3:
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3)] = upper
    return as_matrix(matrix + np.triu(matrix, 1).T)


def _possible(link: Link) -> Link:
    if link.physical_fault:
        raise FitError(
            f"link {link.name!r} cannot exist: {link.physical_fault}; fit with physically possible parameters, or "
            f"export to .h, .json or .toml, which take any"
        )
    return link
