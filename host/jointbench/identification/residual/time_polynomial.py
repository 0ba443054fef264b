"""The published residual: a polynomial of time, fitted to a model's torque error along one mission."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.residual.mission import Mission

ORDER = 5
"""As printed."""


@dataclass(frozen=True, eq=False)
class TimePolynomial:
    """T'_i(t) = Σ_{j=0..order} C_ij t^j, t since the mission began.

    It knows nothing of what the robot does, and so it holds on the mission it was fitted to alone.

    Attributes:
        mission: name of that mission.
        motion: its motion, as of `Mission`.
        polynomials: one for each joint, each on its own even domain of time.

    Source: Li et al., Hindawi, 2017.
    """

    mission: str
    motion: str
    polynomials: tuple[Polynomial, ...]

    @classmethod
    def fit(cls, mission: Mission, order: int = ORDER) -> TimePolynomial:
        """Fit each joint's by least squares to all rows of the mission.

        Raises:
            FitError: the order is negative, or rows are too few for it.
        """
        rows = int(mission.complete.sum())
        if not 0 <= order < rows:
            raise FitError(f"order = {order}: mission {mission.name!r} has {rows} rows, and the order is 0 at least")
        time = mission.time[mission.complete]
        fits = (Polynomial.fit(time, error, order) for error in mission.error[mission.complete].T)
        return cls(mission.name, mission.motion, tuple(fits))

    @property
    def coefficients(self) -> Array:
        """C_ij [N·m/s^j or N/s^j], shape (n_joints, order + 1)."""
        order = self.polynomials[0].degree()
        coefficients = np.zeros((len(self.polynomials), order + 1))
        for row, polynomial in zip(coefficients, self.polynomials, strict=True):
            plain = polynomial.convert().coef
            row[: len(plain)] = plain
        return coefficients

    def torque(self, time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque at these times; the motion does not matter. Arguments and result as of `Residual`."""
        return np.stack([polynomial(time) for polynomial in self.polynomials], axis=1)

    def along(self, mission: Mission) -> Array:
        """Torque at a mission's rows: five powers in a mission are slow beside any filter, so that none is needed."""
        return self.torque(mission.time, *(np.empty((0, 0)),) * 3)

    def distance_along(self, mission: Mission) -> Array:
        """Zero on its own mission; any other is infinitely far, whatever the time."""
        own = mission.motion == self.motion
        return np.full(mission.error.shape, 0.0 if own else np.inf)
