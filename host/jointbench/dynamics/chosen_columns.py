"""Products of chosen columns of the torque model, and their exact derivatives: without zeros, in one go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics.batch import motion_batch
from jointbench.dynamics.compensation_columns import CompensationTerms
from jointbench.dynamics.drive_columns import drive_parameter_names
from jointbench.dynamics.drive_terms import DriveTerms, Sign
from jointbench.dynamics.tree import Indices, Slots, tree_of
from jointbench.robot import Robot

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
        from jointbench.dynamics.kernels import fill_slots

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
        from jointbench.dynamics.kernels import fill_slot_slopes

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
