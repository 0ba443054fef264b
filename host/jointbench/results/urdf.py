"""URDF: a robot's own file with new inertials, or one written from what the host knows of the robot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.files import bytes_of, write_file
from jointbench.model import Joint, Link, Robot, forward_kinematics, load_robot, with_locked
from jointbench.model.joint import as_matrix
from jointbench.results.full_model import FullModel, JointDrive
from jointbench.results.robot_description import attributes, base_name, comment, roll_pitch_yaw

_DIGITS = 1e-6
"""How far lengths [m] and directions may be from the model's: URDFs are written with six digits and more."""

_POSES = 4
"""Random positions at which the links are compared."""

_SAME = 1e-12
"""Where a frame is another one only by rounding."""

_INDENT = "  "


def links_in_frames_of(theirs: Robot, model: FullModel, file: str, zeros: ArrayLike = 0.0) -> dict[str, Link]:
    """The links by the names that the file has for them, and in its frames.

    Those may lie otherwise on the links than the model's, as where one follows Denavit and Hartenberg; but every link
    must go where the model's goes, at all positions. Then the torques are the same. Only of a last joint this does not
    tell where its zero is: nothing behind it would go elsewhere.

    Args:
        theirs: the robot as the file has it; its joints are matched by name, or in order where the names are others.
        model: what is known of it.
        file: its name, for errors.
        zeros: positions of the file's joints where the model's are zero [rad or m], in the model's order,
            shape (n_joints,), or one for all.

    Raises:
        FitError: a link goes elsewhere, or no body can have a link's inertia.
        ShapeError: there are not as many zeros as joints.
    """
    ours = model.robot
    if ours.n_links != theirs.n_links or ours.n_joints != theirs.n_joints:
        raise FitError(
            f"{file} has {theirs.n_links} moving joints, and the model of {ours.name!r} has {ours.n_links}; "
            f"give the URDF of the robot that was identified"
        )
    shift = np.asarray(zeros, dtype=np.float64)
    if shift.shape not in ((), (ours.n_joints,)):
        raise ShapeError(f"zeros has shape {shift.shape}; robot {ours.name!r} needs ({ours.n_joints},)")
    order, coordinates = _order(theirs.joints, ours.joints), _order(theirs.independent_joints, ours.independent_joints)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (_POSES, ours.n_joints))
    rotations, origins = forward_kinematics(ours, q)
    others, places = forward_kinematics(theirs, (q + shift)[:, coordinates])
    links: dict[str, Link] = {}
    for joint, i, k in zip(theirs.joints, range(theirs.n_links), order, strict=True):
        back = rotations[:, k].transpose(0, 2, 1)
        turns, arms = back @ others[:, i], np.einsum("kab,kb->ka", back, places[:, i] - origins[:, k])
        if max(float(np.ptp(turns, axis=0).max()), float(np.ptp(arms, axis=0).max())) > _DIGITS:
            raise FitError(
                f"{file}: joint {joint.name!r} does not move as {ours.joints[k].name!r} of {ours.name!r} does; "
                f"give the URDF of the robot that was identified, with the same base frame, and its "
                f"zeros where they are others"
            )
        links[joint.link.name] = _seen_from(model.links[k], turns[0], arms[0])
    return links


def _order(theirs: tuple[Joint, ...], ours: tuple[Joint, ...]) -> list[int]:
    """Return which of ours each of theirs is: by their names, or where these are others, in order."""
    names = [joint.name for joint in ours]
    same = {joint.name for joint in theirs} == set(names)
    return [names.index(joint.name) if same else i for i, joint in enumerate(theirs)]


def _seen_from(link: Link, turn: Array, arm: Array) -> Link:
    """A link in a frame with these axes (columns) and origin in its own."""
    if np.allclose(turn, np.eye(3), rtol=0.0, atol=_SAME) and np.allclose(arm, 0.0, rtol=0.0, atol=_SAME):
        return link  # not a digit of it changes
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        return link
    x, y, z = (turn.T @ (np.array(link.center_of_mass) - arm)).tolist()
    inertia = turn.T @ np.array(link.inertia_about_center_of_mass) @ turn
    return replace(link, center_of_mass=(x, y, z), inertia_about_center_of_mass=as_matrix((inertia + inertia.T) / 2.0))


def with_inertials(model: FullModel, urdf: Path, zeros: ArrayLike = 0.0) -> bytes:
    """The text of a URDF with the model's inertias.

    A link that others are fixed to takes the inertia of all of them; theirs are removed. What does not move keeps what
    it has.

    Args:
        model: of the same kinematics; frames may lie otherwise on the links.
        urdf: the file.
        zeros: positions of its joints where the model's are zero [rad or m], shape (n_joints,), or one for all.

    Raises:
        FitError: no body can have a link's inertia, or the file's kinematics are others.
        ShapeError: there are not as many zeros as joints.
        FileError: the file cannot be read, or is no URDF.
    """
    robot = load_robot(urdf, floating_base=model.robot.base_link is not None)
    robot = with_locked(robot, {name: at for name, at in model.robot.locked if name in robot.joint_names})
    carrying = links_in_frames_of(robot, model, urdf.name, zeros)
    if robot.base_link and model.base_link:
        carrying[robot.base_link.name] = model.base_link
    lowest = 0 if robot.base_link is None else -1
    empty = {frame.name: Link(frame.name) for frame in robot.frames if frame.joint >= lowest}
    data = bytes_of(urdf)
    if b"<robot" not in data:
        raise FitError(f"{urdf.name} is not written in ASCII, UTF-8 or Latin letters; save it as UTF-8")
    return _replaced(data, empty | carrying)


def inertial_lines(link: Link) -> list[str]:
    """The lines of <inertial>; none where a link has no inertia."""
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        return []
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = link.inertia_about_center_of_mass
    return [
        "<inertial>",
        f"{_INDENT}<origin{attributes(xyz=link.center_of_mass, rpy=(0.0, 0.0, 0.0))}/>",
        f"{_INDENT}<mass{attributes(value=link.mass)}/>",
        f"{_INDENT}<inertia{attributes(ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)}/>",
        "</inertial>",
    ]


@dataclass
class _Place:
    """Byte offsets of the end of a link, and of its inertial."""

    end: int = 0
    inertial: tuple[int, int] | None = None


@dataclass
class _Finder:
    data: bytes
    links: dict[str, _Place] = field(default_factory=dict[str, _Place])
    path: list[str] = field(default_factory=list[str])

    def find(self) -> dict[str, _Place]:
        parser = expat.ParserCreate()
        current, begun = "", 0

        def start(tag: str, values: dict[str, str]) -> None:
            nonlocal current, begun
            self.path.append(tag)
            if self.path == ["robot", "link"]:
                current = values["name"].strip()
                self.links[current] = _Place()
            elif self.path == ["robot", "link", "inertial"]:
                begun = parser.CurrentByteIndex

        def end(_: str) -> None:
            at = parser.CurrentByteIndex
            if self.path == ["robot", "link"]:
                self.links[current].end = at
            elif self.path == ["robot", "link", "inertial"]:
                # Behind a tag like <inertial/> there is nothing more of it.
                closing = self.data[at : at + 2] == b"</"
                self.links[current].inertial = begun, self.data.index(b">", at) + 1 if closing else at
            self.path.pop()

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(self.data, True)
        return self.links


def _replaced(data: bytes, links: Mapping[str, Link]) -> bytes:
    newline = "\r\n" if b"\r\n" in data else "\n"
    cuts: list[tuple[int, int, bytes]] = []
    for name, place in _Finder(data).find().items():
        if name not in links:
            continue
        lines = inertial_lines(links[name])
        if place.inertial is not None:
            cuts.append(_instead(data, *place.inertial, lines, newline))
        elif lines:
            cuts.append(_inserted(data, place.end, lines, newline))
    for start, end, text in sorted(cuts, reverse=True):
        data = data[:start] + text + data[end:]
    return data


def _instead(data: bytes, start: int, end: int, lines: list[str], newline: str) -> tuple[int, int, bytes]:
    """Put lines where an inertial is; where there are none, its own line goes with it."""
    before = data[data.rfind(b"\n", 0, start) + 1 : start]
    indent = before if not before.strip() else b""
    if lines:
        return start, end, (newline + indent.decode("ascii")).join(lines).encode("ascii")
    behind = data.find(b"\n", end)
    if before == indent and behind >= 0 and not data[end:behind].strip():
        return start - len(before), behind + 1, b""
    return start, end, b""


def _inserted(data: bytes, end: int, lines: list[str], newline: str) -> tuple[int, int, bytes]:
    """Put lines at the end of a link that has no inertial."""
    before = data[data.rfind(b"\n", 0, end) + 1 : end]
    opened = before[: len(before) - len(before.lstrip())].decode("ascii")
    text = "".join(f"{newline}{opened}{_INDENT}{line}" for line in lines) + newline + opened
    if data[end : end + 2] == b"</":
        start = end - len(before) if not before.strip() else end
        return (start, end, (text.removeprefix(newline) if start < end else text).encode("ascii"))
    # <link name="tip"/> gets an end of its own.
    return end - 2, end, f">{text}</link>".encode("ascii")


def write_urdf(model: FullModel, path: Path, source: Path | None = None, zeros: ArrayLike = 0.0) -> Path:
    """Write a URDF.

    Args:
        model: links and drives.
        path: where it goes.
        source: a URDF of the robot, whose text is kept but for the inertials; None for one from scratch, without
            meshes, which has the friction of the drives.
        zeros: positions of its joints where the model's are zero [rad or m], shape (n_joints,), or one for all.

    Raises:
        FitError: no body can have a link's inertia, or `source` moves otherwise.
        FileError: `source` cannot be read.
    """
    data = urdf_text(model).encode() if source is None else with_inertials(model, source, zeros)
    return write_file(path, data)


def urdf_text(model: FullModel) -> str:
    """A URDF from scratch: links with inertia, joints with limits and friction, frames as links without inertia."""
    robot, base = model.robot, base_name(model.robot)
    name = re.sub(r"[^\w.-]", "-", robot.name)  # that of a chain, "cobot6:2", would be refused on the way back
    lines = ['<?xml version="1.0" encoding="utf-8"?>', comment(_note(robot)), f"<robot{attributes(name=name)}>"]
    lines += _link(base, model.base_link)
    drives = dict(zip(robot.joint_names, model.drives, strict=True))
    for joint, link in zip(robot.joints, model.links, strict=True):
        carrier = robot.joints[joint.parent].link.name if joint.parent >= 0 else base
        lines += _link(link.name, link)
        lines += _joint(robot, joint, carrier, drives.get(joint.name, JointDrive()))
    lines += [comment(f"{_INDENT}{line}".strip()) for line in (*_shared(model), *model.unsaid)]
    known = {base, *(joint.link.name for joint in robot.joints)}
    for frame in robot.frames:
        if frame.name not in known:
            carrier = robot.joints[frame.joint].link.name if frame.joint >= 0 else base
            lines += _link(frame.name, None)
            lines += _fixed(frame.name, carrier, np.array(frame.rotation), np.array(frame.origin))
    return "\n".join([*lines, "</robot>", ""])


def _note(robot: Robot) -> str:
    return f" {robot.name}: written by Jointbench; {robot.source} ".replace("\n", " ").strip()


def _link(name: str, link: Link | None) -> list[str]:
    inertial = inertial_lines(link) if link is not None else []
    if not inertial:
        return [f"{_INDENT}<link{attributes(name=name)}/>"]
    return [
        f"{_INDENT}<link{attributes(name=name)}>",
        *(f"{_INDENT * 2}{line}" for line in inertial),
        f"{_INDENT}</link>",
    ]


def _joint(robot: Robot, joint: Joint, carrier: str, drive: JointDrive) -> list[str]:
    low, high = joint.position_limits
    limit = attributes(
        lower=low, upper=high, velocity=joint.velocity_limit, effort=joint.torque_limit,
        acceleration=joint.acceleration_limit,
    )  # fmt: skip
    inside = [
        f"<parent{attributes(link=carrier)}/>",
        f"<child{attributes(link=joint.link.name)}/>",
        _origin(*joint.placement),
        f"<axis{attributes(xyz=joint.axis)}/>",
        f"<limit{limit}/>",
    ]
    if drive.viscous is not None or drive.coulomb is not None:
        inside.append(f"<dynamics{attributes(damping=drive.viscous or 0.0, friction=drive.coulomb or 0.0)}/>")
    if joint.mimic is not None:
        followed = robot.joints[joint.mimic.joint].name
        inside.append(f"<mimic{attributes(joint=followed, multiplier=joint.mimic.factor, offset=joint.mimic.offset)}/>")
    unsaid = [
        f"{what} {value:.6g}"
        for what, value in (("rotor inertia at the joint", drive.rotor_inertia), ("torque offset", drive.offset))
        if value is not None
    ]
    if unsaid:
        inside.append(comment(f"{', '.join(unsaid)} [SI]: a URDF has no place for it"))
    return [
        f"{_INDENT}<joint{attributes(name=joint.name, type_=joint.kind)}>",
        *(f"{_INDENT * 2}{line}" for line in inside),
        f"{_INDENT}</joint>",
    ]


def _fixed(name: str, carrier: str, rotation: Array, origin: Array) -> list[str]:
    return [
        f"{_INDENT}<joint{attributes(name=f'{name}_fixed', type_='fixed')}>",
        f"{_INDENT * 2}<parent{attributes(link=carrier)}/>",
        f"{_INDENT * 2}<child{attributes(link=name)}/>",
        f"{_INDENT * 2}{_origin(rotation, origin)}",
        f"{_INDENT}</joint>",
    ]


def _origin(rotation: Array, origin: Array) -> str:
    return f"<origin{attributes(xyz=origin, rpy=roll_pitch_yaw(rotation))}/>"


def _shared(model: FullModel) -> list[str]:
    return [
        f"motor of {motor.name!r} is turned by several joints: rotor inertia {motor.rotor_inertia}, viscous "
        f"{motor.viscous}, coulomb {motor.coulomb} [SI]; a URDF has no place for it"
        for motor in model.shared_motors
    ]
