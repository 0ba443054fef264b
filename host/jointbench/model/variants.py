"""Robots made of a robot: its first joints, a free base, with springs, passive joints, a payload, or smaller limits."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from jointbench.arrays import IDENTITY, Matrix3, Vector3
from jointbench.errors import ExcitationError, FileError, RobotError
from jointbench.model.compensation import Compensation
from jointbench.model.drive import Drive
from jointbench.model.joint import Joint, Link, LinkKind, Placed, joined
from jointbench.model.robot import Robot

SUFFIXES = (".toml", ".urdf")
"""Of robot files."""


def chain_of(robot: Robot, modules: int | str) -> Robot:
    """The robot of the first joints of a serial arm, each with the link it moves; all behind them is taken off.

    Args:
        robot: a chain: each joint sits on the one before it.
        modules: how many of its independent joints are left, from 1 to all; or that number as it is written.

    Returns:
        Another robot, named "NAME:MODULES", which is also what `load_robot` knows it by.

    Raises:
        RobotError: the number is not one of these, the robot branches, or a coupling, a compensation or a joint that
            mimics another is cut through.

    >>> from jointbench.model import load_robot
    >>> chain_of(load_robot("modular7"), 3).joint_names
    ('j1', 'j2', 'j3')
    """
    n = _whole(robot, modules)
    for i, joint in enumerate(robot.joints):
        if joint.parent != i - 1:
            raise RobotError(
                f"robot {robot.name!r} branches at joint {joint.name!r}, so it is no chain whose end could be taken off"
            )
    independent = [i for i, joint in enumerate(robot.joints) if joint.mimic is None]
    end = (*independent, len(robot.joints))[n]
    joints, gone = robot.joints[:end], robot.joints[end:]
    kept = {joint.name for joint in joints}
    for coupling in robot.couplings:
        _check_whole(robot, n, kept, f"coupling {coupling.name!r}", coupling.joints)
    for each in robot.compensations:
        _check_whole(robot, n, kept, f"compensation {each.name!r}", each.joints)
    for joint in robot.joints:
        if joint.mimic is not None:
            follows = robot.joints[joint.mimic.joint].name
            _check_whole(robot, n, kept, f"joint {joint.name!r}, which mimics {follows!r},", (joint.name, follows))
    frames = tuple(frame for frame in robot.frames if frame.joint < end)
    links = {joint.link.name for joint in joints} | {frame.name for frame in frames}
    lost = [repr(joint.name) for joint in gone] + [repr(joint.link.name) for joint in gone]
    return replace(
        robot,
        name=f"{split_reference(robot.name)[0]}:{n}",
        description=f"{robot.description.rstrip('.')}; cut behind joint {joints[-1].name!r}.",
        joints=joints,
        drives=robot.drives[:n],
        couplings=tuple(coupling for coupling in robot.couplings if kept.issuperset(coupling.joints)),
        home=robot.home[:n],
        frames=frames,
        capsules=tuple(capsule for capsule in robot.capsules if capsule.joint < end),
        assumptions=tuple(each for each in robot.assumptions if not any(name in each for name in lost)),
        feet=tuple(foot for foot in robot.feet if foot.joint < end),
        link_kinds=_kinds_left(robot, {joint.link.name for joint in gone}),
        compensations=tuple(each for each in robot.compensations if kept.issuperset(each.joints)),
        part_faults=tuple(fault for fault in robot.part_faults if fault[0] in links),
    )


def split_reference(reference: str) -> tuple[str, str | None]:
    """A robot's name or path, and what is written behind it of its chain: "modular7:3" is ("modular7", "3").

    >>> split_reference("arms/left.toml")
    ('arms/left.toml', None)
    """
    name, _, modules = reference.rpartition(":")
    is_path = reference.endswith(SUFFIXES) or set(modules) & set("/\\")
    return (name, modules) if name and not is_path else (reference, None)


def _kinds_left(robot: Robot, gone: set[str]) -> tuple[LinkKind, ...]:
    """Link kinds without the links that are gone, and none of which all links are."""
    left = [(kind, tuple(axis for axis in kind.links if axis.link not in gone)) for kind in robot.link_kinds]
    return tuple(replace(kind, links=links) for kind, links in left if links)


def _whole(robot: Robot, modules: int | str) -> int:
    text = str(modules)
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and 1 <= int(text) <= robot.n_joints):
        raise RobotError(
            f"robot {robot.name!r} has {robot.n_joints} joints, and a chain of {text} of them is none; "
            f"give a whole number from 1 to {robot.n_joints}"
        )
    return int(text)


def _check_whole(robot: Robot, n: int, kept: set[str], what: str, joints: Iterable[str]) -> None:
    """Refuse to part joints that move together."""
    here = [joint in kept for joint in joints]
    if any(here) and not all(here):
        raise RobotError(f"a chain of {n} joints of robot {robot.name!r} cuts through {what}; keep or leave all of it")


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
        RobotError: the robot's base does not move.
    """
    if robot.base_link is None:
        raise RobotError(
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


def with_compensations(robot: Robot, *compensations: Compensation) -> Robot:
    """The robot with these torques beside those of its links and drives, and beside the compensations it has.

    Raises:
        RobotError: a name is that of a joint, a coupling or another compensation; or the robot has no such joint, or it
            mimics another one.

    >>> from jointbench.model import load_robot, spring
    >>> robot = with_compensations(load_robot("cobot6"), spring("elbow_spring", "j3"))
    >>> robot.compensations[0].names
    ('elbow_spring.stiffness', 'elbow_spring.preload')
    """
    taken = [*(joint.name for joint in robot.joints), *(coupling.name for coupling in robot.couplings)]
    for each in (*robot.compensations, *compensations):
        if each.name in taken:
            raise RobotError(
                f"compensation {each.name!r} of robot {robot.name!r} has the name of a joint, a coupling or another "
                f"compensation; choose another"
            )
        taken.append(each.name)
        for joint in each.joints:
            robot.joint_index(joint)
    return replace(robot, compensations=(*robot.compensations, *compensations))


def with_passive(robot: Robot, *joints: str, neglected: bool = False) -> Robot:
    """The robot with passive joints: their positions are measured, their torques have no model.

    They move in kinematics and dynamics like any other; but they contribute no rows to a regressor, and so no
    parameters of their drives.

    Args:
        robot: from any file; a robot file can also say `passive = true` itself.
        joints: names of independent joints.
        neglected: whether what moves with them, up to the next joint, is taken for nothing: then it has no parameters.

    Raises:
        RobotError: the robot has no such joint.

    >>> from jointbench.model import load_robot
    >>> with_passive(load_robot("cobot6"), "j6").modelled.tolist()
    [True, True, True, True, True, False]
    """
    named = {robot.independent_joints[robot.joint_index(name)].name for name in joints}
    changed = tuple(
        replace(joint, passive=True, link=Link(joint.link.name, neglected=True) if neglected else joint.link)
        if joint.name in named
        else joint
        for joint in robot.joints
    )
    return replace(robot, joints=changed)


_POINT: Matrix3 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def with_payload(
    robot: Robot, name: str, on: str, mass: float, center_of_mass: Vector3, inertia: Matrix3 = _POINT
) -> Robot:
    """The robot with a body fixed to one of its links.

    Args:
        robot: without it.
        name: of the payload.
        on: name of the frame it is fixed to: a link, or a link that is fixed to another.
        mass: [kg].
        center_of_mass: in that frame [m].
        inertia: about the centre of mass, in the axes of that frame [kg·m²]; none for a point mass.

    Returns:
        Another robot whose link is link and payload in one; its name stays.

    Raises:
        FileError: there is no such frame, it is the base's, its link has no inertia to add to, or no body has such
            a mass or inertia.
    """
    frame = robot.frame(on)
    about = f"payload {name!r} of {robot.name!r}"
    payload = Link(name, mass, center_of_mass, inertia)
    fault = payload.physical_fault if np.any(inertia) or mass <= 0.0 else None
    if fault:
        raise FileError(f"{about}: {fault}")
    link = robot.base_link if frame.joint < 0 else robot.joints[frame.joint].link
    if link is None:
        raise FileError(f"{about}: frame {on!r} is the base's, which does not move; name one of a link that does")
    if link.mass is None:
        raise FileError(f"{about}: link {link.name!r} has no inertia to add it to; give its mass first")
    loaded = joined(link, [Placed(payload, frame.rotation, frame.origin)])
    if link.physical_fault:  # the payload must not cover it
        robot = replace(robot, part_faults=(*robot.part_faults, (link.name, link.physical_fault)))
    if frame.joint < 0:
        return replace(robot, base_link=loaded)
    joints = list(robot.joints)
    joints[frame.joint] = replace(joints[frame.joint], link=loaded)
    return replace(robot, joints=tuple(joints))


def with_reduced_limits(robot: Robot, speed: float = 1.0, reach: float = 1.0) -> Robot:
    """Return the robot with a share of its limits, those of torque and current as they are: gravity stays the same.

    Args:
        robot: the robot.
        speed: share of the limits of velocity, acceleration and jerk, above 0 to 1.
        reach: share of the way from home to either position limit, above 0 to 1.

    Raises:
        ExcitationError: a share is not above 0 and at most 1.
    """
    for name, share in (("speed", speed), ("range", reach)):
        if not 0.0 < share <= 1.0:
            raise ExcitationError(f"{name} = {share:g} must be a share of the robot's limits, above 0 and at most 1")
    homes = iter(robot.home)
    joints = list(robot.joints)
    for index, joint in enumerate(joints):
        if joint.mimic is not None:
            continue
        home, (low, high) = next(homes), joint.position_limits
        joints[index] = replace(
            joint,
            position_limits=(home + reach * (low - home), home + reach * (high - home)),
            velocity_limit=speed * joint.velocity_limit,
            acceleration_limit=speed * joint.acceleration_limit,
            jerk_limit=None if joint.jerk_limit is None else speed * joint.jerk_limit,
        )
    return replace(robot, joints=tuple(joints))
