"""MJCF: bodies, joints and drives as MuJoCo simulates them."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.model import Capsule, Joint, Link
from jointbench.results.full_model import FullModel, JointDrive
from jointbench.results.robot_description import attributes, base_name, comment

_INDENT = "  "
_NEXT_TO_NOTHING = 1e-6
"""Least mass [kg] and inertia [kg·m²] of what moves and has none: it weighs 10 µN."""

_ROUNDING = 1e-9  # of a joint's rotor inertia or friction less that of the motor it shares


def mjcf_text(model: FullModel) -> str:
    """The robot in MuJoCo's format.

    A joint's rotor inertia is its `armature`, its friction `damping` and `frictionloss`; a motor that several joints
    turn is a tendon with the same three; joints that follow others are equality constraints; a base that moves has a
    free joint. Capsules are there to be seen and collide with nothing. Torque offsets are comments.

    Raises:
        FitError: no body can have a link's inertia, no drive its values, or joints have more friction or inertia
            together than each by itself.
    """
    robot = model.robot
    lines = [
        f"<mujoco{attributes(model=robot.name)}>",
        comment(f"{robot.name}: written by Jointbench; {robot.source}"),
        *map(comment, model.unsaid),
        *_compiler(model),
        f"<option{attributes(gravity=robot.gravity)}/>",
        "<worldbody>",
        *_indented(_base(model)),
        "</worldbody>",
        *_section("tendon", _tendons(model)),
        *_section("equality", _equalities(model)),
        *_section("actuator", _actuators(model)),
        "</mujoco>",
    ]
    return "\n".join([lines[0], *_indented(lines[1:-1]), lines[-1], ""])


def _compiler(model: FullModel) -> list[str]:
    """Return how the file is read; MuJoCo wants a body of all that moves, and gets next to none where there is none."""
    usual = 'angle="radian" autolimits="true" inertiafromgeom="false"'
    empty = [link.name for link in model.links if link.mass is None]
    if not empty:
        return [f"<compiler {usual}/>"]
    return [
        comment(f"link {', '.join(empty)}: no inertia of its own; the bounds stand for it"),
        f"<compiler {usual}{attributes(boundmass=_NEXT_TO_NOTHING, boundinertia=_NEXT_TO_NOTHING)}/>",
    ]


def _base(model: FullModel) -> list[str]:
    inside = [*_geoms(model, -1), *_sites(model, -1), *_children(model, -1)]
    if model.base_link is None:
        return inside
    return [
        f"<body{attributes(name=base_name(model.robot))}>",
        f"{_INDENT}<freejoint/>",
        *_indented([*_inertial(model.base_link), *inside]),
        "</body>",
    ]


def _children(model: FullModel, parent: int) -> list[str]:
    children = (i for i, joint in enumerate(model.robot.joints) if joint.parent == parent)
    return [line for i in children for line in _body(model, i)]


def _body(model: FullModel, index: int) -> list[str]:
    joint, link = model.robot.joints[index], model.links[index]
    rotation, origin = joint.placement
    inside = [
        *_inertial(link),
        *_joint(joint, _own_drive(model, joint)),
        *_geoms(model, index),
        *_sites(model, index),
        *_children(model, index),
    ]
    return [
        f"<body{attributes(name=link.name, pos=origin, quat=_quaternion(rotation))}>",
        *_indented(inside),
        "</body>",
    ]


def _own_drive(model: FullModel, joint: Joint) -> JointDrive:
    """A joint's drive without what motors that it shares bring, for which there are tendons."""
    robot = model.robot
    if joint.name not in robot.joint_names:
        return JointDrive()
    j = robot.joint_index(joint.name)
    drive = model.drives[j]
    for motor in model.shared_motors:
        drive = drive._replace(
            rotor_inertia=_less(
                drive.rotor_inertia, motor.rotor_inertia, motor.shares[j], f"{joint.name}.rotor_inertia"
            ),
            viscous=_less(drive.viscous, motor.viscous, motor.shares[j], f"{joint.name}.viscous"),
        )
    return drive


def _less(own: float | None, shared: float | None, share: float, name: str) -> float | None:
    if not share or shared is None:
        return own
    rest = (own or 0.0) - shared * share**2
    if rest < -_ROUNDING * shared:
        raise FitError(
            f"{name} = {own} is less than the {shared * share**2:.6g} that the motor it shares brings; no drives are "
            f"like that: fit with physically possible parameters"
        )
    return max(rest, 0.0)


def _inertial(link: Link) -> list[str]:
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        return []
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = link.inertia_about_center_of_mass
    values = attributes(mass=link.mass, pos=link.center_of_mass, fullinertia=(xx, yy, zz, xy, xz, yz))
    return [f"<inertial{values}/>"]


def _joint(joint: Joint, drive: JointDrive) -> list[str]:
    kind = "hinge" if joint.kind == "revolute" else "slide"
    known = {"armature": drive.rotor_inertia, "damping": drive.viscous, "frictionloss": drive.coulomb}
    given = {name: value for name, value in known.items() if value is not None}
    limits = {"range": joint.position_limits, "actuatorfrcrange": (-joint.torque_limit, joint.torque_limit)}
    finite = {name: values for name, values in limits.items() if np.all(np.isfinite(values))}
    line = f"<joint{attributes(name=joint.name, type_=kind, axis=joint.axis, **finite, **given)}/>"
    if drive.offset is None:
        return [line]
    return [line, comment(f"torque offset of {joint.name}: {drive.offset:.6g} [SI]; MJCF has no place for it")]


def _geoms(model: FullModel, joint: int) -> list[str]:
    return [_geom(capsule) for capsule in model.robot.capsules if capsule.joint == joint]


def _geom(capsule: Capsule) -> str:
    seen = 'contype="0" conaffinity="0" group="1"'
    if capsule.start == capsule.end:
        return f"<geom{attributes(type_='sphere', pos=capsule.start, size=capsule.radius)} {seen}/>"
    ends = (*capsule.start, *capsule.end)
    return f"<geom{attributes(type_='capsule', fromto=ends, size=capsule.radius)} {seen}/>"


def _sites(model: FullModel, joint: int) -> list[str]:
    """Frames that are not a link's own."""
    robot = model.robot
    links = {base_name(robot), *(each.link.name for each in robot.joints)}
    return [
        f"<site{attributes(name=frame.name, pos=frame.origin, quat=_quaternion(np.array(frame.rotation)))}/>"
        for frame in robot.frames
        if frame.joint == joint and frame.name not in links
    ]


def _tendons(model: FullModel) -> list[str]:
    lines: list[str] = []
    for motor in model.shared_motors:
        known = {"armature": motor.rotor_inertia, "damping": motor.viscous, "frictionloss": motor.coulomb}
        given = {name: value for name, value in known.items() if value is not None}
        turned = zip(model.robot.joint_names, motor.shares.tolist(), strict=True)
        lines += [
            f"<fixed{attributes(name=motor.name, **given)}>",
            *(f"{_INDENT}<joint{attributes(joint=name, coef=share)}/>" for name, share in turned if share),
            "</fixed>",
        ]
    return lines


def _equalities(model: FullModel) -> list[str]:
    joints = model.robot.joints
    lines: list[str] = []
    for joint in joints:
        if (mimic := joint.mimic) is not None:
            line = (mimic.offset, mimic.factor, 0.0, 0.0, 0.0)
            followed = joints[mimic.joint].name
            lines.append(f"<joint{attributes(joint1=joint.name, joint2=followed, polycoef=line)}/>")
    return lines


def _actuators(model: FullModel) -> list[str]:
    """A motor for each driven joint, its control the torque at the joint."""
    robot = model.robot
    driven = (
        joint for joint, drive in zip(robot.independent_joints, robot.drives, strict=True) if drive.kind != "none"
    )
    return [
        f"<motor{attributes(name=joint.name, joint=joint.name, ctrlrange=(-joint.torque_limit, joint.torque_limit))}/>"
        for joint in driven
    ]


def _quaternion(rotation: Array) -> Array:
    return Rotation.from_matrix(rotation).as_quat(scalar_first=True)


def _section(tag: str, lines: list[str]) -> list[str]:
    return [f"<{tag}>", *_indented(lines), f"</{tag}>"] if lines else []


def _indented(lines: list[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]
