"""Columns of calibration errors: the torque that zeros, lengths, axes, gains and clocks off by one σ add to rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from jointbench.arrays import Array
from jointbench.identification.rows import Block, ChangedRows, JointRows
from jointbench.model import (
    PARAMETER_NAMES,
    BaseParameters,
    Joint,
    Robot,
    Tolerances,
    compensation_columns,
    drive_columns,
    inverse_dynamics,
)
from jointbench.model.joint import as_matrix
from jointbench.signals import Motion

KINDS = {
    "zero": "joint zeros",
    "length": "lengths of links",
    "axis": "tilts of axes",
    "mounting": "tilt of the base",
    "torque": "torque constants or gains of torque sensors",
    "gear ratio": "gear ratios",
    "clock": "the clock",
}
"""Kinds of calibration errors, in words."""

_STEP = 1e-5
"""Of a derivative by differences [rad, m, or relative]: its error is a part in 10⁵, rounding's one in 10⁹."""


class Effect(NamedTuple):
    """One thing that may be wrong.

    Attributes:
        kind: one of `KINDS`.
        place: index of its joint, -1 of what is common to all.
        axis: direction in that joint's frame, or the base's, shape (3,); empty where there is none.
        sigma: its standard deviation [rad, m, or relative].
    """

    kind: str
    place: int
    axis: tuple[float, ...]
    sigma: float


def effects_of(robot: Robot, tolerances: Tolerances, side: str) -> tuple[Effect, ...]:
    """List all that may be wrong with a robot's calibration, but what is known exactly.

    Args:
        robot: whose it is.
        tolerances: how well it is known.
        side: of the modelled torque, "motor" or "joint".
    """
    effects: list[Effect] = []
    for k, joint in enumerate(robot.independent_joints):
        own = tolerances.of(joint.name)
        effects.append(Effect("zero", k, (), own.zero if joint.kind == "revolute" else own.sliding_zero))
        if not joint.passive:
            gain = own.torque_constant if side == "motor" else own.torque_sensor
            effects.append(Effect("torque", k, (), gain))
        effects.append(Effect("gear ratio", k, (), own.gear_ratio))
    for k, joint in enumerate(robot.joints):
        if joint.parent >= 0:
            effects += [Effect("length", k, axis, tolerances.length) for axis in _normals(None)]
            effects += [Effect("axis", k, axis, tolerances.axis) for axis in _normals(np.array(joint.axis))]
    effects += [Effect("mounting", -1, axis, tolerances.mounting) for axis in _normals(np.array(robot.gravity))]
    effects.append(Effect("clock", -1, (), tolerances.clock))
    return tuple(effect for effect in effects if effect.sigma > 0.0)


def _normals(axis: Array | None) -> list[tuple[float, ...]]:
    """Two directions normal to an axis and to each other, none of one of length zero; of no axis all three."""
    if axis is None:
        return [tuple(row) for row in np.eye(3).tolist()]
    if not axis.any():
        return []
    return [tuple(row) for row in linalg.null_space(axis[None]).T.tolist()]


@dataclass(frozen=True, eq=False)
class CalibrationRows(ChangedRows):
    """Rows with a column of each effect behind the parameters': the torque that one standard deviation of it makes.

    Attributes:
        rows: of a recording, blocks with their motion.
        base: what the parameters stand for.
        parameters: that were fitted, shape (rank,).
        full: parameters of all links and drives that give these, shape (n_full,).
        effects: of the columns.
    """

    base: BaseParameters
    parameters: Array
    full: Array
    effects: tuple[Effect, ...]

    @property
    def n_parameters(self) -> int:
        """The parameters, and the effects."""
        return self.rows.n_parameters + len(self.effects)

    def blocks(self) -> Iterator[Block]:
        """The rows, longer."""
        p = self.rows.n_parameters
        behind = np.arange(p, self.n_parameters)
        for block in self.rows.blocks():
            assert block.motion is not None
            columns = self.columns(block.motion, block.predict(self.parameters))
            joints = tuple(
                JointRows(np.append(which, behind), np.vstack([own, columns[:, :, joint]]))
                for joint, (which, own) in enumerate(block.joints)
            )
            yield replace(block, joints=joints, n_parameters=self.n_parameters)

    def columns(self, motion: Motion, predicted: Array) -> Array:
        """Torque that one standard deviation of each effect adds [N·m or N], shape (n_effects, n, n_joints).

        Args:
            motion: n samples.
            predicted: torque, shape (n, n_joints).
        """
        robot, q, dq, ddq = self.base.robot, motion.q, motion.dq, motion.ddq
        columns = np.zeros((len(self.effects), *q.shape))
        still = self._torque(robot, motion)
        for number, (kind, k, _, sigma) in enumerate(self.effects):
            if kind == "torque":
                columns[number, :, k] = sigma * predicted[:, k]
                continue
            changed, moved = robot, motion
            if kind == "zero":
                moved = Motion(_added(q, k, _STEP), dq, ddq)
            elif kind == "gear ratio":
                moved = Motion(*(_added(values, k, _STEP * values[:, k]) for values in (q, dq, ddq)))
                columns[number, :, k] = sigma * predicted[:, k]
            elif kind == "clock":
                moved = Motion(q, (1.0 - _STEP) * dq, (1.0 - 2.0 * _STEP) * ddq)
            else:
                changed = self._changed[number]
            columns[number] += sigma / _STEP * (self._torque(changed, moved) - still)
        return columns

    def _torque(self, robot: Robot, motion: Motion) -> Array:
        """Torque of links, and of drives and springs where the motion is another one."""
        split = len(PARAMETER_NAMES) * robot.n_links
        q, dq, ddq = motion.q, motion.dq, motion.ddq
        torque = inverse_dynamics(robot, q, dq, ddq, self.full[:split]) * robot.modelled
        drives, names = drive_columns(robot, dq, ddq)
        beside = drives @ self.full[split : split + len(names)]
        if robot.compensations:
            columns, further = compensation_columns(robot, q, dq, ddq)
            first = split + len(names)
            beside += columns @ self.full[first : first + len(further)]
        return torque + beside.reshape(torque.shape)

    @cached_property
    def _changed(self) -> dict[int, Robot]:
        """The robot a step off its geometry, by the effect's number."""
        robot, changed = self.base.robot, dict[int, Robot]()
        for number, (kind, k, axis, _) in enumerate(self.effects):
            if kind in ("length", "axis"):
                joints = list(robot.joints)
                joints[k] = _displaced(joints[k], kind, np.array(axis))
                changed[number] = replace(robot, joints=tuple(joints))
            elif kind == "mounting":
                x, y, z = (_rotation(-_STEP * np.array(axis)) @ np.array(robot.gravity)).tolist()
                changed[number] = replace(robot, gravity=(x, y, z))
        return changed


def _added(values: Array, joint: int, change: Array | float) -> Array:
    """Values of which those of one joint are changed."""
    changed = values.copy()
    changed[:, joint] += change
    return changed


def _rotation(vector: Array) -> Array:
    """Rotation about a vector by its length [rad], shape (3, 3)."""
    x, y, z = vector
    return np.asarray(linalg.expm(np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])))


def _displaced(joint: Joint, kind: str, axis: Array) -> Joint:
    """A joint whose place on the link before it, or whose axis, is a step off."""
    if kind == "length":
        x, y, z = (np.array(joint.origin) + _STEP * axis).tolist()
        return replace(joint, origin=(x, y, z))
    return replace(joint, rotation=as_matrix(np.array(joint.rotation) @ _rotation(_STEP * axis)))
