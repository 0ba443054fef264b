"""Bodies that are not what the robot's file says, yet possible, left as right."""

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, standard_parameters
from jointbench.identification.zero_moment_point.full_estimate import mirror_images
from jointbench.robot import Robot
from jointbench.tests.identification.zero_moment_point.simulated_stance import nominal


def drawn_bodies(robot: Robot, seed: int, spread: float = 0.08) -> Array:
    """pi of bodies stretched and moved at random: P' = (E + D) P (E + D)ᵀ is the pseudo-inertia of a body too."""
    rng = np.random.default_rng(seed)
    parameters = nominal(robot).reshape(-1, 10).copy()
    for k, body in enumerate(parameters):
        turn = np.eye(4) + spread * rng.standard_normal((4, 4))
        turn[:3, 3] *= 0.05  # metres beside numbers
        parameters[k] = standard_parameters(turn @ pseudo_inertia(body) @ turn.T)
    for image in mirror_images(robot):
        parameters[image.link] = image.turn @ parameters[image.source]
    return parameters.ravel()
