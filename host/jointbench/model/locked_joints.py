"""Robots some of whose joints are held still: what they carry becomes part of the link that carries them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import scipy

from jointbench.arrays import Array, Vector3
from jointbench.errors import RobotError
from jointbench.model.joint import CORNERS, Capsule, Joint, PlacedLink, as_matrix, combine_links
from jointbench.model.robot import Frame, Robot

LOCK = "lock="
"""Begins the locked joints in the reference of a robot: "arm.urdf:lock=wheel,finger=0.01"."""

_Place = tuple[int, Array, Array]
"""Index of the joint whose link a body is part of, -1 for the base, and the body's rotation and origin [m] there."""


def with_locked(robot: Robot, positions: Mapping[str, float | None]) -> Robot:
    """Return the robot with joints that are held still; the links behind them are parts of those before them.

    Joints that mimic a locked one are locked with it. A link's name stays that of a frame. What stands still on a fixed
    base is no longer part of the model.

    Args:
        robot: with all of its joints.
        positions: of the joints to lock [rad or m], None for their home.

    Returns:
        Another robot of the same name, whose `locked` says which joints are held where.

    Raises:
        RobotError: there is no such joint, it mimics another one, all joints are locked, or motors or compensations
            are shared with joints that are not.

    >>> from jointbench.model import load_robot
    >>> with_locked(load_robot("cobot6"), {"j6": 0.1}).joint_names
    ('j1', 'j2', 'j3', 'j4', 'j5')
    """
    held = _held(robot, positions)
    if not held:
        return robot
    names = {joint.name for joint in robot.joints} - {robot.joints[i].name for i in held}
    _check_shared(robot, names)
    places: list[_Place] = []
    kept: list[Joint] = []
    new_index: dict[int, int] = {}
    parts: dict[int, list[PlacedLink]] = {}
    frames: list[Frame] = []
    for i, joint in enumerate(robot.joints):
        carrier, rotation, origin = places[joint.parent] if joint.parent >= 0 else (-1, np.eye(3), np.zeros(3))
        turn, shift = joint.placement
        rotation, origin = rotation @ turn, origin + rotation @ shift
        if i not in held:
            new_index[i] = len(kept)
            places.append((len(kept), np.eye(3), np.zeros(3)))
            kept.append(replace(joint, parent=carrier, rotation=as_matrix(rotation), origin=_vector(origin)))
            continue
        motion = np.array(joint.axis) * held[i]
        if joint.kind == "revolute":
            rotation = rotation @ scipy.spatial.transform.Rotation.from_rotvec(motion).as_matrix()
        else:
            origin = origin + rotation @ motion
        places.append((carrier, rotation, origin))
        parts.setdefault(carrier, []).append(PlacedLink(joint.link, as_matrix(rotation), _vector(origin)))
        if joint.link.name not in {frame.name for frame in robot.frames}:
            frames.append(Frame(joint.link.name, carrier, as_matrix(rotation), _vector(origin)))
    joints = tuple(
        replace(
            joint,
            link=combine_links(joint.link, parts.get(k, ())),
            mimic=joint.mimic and replace(joint.mimic, joint=new_index[joint.mimic.joint]),
        )
        for k, joint in enumerate(kept)
    )
    free = [k for k, joint in enumerate(robot.independent_joints) if joint.name in names]
    links = {joint.link.name for joint in joints}
    kinds = [(kind, tuple(axis for axis in kind.links if axis.link in links)) for kind in robot.link_kinds]
    gone = [repr(robot.joints[i].name) for i in held]
    return replace(
        robot,
        joints=joints,
        drives=tuple(robot.drives[k] for k in free),
        couplings=tuple(coupling for coupling in robot.couplings if names.issuperset(coupling.joints)),
        home=tuple(robot.home[k] for k in free),
        frames=(*(_moved_frame(frame, places) for frame in robot.frames), *frames),
        capsules=tuple(_moved_capsule(capsule, places) for capsule in robot.capsules),
        base_link=robot.base_link and combine_links(robot.base_link, parts.get(-1, ())),
        feet=tuple(
            replace(
                foot,
                joint=_place(foot.joint, places)[0],
                corners=tuple(_moved(corner, _place(foot.joint, places)) for corner in foot.corners[: len(CORNERS)]),
            )
            for foot in robot.feet
        ),
        link_kinds=tuple(replace(kind, links=axes) for kind, axes in kinds if axes),
        compensations=tuple(each for each in robot.compensations if names.issuperset(each.joints)),
        assumptions=tuple(text for text in robot.assumptions if not any(f"joint {name}" in text for name in gone)),
        locked=(
            *robot.locked,
            *((joint.name, held[i]) for i, joint in enumerate(robot.joints) if joint.name in positions),
        ),
    )


def lock_reference(locked: Mapping[str, float | None]) -> str:
    """Return the end of a robot's reference that locks joints: ":lock=wheel,finger=0.01"; empty for none."""
    parts = [name if position is None else f"{name}={position:.12g}" for name, position in locked.items()]
    return f":{LOCK}{','.join(parts)}" if parts else ""


def read_locks(text: str) -> dict[str, float | None]:
    """Read the locked joints of a reference, or of options: "wheel,finger=0.01".

    Raises:
        RobotError: a name is missing or there twice, or a position is no number.

    >>> read_locks("wheel,finger=0.01")
    {'wheel': None, 'finger': 0.01}
    """
    locked: dict[str, float | None] = {}
    for part in text.split(","):
        name, given, position = part.strip().partition("=")
        try:
            value = float(position) if given else None
        except ValueError:
            value = math.nan
        if not name or name in locked or (value is not None and not math.isfinite(value)):
            raise RobotError(
                f"locked joints {text!r}: {part!r} is none; give names with commas between them, each once, and with "
                f"=POSITION [rad or m] where it is not the home position: wheel,finger=0.01"
            )
        locked[name] = value
    return locked


def _held(robot: Robot, positions: Mapping[str, float | None]) -> dict[int, float]:
    """Index and position [rad or m] of each joint that is held, those that mimic locked ones among them."""
    homes = dict(zip(robot.joint_names, robot.home, strict=True))
    index = {joint.name: i for i, joint in enumerate(robot.joints)}
    held: dict[int, float] = {}
    for name, position in positions.items():
        if name not in homes:
            is_mimic = name in index
            reason = "mimics another one; lock that one" if is_mimic else "is none of its joints"
            raise RobotError(
                f"robot {robot.name!r}: joint {name!r} cannot be locked, it {reason}; its joints: {', '.join(homes)}"
            )
        held[index[name]] = homes[name] if position is None else position
    if len(held) == robot.n_joints:
        raise RobotError(
            f"robot {robot.name!r}: all of its {robot.n_joints} joints are locked; leave one free at least"
        )
    for i, joint in enumerate(robot.joints):
        if joint.mimic is not None and joint.mimic.joint in held:
            held[i] = joint.mimic.factor * held[joint.mimic.joint] + joint.mimic.offset
    return held


def _check_shared(robot: Robot, free: set[str]) -> None:
    """Refuse to lock one of the joints that share motors or a compensation."""
    shared = [(f"coupling {coupling.name!r}", coupling.joints) for coupling in robot.couplings]
    shared += [(f"compensation {each.name!r}", each.joints) for each in robot.compensations]
    for what, joints in shared:
        if 0 < len(free.intersection(joints)) < len(joints):
            raise RobotError(f"robot {robot.name!r}: {what} is of joints {', '.join(joints)}; lock all of them or none")


def _place(joint: int, places: list[_Place]) -> _Place:
    return places[joint] if joint >= 0 else (-1, np.eye(3), np.zeros(3))


def _moved(point: Vector3, place: _Place) -> Vector3:
    _, rotation, origin = place
    return _vector(origin + rotation @ np.array(point))


def _moved_frame(frame: Frame, places: list[_Place]) -> Frame:
    carrier, rotation, _ = place = _place(frame.joint, places)
    return Frame(frame.name, carrier, as_matrix(rotation @ np.array(frame.rotation)), _moved(frame.origin, place))


def _moved_capsule(capsule: Capsule, places: list[_Place]) -> Capsule:
    place = _place(capsule.joint, places)
    return replace(capsule, joint=place[0], start=_moved(capsule.start, place), end=_moved(capsule.end, place))


def _vector(array: Array) -> Vector3:
    x, y, z = array.tolist()
    return x, y, z
