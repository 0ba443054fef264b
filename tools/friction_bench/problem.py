"""Friction as a sweep of speeds measures it, for many joints that might be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction import FrictionData, SpeedSweep, friction_law

NOISE = 0.3
"""Of a row, where the law is to be found again [N·m]."""

R_SQUARED = 0.93
"""Of the published fits (0.931 and 0.927): noise of this size leaves the true curve with it."""


@dataclass(frozen=True)
class Case:
    """A joint's true friction [N·m] at the sweep's speeds, and the noisy rows."""

    true: Array
    data: FrictionData


def cases(count: int, seed: int, *, like_paper: bool = False) -> list[Case]:
    """Joints with random Makkar laws, 120 rows each: 60 speeds of the nursing robot's sweep in either direction.

    Our copy lacks the cells of its table of parameters. Assumed are joints with γ1 of 2 to 12, γ4 of 5 to 20 N·m, γ6 of
    2 to 30 N·m·s/rad, γ3 of 2 to 20 and γ5 of 10 to 200 s/rad, evenly in their logarithms, and γ2 2 to 20 times γ3.

    Args:
        count: how many.
        seed: of laws and noise.
        like_paper: noise so that the true curve has R² = 0.93, instead of 0.3 N·m.
    """
    rng = np.random.default_rng(seed)
    speeds = SpeedSweep().speeds[:60]
    velocity = np.concatenate([speeds, -speeds])
    still = FrictionData(velocity, np.zeros_like(velocity))
    law = friction_law("makkar", still)
    made: list[Case] = []
    for _ in range(count):
        gamma1, gamma4, gamma6 = rng.uniform((2.0, 5.0, 2.0), (12.0, 20.0, 30.0))
        gamma3, gamma5, ratio = np.exp(rng.uniform(np.log((2.0, 10.0, 2.0)), np.log((20.0, 200.0, 20.0))))
        true = law.torque(still, np.array([gamma1, gamma4, gamma6, ratio * gamma3, gamma3, gamma5]))
        noise = float(true.std()) * (1.0 / R_SQUARED - 1.0) ** 0.5 if like_paper else NOISE
        made.append(Case(true, FrictionData(velocity, true + noise * rng.standard_normal(len(true)))))
    return made
