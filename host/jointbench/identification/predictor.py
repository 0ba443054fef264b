"""Torque of one sample after the other, fast enough for feed-forward; `predictor_kernel` computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.identification.friction.law import LawElement
from jointbench.identification.friction.model_memory import ModelMemory, no_memory
from jointbench.identification.model import FrictionState, Model
from jointbench.model import Robot
from jointbench.model.chosen_columns import DriveTerms
from jointbench.model.model_columns import compensation_columns, compensation_parameter_names, drive_parameter_names
from jointbench.model.tree import parameter_vector, plain_array, tree_of


class FullParameters(NamedTuple):
    """Values of all parameters, in the order of `model_columns`.

    Attributes:
        links: standard parameters, ten per link in link order, shape (10 * n_links,).
        drives: in the order of `drive_parameter_names`, shape (n_drive_parameters,).
        compensations: in the order of `compensation_parameter_names`, shape (n_compensation_parameters,).
    """

    links: Array
    drives: Array
    compensations: Array


def leading_parameters(model: Model) -> FullParameters:
    """Full parameters with a model's torques: its base parameters where they lead, and zero elsewhere.

    [W | D | C] @ full == project([W | D | C]) @ parameters for every motion; what friction laws and friction with
    memory add comes beside it, and the parameters are those beside them. No body has such values; but most of them are
    zero, and the model need not be physically possible.
    """
    full = np.zeros(model.base.n_full)
    full[model.base.columns] = model.parameters if model.memory is None else model.memory.parameters
    links = 10 * model.robot.n_links
    return FullParameters(*np.split(full, [links, links + len(drive_parameter_names(model.robot))]))


@dataclass(frozen=True, eq=False)
class DriveTorque:
    """Torque of the drives: inertia @ ddq + viscous @ dq + offset + coulomb @ sign(speeds @ dq).

    Attributes:
        inertia, viscous: at the joints, off the diagonal where they share motors, shape (n_joints, n_joints).
        offset: shape (n_joints,).
        coulomb: of each that rubs, at each joint, shape (n_joints, n_rubbing).
        speeds: at which it rubs, of those of the joints, shape (n_rubbing, n_joints).
    """

    inertia: Array
    viscous: Array
    offset: Array
    coulomb: Array
    speeds: Array

    @staticmethod
    def of(robot: Robot, drive_parameters: ArrayLike) -> DriveTorque:
        """The terms of `drive_columns` with their parameters.

        Raises:
            ShapeError: there are not as many parameters as `drive_parameter_names`.
        """
        values, names = np.asarray(drive_parameters, dtype=np.float64), drive_parameter_names(robot)
        if values.shape != (len(names),):
            raise ShapeError(
                f"drive_parameters has shape {values.shape}; robot {robot.name!r} needs ({len(names)},), "
                f"in the order of drive_parameter_names"
            )
        terms, n = DriveTerms.of(robot), robot.n_joints
        by_entry = values[terms.column]
        inertia, viscous, offset = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
        np.add.at(inertia, terms.row, by_entry[:, None] * terms.by_acceleration.T)
        np.add.at(viscous, terms.row, by_entry[:, None] * terms.by_velocity.T)
        np.add.at(offset, terms.row, by_entry * terms.constant)
        coulomb = np.zeros((n, len(terms.rubbing)))
        coulomb[terms.row[terms.rubbing], np.arange(len(terms.rubbing))] = by_entry[terms.rubbing] * terms.pushes
        return DriveTorque(inertia, viscous, offset, coulomb, np.ascontiguousarray(terms.speeds.T))


def checked_compensations(robot: Robot, parameters: ArrayLike) -> Array:
    """Compensation parameters as floats.

    Raises:
        ShapeError: there are not as many as `compensation_parameter_names`.
    """
    values, names = np.asarray(parameters, dtype=np.float64), compensation_parameter_names(robot)
    if values.shape != (len(names),):
        raise ShapeError(
            f"compensation_parameters has shape {values.shape}; robot {robot.name!r} needs ({len(names)},), "
            f"in the order of compensation_parameter_names"
        )
    return values


class Predictor:
    """Joint torque of one sample per call, with everything made beforehand; for one thread.

    The same torque as `Model.predict`, by the Newton-Euler recursion instead of a regressor: about 20 times as fast.
    Friction with memory goes on from call to call: `restart` before another motion.

    >>> from jointbench.model import load_robot
    >>> robot = load_robot("cobot6")
    >>> predict = Predictor(robot, robot.standard_parameters, np.zeros(24))
    >>> predict([0, -1.57, 0, 0, 0, 0], np.zeros(6), np.zeros(6)).shape
    (6,)
    """

    def __init__(
        self, robot: Robot, standard_parameters: ArrayLike, drive_parameters: ArrayLike,
        compensation_parameters: ArrayLike = (), laws: Sequence[tuple[int, LawElement]] = (),
        memory: ModelMemory | None = None,
    ) -> None:  # fmt: skip
        """Prepare for a robot with these parameters.

        Args:
            robot: whose torque it is; zero of passive joints.
            standard_parameters: ten per link in link order, shape (10 * n_links,).
            drive_parameters: in the order of `drive_parameter_names`, shape (n_drive_parameters,).
            compensation_parameters: in the order of `compensation_parameter_names`. Compensations are computed in
                Python, which takes longer than all the rest.
            laws: joint and element of friction laws, as of `ModelFriction.elements`.
            memory: friction with memory, beside which the parameters are.

        Raises:
            ShapeError: the parameters do not match the robot.
        """
        from jointbench.identification.predictor_kernel import torque_of_one

        n = robot.n_joints
        drives = DriveTorque.of(robot, drive_parameters)
        rubbing = np.stack([drives.coulomb.T, drives.speeds], axis=1).reshape(-1, n)
        columns = np.vstack([drives.offset, drives.inertia, drives.viscous, rubbing])
        links = plain_array(parameter_vector(robot, standard_parameters)).reshape(-1, 10)
        self._robot, self._compute = robot, torque_of_one
        elements = np.array([(joint, *each) for joint, each in laws], dtype=np.float64).reshape(
            -1, 1 + len(LawElement._fields)
        )
        shares, joints, stops, terms = no_memory(n) if memory is None else memory.terms
        self._memory = memory
        self._constants = (
            *(tree_of(robot), links, columns, elements),
            *(plain_array(shares), plain_array(joints), plain_array(stops), plain_array(terms)),
        )
        self._state = np.zeros(n + len(stops))
        self._compensation = checked_compensations(robot, compensation_parameters)
        self._offset = drives.offset
        self._fresh = True
        self._work = np.zeros((4, 1, n))
        self._passive = np.flatnonzero(~robot.modelled)
        self._shape = (n,)
        self(*np.zeros((3, n)))  # compiled before the first control cycle, not in it
        self._fresh = True

    @classmethod
    def of(cls, model: Model) -> Predictor:
        """Prepare for a model."""
        laws = () if model.friction is None else model.friction.elements
        return cls(model.robot, *leading_parameters(model), laws=laws, memory=model.memory)

    @property
    def state(self) -> FrictionState:
        """Memory of friction after the last sample."""
        n = len(self._offset)
        return FrictionState(self._state[:n].copy(), self._state[n:].copy())

    def restart(self, state: FrictionState | None = None) -> None:
        """Begin another motion.

        Args:
            state: what friction remembers of before; None: as of a motion that had gone on for long as it begins.

        Raises:
            ShapeError: the state is of another model.
        """
        self._fresh = state is None
        if state is not None:
            whole = np.concatenate(state)
            if whole.shape != self._state.shape:
                raise ShapeError(f"the friction state has {whole.size} numbers; this model's has {self._state.size}")
            self._state[:] = whole

    def __call__(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Joint torque of one sample.

        Args:
            q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_joints,);
                m, m/s, m/s² for prismatic joints.

        Returns:
            Torque [N·m or N], zero of passive joints, shape (n_joints,).

        Raises:
            ShapeError: an array has another shape.
        """
        q, dq, ddq = self._vector("q", q), self._vector("dq", dq), self._vector("ddq", ddq)
        torque = np.empty(self._shape)
        if self._fresh and self._memory is not None:
            self._state[:] = np.concatenate(self._memory.at(q, dq))
            self._fresh = False
        if len(self._compensation):
            more, _ = compensation_columns(self._robot, q[None], dq[None], ddq[None])
            # Friction that goes by the load feels them as it does an offset.
            self._constants[2][0] = self._offset + more @ self._compensation
        self._compute(*self._constants, q, dq, ddq, self._state, self._work, torque)
        if len(self._passive):
            torque[self._passive] = 0.0
        return torque

    def _vector(self, name: str, values: ArrayLike) -> Array:
        vector = plain_array(np.asarray(values, dtype=np.float64))
        if vector.shape != self._shape:
            raise ShapeError(f"{name} has shape {vector.shape}; one sample of {self._robot.name!r} is {self._shape}")
        return vector
