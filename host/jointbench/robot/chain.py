"""Chains of modules: an arm of which only the first joints are there, as one that can be put together otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jointbench.errors import NoSuchChain
from jointbench.robot.link_kind import LinkKind
from jointbench.robot.robot import Robot

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
        NoSuchChain: the number is not one of these, the robot branches, or a coupling, a compensation or a joint that
            mimics another is cut through.

    >>> from jointbench.robot import load_robot
    >>> chain_of(load_robot("modular7"), 3).joint_names
    ('j1', 'j2', 'j3')
    """
    n = _whole(robot, modules)
    for i, joint in enumerate(robot.joints):
        if joint.parent != i - 1:
            raise NoSuchChain(
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
        raise NoSuchChain(
            f"robot {robot.name!r} has {robot.n_joints} joints, and a chain of {text} of them is none; "
            f"give a whole number from 1 to {robot.n_joints}"
        )
    return int(text)


def _check_whole(robot: Robot, n: int, kept: set[str], what: str, joints: Iterable[str]) -> None:
    """Refuse to part joints that move together."""
    here = [joint in kept for joint in joints]
    if any(here) and not all(here):
        raise NoSuchChain(f"a chain of {n} joints of robot {robot.name!r} cuts through {what}; keep or leave all of it")
