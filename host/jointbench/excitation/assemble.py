"""From free weights to an excitation that knows its condition number and margins."""

import numpy as np

from jointbench.dynamics import BaseParameters
from jointbench.excitation.basis import RestToRestBasis
from jointbench.excitation.condition import Motion, condition_number
from jointbench.excitation.fourier import FourierExcitation
from jointbench.excitation.margins import motion_margins
from jointbench.excitation.usable_limits import FINE_STEP
from jointbench.robot import Array, Robot


def sample_times(period: float, samples: int) -> Array:
    """Times [s] spread over a period, none of them at its ends: there the motion rests and sign(0) says nothing."""
    return (np.arange(samples, dtype=np.float64) + 0.5) * (period / samples)


def motion_of(robot: Robot, basis_values: Motion, weights: Array) -> Motion:
    """Positions, velocities and accelerations of weights over basis values (phi and its derivatives)."""
    phi, dphi, ddphi = basis_values
    return np.array(robot.home) + phi @ weights.T, dphi @ weights.T, ddphi @ weights.T


def assemble(
    robot: Robot, base: BaseParameters, basis: RestToRestBasis, weights: Array, samples: int, seed: int
) -> FourierExcitation:
    """Make the excitation of the given weights, shape (n_joints, basis.size)."""
    sine, cosine = basis.coefficients(weights)
    motion = motion_of(robot, basis.evaluate(sample_times(basis.period, samples)), weights)
    fine = motion_of(robot, basis.evaluate(np.arange(0.0, basis.period, FINE_STEP)), weights)
    return FourierExcitation(
        robot_name=robot.name,
        period=basis.period,
        center=np.array(robot.home) + (cosine / basis.frequencies).sum(axis=1),
        sine=sine,
        cosine=cosine,
        condition_number=condition_number(robot, base, motion),
        margins=motion_margins(robot, *fine),
        seed=seed,
    )
