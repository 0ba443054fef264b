"""Products of chosen columns of the torque model, and their exact derivatives: without zeros, in one go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.model.model_columns import CompensationTerms, Sign, drive_columns, drive_parameter_names
from jointbench.model.robot import Robot
from jointbench.model.tree import Indices, Slots, motion_batch, tree_of


@dataclass(frozen=True, eq=False)
class DriveTerms:
    """The elements of the drives' columns that are not always zero: of a row (joint) and a column, here an *entry*.

    At every sample an entry is a · dq + b · ddq + p sign(s · dq) + c. What rubs at the speed s · dq pushes joint j by
    p = s_j, as friction takes the same power on either side.

    Attributes:
        row, column: of each entry, shape (n_entries,).
        by_velocity, by_acceleration: a and b, shape (n_joints, n_entries).
        constant: c, shape (n_entries,).
        rubbing: which entries have a sign, shape (n_rubbing,).
        speeds: their s, shape (n_joints, n_rubbing).
        pushes: their p, shape (n_rubbing,).
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    by_velocity: Array
    by_acceleration: Array
    constant: Array
    rubbing: NDArray[np.intp]
    speeds: Array
    pushes: Array

    @classmethod
    def of(cls, robot: Robot) -> DriveTerms:
        """Find the terms of a robot's drives from unit motions."""
        n = robot.n_joints
        unit, still = np.eye(n), np.zeros((n, n))

        def columns(dq: Array, ddq: Array, sign: Sign) -> Array:
            return drive_columns(robot, dq, ddq, sign=sign)[0].reshape(n, n, -1)

        constant = columns(still, still, np.zeros_like)
        velocity = columns(unit, still, np.zeros_like) - constant
        acceleration = columns(still, unit, np.zeros_like) - constant
        # With the speed itself for its sign it is p s_l, l being the joint that moves at unit speed; and p = s_j.
        products = columns(unit, still, np.positive) - velocity - constant
        row, column = np.nonzero((constant != 0.0).any(axis=0) | np.abs([velocity, acceleration, products]).any((0, 1)))
        pushes = np.sqrt(products[row, row, column])
        rubbing = np.flatnonzero(pushes)
        speeds = products[:, row, column][:, rubbing] / pushes[rubbing]
        terms = (velocity[:, row, column], acceleration[:, row, column], constant[0, row, column])
        return cls(row, column, *terms, rubbing, speeds, pushes[rubbing])

    def only(self, columns: NDArray[np.intp]) -> DriveTerms:
        """Those of some columns."""
        kept = np.isin(self.column, columns)
        rubs = kept[self.rubbing]
        return DriveTerms(
            self.row[kept],
            self.column[kept],
            self.by_velocity[:, kept],
            self.by_acceleration[:, kept],
            self.constant[kept],
            (np.cumsum(kept) - 1)[self.rubbing[rubs]],
            self.speeds[:, rubs],
            self.pushes[rubs],
        )

    def values(self, dq: Array, ddq: Array, sign: Sign) -> Array:
        """All entries, shape (n_samples, n_entries).

        Args:
            dq, ddq: joint velocity [rad/s] and acceleration [rad/s²], shape (n_samples, n_joints).
            sign: Coulomb's sign, or a smooth stand-in.
        """
        values = dq @ self.by_velocity + ddq @ self.by_acceleration + self.constant
        values[:, self.rubbing] += self.pushes * sign(dq @ self.speeds)
        return values

    def pull_back(self, dq: Array, weights: Array, sign_slope: Sign) -> tuple[Array, Array]:
        """Derivatives of Σ weights * entries by dq and ddq.

        Args:
            dq: joint velocity [rad/s], shape (n_samples, n_joints).
            weights: of each entry, shape (n_samples, n_entries).
            sign_slope: derivative of the sign function.

        Returns:
            Derivatives by dq and ddq, shape (n_samples, n_joints) each.
        """
        by_speed = weights[:, self.rubbing] * self.pushes * sign_slope(dq @ self.speeds)
        return weights @ self.by_velocity.T + by_speed @ self.speeds.T, weights @ self.by_acceleration.T


Motion = tuple[Array, Array, Array]
"""Position, velocity, acceleration of every joint at samples, or derivatives by them, (n_samples, n_joints) each."""


@dataclass(frozen=True, eq=False)
class ChosenColumns:
    """Some columns of a robot's torque model [W | D | C], as of `model_columns`, each row multiplied by a number.

    Attributes:
        robot: the robot.
        columns: which, ascending, shape (n_chosen,).
        roots: what each joint's row is multiplied by, such as 1 / σ, shape (n_joints,).
        slots: where their values are.
        drives: the drives' columns among them.
        compensations: the compensations'.
        of_compensations: slots of their elements, shape (n_elements,).
    """

    robot: Robot
    columns: NDArray[np.intp]
    roots: Array
    slots: Slots
    drives: DriveTerms
    compensations: CompensationTerms
    of_compensations: Indices

    @classmethod
    def of(cls, robot: Robot, columns: NDArray[np.intp], roots: Array) -> ChosenColumns:
        """Lay them out."""
        first = 10 * robot.n_links
        drives = DriveTerms.of(robot).only(columns[columns >= first] - first)
        last = first + len(drive_parameter_names(robot))
        more = CompensationTerms.of(robot, columns[columns >= last] - last)
        slots, of_more = _slots(robot, columns, drives, more)
        return cls(robot, columns, roots, slots, drives, more, of_more)

    def values(self, motion: Motion, sign: Sign) -> Array:
        """Values of all slots, shape (n_slots, n_samples), with this sign function for Coulomb's.

        Raises:
            ShapeError: the arrays of the motion differ in shape, or do not match the robot.
        """
        from jointbench.model.kernels import fill_slots

        q, dq, ddq = motion_batch(self.robot, q=motion[0], dq=motion[1], ddq=motion[2])
        values = np.empty((len(self.slots.parameter), len(q)))
        fill_slots(tree_of(self.robot), self.slots, self.roots, q, dq, ddq, values)
        if len(self.slots.of_drives):
            values[self.slots.of_drives] = (self.drives.values(dq, ddq, sign) * self.roots[self.drives.row]).T
        if len(self.of_compensations):
            more = self.compensations.values(q, dq, ddq) * self.roots[self.compensations.row]
            values[self.of_compensations] = more.T
        return values

    def gram(self, values: Array) -> Array:
        """Products of the columns summed over all rows, shape (n_chosen, n_chosen), of `values`."""
        gram = np.zeros((len(self.columns), len(self.columns)))
        for row, parameters in self._rows():
            part = values[row]
            gram[np.ix_(parameters, parameters)] += part @ part.T
        return gram

    def _rows(self) -> Iterator[tuple[slice, Indices]]:
        """Slots of each row of the torque model, and the parameters that they are of, none of them twice."""
        for first, last in pairwise(self.slots.of_row):
            yield slice(first, last), self.slots.parameter[first:last]

    def pull_back(self, motion: Motion, values: Array, slope: Array, sign_slope: Sign) -> Motion:
        """Derivatives of a function of the products by the motion.

        Args:
            motion: q, dq, ddq.
            values: of it.
            slope: the function's derivative by the products, symmetric, shape (n_chosen, n_chosen).
            sign_slope: derivative of the sign function that `values` had.

        Returns:
            Derivatives by q, dq and ddq, shape (n_samples, n_joints) each.
        """
        from jointbench.model.kernels import fill_slot_slopes

        q, dq, ddq = motion_batch(self.robot, q=motion[0], dq=motion[1], ddq=motion[2])
        weights = np.empty_like(values)
        for root, (row, parameters) in zip(self.roots, self._rows(), strict=True):
            weights[row] = (2.0 * root * slope[np.ix_(parameters, parameters)]) @ values[row]
        more = beside = None
        if len(self.slots.of_drives):
            more = self.drives.pull_back(dq, weights[self.slots.of_drives].T, sign_slope)
        if len(self.of_compensations):
            beside = self.compensations.pull_back(q, dq, ddq, weights[self.of_compensations].T)
        out = np.empty((len(q), 3 * self.robot.n_joints))
        fill_slot_slopes(tree_of(self.robot), self.slots, q, dq, ddq, weights, out)
        by_q, by_dq, by_ddq = np.split(out, 3, axis=1)
        if more is not None:
            by_dq, by_ddq = by_dq + more[0], by_ddq + more[1]
        if beside is not None:
            by_q, by_dq, by_ddq = by_q + beside[0], by_dq + beside[1], by_ddq + beside[2]
        return by_q, by_dq, by_ddq


def _slots(
    robot: Robot, columns: NDArray[np.intp], drives: DriveTerms, more: CompensationTerms
) -> tuple[Slots, Indices]:
    """Slots of all elements, of a row the links' first, then the drives' and compensations'; and which the last are."""
    tree, width = tree_of(robot), 10 * robot.n_links
    places = {int(column): place for place, column in enumerate(columns)}
    of_link = [
        [column for column in range(10 * i, 10 * i + 10) if column in places and modelled]
        for i, modelled in enumerate(robot.modelled_links)
    ]
    parameter: list[int] = []
    of_row = [0]
    of_pair, of_drives, of_more = (np.zeros(len(rows), dtype=np.int64) for rows in (tree.row, drives.row, more.row))
    beside = width + len(drive_parameter_names(robot))
    for row, pairs in enumerate(tree.pair_of.tolist()):
        for body, pair in enumerate(pairs):
            if pair >= 0:
                of_pair[pair] = len(parameter)
                parameter += [places[column] for column in of_link[body]]
        for entry in np.flatnonzero(drives.row == row):
            of_drives[entry] = len(parameter)
            parameter.append(places[width + int(drives.column[entry])])
        for entry in np.flatnonzero(more.row == row):
            of_more[entry] = len(parameter)
            parameter.append(places[beside + int(more.column[entry])])
        of_row.append(len(parameter))
    slots = Slots(
        of_row=np.array(of_row, dtype=np.int64),
        parameter=np.array(parameter, dtype=np.int64),
        of_pair=of_pair,
        of_body=np.cumsum([0, *map(len, of_link)]),
        column=np.array([column % 10 for link in of_link for column in link], dtype=np.int64),
        of_drives=of_drives,
    )
    return slots, of_more
