"""A robot's description for viewers: a URDF of how it moves, its links as capsules, and the XML text of any URDF."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

import numpy as np

from jointbench.arrays import Array, Vector3
from jointbench.model import Capsule, Joint, Robot

_THIN = 0.02
"""Radius of a link of unknown room, as a share of the robot's longest distance between joints."""

_SMALLEST = 0.005
"""The same at least [m]."""


def numbers(values: Iterable[float]) -> str:
    """The values with all their digits, a space between them.

    >>> numbers([0.1, -0.0, 2])
    '0.1 0 2'
    """
    return " ".join(f"{float(value) + 0.0!r}".removesuffix(".0") for value in values)


def attributes(**values: str | float | Iterable[float]) -> str:
    r"""name="value" of each, a space before it; a name that Python keeps for itself has an underscore behind it.

    >>> attributes(name='a "b"', type_="fixed", xyz=[1, 0.5])
    ' name=\'a "b"\' type="fixed" xyz="1 0.5"'
    """
    return "".join(f" {name.rstrip('_')}={quoteattr(_text(value))}" for name, value in values.items())


def comment(text: str) -> str:
    """A comment; two hyphens would end it.

    >>> comment("2021--2024")
    '<!-- 2021- -2024 -->'
    """
    return f"<!-- {re.sub('-(?=-)', '- ', text)} -->"


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """Angles [rad] about fixed x, y, z axes of a rotation Rz(yaw) Ry(pitch) Rx(roll).

    Any yaw would do where the pitch is a right angle; what is left after it is taken off gives the others.
    """
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    cosine, sine = math.cos(yaw), math.sin(yaw)
    rest = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw


def _text(value: str | float | Iterable[float]) -> str:
    if isinstance(value, str):
        return value
    return numbers([value] if isinstance(value, int | float) else value)


def base_name(robot: Robot) -> str:
    """Name of the link that everything hangs on."""
    if robot.base_link is not None:
        return robot.base_link.name
    still = [frame for frame in robot.frames if frame.joint < 0]
    root = [frame for frame in still if np.array_equal(frame.rotation, np.eye(3)) and not any(frame.origin)]
    taken = {joint.link.name for joint in robot.joints} | {frame.name for frame in robot.frames}
    return root[0].name if root else next(name for name in ("base", "base_link", "world_base") if name not in taken)


def moving_urdf(robot: Robot) -> str:
    """The URDF's text.

    Links are the capsules of the robot's file; where it has none, sticks from each joint to those that it carries.
    """
    base = base_name(robot)
    capsules = robot.capsules or _sticks(robot)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot{attributes(name=robot.name)}>"]
    lines += _link(base, [capsule for capsule in capsules if capsule.joint < 0])
    for index, joint in enumerate(robot.joints):
        carrier = robot.joints[joint.parent].link.name if joint.parent >= 0 else base
        lines += _link(joint.link.name, [capsule for capsule in capsules if capsule.joint == index])
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
    """Return capsules from the origin of each link, or of the base, to the joints on it."""
    longest = max((float(np.linalg.norm(joint.origin)) for joint in robot.joints), default=0.0)
    radius = max(_THIN * longest, _SMALLEST)
    nowhere: Vector3 = (0.0, 0.0, 0.0)
    last = set(range(robot.n_links)) - {joint.parent for joint in robot.joints}
    between = [Capsule(joint.name, joint.parent, nowhere, joint.origin, radius) for joint in robot.joints]
    ends = [Capsule(robot.joints[index].name, index, nowhere, nowhere, radius) for index in sorted(last)]
    return tuple(between + ends)
