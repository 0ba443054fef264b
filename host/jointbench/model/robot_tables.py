"""Tables of a robot file: links with their inertias, drives, couplings of joints that share motors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, NamedTuple, cast

import numpy as np

from jointbench.arrays import Matrix3, Vector3
from jointbench.errors import RobotError
from jointbench.model.drive import DRIVE_KINDS, BevelDifferential, Coupling, Drive
from jointbench.model.joint import Joint, Link, LinkAxis, LinkKind, Placement
from jointbench.model.robot import Robot
from jointbench.model.table import Table

_ROWS = "one for each joint's own motor, then for each of [[couplings.drives]]; what no motor turns is no coupled joint"
_SINGULAR = 1e-9  # least singular value of a coupling whose rows have length 1: rounding leaves about 1e-16
_COUPLING_KINDS = ("matrix", "bevel_differential")

_ABOUT = ("center_of_mass", "frame")


def read_link(table: Table, joint_name: str) -> Link:
    """Read the link of a joint; a joint without one carries an unknown body of the joint's name."""
    return read_body(table.table("link"), joint_name) if table.has("link") else Link(joint_name)


def read_body(entry: Table, default_name: str) -> Link:
    """Read a body whose inertia may be left out as unknown."""
    name = entry.name("name", default_name)
    assumed = entry.flag("assumed", False)
    keys = ("mass_kg", "center_of_mass_mm", "inertia_kg_m2")
    given_keys = [key for key in keys if entry.has(key)]
    if given_keys and len(given_keys) < len(keys):
        missing = ", ".join(key for key in keys if key not in given_keys)
        entry.fault(f"link {name!r} has {', '.join(given_keys)} but not {missing}; give all three or none")
    if not given_keys:
        entry.finish()
        return Link(name, assumed=assumed)
    center = tuple(1e-3 * value for value in entry.numbers("center_of_mass_mm", 3))
    inertia = read_inertia(entry.table("inertia_kg_m2"))
    mass = entry.number("mass_kg")
    if entry.text("inertia_about", _ABOUT[0], _ABOUT) == "frame":
        inertia = _about_center(inertia, mass, center)
    entry.finish()
    return Link(name, mass, cast(Vector3, center), inertia, assumed)


def _about_center(inertia: Matrix3, mass: float, center: tuple[float, ...]) -> Matrix3:
    """Move an inertia from the frame's origin to the centre of mass, axes as they are (parallel-axis theorem)."""
    c = np.array(center)
    about_center = np.array(inertia) - mass * (c @ c * np.eye(3) - np.outer(c, c))
    return cast(Matrix3, tuple(tuple(row) for row in about_center.tolist()))


def read_inertia(table: Table) -> Matrix3:
    """Read an inertia tensor [kg·m²]; what is not written off its diagonal is zero."""
    xx, yy, zz = (table.number(key) for key in ("xx", "yy", "zz"))
    xy, xz, yz = (table.number(key, 0.0) for key in ("xy", "xz", "yz"))
    table.finish()
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def read_link_kind(table: Table, robot: Robot) -> LinkKind:
    """Read a kind of links that are alike, and the axis of each."""
    name = table.name("name")
    table.where = f"{table.where.rpartition(': ')[0]}: link kind {name!r}"
    entries = table.tables("links")
    table.finish()
    try:
        return LinkKind(name, tuple(_link_axis(entry, robot) for entry in entries))
    except RobotError as error:
        table.fault(str(error))


def _link_axis(table: Table, robot: Robot) -> LinkAxis:
    """Read a link's axis, in the link's frame."""
    link = table.text("link")
    known = [body.name for body in (robot.base_link, *(joint.link for joint in robot.joints)) if body is not None]
    if link not in known:
        table.fault(f"no link {link!r} with a mass of its own; there are {', '.join(known)}")
    frame = robot.frame(link)
    start, end = (
        Placement(frame.rotation, frame.origin).point(
            cast(Vector3, tuple(1e-3 * value for value in table.numbers(key, 3)))
        )
        for key in ("from_mm", "to_mm")
    )
    table.finish()
    return LinkAxis(link, start, end)


class Units(NamedTuple):
    """Units in which a kind of joint is written, and the factor that makes the motion SI."""

    motion: str
    torque: str
    friction: tuple[str, str]
    to_si: float


UNITS = {
    "revolute": Units("deg", "torque_Nm", ("link_coulomb_Nm", "link_viscous_Nms_rad"), math.pi / 180.0),
    "prismatic": Units("mm", "force_N", ("link_coulomb_N", "link_viscous_Ns_m"), 1e-3),
}


def read_drive(table: Table, joint: Joint) -> Drive:
    """Read a joint's drive, which only a passive joint can be without."""
    if joint.passive and not table.has("drive"):
        return Drive.none(joint.name)
    entry = table.table("drive")
    coupled = entry.text("kind", allowed=DRIVE_KINDS) == "coupled"
    if coupled and entry.has("ratio"):
        entry.fault('ratio is said by the coupling of a drive of kind "coupled"; leave it out')
    ratio = 1.0 if coupled else entry.number("ratio")
    if ratio == 0.0:
        entry.fault("ratio = 0 drives nothing; give motor turns per joint turn")
    drive = _drive(entry, joint.name, ratio)
    if drive.torque_mode and (coupled or not joint.passive):
        what = "shares its motors" if coupled else "has a torque that is modelled"
        entry.fault(
            f"torque_mode = true lets joint {joint.name!r} go with no torque, but it {what}; it is for joints of one "
            "motor with passive = true"
        )
    coulomb, viscous = map(entry.magnitude_or_none, UNITS[joint.kind].friction)
    entry.finish()
    return replace(drive, link_coulomb=coulomb, link_viscous=viscous)


def _drive(table: Table, joint_name: str, ratio: float) -> Drive:
    drive = Drive(
        name=table.name("name", joint_name),
        joint=joint_name,
        kind=cast(Literal["direct", "harmonic", "coupled"], table.text("kind", allowed=DRIVE_KINDS)),
        ratio=ratio,
        torque_constant=table.positive("torque_constant_Nm_A"),
        current_limit=table.positive("current_limit_A"),
        rotor_inertia=table.positive_or_none("rotor_inertia_kg_m2"),
        stiffness=table.positive_or_none("stiffness_Nm_rad"),
        motor_coulomb=table.magnitude_or_none("motor_coulomb_Nm"),
        motor_viscous=table.magnitude_or_none("motor_viscous_Nms_rad"),
        motor_encoder=table.flag("motor_encoder", True),
        link_encoder=table.flag("link_encoder", False),
        torque_sensor=table.flag("torque_sensor", False),
        torque_mode=table.flag("torque_mode", False),
    )
    if not (drive.motor_encoder or drive.link_encoder):
        table.fault("motor_encoder and link_encoder are both false; a position must be measured on one side")
    return drive


def check_torque(table: Table, robot: Robot) -> None:
    """Refuse torque limits that the motors cannot reach within their current limits."""
    train = robot.drive_train
    motor_torque = np.array([drive.torque_constant * drive.current_limit for drive in train.drives])
    reachable = np.abs(train.matrix).T @ motor_torque
    for joint, torque in zip(robot.independent_joints, reachable, strict=True):
        # Equality must survive rounding.
        if joint.torque_limit > torque * (1.0 + 1e-9) and not joint.passive:
            table.fault(
                f"joint {joint.name!r}: torque limit {joint.torque_limit:g} is beyond its motors, which reach "
                f"{torque:.6g} (ratio x torque constant x current limit); lower the limit or correct the drive"
            )


def read_couplings(table: Table, drives: list[Drive]) -> tuple[Coupling, ...]:
    """Read the joints that share motors; `drives` are those of the independent joints."""
    couplings: list[Coupling] = []
    kinds = {drive.joint: drive.kind for drive in drives}
    for entry in table.tables("couplings"):
        name = entry.name("name")
        entry.where = f"{table.where}: coupling {name!r}"
        joints = entry.texts("joints")
        if not joints:
            entry.fault("joints = [] couples nothing; name the joints that share motors")
        for joint in joints:
            if joint not in kinds:
                entry.fault(f"no joint {joint!r}; the joints are {', '.join(kinds)}")
            if kinds[joint] == "none":
                entry.fault(f"joint {joint!r} has no motor; give it a [joints.drive], or leave it out")
            if any(joint in previous_coupling.joints for previous_coupling in couplings) or joints.count(joint) > 1:
                entry.fault(f"joint {joint!r} is coupled twice; a joint belongs to one coupling")
        extra_entries = entry.tables("drives")
        matrix = _matrix(entry, joints, len(joints) + len(extra_entries))
        extra_drives: list[Drive] = []
        for motor, row in zip(extra_entries, matrix[len(joints) :], strict=True):
            main_joint = max(range(len(joints)), key=lambda j: abs(row[j]))
            if row[main_joint] == 0.0:
                motor.fault("its row of matrix is 0: it drives nothing; give motor turns per joint turn")
            motor.name("name")
            extra_drives.append(_drive(motor, joints[main_joint], row[main_joint]))
            motor.finish()
        entry.finish()
        couplings.append(Coupling(name, joints, matrix, tuple(extra_drives)))
    table.check_unique("coupling", [coupling.name for coupling in couplings])
    return tuple(couplings)


def _matrix(table: Table, joints: tuple[str, ...], n_motors: int) -> tuple[tuple[float, ...], ...]:
    """Read the matrix of motors and joints: row by row, or from the kind of mechanism."""
    if table.text("kind", "matrix", _COUPLING_KINDS) == "matrix":
        matrix = table.matrix("matrix", n_motors, len(joints), _ROWS)
        _check_invertible(table, matrix)
        return matrix
    if len(joints) != 2 or n_motors != 2:
        table.fault("a bevel differential has two motors and two joints; name its rotation and its pitch")
    return BevelDifferential(table.positive("ratio")).matrix


def with_coupling_ratios(table: Table, drives: list[Drive], couplings: tuple[Coupling, ...]) -> tuple[Drive, ...]:
    """The drives, each of kind "coupled" with the ratio that its coupling says."""
    ratios = {joint: coupling.matrix[row][row] for coupling in couplings for row, joint in enumerate(coupling.joints)}
    for drive in drives:
        if drive.kind == "coupled" and drive.joint not in ratios:
            table.fault(
                f'joint {drive.joint!r} has a drive of kind "coupled", and is in none of [[couplings]]; add it to one'
            )
    return tuple(replace(drive, ratio=ratios[drive.joint]) if drive.kind == "coupled" else drive for drive in drives)


def _check_invertible(table: Table, matrix: tuple[tuple[float, ...], ...]) -> None:
    array = np.array(matrix)
    if np.any(np.diag(array) == 0.0):
        table.fault("the diagonal of matrix must not be 0: row i is the motor that mainly drives joint i")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    if np.linalg.svd(array / np.where(lengths, lengths, 1.0), compute_uv=False)[-1] < _SINGULAR:
        table.fault("matrix is singular; joint positions could not be told from motor positions")
