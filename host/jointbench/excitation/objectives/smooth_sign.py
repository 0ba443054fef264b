"""A sign function with a slope, for optimisers."""

import numpy as np

from jointbench.arrays import Array

SMOOTH_SIGN_VELOCITY = 0.05
"""Velocity [rad/s] over which the optimiser's sign function turns: small beside the speeds of an excitation."""


def smooth_sign(velocity: Array) -> Array:
    """tanh(v / v0), v0 being SMOOTH_SIGN_VELOCITY; shapes as given."""
    return np.tanh(velocity / SMOOTH_SIGN_VELOCITY)


def smooth_sign_slope(velocity: Array) -> Array:
    """Derivative of `smooth_sign` by the velocity, (1 - tanh²(v / v0)) / v0."""
    return (1.0 - smooth_sign(velocity) ** 2) / SMOOTH_SIGN_VELOCITY
