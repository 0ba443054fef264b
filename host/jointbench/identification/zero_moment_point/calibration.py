"""What the ground would feel of the robot alone, as sensors with known errors and cables with known pulls tell it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point.stance import Stance


@dataclass(frozen=True, eq=False)
class Calibration:
    """m = (Σ f_i c_i - Σ (r_z P_xy - r_xy P_z)) / F, F = Σ f_i + Σ P_z, with f_i = (reading - zero_i)/(1 + gain_i).

    Corners i are at c_i, and cables pull with P at r, r_z from the ground. It is exact for constant gains, zeros and
    pulls, for filters are linear; products of gains' errors are 0.02 mm, which is more than the noise of one minute.
    Whatever else the stance names as nuisance is linear.

    Attributes:
        stance: of the readings.
    """

    stance: Stance

    @cached_property
    def _corners(self) -> Array:
        return np.array(self.stance.robot.foot(self.stance.foot).corners)[:, :2]

    def __call__(self, nuisance: Array) -> tuple[Array, Array]:
        """The point's x and y [m] and the vertical force F [N], shape (n, 3), and derivatives by nu, (n, 3, k)."""
        stance, arms, n = self.stance, self.stance.pulled_arms, len(self._corners)
        gains, zeros, pulls, others = np.split(nuisance, [n, 2 * n, 2 * n + arms[0].size])
        pulls = pulls.reshape(-1, 3)
        forces = (stance.forces - zeros) / (1.0 + gains)
        vertical = forces.sum(axis=1) + pulls[:, 2].sum()
        turned = arms[:, :, 2:] * pulls[:, :2] - arms[:, :, :2] * pulls[:, 2:]
        point = (forces @ self._corners - turned.sum(axis=1)) / vertical[:, None]
        by_zero, by_pull = np.ones((*forces.shape, 3)), np.zeros((*arms.shape, 3))
        by_zero[:, :, :2] = (self._corners - point[:, None]) / vertical[:, None, None]
        by_zero /= -(1.0 + gains)[:, None]
        by_pull[:, :, 0, 0] = by_pull[:, :, 1, 1] = -arms[:, :, 2]
        by_pull[:, :, 2, :2] = arms[:, :, :2] - point[:, None]
        by_pull /= vertical[:, None, None, None]
        by_pull[:, :, 2, 2] = 1.0
        slopes = np.concatenate([by_zero * forces[:, :, None], by_zero, by_pull.reshape(len(point), -1, 3)], axis=1)
        rest = np.concatenate([stance.nuisance_columns, stance.force_nuisance_columns[:, None]], axis=1)
        rest = rest[:, :, len(nuisance) - len(others) :]
        found = np.column_stack([point, vertical]) - rest @ others
        return found, np.concatenate([slopes.transpose(0, 2, 1), -rest], axis=2)
