"""The pose in which gravity turns no joint."""

from __future__ import annotations

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import Array
from jointbench.dynamics.newton_euler import gravity_torques
from jointbench.errors import UnknownInertia
from jointbench.robot import Robot


def hanging_pose(robot: Robot) -> Array:
    """Pose near home in which gravity makes no torque at any joint, as far as position limits allow it.

    argmin Σ G_j(q)² within the limits, from home on: near a home that hangs it hangs, near one that stands it may be
    balanced upright. Either way it loads its gears least, so friction that grows with the load is at its smallest.

    Args:
        robot: with nominal inertias.

    Returns:
        q [rad or m], shape (n_joints,); joints on which gravity does not act anywhere stay at home.

    Raises:
        UnknownInertia: the robot's file does not give all inertias.
    """
    parameters = robot.standard_parameters
    if parameters is None:
        raise UnknownInertia(
            f"robot {robot.name!r} has links of unknown inertia, so where gravity turns no joint is not known; "
            f"give all inertias in its file, or choose the pose yourself"
        )

    def gravity(pose: Array) -> Array:
        return gravity_torques(robot, pose[None], parameters)[0]

    low, high = robot.position_limits.T
    found = scipy.optimize.least_squares(gravity, np.array(robot.home), bounds=(low, high), xtol=1e-12, gtol=1e-12)
    return np.asarray(found.x, dtype=np.float64)
