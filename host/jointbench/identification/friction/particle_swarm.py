"""Fit a friction law by a swarm of particles, the way of the nursing robot's paper."""

from __future__ import annotations

import math

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law

PARTICLES = 40
ITERATIONS = 200
_PULL = 2.05
"""Towards a particle's own best, and towards the swarm's."""

CONSTRICTION = 2.0 / abs(2.0 - 2.0 * _PULL - math.sqrt((2.0 * _PULL) ** 2 - 8.0 * _PULL))
"""Factor on the whole velocity, 0.7298: the swarm then contracts by itself, without a limit on velocities."""

_LARGEST = 2.0
"""A coefficient without a bound is searched up to where its column alone is this many times the largest torque."""


def particle_swarm(data: FrictionData, law: Law, *, seed: int = 0, iterations: int = ITERATIONS) -> Array:
    """Parameters of a law that a swarm found, all of them searched alike, shapes as logarithms.

    v ← χ (v + φ1 u1 (own best - x) + φ2 u2 (swarm's best - x)), x ← x + v, with u1, u2 uniform in [0, 1) for each
    coordinate; who leaves the box stops at its wall.

    Args:
        data: to fit.
        law: to fit.
        seed: of the swarm.
        iterations: moves of each particle.

    Returns:
        Parameters, shape (n_parameters,).

    Source: Clerc & Kennedy, IEEE Trans. Evolutionary Computation 6(1), 2002.
    """
    rng = np.random.default_rng(seed)
    low, high = search_box(data, law).T
    place = rng.uniform(low, high, (PARTICLES, len(low)))
    velocity = np.zeros_like(place)
    best, least = place.copy(), squares(data, law, place)
    for _ in range(iterations):
        leader = best[np.argmin(least)]
        own, shared = rng.random((2, *place.shape))
        velocity = CONSTRICTION * (velocity + _PULL * own * (best - place) + _PULL * shared * (leader - place))
        wanted = place + velocity
        place = np.clip(wanted, low, high)
        velocity[place != wanted] = 0.0
        found = squares(data, law, place)
        better = found < least
        best[better], least[better] = place[better], found[better]
    return parameters_at(law, best[np.argmin(least)])


def search_box(data: FrictionData, law: Law) -> Array:
    """Bounds of all parameters, those of shapes as logarithms, all finite, shape (n_parameters, 2)."""
    shapes = law.shape_bounds(data)
    columns = np.abs(law.columns(data, np.sqrt(shapes[:, 0] * shapes[:, 1]))).max(axis=0)
    largest = _LARGEST * np.abs(data.torque).max() / np.where(columns > 0.0, columns, 1.0)
    bounds = law.coefficient_bounds(data)
    finite = np.stack([np.maximum(bounds[:, 0], -largest), np.minimum(bounds[:, 1], largest)], axis=-1)
    return np.concatenate([finite, np.log(shapes)])


def parameters_at(law: Law, place: Array) -> Array:
    """Parameters of a place in the search box, shape (…, n_parameters)."""
    linear = len(law.coefficients)
    return np.concatenate([place[..., :linear], np.exp(place[..., linear:])], axis=-1)


def squares(data: FrictionData, law: Law, place: Array) -> Array:
    """Sum of squared torque errors at places in the search box, shape (…,)."""
    return np.sum((law.torque(data, parameters_at(law, place)) - data.torque) ** 2, axis=-1)
