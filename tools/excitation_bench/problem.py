"""The UR10, and what is asked of its motion.

Sources: ur_description of ROS-Industrial's universal_robot, ur10.urdf (placements, axes, velocity limits).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import qr

from jointbench.arrays import IDENTITY, Matrix3, Vector3
from jointbench.dynamics import BaseParameters, base_parameters, regressor
from jointbench.excitation import ExcitationProblem, Objective, RestToRestFourier, usable_limits
from jointbench.robot import Drive, Joint, Link, Robot

HARMONICS, PERIOD, SAMPLES = 5, 10.0, 150
ACCELERATION = 5.0

_Y: Vector3 = (0.0, 1.0, 0.0)
_Z: Vector3 = (0.0, 0.0, 1.0)
_QUARTER_ABOUT_Y: Matrix3 = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0))
_JOINTS: tuple[tuple[str, Matrix3, Vector3, Vector3, float], ...] = (
    ("shoulder_pan", IDENTITY, (0.0, 0.0, 0.1273), _Z, 2.16),
    ("shoulder_lift", _QUARTER_ABOUT_Y, (0.0, 0.220941, 0.0), _Y, 2.16),
    ("elbow", IDENTITY, (0.0, -0.1719, 0.612), _Y, 3.15),
    ("wrist_1", _QUARTER_ABOUT_Y, (0.0, 0.0, 0.5723), _Y, 3.2),
    ("wrist_2", IDENTITY, (0.0, 0.1149, 0.0), _Z, 3.2),
    ("wrist_3", IDENTITY, (0.0, 0.0, 0.1157), _Y, 3.2),
)
_PIVOTING_SAMPLES = 200


def ur10() -> Robot:
    """The arm, kinematics alone; torque is of no matter here."""
    joints = tuple(
        Joint(
            name, "revolute", i - 1, rotation, origin, (-math.pi, math.pi), velocity, ACCELERATION, 100.0,
            Link(f"{name}_link"), axis,
        )
        for i, (name, rotation, origin, axis, velocity) in enumerate(_JOINTS)
    )  # fmt: skip
    drives = tuple(Drive(joint.name, joint.name, "direct", 100.0, 0.1, 10.0) for joint in joints)
    return Robot("UR10", joints, drives, (), (0.0, 0.0, -9.81), (0.0,) * 6, "ur_description", "UR10 arm")


def pivoted_base(robot: Robot) -> BaseParameters:
    """The links' base parameters, led by the columns that pivoting chooses; their names are those of the leaders."""
    base = base_parameters(robot, drives=False)
    q, dq, ddq = np.random.default_rng(0).standard_normal((3, _PIVOTING_SAMPLES, robot.n_joints))
    order = qr(regressor(robot, q, dq, ddq), mode="r", pivoting=True)[1]
    return replace(base, columns=np.sort(order[: base.rank]))


def problem_of(robot: Robot) -> ExcitationProblem:
    """As the planner sees it; all of each limit may be used."""
    return ExcitationProblem(
        RestToRestFourier(HARMONICS, PERIOD),
        np.array(robot.home),
        usable_limits(robot, motion_share=1.0),
        Objective.of(robot, pivoted_base(robot)),
        SAMPLES,
    )
