"""Plan a sweep of speeds: the motion that shows the friction of chosen joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation.assemble import assemble
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.speed_stairs import SpeedStairs
from jointbench.excitation.limits.certificate import motion_at
from jointbench.excitation.limits.motion_limits import USABLE_MOTION
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.robot import Robot

_SAMPLES = 150
_PER_CHANGE = 4
"""Times looked at in the shortest change of speed: the middle, where acceleration is largest, is one of them."""


def plan_speed_sweep(
    robot: Robot,
    joints: Sequence[str],
    pose: ArrayLike | None = None,
    *,
    workspace: Workspace | None = None,
    **settings: Any,
) -> Excitation:
    """Plan steady speeds of some joints together, in both directions over the same positions; the others hold still.

    The joints go up from where the way they need lies in the middle of their position limits; `friction_of_run` tells
    friction from a recording of it. Gravity cancels between the directions. Friction that grows with the load does not:
    choose a pose in which gravity turns none of these joints, such as an arm that hangs for joints that rotate about
    upright axes.

    Args:
        robot: its limits; of each only the usable share is used.
        joints: names of those that move; of a differential's two only one, as the motors would stand still in turn.
        pose: of all joints, where the others stay [rad], shape (n_joints,); the robot's home where not given.
        workspace: where the robot may move; anywhere where not given.
        settings: of `SpeedStairs`, where not its own: `first`, `step`, `n_speeds`, `hold`, `change`; `reach` and
            `acceleration` are as much as all of these joints have.

    Raises:
        UnknownJoint: the robot has no such joint.
        ExcitationError: no joint is named, a setting is impossible, or a speed finds no room within position limits.
        InfeasibleExcitation: a limit would be broken: of speed, of torque where it can be predicted, or in space.
        WorkspaceError: the workspace does not suit the robot.
    """
    if not joints:
        raise ExcitationError(f"no joint is named to sweep; the joints are {', '.join(robot.joint_names)}")
    moving = np.zeros(robot.n_joints)
    moving[[robot.joint_index(name) for name in joints]] = 1.0
    chosen = moving > 0.0
    low, high = robot.position_limits.T
    # In the middle of its limits a way w begins at a distance from the far one of which it may use its share.
    room = USABLE_MOTION / (2.0 - USABLE_MOTION) * (high - low)
    reach, acceleration = float(room[chosen].min()), USABLE_MOTION * float(robot.acceleration_limits[chosen].min())
    given: dict[str, Any] = {"reach": reach, "acceleration": acceleration, **settings}
    stairs = SpeedStairs(**given)
    start = np.array(robot.home if pose is None else pose, dtype=np.float64)
    start[chosen] = (0.5 * (low + high - _way(stairs)))[chosen]
    posed = replace(robot, home=tuple(start.tolist()))
    weights = moving[:, None]
    limits = (*usable_limits(posed), *(workspace.limits(posed) if workspace else ()))
    motion = motion_at(stairs, start, weights, stairs.grid(stairs.change / _PER_CHANGE))
    for limit in limits:
        usage = limit.usage(motion).max(axis=0)
        worst = int(np.argmax(usage))
        if usage[worst] > 1.0 + 1e-9:
            raise InfeasibleExcitation(f"{limit.say(worst, float(usage[worst]))}; sweep fewer speeds, or slower ones")
    return assemble(posed, base_parameters(robot), stairs, weights, _SAMPLES, 0, limits=limits)


def _way(stairs: SpeedStairs) -> float:
    """How far it goes from home [rad]."""
    positions: Array = stairs.evaluate(stairs.grid(stairs.change), 0)[0]
    return float(positions.max())
