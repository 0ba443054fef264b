"""At how many times of a motion its regressor is taken."""

from __future__ import annotations

import math

from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Basis
from jointbench.robot import Robot

_ROUNDING = 1e-9  # of a whole number of cycles


def check_samples(samples: int, basis: Basis, robot: Robot, n_parameters: int) -> None:
    """Refuse fewer equations than parameters, and samples that jump over a motion's swings.

    Args:
        samples: at how many times the regressor is taken.
        basis: of the motion.
        robot: the robot; joints that are not modelled give no equations.
        n_parameters: base parameters.

    Raises:
        ExcitationError: too few samples.
    """
    modelled = max(int(robot.modelled.sum()), 1)
    if samples * modelled < n_parameters:
        raise ExcitationError(
            f"samples = {samples} gives {samples * modelled} equations for {n_parameters} base parameters; "
            f"at least {-(-n_parameters // modelled)} samples are needed, 150 is usual"
        )
    least = least_samples(basis)
    if samples < least:
        raise ExcitationError(
            f"samples = {samples} jump over swings of {basis.description}; at least {least} are needed"
        )


def least_samples(basis: Basis) -> int:
    """More than two for each cycle of what is sampled: so few could all meet it where it passes its middle.

    Source: Shannon, Communication in the presence of noise, Proc. IRE 37(1), 1949.
    """
    cycles = basis.repetition.period / basis.fastest_cycle
    return math.floor(2.0 * cycles + _ROUNDING) + 1
