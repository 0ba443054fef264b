"""Rows of a known motion: their regressor is computed chunk by chunk and never whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.dynamics.chosen_columns import ChosenColumns
from jointbench.errors import ShapeError
from jointbench.identification.rows.ahead import ahead
from jointbench.identification.rows.rows import Block, JointRows

_CHUNK = 1024
"""Samples of a block: a six-axis arm's columns of them take 1.4 MB, which a processor's second cache nearly holds."""


class BaseColumns:
    """The base parameters' columns of links and drives, joint by joint and without those that are always zero."""

    def __init__(self, base: BaseParameters) -> None:
        robot = base.robot
        self._chosen = ChosenColumns.of(robot, base.columns, np.ones(robot.n_joints))
        slots = self._chosen.slots
        self._parts = [slice(*ends) for ends in zip(slots.of_row[:-1], slots.of_row[1:], strict=True)]
        self.parameters: tuple[NDArray[np.intp], ...] = tuple(slots.parameter[part] for part in self._parts)
        """Which parameters act on each joint."""

    def __call__(self, q: Array, dq: Array, ddq: Array) -> tuple[JointRows, ...]:
        """Columns of a motion, shape (n, n_joints) each [rad, rad/s, rad/s²; or m].

        Raises:
            ShapeError: the arrays differ in shape, or do not match the robot.
        """
        values = self._chosen.values((q, dq, ddq), np.sign)
        return tuple(JointRows(of, values[part]) for of, part in zip(self.parameters, self._parts, strict=True))


@dataclass(frozen=True, eq=False)
class MotionRows:
    """Rows of a motion that is known without noise, such as a smoothed or a simulated one.

    torque ≈ regressor(q, dq, ddq) @ base parameters; the regressor's columns live for one block.

    Attributes:
        base: base parameters with drives.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], evenly sampled, shape
            (n, n_joints); m, m/s, m/s² for sliding joints.
        torque: [N·m or N], of that shape.
        used: rows to fit, of that shape; None: all of modelled joints.

    Raises:
        ShapeError: the arrays differ in shape, or do not match the robot.
    """

    base: BaseParameters
    q: Array
    dq: Array
    ddq: Array
    torque: Array
    used: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together."""
        wanted = (len(self.q), self.n_joints)
        for name in ("q", "dq", "ddq", "torque", "used"):
            array = cast("Array | None", getattr(self, name))
            if array is not None and array.shape != wanted:
                raise ShapeError(
                    f"{name} has shape {array.shape}; it must be (samples, joints) like q, and robot "
                    f"{self.base.robot.name!r} has {self.n_joints} joints"
                )

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.base.robot.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.base.rank

    def blocks(self) -> Iterator[Block]:
        """All rows in order of time, computed anew: the next block while one is used, where there is a second core."""
        return ahead(self._computed())

    def _computed(self) -> Iterator[Block]:
        modelled = np.asarray(self.base.robot.modelled)
        for start in range(0, len(self.q), _CHUNK):
            part = slice(start, start + _CHUNK)
            torque = self.torque[part]
            used = np.broadcast_to(modelled, torque.shape) if self.used is None else self.used[part] & modelled
            yield Block(
                start=start,
                joints=self._columns(self.q[part], self.dq[part], self.ddq[part]),
                n_parameters=self.n_parameters,
                torque=torque,
                used=used,
                complete=np.ones(len(torque), dtype=np.bool_),
            )

    @cached_property
    def _columns(self) -> BaseColumns:
        return BaseColumns(self.base)
