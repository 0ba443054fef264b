"""The Makkar law fitted in three ways to the same rows."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import optimize

from jointbench.arrays import Array
from jointbench.identification.friction import FrictionData, friction_law
from jointbench.identification.friction.variable_projection import (
    parameters_at,
    particle_swarm,
    search_box,
    squares,
    variable_projection,
)
from tools.friction_bench.problem import Case

ROUNDS = 15
GENERATIONS = 1500


@dataclass(frozen=True)
class Found:
    """What one way of fitting came to.

    Attributes:
        rms_to_true: error of the fitted curve to the true one at the rows' speeds [N·m].
        r_squared: against the noisy rows.
        squares: Σ error² against the noisy rows.
        seconds: taken, the least of the rounds.
    """

    rms_to_true: float
    r_squared: float
    squares: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def ours(case: Case, rounds: int = ROUNDS) -> Found:
    """Variable projection, several rounds."""
    law = friction_law("makkar", case.data)
    seconds: list[float] = []
    parameters = np.empty(0)
    for _ in range(rounds):
        begin = time.perf_counter()
        parameters = variable_projection(case.data, law)
        seconds.append(time.perf_counter() - begin)
    return _found(case, parameters, min(seconds))


def swarm(case: Case, seed: int) -> Found:
    """The paper's way: 200 iterations of a swarm in six dimensions."""
    begin = time.perf_counter()
    parameters = particle_swarm(case.data, friction_law("makkar", case.data), seed=seed)
    return _found(case, parameters, time.perf_counter() - begin)


def global_search(case: Case, seed: int) -> Found:
    """Differential evolution over the swarm's box, long, and then downhill (L-BFGS-B)."""
    begin = time.perf_counter()
    return _found(case, differential_evolution(case.data, seed), time.perf_counter() - begin)


def differential_evolution(data: FrictionData, seed: int, generations: int = GENERATIONS) -> Array:
    """Parameters that scipy's differential evolution finds in the swarm's box."""
    law = friction_law("makkar", data)

    def cost(places: Array) -> Array | float:
        found = squares(data, law, places.T)
        return float(found) if places.ndim == 1 else found

    result = optimize.differential_evolution(
        cost, search_box(data, law), rng=seed, maxiter=generations, popsize=15, tol=1e-10, vectorized=True,
        updating="deferred",
    )  # fmt: skip
    return parameters_at(law, np.asarray(result.x))


def _found(case: Case, parameters: Array, seconds: float) -> Found:
    fitted = friction_law("makkar", case.data).torque(case.data, parameters)
    left = float(np.sum((fitted - case.data.torque) ** 2))
    return Found(
        rms_to_true=float(np.sqrt(np.mean((fitted - case.true) ** 2))),
        r_squared=1.0 - left / float(len(case.true) * np.var(case.data.torque)),
        squares=left,
        seconds=seconds,
    )
