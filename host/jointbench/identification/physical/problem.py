"""The search for physically possible parameters, without units: every link relative to its reference body."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import compensation_parameter_names, known_beside_links
from jointbench.identification.physical.around import Around
from jointbench.identification.physical.base_estimate import BaseEstimate
from jointbench.identification.physical.prior import UNIT, Prior, PriorName, make_prior
from jointbench.identification.physical.pseudo_inertia import as_matrix, relative_to
from jointbench.identification.physical.reference_bodies import ReferenceBodies, reference_bodies
from jointbench.robot import PARAMETER_NAMES

_WIDTH = len(PARAMETER_NAMES)


@dataclass(frozen=True, eq=False)
class Problem:
    """Find x so that ½ |rows @ x - values|² is least, every link is a body, and what must not be negative is not.

    Attributes:
        estimate: what is asked for.
        bodies: what links are relative to.
        scaling: T of full parameters = T @ x; rows of neglected links are zero, shape (n_full, n).
        rows, values: of the estimate [σ], shape (n_told, n) and (n_told,).
        signed: indices of x that must not be negative: rotor inertia and friction.
        prior: of x.
    """

    estimate: BaseEstimate
    bodies: ReferenceBodies
    scaling: Array
    rows: Array
    values: Array
    signed: NDArray[np.intp]
    prior: Prior

    @classmethod
    def of(cls, estimate: BaseEstimate, prior: PriorName, drives: tuple[Array, Array] | None = None) -> Problem:
        """Set it up for an estimate, with a prior by name; `drives` as of `physical_parameters`."""
        base = estimate.base
        bodies = reference_bodies(base.robot)
        first = _WIDTH * base.robot.n_links
        n = _WIDTH * len(bodies.links) + base.n_full - first
        scaling = np.zeros((base.n_full, n))
        for place, (link, matrix) in enumerate(zip(bodies.links, bodies.matrices, strict=True)):
            block = slice(_WIDTH * place, _WIDTH * (place + 1))
            scaling[_WIDTH * link : _WIDTH * (link + 1), block] = relative_to(matrix)
        free = compensation_parameter_names(base.robot)
        signed = np.array(
            [not name.endswith(".offset") and name not in free for name in base.full_names[first:]], dtype=np.bool_
        )
        thought, units = drives or _drives(estimate, signed)
        places = np.arange(n - len(units), n)
        scaling[first + np.arange(len(units)), places] = units
        rows = estimate.root @ base.grouping @ scaling
        center = np.concatenate([np.tile(UNIT, len(bodies.links)), thought / units])
        return cls(
            estimate=estimate,
            bodies=bodies,
            scaling=scaling,
            rows=rows,
            values=estimate.root @ estimate.values,
            signed=places[signed],
            prior=make_prior(prior, len(bodies.links), center, rows),
        )

    @property
    def inside(self) -> Array:
        """The prior's center, moved away from the edge of what is possible, shape (n,)."""
        start = self.prior.center.copy()
        start[self.signed] = np.maximum(start[self.signed], 0.1)
        return start

    def smallest_eigenvalues(self, x: Array) -> Array:
        """Of each link with parameters, relative to its reference body; shape (n_bodies,)."""
        relative = as_matrix(x[: _WIDTH * len(self.bodies.links)].reshape(-1, _WIDTH))
        return np.linalg.eigvalsh(relative)[:, 0].astype(np.float64)

    def with_estimate(self) -> Array:
        """The parameters nearest to the prior's center that give the estimate exactly, possible or not, shape (n,)."""
        told, equations, inverse, _ = self._split
        return self.prior.center + inverse @ (told @ self.estimate.values - equations @ self.prior.center)

    @property
    def exactly(self) -> Around:
        """All parameters that give the estimate exactly, possible or not."""
        nothing = np.zeros(self.untold.shape[1])
        return Around(self.with_estimate(), self.untold, nothing, nothing)

    def anywhere(self, unit: float = 1.0) -> Around:
        """All parameters; those the data tell have the price of their distance from the estimate [unit² σ²].

        Around those that estimate and prior's center, one for each σ, make together, and along the singular vectors of
        the rows: what the data hardly tell is then near the center, and not wherever its noise has put it.
        """
        n = len(self.prior.center)
        away = self.values - self.rows @ self.prior.center
        both = np.vstack([self.rows, np.eye(n)]), np.concatenate([away, np.zeros(n)])
        origin = self.prior.center + np.linalg.lstsq(*both)[0]
        u, s, vt = np.linalg.svd(self.rows, full_matrices=False)
        lengths = 1.0 / np.maximum(s / unit, 1.0)
        root = s * lengths / unit
        slope = root * (u.T @ (self.rows @ origin - self.values)) / unit
        nothing = np.zeros(self.untold.shape[1])
        return Around(
            origin=origin,
            directions=np.hstack([vt.T * lengths, self.untold]),
            stiffness=np.concatenate([root**2, nothing]),
            slope=np.concatenate([slope, nothing]),
        )

    @property
    def by_sigma(self) -> Array:
        """How x changes when the data's residual does: rows @ by_sigma = E, shape (n, n_told)."""
        told, _, inverse, _ = self._split
        return inverse @ np.linalg.inv(self.estimate.root @ told.T)

    @property
    def untold(self) -> Array:
        """Directions of x that change nothing the data tell, orthonormal, shape (n, n - n_told)."""
        return self._split[3]

    @cached_property
    def _split(self) -> tuple[Array, Array, Array, Array]:
        """Told rows of base parameters, what they are of x, the pseudo-inverse of that, and untold directions of x.

        Not from `rows`, whose information differs by many orders of magnitude, but from rows of the same span.
        """
        told = np.linalg.svd(self.estimate.root, full_matrices=False)[2]
        equations = told @ self.estimate.base.grouping @ self.scaling
        u, s, vt = np.linalg.svd(equations)
        return told, equations, (vt[: len(s)].T / s) @ u.T, vt[len(s) :].T


def _drives(estimate: BaseEstimate, signed: NDArray[np.bool_]) -> tuple[Array, Array]:
    """What is thought of each parameter of drives and compensations, and a unit of its size [SI].

    Known ones are thought to be what the drive says; others what the estimate says where it tells them, so that they
    stay, and else nothing.
    """
    base = estimate.base
    if not len(signed):
        return np.zeros(0), np.zeros(0)
    led = dict(zip(base.columns.tolist(), np.where(estimate.root.any(axis=0), estimate.values, 0.0), strict=True))
    first = _WIDTH * base.robot.n_links
    estimated = np.array([led.get(first + k, 0.0) for k in range(len(signed))])
    thought = np.where(signed, np.maximum(estimated, 0.0), estimated)
    known = known_beside_links(base.robot)
    thought = np.where(np.isfinite(known), known, thought)
    units = np.maximum(np.abs(thought), np.abs(estimated))
    return thought, np.where(units > 0.0, units, 1.0)
