"""Limits of an excitation, one kind per file; each a number that must stay at or below one."""

from jointbench.excitation.limits.joint import USABLE_MOTION, JointLimit, joint_limits
from jointbench.excitation.limits.limit import Limit, Motion, SpaceLimit
from jointbench.excitation.limits.torque import USABLE_TORQUE, TorqueLimit, torque_limit
from jointbench.excitation.limits.usable import usable_limits

__all__ = [
    "USABLE_MOTION",
    "USABLE_TORQUE",
    "JointLimit",
    "Limit",
    "Motion",
    "SpaceLimit",
    "TorqueLimit",
    "joint_limits",
    "torque_limit",
    "usable_limits",
]
