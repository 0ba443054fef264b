"""The motions that start and end at rest: a basis of the Fourier series that satisfy the boundary conditions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.robot import Array


@dataclass(frozen=True)
class RestToRestBasis:
    """Fourier series of one joint that leave home with velocity and acceleration 0, and so return.

    q(t) = home + Σ_l a_l/(ωl) sin(ωlt) + b_l/(ωl) (1 - cos(ωlt)) with Σ a_l = 0 (velocity) and Σ l b_l = 0
    (acceleration) at t = 0 and, by periodicity, at t = period. The weights w of the null space of those two rows
    are free: q(t) = home + phi(t) @ w, linear, so that scaling w scales the whole motion about home.

    Attributes:
        harmonics: number of harmonics, at least 2.
        period: [s].
    """

    harmonics: int
    period: float

    @property
    def size(self) -> int:
        """Number of free weights per joint."""
        return 2 * (self.harmonics - 1)

    @property
    def frequencies(self) -> Array:
        """Angular frequency ωl of each harmonic [rad/s], shape (harmonics,)."""
        return 2.0 * np.pi / self.period * np.arange(1.0, self.harmonics + 1.0)

    @cached_property
    def _null_spaces(self) -> tuple[Array, Array]:
        """Orthonormal bases of the sine and cosine coefficients that satisfy the boundary conditions."""
        return _orthogonal_to(np.ones(self.harmonics)), _orthogonal_to(np.arange(1.0, self.harmonics + 1.0))

    def coefficients(self, weights: Array) -> tuple[Array, Array]:
        """Sine and cosine coefficients a, b [rad/s], shape (n_joints, harmonics), of weights (n_joints, size)."""
        sine, cosine = self._null_spaces
        half = self.size // 2
        return weights[:, :half] @ sine.T, weights[:, half:] @ cosine.T

    def evaluate(self, time: Array) -> tuple[Array, Array, Array]:
        """Values of phi and its first two derivatives at times [s], shape (n_times, size) each."""
        sine, cosine = self._null_spaces
        frequencies = self.frequencies
        angle = np.outer(time, frequencies)
        sin, cos = np.sin(angle), np.cos(angle)
        position = np.hstack([(sin / frequencies) @ sine, ((1.0 - cos) / frequencies) @ cosine])
        velocity = np.hstack([cos @ sine, sin @ cosine])
        acceleration = np.hstack([(-frequencies * sin) @ sine, (frequencies * cos) @ cosine])
        return position, velocity, acceleration


def _orthogonal_to(row: Array) -> Array:
    """Orthonormal basis of all that is orthogonal to one row, shape (n, n - 1).

    The reflection that carries the first axis into the row carries the others into the basis (Householder): written
    out rather than taken from a decomposition, whose choice among all bases differs from library to library.
    """
    mirror = row / np.linalg.norm(row)
    mirror[0] += 1.0
    return (np.eye(len(row)) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror))[:, 1:]
