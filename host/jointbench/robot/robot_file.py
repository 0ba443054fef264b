"""The robot file: a robot in TOML, modified Denavit-Hartenberg, units in the names of the keys."""

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np

from jointbench.errors import RobotFileError
from jointbench.robot.arrays import Matrix3, Vector3
from jointbench.robot.drive import DRIVE_KINDS, Coupling, Drive
from jointbench.robot.joint import Joint, Mimic, modified_dh
from jointbench.robot.link import Link
from jointbench.robot.payload import with_payload
from jointbench.robot.rigid import Placed, joined
from jointbench.robot.robot import MOST_JOINTS, STANDARD_GRAVITY, Frame, Robot
from jointbench.robot.table import Table

VERSION = 1
_BASE = "base"


class _Units(NamedTuple):
    """How a kind of joint writes its quantities, and the factor that makes the motion SI."""

    motion: str
    torque: str
    to_si: float


_UNITS = {"revolute": _Units("deg", "torque_Nm", math.pi / 180.0), "prismatic": _Units("mm", "force_N", 1e-3)}


def read_robot_file(path: Path) -> Robot:
    """Read a robot from its TOML file.

    Args:
        path: the file; CONTRIBUTING and the files of the library show its form.

    Returns:
        The robot, in SI units; impossible inertias are in its `warnings`, not an error.

    Raises:
        RobotFileError: the file cannot be read, or an entry is missing, unknown, mistyped or contradicts another.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RobotFileError(f"robot file {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise RobotFileError(f"robot file {path} is not TOML: {error}") from error
    return _robot(Table(values, path.name))


def _robot(table: Table) -> Robot:
    version = table.number("version")
    if version != VERSION:
        table.fault(f"version = {version:g} is not known; this release reads version {VERSION}")
    joints: list[Joint] = []
    drives: list[Drive] = []
    home: list[float] = []
    for entry in table.tables("joints"):
        name = entry.text("name")
        entry.where = f"{table.where}: joint {name!r}"
        if entry.has("mimic"):
            joints.append(_mimicking(entry, name, joints))
        else:
            joint, position = _joint(entry, name, joints)
            drives.append(_drive(entry.table("drive"), name))
            joints.append(joint)
            home.append(position)
        entry.finish()
    if not 1 <= len(joints) <= MOST_JOINTS:
        table.fault(f"{len(joints)} tables [[joints]]; a robot has 1 to {MOST_JOINTS}")
    frames = _fixed(table, joints)
    _check_unique(table, "joint", [joint.name for joint in joints])
    _check_unique(table, "link", [joint.link.name for joint in joints] + [frame.name for frame in frames])
    _check_unique(table, "drive", [drive.name for drive in drives])
    robot = Robot(
        name=table.text("name"),
        joints=tuple(joints),
        drives=tuple(drives),
        couplings=_couplings(table, [joint.name for joint in joints if joint.mimic is None]),
        gravity=cast(Vector3, table.numbers("gravity_m_s2", 3, STANDARD_GRAVITY)),
        home=tuple(home),
        source=table.text("source"),
        description=table.text("description"),
        frames=frames,
    )
    for entry in table.tables("payloads"):
        robot = _loaded(entry, robot)
    table.finish()
    _check_torque(table, robot)
    return robot


def _joint(table: Table, name: str, before: list[Joint]) -> tuple[Joint, float]:
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
    joint = Joint(
        name=name,
        kind=kind,
        parent=_parent(table, before),
        rotation=rotation,
        origin=origin,
        position_limits=(low, high),
        velocity_limit=units.to_si * table.positive(f"velocity_{units.motion}_s"),
        acceleration_limit=units.to_si * table.positive(f"acceleration_{units.motion}_s2"),
        torque_limit=table.positive(units.torque),
        link=_link(table, name),
    )
    return joint, home


def _mimicking(table: Table, name: str, before: list[Joint]) -> Joint:
    """Read a joint that follows another one; it has neither limits nor a drive of its own."""
    kind = _kind(table)
    entry = table.table("mimic")
    joint = _index(entry, entry.text("joint"), before)
    followed = before[joint]
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
        parent=_parent(table, before),
        rotation=rotation,
        origin=origin,
        position_limits=(low, high),
        velocity_limit=abs(factor) * followed.velocity_limit,
        acceleration_limit=abs(factor) * followed.acceleration_limit,
        torque_limit=followed.torque_limit,
        link=_link(table, name),
        mimic=Mimic(joint, factor, offset),
    )


def _fixed(table: Table, joints: list[Joint]) -> tuple[Frame, ...]:
    """Read what is fixed to links: its inertia becomes theirs, its name that of a frame."""
    frames: list[Frame] = []
    for entry in table.tables("fixed"):
        name = entry.text("name")
        entry.where = f"{table.where}: fixed {name!r}"
        joint = _parent(entry, joints)
        rotation, origin = _placement(entry)
        part = Placed(_link(entry, name), rotation, origin)
        if joint >= 0:  # what the base weighs is nobody's torque
            joints[joint] = replace(joints[joint], link=joined(joints[joint].link, [part]))
        entry.finish()
        frames.append(Frame(name, joint, rotation, origin))
    return tuple(frames)


def _loaded(table: Table, robot: Robot) -> Robot:
    name = table.text("name")
    center = cast(Vector3, tuple(1e-3 * value for value in table.numbers("center_of_mass_mm", 3)))
    inertia = (_inertia(table.table("inertia_kg_m2")),) if table.has("inertia_kg_m2") else ()
    robot = with_payload(robot, name, table.text("on"), table.positive("mass_kg"), center, *inertia)
    table.finish()
    return robot


def _kind(table: Table) -> Literal["revolute", "prismatic"]:
    return cast(Literal["revolute", "prismatic"], table.text("kind", "revolute", ("revolute", "prismatic")))


def _placement(table: Table) -> tuple[Matrix3, Vector3]:
    return modified_dh(
        math.radians(table.number("alpha_deg")),
        1e-3 * table.number("a_mm"),
        1e-3 * table.number("d_mm"),
        math.radians(table.number("theta_deg", 0.0)),
    )


def _parent(table: Table, before: list[Joint]) -> int:
    """Index of the joint that carries what the table is about: the last one where none is named."""
    name = table.text("parent", before[-1].name if before else _BASE)
    return -1 if name == _BASE else _index(table, name, before)


def _index(table: Table, name: str, before: list[Joint]) -> int:
    names = [joint.name for joint in before]
    if name not in names:
        table.fault(f"joint {name!r} does not stand before it; there are {', '.join((_BASE, *names))}")
    return names.index(name)


def _link(table: Table, joint_name: str) -> Link:
    """Read the link of a joint; a joint without one carries an unknown body of the joint's name."""
    if not table.has("link"):
        return Link(joint_name)
    entry = table.table("link")
    name = entry.text("name", joint_name)
    assumed = entry.flag("assumed", False)
    keys = ("mass_kg", "center_of_mass_mm", "inertia_kg_m2")
    given = [key for key in keys if entry.has(key)]
    if given and len(given) < len(keys):
        missing = ", ".join(key for key in keys if key not in given)
        entry.fault(f"link {name!r} has {', '.join(given)} but not {missing}; give all three or none")
    if not given:
        entry.finish()
        return Link(name, assumed=assumed)
    center = tuple(1e-3 * value for value in entry.numbers("center_of_mass_mm", 3))
    inertia = _inertia(entry.table("inertia_kg_m2"))
    mass = entry.number("mass_kg")
    entry.finish()
    return Link(name, mass, cast(Vector3, center), inertia, assumed)


def _inertia(table: Table) -> Matrix3:
    xx, yy, zz = (table.number(key) for key in ("xx", "yy", "zz"))
    xy, xz, yz = (table.number(key, 0.0) for key in ("xy", "xz", "yz"))
    table.finish()
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def _drive(table: Table, joint_name: str) -> Drive:
    ratio = table.number("ratio")
    if ratio == 0.0:
        table.fault("ratio = 0 drives nothing; give motor turns per joint turn")
    drive = Drive(
        name=table.text("name", joint_name),
        joint=joint_name,
        kind=cast(Literal["direct", "harmonic"], table.text("kind", allowed=DRIVE_KINDS)),
        ratio=ratio,
        torque_constant=table.positive("torque_constant_Nm_A"),
        current_limit=table.positive("current_limit_A"),
        rotor_inertia=table.positive_or_none("rotor_inertia_kg_m2"),
        stiffness=table.positive_or_none("stiffness_Nm_rad"),
    )
    table.finish()
    return drive


def _check_torque(table: Table, robot: Robot) -> None:
    """Refuse torque limits that the motors cannot reach within their current limits."""
    motor_torque = np.array([drive.torque_constant * drive.current_limit for drive in robot.drives])
    reachable = np.abs(robot.transmission_matrix).T @ motor_torque
    for joint, torque in zip(robot.independent_joints, reachable, strict=True):
        if joint.torque_limit > torque * (1.0 + 1e-9):  # equality must survive rounding
            table.fault(
                f"joint {joint.name!r}: torque limit {joint.torque_limit:g} is beyond its motors, which reach "
                f"{torque:.6g} (ratio x torque constant x current limit); lower the limit or correct the drive"
            )


def _check_unique(table: Table, kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            table.fault(f"{kind} {name!r} is named {names.count(name)} times; names must differ")


def _couplings(table: Table, joint_names: list[str]) -> tuple[Coupling, ...]:
    couplings: list[Coupling] = []
    for entry in table.tables("couplings"):
        name = entry.text("name")
        entry.where = f"{table.where}: coupling {name!r}"
        joints = entry.texts("joints")
        for joint in joints:
            if joint not in joint_names:
                entry.fault(f"no joint {joint!r}; the joints are {', '.join(joint_names)}")
            if any(joint in other.joints for other in couplings) or joints.count(joint) > 1:
                entry.fault(f"joint {joint!r} is coupled twice; a joint belongs to one coupling")
        matrix = entry.matrix("matrix", len(joints))
        _check_invertible(entry, matrix)
        entry.finish()
        couplings.append(Coupling(name, joints, matrix))
    _check_unique(table, "coupling", [coupling.name for coupling in couplings])
    return tuple(couplings)


def _check_invertible(table: Table, matrix: tuple[tuple[float, ...], ...]) -> None:
    array = np.array(matrix)
    if np.any(np.diag(array) == 0.0):
        table.fault("the diagonal of matrix must not be 0: row i is the motor that mainly drives joint i")
    if abs(np.linalg.det(array)) < 1e-9 * np.prod(np.linalg.norm(array, axis=1)):
        table.fault("matrix is singular; joint positions could not be told from motor positions")
