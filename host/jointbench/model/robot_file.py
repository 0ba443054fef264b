"""The robot file: a robot in TOML, Denavit-Hartenberg modified or standard, units in the names of the keys."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from jointbench.arrays import IDENTITY, Matrix3, Vector3
from jointbench.errors import RobotError
from jointbench.model.compensation import KINDS as COMPENSATION_KINDS
from jointbench.model.drive import Drive
from jointbench.model.drive_tables import UNITS, check_torque, read_couplings, read_drive, with_coupling_ratios
from jointbench.model.joint import (
    CORNERS,
    HERE,
    Capsule,
    Foot,
    Joint,
    Link,
    LinkAxis,
    LinkKind,
    Mimic,
    PlacedLink,
    Placement,
    as_matrix,
    combine_links,
    modified_dh,
    standard_dh,
)
from jointbench.model.robot import MOST_JOINTS, STANDARD_GRAVITY, Frame, Robot
from jointbench.model.table import Table, read_table
from jointbench.model.tolerances import read_tolerances
from jointbench.model.variants import with_compensations, with_payload

VERSION = 1
_BASE = "base"
_ABOUT = ("center_of_mass", "frame")


def read_robot_file(path: Path) -> Robot:
    """Read a robot from its TOML file.

    Args:
        path: the file; CONTRIBUTING and the files of the library show its form.

    Returns:
        The robot, in SI units; impossible inertias are in its `warnings`, not an error. Its links' frames sit at their
        joints, also where the file follows the standard convention, whose frames sit at the links' ends.

    Raises:
        FileError: the file cannot be read, or an entry is missing, unknown, mistyped or contradicts another.
    """
    return _robot(read_table(path, "robot"))


def _robot(table: Table) -> Robot:
    table.version(VERSION)
    chain = _Chain(table.text("denavit_hartenberg", "modified", ("modified", "standard")) == "standard")
    joints = chain.joints
    drives: list[Drive] = []
    home: list[float] = []
    for entry in table.tables("joints"):
        name = entry.name("name")
        entry.where = f"{table.where}: joint {name!r}"
        if entry.has("mimic"):
            _add_mimicking(entry, name, chain)
        else:
            joint, end, position = _joint(entry, name, chain)
            drives.append(read_drive(entry, joint))
            chain.add(joint, end)
            home.append(position)
        entry.finish()
    if not 1 <= len(joints) <= MOST_JOINTS:
        table.fault(f"{len(joints)} tables [[joints]]; a robot has 1 to {MOST_JOINTS}")
    base_link = _base_link(table)
    frames, base_link, part_faults = _fixed(table, chain, base_link)
    table.check_unique("joint", [joint.name for joint in joints])
    links = [joint.link.name for joint in joints] + [frame.name for frame in frames]
    for kind, names in (("joint", [joint.name for joint in joints]), ("link", links)):
        if _BASE in names:
            table.fault(f"{kind} {_BASE!r} has the name of what the robot stands on; choose another")
    table.check_unique("link", [*links, base_link.name] if base_link else links)
    couplings = read_couplings(table, drives)
    robot = Robot(
        name=table.name("name"),
        joints=tuple(joints),
        drives=with_coupling_ratios(table, drives, couplings),
        couplings=couplings,
        gravity=cast(Vector3, table.numbers("gravity_m_s2", 3, STANDARD_GRAVITY)),
        home=tuple(home),
        source=table.text("source"),
        description=table.text("description"),
        frames=(*chain.link_frames, *frames),
        base_link=base_link,
        part_faults=part_faults,
    )
    table.check_unique("drive", [drive.name for drive in robot.drive_train.drives])
    payloads = table.tables("payloads")
    table.check_unique("payload", [entry.name("name") for entry in payloads])
    for entry in payloads:
        robot = _loaded(entry, robot)
    robot = replace(robot, capsules=tuple(_capsule(entry, robot) for entry in table.tables("capsules")))
    robot = _compensated(table, robot)
    robot = replace(robot, feet=tuple(_foot(entry, robot) for entry in table.tables("feet")))
    table.check_unique("foot", [foot.name for foot in robot.feet])
    robot = replace(robot, link_kinds=tuple(_link_kind(entry, robot) for entry in table.tables("link_kinds")))
    table.check_unique("link kind", [kind.name for kind in robot.link_kinds])
    table.check_unique("link of a kind", [axis.link for kind in robot.link_kinds for axis in kind.links])
    if table.has("tolerances"):
        robot = replace(robot, tolerances=read_tolerances(table.table("tolerances"), robot.joint_names))
    table.finish()
    check_torque(table, robot)
    return robot


class _Chain:
    """Joints as they are read, parents before children, and where the file's link frames are.

    By the modified convention a link's frame sits at its joint; by the standard one it sits at the link's other end.
    """

    def __init__(self, standard: bool) -> None:
        self.standard = standard
        self.joints: list[Joint] = []
        self._ends: list[Placement] = []
        self._rules: dict[int, tuple[dict[int, float], float]] = {}

    def add(self, joint: Joint, end: Placement) -> None:
        """Add a joint, whose link's frame lies so in the joint's own by the file's convention."""
        self.joints.append(joint)
        self._ends.append(end)

    def end(self, joint: int) -> Placement:
        """Return the file's frame of a joint's link in that of the joint; of the base for -1."""
        return self._ends[joint] if joint >= 0 else HERE

    @property
    def link_frames(self) -> tuple[Frame, ...]:
        """The links' frames by the file's convention, where these are not those of their joints."""
        ends = enumerate(zip(self.joints, self._ends, strict=True))
        return tuple(Frame(joint.link.name, i, *end) for i, (joint, end) in ends if end != HERE)

    def place(self, table: Table) -> tuple[Placement, Placement]:
        """Read where a joint is in the frame of the joint before it, and where its link's frame is from there."""
        parent = self.end(_parent(table, self.joints))
        values = [table.number("alpha_deg"), table.number("a_mm"), table.number("d_mm"), table.number("theta_deg", 0.0)]
        alpha, a, d, theta = math.radians(values[0]), 1e-3 * values[1], 1e-3 * values[2], math.radians(values[3])
        if not self.standard:
            return parent.then(Placement(*modified_dh(alpha, a, d, theta))), HERE
        joint, link = standard_dh(alpha, a, d, theta)
        return parent.then(joint), link

    def rule(self, joint: int) -> tuple[dict[int, float], float]:
        """Return how a joint moves: its factors to independent joints by index, and its offset [rad or m]."""
        return self._rules.get(joint, ({joint: 1.0}, 0.0))

    def add_mimic(self, joint: Joint, end: Placement, terms: dict[int, float], offset: float) -> None:
        """Add a joint whose position is the sum of terms, each a factor times an independent joint's position.

        Motions about or along one axis add: each term but the last one moves a joint of its own, which carries a link
        of no mass.

        Args:
            joint: without its rule, with the placement of the first one.
            end: as of `add`.
            terms: factor by index of the independent joint, at least one.
            offset: [rad or m].
        """
        *before, last = terms
        whole = terms, offset
        for followed in before:
            part = f"{joint.name}.{self.joints[followed].name}"
            link = Link(f"{joint.link.name}.{self.joints[followed].name}", neglected=True)
            self.add(self._term(replace(joint, name=part, link=link), followed, terms[followed], offset), HERE)
            joint = replace(joint, parent=len(self.joints) - 1, rotation=IDENTITY, origin=HERE.origin)
            offset = 0.0
        self.add(self._term(joint, last, terms[last], offset), end)
        self._rules[len(self.joints) - 1] = whole

    def _term(self, joint: Joint, followed: int, factor: float, offset: float) -> Joint:
        """A joint that follows another one; it has neither limits nor a drive of its own."""
        other = self.joints[followed]
        low, high = sorted(factor * bound + offset for bound in other.position_limits)
        return replace(
            joint,
            position_limits=(low, high),
            velocity_limit=abs(factor) * other.velocity_limit,
            acceleration_limit=abs(factor) * other.acceleration_limit,
            torque_limit=other.torque_limit,
            mimic=Mimic(followed, factor, offset),
            jerk_limit=None if other.jerk_limit is None else abs(factor) * other.jerk_limit,
        )


def _joint(table: Table, name: str, chain: _Chain) -> tuple[Joint, Placement, float]:
    """Read a joint, its link's frame by the file's convention, and its home position."""
    kind = _kind(table)
    units = UNITS[kind]
    low, high = (units.to_si * bound for bound in table.numbers(f"position_{units.motion}", 2))
    if low >= high:
        table.fault(f"position_{units.motion} must be [lowest, highest] with lowest below highest")
    home = units.to_si * table.number(f"home_{units.motion}", 0.0)
    if not low < home < high:
        table.fault(f"home_{units.motion} = {home / units.to_si:g} must lie inside position_{units.motion}")
    placement, end = chain.place(table)
    jerk = table.positive_or_none(f"jerk_{units.motion}_s3")
    passive = table.flag("passive", False)
    link = Link(name, neglected=True) if passive and not table.has("link") else _link(table, name)
    joint = Joint(
        name=name,
        kind=kind,
        parent=_parent(table, chain.joints),
        rotation=placement.rotation,
        origin=placement.origin,
        position_limits=(low, high),
        velocity_limit=units.to_si * table.positive(f"velocity_{units.motion}_s"),
        acceleration_limit=units.to_si * table.positive(f"acceleration_{units.motion}_s2"),
        torque_limit=table.positive(units.torque),
        link=_seen_from_joint(link, end),
        jerk_limit=None if jerk is None else units.to_si * jerk,
        passive=passive,
    )
    return joint, end, home


def _add_mimicking(table: Table, name: str, chain: _Chain) -> None:
    """Read a joint that follows another one, or the sum of several."""
    kind = _kind(table)
    entries = table.tables("mimic") if table.is_list("mimic") else (table.table("mimic"),)
    if not entries:
        table.fault("mimic = [] follows nothing; name a joint, or several whose motions add")
    terms: dict[int, float] = {}
    offset = 0.0
    for entry in entries:
        factor = entry.number("factor", 1.0)
        of_followed, its_offset = chain.rule(_index(entry, entry.text("joint"), chain.joints))
        for joint, share in of_followed.items():
            terms[joint] = terms.get(joint, 0.0) + factor * share
        offset += factor * its_offset + UNITS[kind].to_si * entry.number(f"offset_{UNITS[kind].motion}", 0.0)
        entry.finish()
    placement, end = chain.place(table)
    still = Joint(
        name=name,
        kind=kind,
        parent=_parent(table, chain.joints),
        rotation=placement.rotation,
        origin=placement.origin,
        position_limits=(0.0, 0.0),
        velocity_limit=0.0,
        acceleration_limit=0.0,
        torque_limit=0.0,
        link=_seen_from_joint(_link(table, name), end),
    )
    chain.add_mimic(still, end, terms, offset)


def _seen_from_joint(link: Link, end: Placement) -> Link:
    """Return a link that is given in its frame by the file's convention in that of its joint."""
    if end == HERE or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        return link
    rotation = np.array(end.rotation)
    inertia = rotation @ np.array(link.inertia_about_center_of_mass) @ rotation.T
    center = end.point(link.center_of_mass)
    return replace(link, center_of_mass=center, inertia_about_center_of_mass=as_matrix((inertia + inertia.T) / 2.0))


def _base_link(table: Table) -> Link | None:
    """Read the body that everything hangs on, where it is free to move."""
    if not table.flag("floating_base", False):
        if table.has("base_link"):
            table.fault("[base_link] is of a base that moves; set floating_base = true, or remove the table")
        return None
    return _body(table.table("base_link"), _BASE) if table.has("base_link") else Link(_BASE)


def _fixed(
    table: Table, chain: _Chain, base_link: Link | None
) -> tuple[tuple[Frame, ...], Link | None, tuple[tuple[str, str], ...]]:
    """Read bodies fixed to links: their inertia becomes the links', their names those of frames; and note faults."""
    frames: list[Frame] = []
    joints = chain.joints
    links = [base_link, *(joint.link for joint in joints)]
    for entry in table.tables("fixed"):
        name = entry.name("name")
        entry.where = f"{table.where}: fixed {name!r}"
        joint = _parent(entry, joints)
        at_joint, end = chain.place(entry)
        rotation, origin = at_joint.then(end)
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
    frame = robot.frame(link)
    start, end = (
        Placement(frame.rotation, frame.origin).point(
            cast(Vector3, tuple(1e-3 * value for value in table.numbers(key, 3)))
        )
        for key in ("from_mm", "to_mm")
    )
    table.finish()
    return LinkAxis(link, start, end)


def _kind(table: Table) -> Literal["revolute", "prismatic"]:
    return cast(Literal["revolute", "prismatic"], table.text("kind", "revolute", ("revolute", "prismatic")))


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
