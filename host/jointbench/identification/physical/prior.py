"""What is thought of the parameters before the data speak: how far they are from the robot's file, in two measures.

Links are written relative to their reference bodies (`pseudo_inertia.relative_to`): x = vec(E) is the reference.
Gaussian: ½ Σ w (x - center)². Log-det: Σ over links tr P' - log det P' - 4, the divergence between the normal
distributions of the densities, whose second-order part at the reference is the Gaussian with w = 1; of drives it is the
Gaussian too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.physical.pseudo_inertia import as_matrix, as_vector

PriorName = Literal["uniform", "observability", "log_det"]
PRIORS: tuple[PriorName, ...] = ("uniform", "observability", "log_det")

_LEAST = 1e-3
"""Least weight: many parameters are only seen together, and without one nothing would choose among them."""

UNIT = as_vector(np.eye(4))
"""A link that is its reference body."""


@dataclass(frozen=True, eq=False)
class Prior:
    """How far parameters are from what was thought of them; convex, 0 where they are the same.

    Attributes:
        n_bodies: the first 10 * n_bodies parameters are links'.
        center: what was thought, shape (n,).
        weights: of the squares, shape (n,).
        log_det: whether links are measured by the log-det divergence instead.

    Source: Lee, Wensing & Park, IEEE T-RO 36(1), 2020, of both and their common second order.
    """

    n_bodies: int
    center: Array
    weights: Array
    log_det: bool

    @property
    def squares(self) -> Array:
        """Weights of the parameters that are measured by squares, 0 of the others, shape (n,)."""
        first = 10 * self.n_bodies if self.log_det else 0
        return np.concatenate([np.zeros(first), self.weights[first:]])

    def value(self, x: Array) -> float:
        """The distance, infinite where log det is not defined."""
        away = x - self.center
        total = 0.5 * float(self.squares @ away**2)
        if self.log_det:
            matrices = self._matrices(x)
            sign, logarithm = np.linalg.slogdet(matrices)
            if (sign <= 0.0).any():
                return float("inf")
            total += float(np.sum(np.trace(matrices, axis1=1, axis2=2) - logarithm - 4.0))
        return total

    def gradient(self, x: Array) -> Array:
        """Its derivatives, shape (n,)."""
        slope = self.squares * (x - self.center)
        if self.log_det:
            slope[: 10 * self.n_bodies] += as_vector(np.eye(4) - np.linalg.inv(self._matrices(x))).ravel()
        return slope

    def hessian(self, x: Array) -> Array:
        """Its second derivatives, shape (n, n)."""
        bent = np.diag(self.squares)
        if self.log_det:
            inverse = np.linalg.inv(self._matrices(x))
            directions = as_matrix(np.eye(10))
            blocks = as_vector(inverse[:, None] @ directions[None] @ inverse[:, None])
            for i, block in enumerate(blocks):
                bent[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] += block
        return bent

    def _matrices(self, x: Array) -> Array:
        return as_matrix(x[: 10 * self.n_bodies].reshape(-1, 10))


def make_prior(name: PriorName, n_bodies: int, center: Array, rows: Array) -> Prior:
    """The prior of this name.

    Args:
        name: "uniform": all parameters alike, relative to the reference; "observability": the less the more the data
            see of a parameter, w = 1 / (1 + information about it alone), at least a thousandth; "log_det".
        n_bodies: how many links there are.
        center: what was thought, shape (n,).
        rows: of the data, in σ per parameter, shape (n_rows, n).
    """
    weights = np.ones(len(center))
    if name == "observability":
        weights = np.maximum(1.0 / (1.0 + np.sum(rows**2, axis=0)), _LEAST)
    return Prior(n_bodies, center, weights, name == "log_det")
