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
from jointbench.model.joint import Joint, Link, LinkKind, PlacedLink, combine_links
from jointbench.model.robot import Robot

SUFFIXES = (".toml", ".urdf")
"""File name extensions of robot files."""


def chain_of(robot: Robot, modules: int | str) -> Robot:
    """Return the robot of the first joints of a serial arm, each with the link it moves; all behind them is taken off.

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
    n = _chain_length(robot, modules)
    for i, joint in enumerate(robot.joints):
        if joint.parent != i - 1:
            raise RobotError(
                f"robot {robot.name!r} branches at joint {joint.name!r}, so it is no chain whose end could be taken off"
            )
    independent = [i for i, joint in enumerate(robot.joints) if joint.mimic is None]
    end = (*independent, len(robot.joints))[n]
    joints, removed_joints = robot.joints[:end], robot.joints[end:]
    kept_joints = {joint.name for joint in joints}
    for coupling in robot.couplings:
        _check_not_cut(robot, n, kept_joints, f"coupling {coupling.name!r}", coupling.joints)
    for compensation in robot.compensations:
        _check_not_cut(robot, n, kept_joints, f"compensation {compensation.name!r}", compensation.joints)
    for joint in robot.joints:
        if joint.mimic is not None:
            follows = robot.joints[joint.mimic.joint].name
            _check_not_cut(
                robot, n, kept_joints, f"joint {joint.name!r}, which mimics {follows!r},", (joint.name, follows)
            )
    frames = tuple(frame for frame in robot.frames if frame.joint < end)
    links = {joint.link.name for joint in joints} | {frame.name for frame in frames}
    removed_names = [repr(joint.name) for joint in removed_joints] + [repr(joint.link.name) for joint in removed_joints]
    return replace(
        robot,
        name=f"{split_reference(robot.name)[0]}:{n}",
        description=f"{robot.description.rstrip('.')}; cut behind joint {joints[-1].name!r}.",
        joints=joints,
        drives=robot.drives[:n],
        couplings=tuple(coupling for coupling in robot.couplings if kept_joints.issuperset(coupling.joints)),
        home=robot.home[:n],
        frames=frames,
        capsules=tuple(capsule for capsule in robot.capsules if capsule.joint < end),
        assumptions=tuple(text for text in robot.assumptions if not any(name in text for name in removed_names)),
        feet=tuple(foot for foot in robot.feet if foot.joint < end),
        link_kinds=_remaining_kinds(robot, {joint.link.name for joint in removed_joints}),
        compensations=tuple(
            compensation for compensation in robot.compensations if kept_joints.issuperset(compensation.joints)
        ),
        part_faults=tuple(fault for fault in robot.part_faults if fault[0] in links),
    )


def split_reference(reference: str) -> tuple[str, str | None]:
    """Split a reference into a robot's name or path and the length of its chain: "modular7:3" is ("modular7", "3").

    >>> split_reference("arms/left.toml")
    ('arms/left.toml', None)
    """
    name, _, modules = reference.rpartition(":")
    is_path = reference.endswith(SUFFIXES) or set(modules) & set("/\\")
    return (name, modules) if name and not is_path else (reference, None)


def _remaining_kinds(robot: Robot, removed_links: set[str]) -> tuple[LinkKind, ...]:
    """Return the link kinds without removed links, and without kinds of which all are removed."""
    remaining = [
        (kind, tuple(axis for axis in kind.links if axis.link not in removed_links)) for kind in robot.link_kinds
    ]
    return tuple(replace(kind, links=links) for kind, links in remaining if links)


def _chain_length(robot: Robot, modules: int | str) -> int:
    text = str(modules)
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and 1 <= int(text) <= robot.n_joints):
        raise RobotError(
            f"robot {robot.name!r} has {robot.n_joints} joints, and a chain of {text} of them is none; "
            f"give a whole number from 1 to {robot.n_joints}"
        )
    return int(text)


def _check_not_cut(robot: Robot, n: int, kept_joints: set[str], mechanism: str, joints: Iterable[str]) -> None:
    """Refuse to separate joints that move together."""
    is_kept = [joint in kept_joints for joint in joints]
    if any(is_kept) and not all(is_kept):
        raise RobotError(
            f"a chain of {n} joints of robot {robot.name!r} cuts through {mechanism}; keep or leave all of it"
        )


BASE_JOINTS = 6

_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_NEGLECTED_LINKS = ("x", "y", "z", "roll", "pitch")

_freed: dict[int, Robot] = {}


def on_free_base(robot: Robot) -> Robot:
    """Return the robot on six more joints that carry its base link, made once for each robot object.

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
    joint_names = {joint.name for joint in robot.joints}
    name = f"link {base_link.name}" if base_link.name in joint_names else base_link.name
    neglected_links = [Link(f"{name}.{suffix}", neglected=True) for suffix in _NEGLECTED_LINKS]
    base_joints = tuple(
        _base_joint(i, link.name, link) for i, link in enumerate([*neglected_links, replace(base_link, name=name)])
    )
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
        joints=base_joints + joints,
        drives=tuple(Drive.none(joint.name) for joint in base_joints) + robot.drives,
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
    """Return the robot with these torques beside those of its links and drives, and beside the compensations it has.

    Raises:
        RobotError: a name is that of a joint, a coupling or another compensation; or the robot has no such joint, or it
            mimics another one.

    >>> from jointbench.model import load_robot, spring
    >>> robot = with_compensations(load_robot("cobot6"), spring("elbow_spring", "j3"))
    >>> robot.compensations[0].names
    ('elbow_spring.stiffness', 'elbow_spring.preload')
    """
    used_names = [*(joint.name for joint in robot.joints), *(coupling.name for coupling in robot.couplings)]
    for compensation in (*robot.compensations, *compensations):
        if compensation.name in used_names:
            raise RobotError(
                f"compensation {compensation.name!r} of robot {robot.name!r} has the name of a joint, a coupling or "
                f"another compensation; choose another"
            )
        used_names.append(compensation.name)
        for joint in compensation.joints:
            robot.joint_index(joint)
    return replace(robot, compensations=(*robot.compensations, *compensations))


def with_passive(robot: Robot, *joints: str, neglected: bool = False) -> Robot:
    """Return the robot with passive joints: their positions are measured, their torques have no model.

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
    """Return the robot with a body fixed to one of its links.

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
    loaded = combine_links(link, [PlacedLink(payload, frame.rotation, frame.origin)])
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
