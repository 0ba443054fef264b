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
        unit, at_rest = np.eye(n), np.zeros((n, n))

        def columns(dq: Array, ddq: Array, sign: Sign) -> Array:
            return drive_columns(robot, dq, ddq, sign=sign)[0].reshape(n, n, -1)

        constant = columns(at_rest, at_rest, np.zeros_like)
        velocity = columns(unit, at_rest, np.zeros_like) - constant
        acceleration = columns(at_rest, unit, np.zeros_like) - constant
        # With the speed itself for its sign it is p s_l, l being the joint that moves at unit speed; and p = s_j.
        products = columns(unit, at_rest, np.positive) - velocity - constant
        row, column = np.nonzero((constant != 0.0).any(axis=0) | np.abs([velocity, acceleration, products]).any((0, 1)))
        pushes = np.sqrt(products[row, row, column])
        rubbing = np.flatnonzero(pushes)
        speeds = products[:, row, column][:, rubbing] / pushes[rubbing]
        terms = (velocity[:, row, column], acceleration[:, row, column], constant[0, row, column])
        return cls(row, column, *terms, rubbing, speeds, pushes[rubbing])

    def only(self, columns: NDArray[np.intp]) -> DriveTerms:
        """Select the terms of some columns."""
        selected = np.isin(self.column, columns)
        selected_rubbing = selected[self.rubbing]
        return DriveTerms(
            self.row[selected],
            self.column[selected],
            self.by_velocity[:, selected],
            self.by_acceleration[:, selected],
            self.constant[selected],
            (np.cumsum(selected) - 1)[self.rubbing[selected_rubbing]],
            self.speeds[:, selected_rubbing],
            self.pushes[selected_rubbing],
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
        gradient_by_speed = weights[:, self.rubbing] * self.pushes * sign_slope(dq @ self.speeds)
        return weights @ self.by_velocity.T + gradient_by_speed @ self.speeds.T, weights @ self.by_acceleration.T


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
        compensation_slots: slots of their elements, shape (n_elements,).
    """

    robot: Robot
    columns: NDArray[np.intp]
    roots: Array
    slots: Slots
    drives: DriveTerms
    compensations: CompensationTerms
    compensation_slots: Indices

    @classmethod
    def of(cls, robot: Robot, columns: NDArray[np.intp], roots: Array) -> ChosenColumns:
        """Lay chosen columns out in slots."""
        n_link_columns = 10 * robot.n_links
        drives = DriveTerms.of(robot).only(columns[columns >= n_link_columns] - n_link_columns)
        first_compensation = n_link_columns + len(drive_parameter_names(robot))
        compensations = CompensationTerms.of(robot, columns[columns >= first_compensation] - first_compensation)
        slots, compensation_slots = _slots(robot, columns, drives, compensations)
        return cls(robot, columns, roots, slots, drives, compensations, compensation_slots)

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
        if len(self.compensation_slots):
            compensation_values = self.compensations.values(q, dq, ddq) * self.roots[self.compensations.row]
            values[self.compensation_slots] = compensation_values.T
        return values

    def gram(self, values: Array) -> Array:
        """Products of the columns summed over all rows, shape (n_chosen, n_chosen), of `values`."""
        gram = np.zeros((len(self.columns), len(self.columns)))
        for row, parameters in self._rows():
            row_values = values[row]
            gram[np.ix_(parameters, parameters)] += row_values @ row_values.T
        return gram

    def _rows(self) -> Iterator[tuple[slice, Indices]]:
        """Slots of each row of the torque model, and the parameters that they are of, none of them twice."""
        for first, last in pairwise(self.slots.of_row):
            yield slice(first, last), self.slots.parameter[first:last]

    def pull_back(self, motion: Motion, values: Array, gram_gradient: Array, sign_slope: Sign) -> Motion:
        """Derivatives of a function of the products by the motion.

        Args:
            motion: q, dq, ddq.
            values: of it.
            gram_gradient: the function's derivative by the products, symmetric, shape (n_chosen, n_chosen).
            sign_slope: derivative of the sign function that `values` had.

        Returns:
            Derivatives by q, dq and ddq, shape (n_samples, n_joints) each.
        """
        from jointbench.model.kernels import fill_slot_gradients

        q, dq, ddq = motion_batch(self.robot, q=motion[0], dq=motion[1], ddq=motion[2])
        weights = np.empty_like(values)
        for root, (row, parameters) in zip(self.roots, self._rows(), strict=True):
            weights[row] = (2.0 * root * gram_gradient[np.ix_(parameters, parameters)]) @ values[row]
        drive_gradients = compensation_gradients = None
        if len(self.slots.of_drives):
            drive_gradients = self.drives.pull_back(dq, weights[self.slots.of_drives].T, sign_slope)
        if len(self.compensation_slots):
            compensation_gradients = self.compensations.pull_back(q, dq, ddq, weights[self.compensation_slots].T)
        out = np.empty((len(q), 3 * self.robot.n_joints))
        fill_slot_gradients(tree_of(self.robot), self.slots, q, dq, ddq, weights, out)
        by_q, by_dq, by_ddq = np.split(out, 3, axis=1)
        if drive_gradients is not None:
            by_dq, by_ddq = by_dq + drive_gradients[0], by_ddq + drive_gradients[1]
        if compensation_gradients is not None:
            by_q, by_dq, by_ddq = (
                by_q + compensation_gradients[0],
                by_dq + compensation_gradients[1],
                by_ddq + compensation_gradients[2],
            )
        return by_q, by_dq, by_ddq


def _slots(
    robot: Robot, columns: NDArray[np.intp], drives: DriveTerms, compensations: CompensationTerms
) -> tuple[Slots, Indices]:
    """Slots of all elements, of a row the links' first, then the drives' and compensations'; and which the last are."""
    tree, width = tree_of(robot), 10 * robot.n_links
    chosen_index = {int(column): index for index, column in enumerate(columns)}
    link_columns = [
        [column for column in range(10 * i, 10 * i + 10) if column in chosen_index and modelled]
        for i, modelled in enumerate(robot.modelled_links)
    ]
    parameter: list[int] = []
    of_row = [0]
    of_pair, of_drives, compensation_slots = (
        np.zeros(len(rows), dtype=np.int64) for rows in (tree.row, drives.row, compensations.row)
    )
    first_compensation = width + len(drive_parameter_names(robot))
    for row, pairs in enumerate(tree.pair_of.tolist()):
        for body, pair in enumerate(pairs):
            if pair >= 0:
                of_pair[pair] = len(parameter)
                parameter += [chosen_index[column] for column in link_columns[body]]
        for entry in np.flatnonzero(drives.row == row):
            of_drives[entry] = len(parameter)
            parameter.append(chosen_index[width + int(drives.column[entry])])
        for entry in np.flatnonzero(compensations.row == row):
            compensation_slots[entry] = len(parameter)
            parameter.append(chosen_index[first_compensation + int(compensations.column[entry])])
        of_row.append(len(parameter))
    slots = Slots(
        of_row=np.array(of_row, dtype=np.int64),
        parameter=np.array(parameter, dtype=np.int64),
        of_pair=of_pair,
        of_body=np.cumsum([0, *map(len, link_columns)]),
        column=np.array([column % 10 for link in link_columns for column in link], dtype=np.int64),
        of_drives=of_drives,
    )
    return slots, compensation_slots
