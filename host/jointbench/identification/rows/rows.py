"""The rows of a least-squares problem, block by block, so that no log is too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array


class JointRows(NamedTuple):
    """What one joint's rows have of the regressor, without the columns that are zero in all of them.

    Attributes:
        parameters: which of all parameters the columns are of, shape (m,).
        columns: one behind the other, shape (m, n).
    """

    parameters: NDArray[np.intp]
    columns: Array


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows on an even grid of times: torque[k, j] ≈ regressor[k, j] @ parameters.

    A joint's torque knows little of the joints before it: two thirds of a serial arm's regressor are zeros. What is
    computed joint by joint, of `of_joint`, passes them over; `regressor` is put together only when it is asked for.

    Attributes:
        start: place of the first row on the grid; a block that starts where the one before ended goes on with it,
            any other place is a gap, across which nothing is correlated.
        joints: columns of each joint's rows.
        n_parameters: how many parameters there are.
        torque: [N·m or N], shape (n, n_joints).
        used: rows to fit, shape (n, n_joints).
        complete: rows away from gaps and ends, whether fitted or near rest, shape (n,).
    """

    start: int
    joints: tuple[JointRows, ...]
    n_parameters: int
    torque: Array
    used: NDArray[np.bool_]
    complete: NDArray[np.bool_]

    @classmethod
    def of(
        cls, start: int, regressor: Array, torque: Array, used: NDArray[np.bool_], complete: NDArray[np.bool_]
    ) -> Block:
        """Rows whose regressor is whole, shape (n, n_joints, p); nothing is copied."""
        _, n_joints, p = regressor.shape
        joints = tuple(JointRows(np.arange(p), regressor[:, joint].T) for joint in range(n_joints))
        block = cls(start, joints, p, torque, used, complete)
        block.__dict__["regressor"] = regressor  # what the property would put together
        return block

    @property
    def stop(self) -> int:
        """Place after the last row."""
        return self.start + len(self.torque)

    def of_joint(self, joint: int) -> JointRows:
        """What a joint's rows have of the regressor."""
        return self.joints[joint]

    @cached_property
    def regressor(self) -> Array:
        """All of it, shape (n, n_joints, p)."""
        whole = np.zeros((*self.torque.shape, self.n_parameters))
        for joint, (parameters, columns) in enumerate(self.joints):
            whole[:, joint, parameters] = columns.T
        return whole

    def predict(self, parameters: Array) -> Array:
        """Torque of all rows, regressor @ parameters, shape (n, n_joints)."""
        return np.stack([parameters[which] @ columns for which, columns in self.joints], axis=1)


class Rows(Protocol):
    """Whatever gives the same blocks each time it is asked; only one need be in memory at a time."""

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        ...

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        ...

    def blocks(self) -> Iterator[Block]:
        """All rows in order of time."""
        ...


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """Rows that are one block.

    Attributes:
        regressor: shape (n, n_joints, p).
        torque: [N·m or N], shape (n, n_joints).
        used: rows to fit, shape (n, n_joints).
    """

    regressor: Array
    torque: Array
    used: NDArray[np.bool_]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.regressor.shape[1]

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.regressor.shape[2]

    def blocks(self) -> Iterator[Block]:
        """The one block."""
        complete: NDArray[np.bool_] = np.asarray(self.used.any(axis=1))
        yield Block.of(0, self.regressor, self.torque, self.used, complete)


@dataclass(frozen=True, eq=False)
class ChangedRows:
    """What is common to rows that are made of others, with as many joints and parameters.

    Attributes:
        rows: the others.
    """

    rows: Rows

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.rows.n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor, those that are zero now among them."""
        return self.rows.n_parameters


@dataclass(frozen=True, eq=False)
class PredictedTorqueRows(ChangedRows):
    """Rows whose one column is the torque that a model predicts; its parameter is 1."""

    @property
    def n_parameters(self) -> int:
        """The one."""
        return 1
