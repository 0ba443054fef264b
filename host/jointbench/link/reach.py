"""Joints that nothing drives: motions may not ask them to move."""

from __future__ import annotations

from collections.abc import Sequence

from jointbench.arrays import Array
from jointbench.errors import TrajectoryError
from jointbench.link.identity import Facts
from jointbench.robot import Robot

_STILL = 1e-6  # [rad]; a joint that is asked to move less is asked to stay
THERE = 0.005  # [rad]; a joint this near to a pose is there: ten times nearer than the boards ask of a start


def check_driven(q: Array, robot: Robot, facts: Sequence[Facts]) -> None:
    """Refuse a motion of a joint that nothing drives.

    Args:
        q: where joints shall be [rad], shape (n, n_joints).
        robot: their names.
        facts: of each joint's board.

    Raises:
        TrajectoryError: names the joint and what it is asked for.
    """
    for index, (name, fact) in enumerate(zip(robot.joint_names, facts, strict=True)):
        low, high = float(q[:, index].min()), float(q[:, index].max())
        if not fact.has_motor and high - low > _STILL:
            raise TrajectoryError(
                f"joint {name!r} is asked to move from {low:g} to {high:g} rad, but nothing drives it: its board has "
                "no motor. Keep it where it is: plan with `passive = true` in the robot's file"
            )


def pose_within_reach(robot: Robot, facts: Sequence[Facts], start: Array, pose: Array) -> Array:
    """A pose to go to: joints without a motor stay where they are.

    Args:
        robot: where such joints count as at home.
        facts: of each joint's board.
        start: where the joints are [rad], shape (n_joints,).
        pose: where they shall be; of a joint without a motor its home, or where it is.

    Raises:
        TrajectoryError: a joint without a motor is asked elsewhere.
    """
    goal = pose.copy()
    for index, (name, fact) in enumerate(zip(robot.joint_names, facts, strict=True)):
        if not fact.has_motor:
            if min(abs(pose[index] - place) for place in (robot.home[index], start[index])) > THERE:
                raise TrajectoryError(
                    f"joint {name!r} is asked to go to {pose[index]:g} rad, but nothing drives it: its board has no "
                    f"motor. It is at {start[index]:.4g} rad; give its home, {robot.home[index]:g} rad, and move it by "
                    "hand"
                )
            goal[index] = start[index]
    return goal
