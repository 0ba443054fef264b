"""A planned motion on one foot, what sensors read of another robot on it, and that robot's eight numbers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import plan_single_support
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    NOISE_N,
    PERIOD_S,
    Sway,
    biped,
    simulated_stance,
)

TRUTH = np.array([0.275, 0.22, 0.09, 0.032, 9.5, 3.8, 3.2, 1.4])
"""Off the robot's file so that its zero-moment point is 35 mm off, as the paper's is by CAD."""

TOTAL_MASS = 28.1
ROTARY_SHARE = 0.1
"""By which all rotary inertias are larger than CAD's."""


@lru_cache(maxsize=8)
def planned(seed: int, duration: float = 48.0) -> Sway:
    """Of a robot of which only the file is known."""
    excitation = plan_single_support(biped(), duration=duration, seed=seed)
    time = np.arange(round(duration / PERIOD_S)) * PERIOD_S
    return Sway(time.astype(np.float64), *excitation.evaluate(time))


def parameters(reduced: ReducedParameters) -> Array:
    """All that the true robot's motion follows from."""
    doubts = ROTARY_SHARE * reduced.rotary_terms.sum(axis=1) if reduced.rotary == "cad" else 0.0
    return reduced.standard(TRUTH) + doubts


def stood(
    seed: int, *, rotary: bool = True, nuisance: Array | None = None, noise: float = NOISE_N, noise_seed: int = 0
) -> Stance:
    """The true robot on a planned motion; without `rotary` its links are points."""
    reduced = ReducedParameters(biped(), "cad" if rotary else "none")
    return simulated_stance(
        parameters=parameters(reduced), motion=planned(seed), nuisance=nuisance, noise=noise, noise_seed=noise_seed
    )
