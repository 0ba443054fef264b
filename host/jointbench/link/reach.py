"""What a bench's boards cannot refuse by themselves: motions that leave joints' limits, or move what nothing drives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.errors import TrajectoryError
from jointbench.link.identity import Facts
from jointbench.link.settings import JointSettings
from jointbench.robot import Array, Robot

# Motor counts that a limit of a joint may be overstepped by: it became whole counts at each motor that moves the joint.
_ROUNDED = 2.0
_STILL = 1e-6  # [rad]; a joint that is asked to move less is asked to stay
THERE = 0.005  # [rad]; a joint this near to a pose is there: ten times nearer than the boards ask of a start


def check_reach(q: Array, dq: Array, robot: Robot, facts: Sequence[Facts], settings: Sequence[JointSettings]) -> None:
    """Refuse a motion by the joint that cannot make it.

    The board of a joint with a motor of its own guards that joint itself. A coupled motor's board knows only its motor,
    and the joints' box has corners that lie deep within the motors' windows.

    Args:
        q, dq: where joints shall be [rad], and how fast [rad/s], shape (n, n_joints).
        robot: which joints are coupled, and their limits.
        facts: of each joint's board.
        settings: of each joint, where the bench is configured; otherwise the robot's limits hold.

    Raises:
        TrajectoryError: names the joint, what it is asked for and what is allowed.
    """
    windows = np.array([each.position_limits for each in settings]) if settings else robot.position_limits
    fastest = np.array([each.velocity_limit for each in settings]) if settings else robot.velocity_limits
    coupled = {name for coupling in robot.couplings for name in coupling.joints}
    for index, (name, fact) in enumerate(zip(robot.joint_names, facts, strict=True)):
        low, high, speed = float(q[:, index].min()), float(q[:, index].max()), float(np.abs(dq[:, index]).max())
        if not fact.has_motor and high - low > _STILL:
            raise TrajectoryError(
                f"joint {name!r} is asked to move from {low:g} to {high:g} rad, but nothing drives it: its board has "
                "no motor. Keep it where it is: plan with `passive = true` in the robot's file"
            )
        if name not in coupled:
            continue
        least, most = windows[index]
        count = 2.0 * np.pi / (fact.motor_counts * abs(fact.ratio))
        if low < least - _ROUNDED * count or high > most + _ROUNDED * count:
            raise TrajectoryError(
                f"joint {name!r} is asked to go from {low:.4g} to {high:.4g} rad, its window is {least:.4g} to "
                f"{most:.4g} rad; plan the motion inside its limits"
            )
        if speed > fastest[index] * (1.0 + 1e-9):
            raise TrajectoryError(
                f"joint {name!r} is asked to go at {speed:.4g} rad/s, its limit is {fastest[index]:.4g} rad/s; plan a "
                "slower motion"
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
