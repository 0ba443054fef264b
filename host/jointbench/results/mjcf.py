"""MJCF: bodies, joints and drives as MuJoCo simulates them."""

from __future__ import annotations

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.model import Capsule, Joint, Link, Robot
from jointbench.model.model_columns import torque_unit
from jointbench.results.full_model import FullModel, JointDrive, SharedMotor
from jointbench.results.origin import origin_lines
from jointbench.results.robot_description import attributes, base_name, comment

_INDENT = "  "
_NEXT_TO_NOTHING = 1e-6
"""Least mass [kg] and inertia [kg·m²] of what moves and has none: it weighs 10 µN."""

_ROUNDING = 1e-9  # of a joint's rotor inertia or friction less that of the motor it shares


def mjcf_text(model: FullModel, resistance: ArrayLike | None = None) -> str:
    """Write the robot in MuJoCo's format.

    A joint's rotor inertia is its `armature`, its friction `damping` and `frictionloss`; a motor that several joints
    turn is a tendon with the same three; joints that follow others are equality constraints; a base that moves has a
    free joint. Capsules are there to be seen and collide with nothing. What MJCF cannot represent is in comments, as
    `left_out` lists it.

    Args:
        model: values of all parameters.
        resistance: of each motor's winding [Ω], shape (n_motors,) or one for all. Motors are then `dcmotor` actuators
            with the voltage as control; without it, each driven joint has a `motor` with the torque as control.

    Returns:
        The text of the file.

    Raises:
        FitError: no body can have a link's inertia, no drive its values, joints have more friction or inertia together
            than each by itself, or the resistances are not positive or not one for each motor.
    """
    robot = model.robot
    ohm = None if resistance is None else _checked(robot, resistance)
    lines = [
        f"<mujoco{attributes(model=robot.name)}>",
        comment(f"{robot.name}: written by Jointbench; {robot.source}"),
        *map(comment, origin_lines(robot, model.fitted)),
        *(comment(f"not in this file: {line}") for line in left_out(model, ohm)),
        *_compiler(model),
        f"<option{attributes(gravity=robot.gravity)}/>",
        "<worldbody>",
        *_indented(_base(model)),
        "</worldbody>",
        *_section("tendon", _tendons(model)),
        *_section("equality", _equalities(model)),
        *_section("actuator", _actuators(model) if ohm is None else _dc_motors(model, ohm)),
        "</mujoco>",
    ]
    return "\n".join([lines[0], *_indented(lines[1:-1]), lines[-1], ""])


def left_out(model: FullModel, resistance: ArrayLike | None = None) -> tuple[str, ...]:
    """List what MJCF cannot represent of a model, or what the file lacks for want of a value.

    Args:
        model: values of all parameters.
        resistance: as of `mjcf_text`.

    Returns:
        A line for each torque offset, compensation and friction law; for the currents, where the motors' resistance is
        not given; and for each motor without a torque constant, where it is.
    """
    offsets = tuple(
        f"torque offset of {name}, {drive.offset:.6g} {torque_unit(model.robot, j)}"
        for j, (name, drive) in enumerate(zip(model.robot.joint_names, model.drives, strict=True))
        if drive.offset
    )
    drives = model.robot.drive_train.drives
    if resistance is None:
        known = any(drive.torque_constant for drive in drives)
        currents = ("torque constants and current limits; `dcmotor` actuators need the resistance of the windings",)
        return (*model.unsaid, *offsets, *(currents if known else ()))
    unknown = [drive.name for drive in drives if drive.kind != "none" and not drive.torque_constant]
    return (*model.unsaid, *offsets, *(f"dcmotor of {name}, whose torque constant is not known" for name in unknown))


def _checked(robot: Robot, resistance: ArrayLike) -> Array:
    """Return one resistance for each motor."""
    given, motors = np.atleast_1d(np.asarray(resistance, dtype=np.float64)), robot.drive_train.n_motors
    if given.shape not in ((1,), (motors,)) or not np.all(given > 0.0) or not np.all(np.isfinite(given)):
        names = ", ".join(drive.name for drive in robot.drive_train.drives)
        raise FitError(
            f"resistance = {given.tolist()} Ω must be positive, one for all or one for each of the {motors} motors of "
            f"robot {robot.name!r}: {names}; motors' data sheets have it, phase to phase"
        )
    return np.broadcast_to(given, (motors,))


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
    return [f"<joint{attributes(name=joint.name, type_=kind, axis=joint.axis, **finite, **given)}/>"]


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


def _dc_motors(model: FullModel, resistance: Array) -> list[str]:
    """A DC motor for each drive with a torque constant, its control the voltage, its gear that of the drive train.

    Torque at the motor = K / R (voltage - K gear dq), within ± K times the current limit.
    """
    robot, train = model.robot, model.robot.drive_train
    lines: list[str] = []
    for drive, row, ohm in zip(train.drives, train.matrix, resistance.tolist(), strict=True):
        if drive.kind == "none" or not drive.torque_constant:
            continue
        turned, limit = np.flatnonzero(row).tolist(), drive.current_limit
        if len(turned) == 1:
            where, gear = {"joint": robot.joint_names[turned[0]]}, float(row[turned[0]])
        else:
            motor, gear = _shared(model, row)
            where = {"tendon": motor.name}
        most = {"saturation": (0.0, limit, 0.0)} if np.isfinite(limit) else {}
        values = attributes(
            name=drive.name, **where, gear=gear, motorconst=drive.torque_constant, resistance=ohm, **most
        )
        lines.append(f"<dcmotor{values}/>")
    return lines


def _shared(model: FullModel, row: Array) -> tuple[SharedMotor, float]:
    """Return the tendon along which a motor turns joints, and the motor's turns per its length [rad/rad, rad/m]."""
    for motor in model.shared_motors:
        gear = float(row @ motor.shares / (motor.shares @ motor.shares))
        if np.allclose(gear * motor.shares, row, rtol=_ROUNDING, atol=0.0):
            return motor, gear
    raise FitError(
        f"robot {model.robot.name!r}: no shared motor turns its joints as {row.tolist()}; export without resistances, "
        f"which writes torques at the joints"
    )


def _quaternion(rotation: Array) -> Array:
    return scipy.spatial.transform.Rotation.from_matrix(rotation).as_quat(scalar_first=True)


def _section(tag: str, lines: list[str]) -> list[str]:
    return [f"<{tag}>", *_indented(lines), f"</{tag}>"] if lines else []


def _indented(lines: list[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]
