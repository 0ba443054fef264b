"""The robot file: a robot in TOML, modified Denavit-Hartenberg, units in the names of the keys."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from jointbench.arrays import IDENTITY, Matrix3, Vector3
from jointbench.errors import RobotError
from jointbench.model.compensation import KINDS as COMPENSATION_KINDS
from jointbench.model.drive import DRIVE_KINDS, BevelDifferential, Coupling, Drive
from jointbench.model.joint import (
    CORNERS,
    Capsule,
    Foot,
    Joint,
    Link,
    LinkAxis,
    LinkKind,
    Mimic,
    PlacedLink,
    combine_links,
    modified_dh,
)
from jointbench.model.robot import MOST_JOINTS, STANDARD_GRAVITY, Frame, Robot
from jointbench.model.table import Table, read_table
from jointbench.model.variants import with_compensations, with_payload

VERSION = 1
_BASE = "base"
_ROWS = "one for each joint's own motor, then for each of [[couplings.drives]]; what no motor turns is no coupled joint"
_ABOUT = ("center_of_mass", "frame")
_COUPLING_KINDS = ("matrix", "bevel_differential")
_SINGULAR = 1e-9  # least singular value of a coupling whose rows have length 1: rounding leaves about 1e-16


class _Units(NamedTuple):
    """Units in which a kind of joint is written, and the factor that makes the motion SI."""

    motion: str
    torque: str
    friction: tuple[str, str]
    to_si: float


_UNITS = {
    "revolute": _Units("deg", "torque_Nm", ("link_coulomb_Nm", "link_viscous_Nms_rad"), math.pi / 180.0),
    "prismatic": _Units("mm", "force_N", ("link_coulomb_N", "link_viscous_Ns_m"), 1e-3),
}


def read_robot_file(path: Path) -> Robot:
    """Read a robot from its TOML file.

    Args:
        path: the file; CONTRIBUTING and the files of the library show its form.

    Returns:
        The robot, in SI units; impossible inertias are in its `warnings`, not an error.

    Raises:
        FileError: the file cannot be read, or an entry is missing, unknown, mistyped or contradicts another.
    """
    return _robot(read_table(path, "robot"))


def _robot(table: Table) -> Robot:
    table.version(VERSION)
    joints: list[Joint] = []
    drives: list[Drive] = []
    home: list[float] = []
    for entry in table.tables("joints"):
        name = entry.name("name")
        entry.where = f"{table.where}: joint {name!r}"
        if entry.has("mimic"):
            joints.append(_mimicking(entry, name, joints))
        else:
            joint, position = _joint(entry, name, joints)
            drives.append(_drive_of(entry, joint))
            joints.append(joint)
            home.append(position)
        entry.finish()
    if not 1 <= len(joints) <= MOST_JOINTS:
        table.fault(f"{len(joints)} tables [[joints]]; a robot has 1 to {MOST_JOINTS}")
    base_link = _base_link(table)
    frames, base_link, part_faults = _fixed(table, joints, base_link)
    _check_unique(table, "joint", [joint.name for joint in joints])
    links = [joint.link.name for joint in joints] + [frame.name for frame in frames]
    for kind, names in (("joint", [joint.name for joint in joints]), ("link", links)):
        if _BASE in names:
            table.fault(f"{kind} {_BASE!r} has the name of what the robot stands on; choose another")
    _check_unique(table, "link", [*links, base_link.name] if base_link else links)
    couplings = _couplings(table, drives)
    robot = Robot(
        name=table.name("name"),
        joints=tuple(joints),
        drives=_coupled(table, drives, couplings),
        couplings=couplings,
        gravity=cast(Vector3, table.numbers("gravity_m_s2", 3, STANDARD_GRAVITY)),
        home=tuple(home),
        source=table.text("source"),
        description=table.text("description"),
        frames=frames,
        base_link=base_link,
        part_faults=part_faults,
    )
    _check_unique(table, "drive", [drive.name for drive in robot.drive_train.drives])
    payloads = table.tables("payloads")
    _check_unique(table, "payload", [entry.name("name") for entry in payloads])
    for entry in payloads:
        robot = _loaded(entry, robot)
    robot = replace(robot, capsules=tuple(_capsule(entry, robot) for entry in table.tables("capsules")))
    robot = _compensated(table, robot)
    robot = replace(robot, feet=tuple(_foot(entry, robot) for entry in table.tables("feet")))
    _check_unique(table, "foot", [foot.name for foot in robot.feet])
    robot = replace(robot, link_kinds=tuple(_link_kind(entry, robot) for entry in table.tables("link_kinds")))
    _check_unique(table, "link kind", [kind.name for kind in robot.link_kinds])
    _check_unique(table, "link of a kind", [axis.link for kind in robot.link_kinds for axis in kind.links])
    table.finish()
    _check_torque(table, robot)
    return robot


def _joint(table: Table, name: str, previous_joints: list[Joint]) -> tuple[Joint, float]:
    """Read a joint and its home position; it sits on the joint before it where no other parent is named."""
    kind = _kind(table)
    units = _UNITS[kind]
    low, high = (units.to_si * bound for bound in table.numbers(f"position_{units.motion}", 2))
    if low >= high:
        table.fault(f"position_{units.motion} must be [lowest, highest] with lowest below highest")
    home = units.to_si * table.number(f"home_{units.motion}", 0.0)
    if not low < home < high:
        table.fault(f"home_{units.motion} = {home / units.to_si:g} must lie inside position_{units.motion}")
    rotation, origin = _placement(table)
    jerk = table.positive_or_none(f"jerk_{units.motion}_s3")
    passive = table.flag("passive", False)
    joint = Joint(
        name=name,
        kind=kind,
        parent=_parent(table, previous_joints),
        rotation=rotation,
        origin=origin,
        position_limits=(low, high),
        velocity_limit=units.to_si * table.positive(f"velocity_{units.motion}_s"),
        acceleration_limit=units.to_si * table.positive(f"acceleration_{units.motion}_s2"),
        torque_limit=table.positive(units.torque),
        link=Link(name, neglected=True) if passive and not table.has("link") else _link(table, name),
        jerk_limit=None if jerk is None else units.to_si * jerk,
        passive=passive,
    )
    return joint, home


def _mimicking(table: Table, name: str, previous_joints: list[Joint]) -> Joint:
    """Read a joint that follows another one; it has neither limits nor a drive of its own."""
    kind = _kind(table)
    entry = table.table("mimic")
    joint = _index(entry, entry.text("joint"), previous_joints)
    followed = previous_joints[joint]
    if followed.mimic is not None:
        entry.fault(f"joint {followed.name!r} mimics another one itself; name that one")
    factor = entry.number("factor", 1.0)
    offset = _UNITS[kind].to_si * entry.number(f"offset_{_UNITS[kind].motion}", 0.0)
    entry.finish()
    low, high = sorted(factor * bound + offset for bound in followed.position_limits)
    rotation, origin = _placement(table)
    return Joint(
        name=name,
        kind=kind,
        parent=_parent(table, previous_joints),
        rotation=rotation,
        origin=origin,
        position_limits=(low, high),
        velocity_limit=abs(factor) * followed.velocity_limit,
        acceleration_limit=abs(factor) * followed.acceleration_limit,
        torque_limit=followed.torque_limit,
        link=_link(table, name),
        mimic=Mimic(joint, factor, offset),
        jerk_limit=None if followed.jerk_limit is None else abs(factor) * followed.jerk_limit,
    )


def _base_link(table: Table) -> Link | None:
    """Read the body that everything hangs on, where it is free to move."""
    if not table.flag("floating_base", False):
        if table.has("base_link"):
            table.fault("[base_link] is of a base that moves; set floating_base = true, or remove the table")
        return None
    return _body(table.table("base_link"), _BASE) if table.has("base_link") else Link(_BASE)


def _fixed(
    table: Table, joints: list[Joint], base_link: Link | None
) -> tuple[tuple[Frame, ...], Link | None, tuple[tuple[str, str], ...]]:
    """Read bodies fixed to links: their inertia becomes the links', their names those of frames; and note faults."""
    frames: list[Frame] = []
    links = [base_link, *(joint.link for joint in joints)]
    for entry in table.tables("fixed"):
        name = entry.name("name")
        entry.where = f"{table.where}: fixed {name!r}"
        joint = _parent(entry, joints)
        rotation, origin = _placement(entry)
        placed = PlacedLink(_link(entry, name), rotation, origin)
        links.append(placed.link)
        if joint >= 0:
            joints[joint] = replace(joints[joint], link=combine_links(joints[joint].link, [placed]))
        elif base_link is not None:  # what a base weighs that stands still is nobody's torque
            base_link = combine_links(base_link, [placed])
        entry.finish()
        frames.append(Frame(name, joint, rotation, origin))
    faults = ((link.name, link.physical_fault) for link in links if link and frames)
    return tuple(frames), base_link, tuple((name, fault) for name, fault in faults if fault)


def _loaded(table: Table, robot: Robot) -> Robot:
    name = table.name("name")
    center = cast(Vector3, tuple(1e-3 * value for value in table.numbers("center_of_mass_mm", 3)))
    inertia = (_inertia(table.table("inertia_kg_m2")),) if table.has("inertia_kg_m2") else ()
    robot = with_payload(robot, name, table.text("on"), table.positive("mass_kg"), center, *inertia)
    table.finish()
    return robot


def _compensated(table: Table, robot: Robot) -> Robot:
    """Read torques beside those of links and drives, by kind and joint; their parameters are fitted."""
    for entry in table.tables("compensations"):
        name = entry.name("name")
        entry.where = f"{table.where}: compensation {name!r}"
        make = COMPENSATION_KINDS[entry.text("kind", allowed=tuple(COMPENSATION_KINDS))]
        joint = entry.text("joint")
        if joint not in robot.joint_names:
            entry.fault(f"no joint {joint!r}; the joints are {', '.join(robot.joint_names)}")
        entry.finish()
        try:
            robot = with_compensations(robot, make(name, joint))
        except RobotError as error:
            table.fault(str(error))
    return robot


def _capsule(table: Table, robot: Robot) -> Capsule:
    """Read the capsule around a link, around a link that is fixed to one, or around the base."""
    link = table.text("link")
    frame = Frame(_BASE, -1, IDENTITY, (0.0, 0.0, 0.0)) if link == _BASE else robot.frame(link)
    start, end = (
        cast(Vector3, tuple((frame.origin + 1e-3 * np.array(frame.rotation) @ table.numbers(key, 3)).tolist()))
        for key in ("from_mm", "to_mm")
    )
    capsule = Capsule(link, frame.joint, start, end, 1e-3 * table.positive("radius_mm"))
    table.finish()
    return capsule


def _foot(table: Table, robot: Robot) -> Foot:
    """Read a sole: the places of its sensors on a link."""
    name = table.name("name")
    table.where = f"{table.where.rpartition(': ')[0]}: foot {name!r}"
    frame = robot.frame(table.text("on"))
    rows = table.matrix("corners_mm", len(CORNERS), 3, f"x, y, z of a corner each, {', '.join(CORNERS)}")
    corners = frame.origin + 1e-3 * np.array(rows) @ np.array(frame.rotation).T
    table.finish()
    try:
        return Foot(name, frame.joint, cast(Any, tuple(map(tuple, corners.tolist()))))
    except RobotError as error:
        table.fault(str(error))


def _link_kind(table: Table, robot: Robot) -> LinkKind:
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
    start, end = (tuple(1e-3 * value for value in table.numbers(key, 3)) for key in ("from_mm", "to_mm"))
    table.finish()
    return LinkAxis(link, cast(Vector3, start), cast(Vector3, end))


def _kind(table: Table) -> Literal["revolute", "prismatic"]:
    return cast(Literal["revolute", "prismatic"], table.text("kind", "revolute", ("revolute", "prismatic")))


def _placement(table: Table) -> tuple[Matrix3, Vector3]:
    return modified_dh(
        math.radians(table.number("alpha_deg")),
        1e-3 * table.number("a_mm"),
        1e-3 * table.number("d_mm"),
        math.radians(table.number("theta_deg", 0.0)),
    )


def _parent(table: Table, previous_joints: list[Joint]) -> int:
    """Index of the joint that carries the body of a table: the last one where none is named."""
    name = table.text("parent", previous_joints[-1].name if previous_joints else _BASE)
    return -1 if name == _BASE else _index(table, name, previous_joints)


def _index(table: Table, name: str, previous_joints: list[Joint]) -> int:
    names = [joint.name for joint in previous_joints]
    if name not in names:
        table.fault(f"joint {name!r} does not stand before it; there are {', '.join((_BASE, *names))}")
    return names.index(name)


def _link(table: Table, joint_name: str) -> Link:
    """Read the link of a joint; a joint without one carries an unknown body of the joint's name."""
    return _body(table.table("link"), joint_name) if table.has("link") else Link(joint_name)


def _body(entry: Table, default_name: str) -> Link:
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
    inertia = _inertia(entry.table("inertia_kg_m2"))
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


def _inertia(table: Table) -> Matrix3:
    xx, yy, zz = (table.number(key) for key in ("xx", "yy", "zz"))
    xy, xz, yz = (table.number(key, 0.0) for key in ("xy", "xz", "yz"))
    table.finish()
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def _drive_of(table: Table, joint: Joint) -> Drive:
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
    coulomb, viscous = map(entry.magnitude_or_none, _UNITS[joint.kind].friction)
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


def _check_torque(table: Table, robot: Robot) -> None:
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


def _check_unique(table: Table, kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            table.fault(f"{kind} {name!r} is named {names.count(name)} times; names must differ")


def _couplings(table: Table, drives: list[Drive]) -> tuple[Coupling, ...]:
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
    _check_unique(table, "coupling", [coupling.name for coupling in couplings])
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


def _coupled(table: Table, drives: list[Drive], couplings: tuple[Coupling, ...]) -> tuple[Drive, ...]:
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
