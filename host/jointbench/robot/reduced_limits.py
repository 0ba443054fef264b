"""A robot whose limits are a share of its own: for first motions, while nobody knows yet whether all is well."""

from __future__ import annotations

from dataclasses import replace

from jointbench.errors import ExcitationError
from jointbench.robot.robot import Robot


def with_reduced_limits(robot: Robot, speed: float = 1.0, reach: float = 1.0) -> Robot:
    """Return the robot with a share of its limits, those of torque and current as they are: gravity stays the same.

    Args:
        robot: the robot.
        speed: share of the limits of velocity, acceleration and jerk, above 0 to 1.
        reach: share of the way from home to either position limit, above 0 to 1.

    Raises:
        ExcitationError: a share is not above 0 and at most 1.
    """
    for name, share in (("speed", speed), ("range", reach)):
        if not 0.0 < share <= 1.0:
            raise ExcitationError(f"{name} = {share:g} must be a share of the robot's limits, above 0 and at most 1")
    homes = iter(robot.home)
    joints = list(robot.joints)
    for index, joint in enumerate(joints):
        if joint.mimic is not None:
            continue
        home, (low, high) = next(homes), joint.position_limits
        joints[index] = replace(
            joint,
            position_limits=(home + reach * (low - home), home + reach * (high - home)),
            velocity_limit=speed * joint.velocity_limit,
            acceleration_limit=speed * joint.acceleration_limit,
            jerk_limit=None if joint.jerk_limit is None else speed * joint.jerk_limit,
        )
    return replace(robot, joints=tuple(joints))
