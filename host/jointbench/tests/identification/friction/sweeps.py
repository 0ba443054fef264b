"""Friction as a sweep of speeds measures it, of known laws."""

import numpy as np

from jointbench.identification.friction import FrictionData, SpeedSweep, friction_law

SPEEDS = SpeedSweep().speeds[:60]
BOTH = np.concatenate([SPEEDS, -SPEEDS])

LAWS = {
    "coulomb_viscous": [6.0, 9.0],
    "asymmetric": [6.0, 9.0, 8.0, 5.0],
    "stribeck": [6.0, 4.0, 9.0, 0.08],
    "makkar": [6.0, 12.0, 8.0, 80.0, 8.0, 20.0],
    "stribeck+load": [6.0, 4.0, 9.0, 0.12, 0.08],
    "coulomb_viscous+temperature": [6.0, 9.0, -0.05, -0.3],
    "coulomb_viscous+offset+load+temperature+inertia": [6.0, 9.0, -1.5, 0.1, -0.05, -0.3, 1.3],
    "makkar+load": [6.0, 12.0, 8.0, 0.15, 80.0, 8.0, 20.0],
}
"""True parameters, in the order of each law's names."""


def measured(name: str, parameters: list[float], noise: float = 0.0, seed: int = 0) -> FrictionData:
    """A row for each speed in each direction, under changing load, temperature and acceleration."""
    rng = np.random.default_rng(seed)
    n = len(BOTH)
    still = FrictionData(
        BOTH, np.zeros(n), load=rng.uniform(-40.0, 40.0, n), temperature=rng.uniform(298.0, 318.0, n),
        acceleration=rng.uniform(-1.0, 1.0, n),
    )  # fmt: skip
    torque = friction_law(name, still).torque(still, np.array(parameters)) + noise * rng.standard_normal(n)
    return FrictionData(BOTH, torque, still.load, still.temperature, still.acceleration)
