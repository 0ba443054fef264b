"""What is known of a robot's parameters beforehand, beside what its file says."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jointbench.dynamics import model_parameter_names
from jointbench.errors import ExcitationError
from jointbench.robot import Robot


def check_prior(robot: Robot, prior: Mapping[str, float]) -> None:
    """Refuse prior values that would say nothing: of what the robot does not have, or that are no numbers.

    Args:
        robot: the robot.
        prior: values of full parameters by name, such as {"j1.coulomb": 4.0} (SI).

    Raises:
        ExcitationError: an unknown name, or a value that is not a finite number.
    """
    known = dict.fromkeys(model_parameter_names(robot))
    for name, value in prior.items():
        if name not in known:
            raise ExcitationError(
                f"prior value of {name!r}: robot {robot.name!r} has no such parameter; there is "
                f"{next(iter(known))} … {next(reversed(known))}"
            )
        if not math.isfinite(value):
            raise ExcitationError(f"prior value of {name!r} is {value:g}; leave it out where it is not known")
