"""URDF: a robot's own file with new inertials, or one written from what the host knows of the robot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.files import write_file
from jointbench.results.full_model import FullModel, JointDrive
from jointbench.results.urdf_inertials import inertial_lines, with_inertials
from jointbench.results.xml_text import attributes, comment, roll_pitch_yaw
from jointbench.robot import Joint, Link, Robot

_INDENT = "  "


def write_urdf(model: FullModel, path: Path, source: Path | None = None, zeros: ArrayLike = 0.0) -> Path:
    """Write a URDF.

    Args:
        model: links and drives.
        path: where it goes.
        source: a URDF of the robot, whose text is kept but for the inertials; None for one from scratch, without
            meshes, which has the friction of the drives.
        zeros: positions of its joints where the model's are zero [rad or m], shape (n_joints,), or one for all.

    Raises:
        ExportError: no body can have a link's inertia, or `source` moves otherwise.
        RobotFileError: `source` cannot be read.
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


def base_name(robot: Robot) -> str:
    """Name of the link that everything hangs on."""
    if robot.base_link is not None:
        return robot.base_link.name
    still = [frame for frame in robot.frames if frame.joint < 0]
    root = [frame for frame in still if np.array_equal(frame.rotation, np.eye(3)) and not any(frame.origin)]
    taken = {joint.link.name for joint in robot.joints} | {frame.name for frame in robot.frames}
    return root[0].name if root else next(name for name in ("base", "base_link", "world_base") if name not in taken)


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
