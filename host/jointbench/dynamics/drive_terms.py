"""The drives' columns as sums of few terms, and their exact derivatives by the motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics.drive_columns import Sign, drive_columns
from jointbench.robot import Robot


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
