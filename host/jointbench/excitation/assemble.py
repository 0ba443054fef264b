"""From free weights to an excitation that knows its condition number and margins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.basis import Basis, fine_times
from jointbench.excitation.limits.certificate import motion_at
from jointbench.excitation.limits.motion_limits import Limit
from jointbench.excitation.limits.torque_limits import TorqueLimit
from jointbench.excitation.limits.workspace import not_checked
from jointbench.excitation.margins import motion_margins, space_margins
from jointbench.excitation.objectives.objective import Objective
from jointbench.robot import Robot, robot_digests


def assemble(
    robot: Robot,
    base: BaseParameters,
    basis: Basis,
    weights: Array,
    samples: int,
    seed: int,
    objective: Objective | None = None,
    limits: Sequence[Limit] = (),
) -> Excitation:
    """Make the excitation of the given weights, shape (n_joints, basis.size).

    Args:
        robot, base: the robot, and the base parameters of which the condition number is.
        basis, weights: the motion.
        samples: at how many times the regressor is taken.
        seed: that it came from.
        objective: what it is the best found for; None for a motion drawn at random.
        limits: those in space say their distances, that of torque predicts it.

    Raises:
        ExcitationError: the motion makes no torque.
    """
    home = np.array(robot.home, dtype=np.float64)
    q, dq, ddq, _ = motion_at(basis, home, weights, basis.sample_times(samples))
    fine = motion_at(basis, home, weights, fine_times(basis))
    return Excitation(
        robot_name=robot.name,
        basis=basis,
        home=home,
        weights=weights,
        condition_number=Objective.of(robot, base, "condition_number").value((q, dq, ddq)),
        margins=motion_margins(robot, *fine, next((each for each in limits if isinstance(each, TorqueLimit)), None)),
        seed=seed,
        objective=None if objective is None else objective.name,
        objective_value=None if objective is None else objective.value((q, dq, ddq)),
        distances=space_margins(limits, fine),
        digests=robot_digests(robot),
        not_checked=not_checked(robot, limits),
    )
