"""The rows of a least-squares problem, block by block, so that no log is too long."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model import PARAMETER_NAMES, BaseParameters, drive_parameter_names
from jointbench.model.chosen_columns import ChosenColumns
from jointbench.signals import Motion


class JointRows(NamedTuple):
    """Regressor of one joint's rows, without the columns that are zero in all of them.

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
        motion: filtered position and derivatives that the rows are of, where they are a recording's.
    """

    start: int
    joints: tuple[JointRows, ...]
    n_parameters: int
    torque: Array
    used: NDArray[np.bool_]
    complete: NDArray[np.bool_]
    motion: Motion | None = None

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
        """Return the regressor of a joint's rows."""
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
    """Rows that are made of others, with as many joints and parameters.

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


T = TypeVar("T")


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items in the same order, the next one made by another thread.

    That pays where making them holds no lock of the interpreter, as compiled kernels and products of matrices do.
    """
    with ThreadPoolExecutor(1, "jointbench-prefetch") as executor:
        next_item = executor.submit(next, items, None)
        while (item := next_item.result()) is not None:
            next_item = executor.submit(next, items, None)
            yield item


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
        return prefetch(self._computed())

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


_SAME = 1e-9
"""What is left of a column, relative to all of it, where it is nothing but what drives add; rounding is 1e-15."""

_SINGULAR = 1e-8
"""Singular value, relative to the largest, under which two terms of the motor side act alike, as Coulomb friction and
offset do of a joint that turns in one direction only."""


def felt_by_sensor(base: BaseParameters) -> BaseParameters:
    """The base parameters as a joint torque sensor feels them: without what rotor inertias add to groups of links.

    A sensor's `joint_1.Izz` is that of links alone, where that of motor torque has the rotor's inertia in it. Groups
    that a rotor inertia leads stay what they are, and a sensor tells nothing of them.
    """
    rotors = np.array([name.endswith(".rotor_inertia") for name in base.full_names], dtype=np.bool_)
    added = rotors & ~rotors[base.columns][:, None]
    return replace(base, grouping=np.where(added, 0.0, base.grouping))


@dataclass(frozen=True, eq=False)
class AtSensor(ChangedRows):
    """Rows of joint torque sensors: rotors turn before the sensor, which does not feel their inertia.

    Viscous, Coulomb and offset stay: here they are what bearings and cables behind the sensor, and its own zero, add.

    Attributes:
        rows: as observed, with the columns of all drive parameters.
        base: what the columns stand for.
    """

    base: BaseParameters

    def blocks(self) -> Iterator[Block]:
        """The rows, without the columns that rotor inertias lead."""
        rotors = np.array([name.endswith(".rotor_inertia") for name in self.base.leading_names], dtype=np.bool_)
        for block in self.rows.blocks():
            kept = [(which, columns, ~rotors[which]) for which, columns in block.joints]
            yield replace(block, joints=tuple(JointRows(which[k], columns[k]) for which, columns, k in kept))


@dataclass(frozen=True, eq=False)
class WithoutMotorSide(ChangedRows):
    """Rows of motor torque with all that drives add regressed out, so that they tell of links alone.

    torque_j = X_j b + N_j n_j, where the columns N_j of joint j are its drives' (rotor inertia, friction, offset). With
    C = argmin |X_j - N_j C| over the rows used, X_j - N_j C and the torque less its own share give the same b as a fit
    of b and n_j together would. Each joint of each recording has an n_j of its own, which is not kept.

    Attributes:
        rows: as observed, with the columns of all drive parameters.
        base: what the columns stand for, as motors feel it: not `felt_by_sensor`, which would leave rotors in.

    Source: Frisch & Waugh, Econometrica 1(4), 1933; Lovell, JASA 58(304), 1963.
    """

    base: BaseParameters

    def blocks(self) -> Iterator[Block]:
        """The rows, without columns in which nothing but the drives acts."""
        for block in self.rows.blocks():
            joints: list[JointRows] = []
            torque = np.empty_like(block.torque)
            for j, share in enumerate(self._shares):
                which, _ = block.of_joint(j)
                own, columns = self._parts(block, j)
                columns -= share.share[np.append(which, -1)] @ own
                kept = share.left[which]
                joints.append(JointRows(which[kept], columns[:-1][kept]))
                torque[:, j] = columns[-1]
            yield replace(block, joints=tuple(joints), torque=torque)

    def _parts(self, block: Block, joint: int) -> tuple[Array, Array]:
        """Columns of the drives, and all columns with the torque behind them, of a joint's rows; a copy, (m, n)."""
        which, columns = block.of_joint(joint)
        base = self.base
        first = len(PARAMETER_NAMES) * base.robot.n_links
        drives = base.grouping[which, first : first + len(drive_parameter_names(base.robot))]
        return drives.T @ columns, np.vstack([columns, block.torque[:, joint]])

    @cached_property
    def _shares(self) -> tuple[_Share, ...]:
        """Share of each joint's drives in its columns."""
        width, rank = len(drive_parameter_names(self.base.robot)), self.n_parameters
        triangles = [np.zeros((0, width + rank + 1)) for _ in range(self.n_joints)]
        for block in self.rows.blocks():
            for j in range(self.n_joints):
                own, columns = self._parts(block, j)
                rows = np.zeros((len(block.torque), width + rank + 1))
                rows[:, :width], rows[:, width + np.append(block.of_joint(j).parameters, rank)] = own.T, columns.T
                stacked = np.vstack([triangles[j], rows[block.used[:, j]]])
                triangles[j] = cast(Array, np.linalg.qr(stacked, mode="r"))
        lengths = np.linalg.norm([np.linalg.norm(triangle[:, width:], axis=0) for triangle in triangles], axis=0)
        return tuple(_share(triangle[:, :width], triangle[:, width:], lengths) for triangle in triangles)


class _Share(NamedTuple):
    """Share of the drives in each column, the torque's last: share @ their columns; and which columns are more."""

    share: Array
    left: NDArray[np.bool_]


def _share(own: Array, columns: Array, lengths: Array) -> _Share:
    """Least squares of columns by the drives' own, both as parts of one triangle; lengths of columns in all joints."""
    scale = np.linalg.norm(own, axis=0)
    acts = scale > _SAME * scale.max(initial=0.0)  # drives of other joints leave rounding
    own, scale = np.where(acts, own, 0.0), np.where(acts, scale, 1.0)
    share = np.linalg.lstsq(own / scale, columns, rcond=_SINGULAR)[0] / scale[:, None]
    left = np.linalg.norm(columns - own @ share, axis=0) > _SAME * lengths
    return _Share(share.T, left[:-1])
