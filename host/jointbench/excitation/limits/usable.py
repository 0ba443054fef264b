"""The limits of a robot that an excitation is planned within."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import drive_parameter_names, known_drive_parameters
from jointbench.excitation.families.basis import check_share
from jointbench.excitation.limits.current import current_limit
from jointbench.excitation.limits.joint import USABLE_MOTION, joint_limits
from jointbench.excitation.limits.limit import Limit
from jointbench.excitation.limits.torque import USABLE_TORQUE, torque_limit
from jointbench.excitation.prior import check_prior
from jointbench.robot import PARAMETER_NAMES, Robot


def usable_limits(
    robot: Robot,
    home: Array | None = None,
    *,
    motion_share: float = USABLE_MOTION,
    torque_share: float = USABLE_TORQUE,
    prior: Mapping[str, float] | None = None,
) -> tuple[Limit, ...]:
    """Shares of the joints' limits: position, velocity, acceleration, jerk where given, torque where predictable.

    Torque is predictable where all inertias are known. Of the drives, what is not known counts as nothing. The motors'
    current limits are among them where those of the joints' torques do not imply them.

    Args:
        robot: the robot.
        home: [rad or m], shape (n_joints,); the robot's own where not given.
        motion_share: of position (as a way from home), velocity, acceleration and jerk that may be used.
        torque_share: of the limits of torque and current that may be used.
        prior: values of full parameters by name that the robot's file does not know, or better ones (SI).

    Raises:
        ExcitationError: a share is not above 0 and at most 1, or `prior` has an unknown name or what is no number.
        InfeasibleExcitation: home is not inside a joint's position limits, or a limit allows no motion.
    """
    check_share("motion_share", motion_share)
    check_share("torque_share", torque_share)
    torque = torque_limit(robot, home, torque_share, *_believed(robot, prior or {}))
    current = None if torque is None else current_limit(torque, torque_share)
    return (*joint_limits(robot, home, motion_share), *(each for each in (torque, current) if each is not None))


def _believed(robot: Robot, prior: Mapping[str, float]) -> tuple[Array | None, Array | None]:
    """Standard parameters of the links, None where one is not known, and parameters of the drives."""
    if not prior:
        return robot.standard_parameters, None
    check_prior(robot, prior)
    links = np.full((len(robot.joints), len(PARAMETER_NAMES)), np.nan)
    for joint, own in zip(robot.joints, links, strict=True):
        if joint.link.neglected:
            own[:] = 0.0
        if joint.link.standard_parameters is not None:
            own[:] = joint.link.standard_parameters
        own[:] = [prior.get(f"{joint.name}.{name}", value) for name, value in zip(PARAMETER_NAMES, own, strict=True)]
    drives = zip(drive_parameter_names(robot), np.nan_to_num(known_drive_parameters(robot)), strict=True)
    known = np.isfinite(links).all()
    return links.ravel() if known else None, np.array([prior.get(name, value) for name, value in drives])
