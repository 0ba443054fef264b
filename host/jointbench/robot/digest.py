"""Digests of what a planned motion takes for granted about its robot: kinematics, limits and drives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from jointbench.robot.joint import Mimic
from jointbench.robot.robot import Robot

_DIGITS = 9  # significant: a URDF and a TOML file of one robot agree to more, an edited number seldom does
_LENGTH = 16  # hexadecimal digits of a digest: 64 bits


def robot_digests(robot: Robot) -> dict[str, str]:
    """Return digests by which a robot is known again: SHA-256 of its numbers, by part.

    Nominal masses, rotor inertias, friction and stiffness are left out: they are what an identification finds.

    Args:
        robot: the robot.

    Returns:
        "kinematics": joints, where they sit, what they mimic, gravity; "limits": of position, velocity, acceleration,
        jerk, torque and motor current; "drives": ratios, torque constants and couplings.
    """
    joints = robot.joints
    drives = robot.drive_train.drives
    parts: dict[str, Any] = {
        "kinematics": [
            robot.gravity,
            [
                (joint.name, joint.kind, joint.parent, joint.rotation, joint.origin, joint.axis, _mimic(joint.mimic))
                for joint in joints
            ],
        ],
        "limits": [
            [
                (
                    joint.position_limits,
                    joint.velocity_limit,
                    joint.acceleration_limit,
                    joint.jerk_limit,
                    joint.torque_limit,
                )
                for joint in joints
            ],
            [drive.current_limit for drive in drives],
        ],
        "drives": [
            [(drive.joint, drive.kind, drive.ratio, drive.torque_constant) for drive in drives],
            [(coupling.joints, coupling.matrix) for coupling in robot.couplings],
        ],
    }
    return {name: _digest(part) for name, part in parts.items()}


def _mimic(mimic: Mimic | None) -> tuple[Any, ...] | None:
    return None if mimic is None else (mimic.joint, mimic.factor, mimic.offset)


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(_rounded(part)).encode()).hexdigest()[:_LENGTH]


def _rounded(part: Any) -> Any:
    """Numbers as text of so many digits, in lists."""
    if isinstance(part, (int, float)):
        return f"{float(part) + 0.0:.{_DIGITS}g}"  # + 0.0: there is no negative zero
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [_rounded(each) for each in part]
    return part
