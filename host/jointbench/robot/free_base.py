"""A base that is free to move, as a chain of joints that nothing drives."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np

from jointbench.arrays import IDENTITY
from jointbench.errors import FixedBase
from jointbench.robot.drive import Drive
from jointbench.robot.joint import Joint
from jointbench.robot.link import Link
from jointbench.robot.robot import Robot

BASE_JOINTS = 6

_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_BEFORE = ("x", "y", "z", "roll", "pitch")

_freed: dict[int, Robot] = {}


def on_free_base(robot: Robot) -> Robot:
    """The robot on six more joints that carry its base link, made once for each robot object.

    Three slide along and three turn about the base's axes x, y, z in this order. Nothing drives them, the five links
    between them are neglected, and the last of them carries the base's own. There is no gravity: it belongs to the
    motion of these joints.

    Raises:
        FixedBase: the robot's base does not move.
    """
    if robot.base_link is None:
        raise FixedBase(
            f"the base of robot {robot.name!r} does not move; set floating_base = true in its file, or load its .urdf "
            f"with floating_base=True"
        )
    # By identity, as a robot's hash goes through all of its numbers.
    key = id(robot)
    if key not in _freed:
        _freed[key] = _on_free_base(robot, robot.base_link)
        weakref.finalize(robot, _freed.pop, key, None)
    return _freed[key]


def _on_free_base(robot: Robot, base_link: Link) -> Robot:
    # A link may be called like a joint, which two joints may not.
    taken = {joint.name for joint in robot.joints}
    name = f"link {base_link.name}" if base_link.name in taken else base_link.name
    between = [Link(f"{name}.{each}", neglected=True) for each in _BEFORE]
    six = tuple(_base_joint(i, link.name, link) for i, link in enumerate([*between, replace(base_link, name=name)]))
    joints = tuple(
        replace(
            joint,
            parent=joint.parent + BASE_JOINTS,
            mimic=joint.mimic and replace(joint.mimic, joint=joint.mimic.joint + BASE_JOINTS),
        )
        for joint in robot.joints
    )
    return replace(
        robot,
        joints=six + joints,
        drives=tuple(Drive.none(joint.name) for joint in six) + robot.drives,
        gravity=(0.0, 0.0, 0.0),
        home=(0.0,) * BASE_JOINTS + robot.home,
        frames=tuple(replace(frame, joint=frame.joint + BASE_JOINTS) for frame in robot.frames),
        capsules=tuple(replace(capsule, joint=capsule.joint + BASE_JOINTS) for capsule in robot.capsules),
        feet=tuple(replace(foot, joint=foot.joint + BASE_JOINTS) for foot in robot.feet),
        base_link=None,
    )


def _base_joint(i: int, name: str, link: Link) -> Joint:
    return Joint(
        name=name,
        kind="prismatic" if i < len(_AXES) else "revolute",
        parent=i - 1,
        rotation=IDENTITY,
        origin=(0.0, 0.0, 0.0),
        position_limits=(-np.inf, np.inf),
        velocity_limit=np.inf,
        acceleration_limit=np.inf,
        torque_limit=np.inf,
        link=link,
        axis=_AXES[i % len(_AXES)],
    )
