"""The zero-moment point that parameters predict, as far as they enter it in few terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.identification.zero_moment_point.stance import Stance


@dataclass(frozen=True, eq=False)
class Theory:
    """z = (W_xy @ t) / (W_z @ t), with t the few terms that the parameters enter by.

    Attributes:
        columns: W, rows x numerator, y numerator and vertical force of each sample, shape (n, 3, n_terms).
    """

    columns: Array

    @staticmethod
    def of(stance: Stance, reduced: ReducedParameters) -> Theory:
        """In the terms of reduced parameters."""
        return Theory(stance.columns @ reduced.terms)

    def __call__(self, t: Array) -> Point:
        """The point and its first derivatives where the terms have these values, shape (n_terms,)."""
        wrench = self.columns @ t
        force = wrench[:, 2]
        point = wrench[:, :2] / force[:, None]
        slopes = (self.columns[:, :2] - point[:, :, None] * self.columns[:, 2:]) / force[:, None, None]
        return Point(point, slopes, force, self.columns[:, 2])


@dataclass(frozen=True, eq=False)
class Point:
    """Theoretical zero-moment points and their derivatives by the terms.

    Attributes:
        point: x and y [m], shape (n, 2).
        slopes: D of them, by the quotient rule (W_xy - z W_z)/F, shape (n, 2, n_terms); the second derivatives are
            -(D W_zᵀ + W_z Dᵀ)/F.
        force: the vertical one, F [N], shape (n,).
        force_slopes: W_z of it, shape (n, n_terms).
    """

    point: Array
    slopes: Array
    force: Array
    force_slopes: Array


def theoretical_point(stance: Stance, standard_parameters: Array) -> Array:
    """Zero-moment points of a stance by standard parameters [m], shape (n, 2).

    Args:
        stance: whose motion.
        standard_parameters: of the base's link, then of each link, shape (10 * (1 + n_links),).
    """
    wrench = stance.columns @ standard_parameters
    return np.asarray(wrench[:, :2] / wrench[:, 2:], dtype=np.float64)


def mean_distance(stance: Stance, standard_parameters: Array) -> float:
    """Mean distance between theoretical and measured zero-moment point [m]."""
    off = theoretical_point(stance, standard_parameters) - stance.measured
    return float(np.linalg.norm(off, axis=1).mean())
