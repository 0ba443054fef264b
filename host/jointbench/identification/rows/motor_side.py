"""Rows of motor currents beside rows of joint torque sensors: what lies before the sensor is taken out of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, drive_parameter_names
from jointbench.identification.rows.rows import Block, ChangedRows, JointRows
from jointbench.robot import PARAMETER_NAMES

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
        """What each joint's drives have of its columns."""
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
    """How much of each column, the torque's last, is the drives': share @ their columns; and where more is left."""

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
