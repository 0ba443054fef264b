"""A URDF for looking at: how a robot moves, and its links as capsules; no masses, no meshes, no other file."""

from __future__ import annotations

import math

import numpy as np

from jointbench.arrays import Array, Vector3
from jointbench.results.urdf import base_name
from jointbench.results.xml_text import attributes, roll_pitch_yaw
from jointbench.robot import Capsule, Joint, Robot

_THIN = 0.02
"""Radius of a link of unknown room, as a share of the robot's longest distance between joints."""

_SMALLEST = 0.005
"""The same at least [m]."""


def moving_urdf(robot: Robot) -> str:
    """The URDF's text.

    Links are the capsules of the robot's file; where it has none, sticks from each joint to those that it carries.
    """
    base = base_name(robot)
    capsules = robot.capsules or _sticks(robot)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot{attributes(name=robot.name)}>"]
    lines += _link(base, [each for each in capsules if each.joint < 0])
    for index, joint in enumerate(robot.joints):
        carrier = robot.joints[joint.parent].link.name if joint.parent >= 0 else base
        lines += _link(joint.link.name, [each for each in capsules if each.joint == index])
        lines += _joint(robot, joint, carrier)
    return "\n".join([*lines, "</robot>", ""])


def _joint(robot: Robot, joint: Joint, carrier: str) -> list[str]:
    low, high = joint.position_limits
    rotation, origin = joint.placement
    limit = attributes(lower=low, upper=high, velocity=joint.velocity_limit, effort=joint.torque_limit)
    lines = [
        f"  <joint{attributes(name=joint.name, type_=joint.kind)}>",
        f"    <parent{attributes(link=carrier)}/><child{attributes(link=joint.link.name)}/>",
        f"    <origin{attributes(xyz=origin, rpy=roll_pitch_yaw(rotation))}/>",
        f"    <axis{attributes(xyz=joint.axis)}/><limit{limit}/>",
    ]
    if joint.mimic is not None:
        followed = robot.joints[joint.mimic.joint].name
        lines.append(
            f"    <mimic{attributes(joint=followed, multiplier=joint.mimic.factor, offset=joint.mimic.offset)}/>"
        )
    return [*lines, "  </joint>"]


def _link(name: str, capsules: list[Capsule]) -> list[str]:
    if not capsules:
        return [f"  <link{attributes(name=name)}/>"]
    visuals = [line for capsule in capsules for line in _visuals(capsule)]
    return [f"  <link{attributes(name=name)}>", *visuals, "  </link>"]


def _visuals(capsule: Capsule) -> list[str]:
    """A ball at either end, and a cylinder between them."""
    start, end = np.array(capsule.start), np.array(capsule.end)
    length = float(np.linalg.norm(end - start))
    ball = f"<sphere{attributes(radius=capsule.radius)}/>"
    lines = [_visual(start, np.zeros(3), ball)]
    if length > 0.0:
        x, y, z = (end - start) / length
        lean = np.array([0.0, math.acos(min(max(z, -1.0), 1.0)), math.atan2(y, x)])  # from the z axis
        tube = f"<cylinder{attributes(radius=capsule.radius, length=length)}/>"
        lines += [_visual(end, np.zeros(3), ball), _visual((start + end) / 2.0, lean, tube)]
    return lines


def _visual(origin: Array, angles: Array, shape: str) -> str:
    return f"    <visual><origin{attributes(xyz=origin, rpy=angles)}/><geometry>{shape}</geometry></visual>"


def _sticks(robot: Robot) -> tuple[Capsule, ...]:
    """From the origin of each link, or of the base, to the joints on it."""
    longest = max((float(np.linalg.norm(joint.origin)) for joint in robot.joints), default=0.0)
    radius = max(_THIN * longest, _SMALLEST)
    nowhere: Vector3 = (0.0, 0.0, 0.0)
    last = set(range(robot.n_links)) - {joint.parent for joint in robot.joints}
    between = [Capsule(joint.name, joint.parent, nowhere, joint.origin, radius) for joint in robot.joints]
    ends = [Capsule(robot.joints[index].name, index, nowhere, nowhere, radius) for index in sorted(last)]
    return tuple(between + ends)
