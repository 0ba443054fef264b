"""Default settings of each joint's servo: a simple rule that suits a first run, to be overridden in the bench file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import inverse_dynamics
from jointbench.link.bench_file import ServoOverride
from jointbench.link.settings import JointSettings
from jointbench.robot import Robot

BANDWIDTH = 65.0  # [rad/s], ten hertz: several times what excitations move at, well below gear resonances
DAMPING_RATIO = 0.7
# The servo must beat friction, too: a joint gives its full torque at this error at the latest [rad].
FULL_TORQUE_ERROR = 0.04
# Beyond planned motion, so that noise and overshoot do not trip a sound joint, and a runaway one soon does.
VELOCITY_MARGIN = 1.3
FOLLOWING_LIMIT = 0.06  # [rad]
_POSES = 64


def default_settings(
    robot: Robot, overrides: Mapping[str, ServoOverride] | None = None, limits: Mapping[str, float] | None = None
) -> tuple[JointSettings, ...]:
    """Settings of every joint: stiffness = J w², damping = 2 zeta stiffness / w.

    J is the largest inertia that the joint feels in any pose by the robot's nominal masses (with the rotors' where
    known); without nominal masses the stiffness follows from the torque limit alone.

    Args:
        robot: limits, drives and nominal masses.
        overrides: by joint name, from the bench file.
        limits: of the bench file: its velocity_rad_s and current_A hold where they are below the robot's.
    """
    slowest, weakest = ((limits or {}).get(name, np.inf) for name in ("velocity_rad_s", "current_A"))
    inertia = (_largest_inertia(robot) + np.diag(robot.drive_train.known_inertia)).tolist()
    settings: list[JointSettings] = []
    for joint, drive, moved in zip(robot.independent_joints, robot.drives, inertia, strict=True):
        override = (overrides or {}).get(joint.name, ServoOverride())
        stiffness = override.stiffness or max(moved * BANDWIDTH**2, joint.torque_limit / FULL_TORQUE_ERROR)
        settings.append(
            JointSettings(
                stiffness=stiffness,
                damping=override.damping or 2.0 * DAMPING_RATIO * stiffness / BANDWIDTH,
                viscous_feedforward=0.0,
                current_limit=min(drive.current_limit, weakest),
                position_limits=joint.position_limits,
                velocity_limit=VELOCITY_MARGIN * min(joint.velocity_limit, slowest),
                following_limit=FOLLOWING_LIMIT,
            )
        )
    return tuple(settings)


def _largest_inertia(robot: Robot) -> Array:
    """Largest diagonal of the mass matrix over poses within the limits, shape (n_joints,); 0 without masses."""
    parameters = robot.standard_parameters
    if parameters is None:
        return np.zeros(robot.n_joints)
    low, high = robot.position_limits.T
    rng = np.random.default_rng(0)  # a fixed set of poses: the same robot gets the same servo
    poses = np.vstack([robot.home, rng.uniform(low, high, size=(_POSES, robot.n_joints))])
    rest = np.zeros_like(poses)
    gravity = inverse_dynamics(robot, poses, rest, rest, parameters)
    diagonal = np.empty_like(poses)
    for joint in range(robot.n_joints):
        unit = rest.copy()
        unit[:, joint] = 1.0
        diagonal[:, joint] = (inverse_dynamics(robot, poses, rest, unit, parameters) - gravity)[:, joint]
    return diagonal.max(axis=0)
