"""Rows with friction laws among their columns: a law's derivatives beside the regressor, filtered as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.friction_in_model.joint_laws import JointLaws, friction_data
from jointbench.identification.observations import Observations
from jointbench.identification.rows import Block, JointRows, Rows
from jointbench.identification.rows.motion_rows import BaseColumns
from jointbench.signals import Motion

_KEPT = 8e6
"""Bytes of laws' columns up to which they are kept."""


class Point(NamedTuple):
    """Values of the base parameters that no law stands for, (n_kept,), and of all laws' parameters, (n_parameters,)."""

    base: Array
    laws: Array

    @property
    def all(self) -> Array:
        """Both, one behind the other."""
        return np.concatenate(self)


@dataclass(frozen=True, eq=False)
class LawRows:
    """Rows of the model torque = f(base parameters, laws' parameters) made linear around a point.

    torque - f(at) + J at ≈ J (parameters), where J is f's derivative by the base parameters that no law stands for,
    then by the laws' that are not held. The laws' columns are computed at every sample of the motion and filtered as
    the regressor's are.

    Attributes:
        rows: with the regressor of the base parameters.
        observations: that they are of.
        laws: of some joints.
        at: the point.
        held: parameters of laws that stay as they are, shape (n_parameters,).
    """

    rows: Rows
    observations: Observations
    laws: JointLaws
    at: Point
    held: NDArray[np.bool_]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.rows.n_joints

    @property
    def n_parameters(self) -> int:
        """Base parameters that are kept and laws' that are free."""
        return len(self.at.base) + int(np.count_nonzero(~self.held))

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        places = {place: name for name, place in self.laws.joints.items()}
        kept, number = self.laws.kept, np.cumsum(self.laws.kept) - 1
        numbers = len(self.at.base) + np.cumsum(~self.held) - 1
        for block, found in self._with_columns():
            torque, joints = block.torque.copy(), list[JointRows]()
            for j, (which, columns) in enumerate(block.joints):
                own = kept[which]
                which, columns = which[own], columns[own]
                if j in places:
                    free = self._free[places[j]]
                    shift, by_laws, by_load = np.split(found[j], [1, 1 + len(free)])
                    torque[:, j] += shift[0]
                    if len(by_load):
                        columns = columns + by_load[np.searchsorted(self._regressor.parameters[j], which)]
                    joints.append(
                        JointRows(np.concatenate([number[which], numbers[free]]), np.concatenate([columns, by_laws]))
                    )
                else:
                    joints.append(JointRows(number[which], columns))
            yield replace(block, joints=tuple(joints), n_parameters=self.n_parameters, torque=torque)

    def _with_columns(self) -> Iterator[tuple[Block, dict[int, Array]]]:
        """Each block with its laws' columns; those of a short log are kept, as an estimator asks for them often."""
        width = sum(2 + len(law.parameters) for law in self.laws.laws.values())
        if 8 * width * sum(stretch.n_rows for stretch in self.observations.stretches) > _KEPT:
            return _with_columns(self.rows, self.observations, self._columns)
        return zip(self.rows.blocks(), self._kept, strict=True)

    @cached_property
    def _kept(self) -> list[dict[int, Array]]:
        return [found for _, found in _with_columns(self.rows, self.observations, self._columns)]

    @cached_property
    def _free(self) -> dict[str, NDArray[np.intp]]:
        """Laws' parameters that have a column, of each joint."""
        return {name: part.start + np.flatnonzero(~self.held[part]) for name, part in self.laws.parts.items()}

    def _columns(self, motion: Motion) -> dict[int, Array]:
        """Of each joint with a law: a shift of its torque, its law's columns, and what load adds to the regressor's."""
        loads = _loads(self.laws, self._regressor, motion, self.at.base)
        found: dict[int, Array] = {}
        for name, j in self.laws.joints.items():
            law, part = self.laws.laws[name], self.laws.parts[name]
            load, regressor = loads[name]
            data, values = friction_data(motion.dq[:, j], load), self.at.laws[part]
            jacobian = law.jacobian(data, values)[:, self._free[name] - part.start]
            shift = jacobian @ self.at.laws[self._free[name]] - law.torque(data, values)
            by_load = np.zeros((0, len(load)))
            if regressor is not None:
                slope = self.laws.load_slope(name, data, self.at.laws)
                by_load = slope * np.where(self.laws.loading[regressor.parameters, None], regressor.columns, 0.0)
                shift = shift + slope * load
            found[j] = np.vstack([shift, jacobian.T, by_load])
        return found

    @cached_property
    def _regressor(self) -> BaseColumns:
        return BaseColumns(self.laws.base)


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Rows whose one column is the torque that a model with friction laws gives; its parameter is 1.

    Attributes:
        rows, observations, laws, at: as of `LawRows`.
    """

    rows: Rows
    observations: Observations
    laws: JointLaws
    at: Point

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.rows.n_joints

    @property
    def n_parameters(self) -> int:
        """The one."""
        return 1

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        for block, found in _with_columns(self.rows, self.observations, self._columns):
            torque = block.predict(self.laws.full(self.at.base))
            for j, friction in found.items():
                torque[:, j] += friction[0]
            joints = tuple(JointRows(np.zeros(1, dtype=np.intp), column[None]) for column in torque.T)
            yield replace(block, joints=joints, n_parameters=1)

    def _columns(self, motion: Motion) -> dict[int, Array]:
        loads = _loads(self.laws, self._regressor, motion, self.at.base)
        load = np.zeros_like(motion.dq)
        for name, j in self.laws.joints.items():
            load[:, j] = loads[name][0]
        friction = self.laws.torque(motion.dq, load, self.at.laws)
        return {j: friction[:, j][None] for j in self.laws.joints.values()}

    @cached_property
    def _regressor(self) -> BaseColumns:
        return BaseColumns(self.laws.base)


def _with_columns(
    rows: Rows, observations: Observations, columns: Callable[[Motion], dict[int, Array]]
) -> Iterator[tuple[Block, dict[int, Array]]]:
    """Each block with filtered columns of its stretch."""
    stretches = {stretch.rows.start: stretch for stretch in observations.stretches if stretch.n_rows}
    for block in rows.blocks():
        yield block, observations.filter.of_motion(stretches[block.start], columns)


def _loads(
    laws: JointLaws, regressor: BaseColumns, motion: Motion, base: Array
) -> dict[str, tuple[Array, JointRows | None]]:
    """Load of each joint with a law and the columns it is made of; zero and None where the law does not ask for it."""
    nothing = np.zeros(len(motion.dq))
    if not any(map(laws.needs_load, laws.laws)):
        return {name: (nothing, None) for name in laws.laws}
    joints = regressor(motion.q, motion.dq, motion.ddq)
    loading = np.where(laws.loading, laws.full(base), 0.0)
    return {
        name: (loading[joints[j].parameters] @ joints[j].columns, joints[j])
        if laws.needs_load(name)
        else (nothing, None)
        for name, j in laws.joints.items()
    }
