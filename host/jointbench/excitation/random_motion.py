"""Random excitations: where optimisation starts, and motions to verify a model on."""

import numpy as np

from jointbench.dynamics import base_parameters
from jointbench.excitation.assemble import assemble
from jointbench.excitation.basis import RestToRestBasis
from jointbench.excitation.fourier import FourierExcitation
from jointbench.excitation.settings import check_series
from jointbench.excitation.usable_limits import UsableLimits, scale_into_limits
from jointbench.robot import Array, Robot

_SAMPLES = 150


def random_excitation(robot: Robot, harmonics: int = 5, period: float = 20.0, seed: int = 0) -> FourierExcitation:
    """Draw a feasible excitation at random: for verification on motion that a model was not fitted to.

    Every joint uses between 60 and 95 % of its tightest limit, unless torque asks for less.

    Args:
        robot: the robot.
        harmonics: of the Fourier series, at least 2.
        period: [s].
        seed: same seed, same motion.

    Returns:
        The excitation.

    Raises:
        ExcitationError: fewer than two harmonics, or a period that is not positive.
        InfeasibleExcitation: a joint cannot hold the robot at home within its usable torque.
    """
    check_series(harmonics, period)
    basis = RestToRestBasis(harmonics, period)
    rng = np.random.default_rng(seed)
    weights = random_weights(robot, basis, rng)
    weights *= rng.uniform(0.6, 1.0, (robot.n_joints, 1))
    return assemble(robot, base_parameters(robot), basis, weights, _SAMPLES, seed)


def random_weights(robot: Robot, basis: RestToRestBasis, rng: np.random.Generator) -> Array:
    """Feasible random weights, each joint up to its tightest usable limit; shape (n_joints, basis.size).

    Raises:
        InfeasibleExcitation: a joint cannot hold the robot at home within its usable torque.
    """
    weights = rng.standard_normal((robot.n_joints, basis.size))
    return scale_into_limits(robot, UsableLimits.of(robot), basis, weights, fill=1.0)
