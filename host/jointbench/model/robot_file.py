"""The robot file: a robot in TOML, Denavit-Hartenberg modified or standard, units in the names of the keys."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from jointbench.arrays import IDENTITY, Vector3
from jointbench.errors import RobotError
from jointbench.model.compensation import KINDS as COMPENSATION_KINDS
from jointbench.model.drive import Drive
from jointbench.model.joint import (
    CORNERS,
    HERE,
    Capsule,
    Foot,
    Joint,
    Link,
    Mimic,
    PlacedLink,
    Placement,
    as_matrix,
    combine_links,
    modified_dh,
    standard_dh,
)
from jointbench.model.robot import MOST_JOINTS, STANDARD_GRAVITY, Frame, Robot, read_tolerances
from jointbench.model.robot_tables import (
    UNITS,
    Units,
    check_torque,
    read_body,
    read_couplings,
    read_drive,
    read_inertia,
    read_link,
    read_link_kind,
    with_coupling_ratios,
)
from jointbench.model.table import Table, read_table
from jointbench.model.urdf import read_urdf
from jointbench.model.variants import with_compensations, with_payload

VERSION = 1
_BASE = "base"


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
    return _robot(read_table(path, "robot"), path.parent)


class _Parts(NamedTuple):
    """What a robot consists of before its motors are coupled, its loads attached."""

    joints: tuple[Joint, ...]
    drives: list[Drive]
    home: tuple[float, ...]
    frames: tuple[Frame, ...]
    base_link: Link | None
    part_faults: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...] = ()
    capsules: tuple[Capsule, ...] = ()


def _robot(table: Table, folder: Path) -> Robot:
    table.version(VERSION)
    drawn = _drawn(table, folder)
    parts = _by_denavit_hartenberg(table) if drawn is None else _by_urdf(table, drawn)
    couplings = read_couplings(table, parts.drives)
    robot = Robot(
        name=table.name("name", drawn and drawn.name),
        joints=parts.joints,
        drives=with_coupling_ratios(table, parts.drives, couplings),
        couplings=couplings,
        gravity=cast(Vector3, table.numbers("gravity_m_s2", 3, STANDARD_GRAVITY)),
        home=parts.home,
        source=table.text("source", drawn and drawn.source),
        description=table.text("description", drawn and drawn.description),
        frames=parts.frames,
        assumptions=parts.assumptions,
        base_link=parts.base_link,
        part_faults=parts.part_faults,
    )
    table.check_unique("drive", [drive.name for drive in robot.drive_train.drives])
    payloads = table.tables("payloads")
    table.check_unique("payload", [entry.name("name") for entry in payloads])
    for entry in payloads:
        robot = _loaded(entry, robot)
    capsules = tuple(_capsule(entry, robot) for entry in table.tables("capsules"))
    contained = {f"link {capsule.link!r}: its collision mesh is not used" for capsule in capsules}
    assumptions = tuple(line for line in robot.assumptions if line not in contained)
    robot = replace(robot, capsules=parts.capsules + capsules, assumptions=assumptions)
    robot = _compensated(table, robot)
    robot = replace(robot, feet=tuple(_foot(entry, robot) for entry in table.tables("feet")))
    table.check_unique("foot", [foot.name for foot in robot.feet])
    robot = replace(robot, link_kinds=tuple(read_link_kind(entry, robot) for entry in table.tables("link_kinds")))
    table.check_unique("link kind", [kind.name for kind in robot.link_kinds])
    table.check_unique("link of a kind", [axis.link for kind in robot.link_kinds for axis in kind.links])
    if table.has("tolerances"):
        robot = replace(robot, tolerances=read_tolerances(table.table("tolerances"), robot.joint_names))
    table.finish()
    check_torque(table, robot)
    return robot


def _drawn(table: Table, folder: Path) -> Robot | None:
    """Read the URDF that a robot file is about, if it is about one."""
    if not table.has("urdf"):
        return None
    return read_urdf(folder / table.text("urdf"), floating_base=table.flag("floating_base", False))


def _by_urdf(table: Table, drawn: Robot) -> _Parts:
    """Joints and links of a URDF, with the drives of [[joints]] and what these say otherwise of limits and home.

    A joint without an entry stays as a URDF has it: its torque is measured at the joint.
    """
    independent = {joint.name: k for k, joint in enumerate(drawn.independent_joints)}
    joints = {joint.name: joint for joint in drawn.joints}
    drives, home, assumptions = list(drawn.drives), list(drawn.home), list(drawn.assumptions)
    entries = table.tables("joints")
    table.check_unique("joint", [entry.name("name") for entry in entries])
    for entry in entries:
        name = entry.name("name")
        entry.where = f"{table.where}: joint {name!r}"
        if name not in independent:
            entry.fault(f"moves by itself in no joint of {table.text('urdf')}; its joints are {', '.join(independent)}")
        index = independent[name]
        joints[name], home[index] = _with_limits(entry, joints[name], home[index])
        if joints[name].passive or entry.has("drive"):
            drives[index] = read_drive(entry, joints[name])
        else:
            drives[index] = replace(drives[index], current_limit=joints[name].torque_limit)
        entry.finish()
        assumptions = [line for line in assumptions if not line.startswith(tuple(_stated(entry, joints[name])))]
    if table.has("fixed") or table.has("base_link"):
        table.fault("[[fixed]] and [base_link] are of a robot without a urdf; write them into that file")
    return _Parts(
        tuple(joints.values()), drives, tuple(home), drawn.frames, drawn.base_link, drawn.part_faults,
        tuple(assumptions), drawn.capsules,
    )  # fmt: skip


def _stated(table: Table, joint: Joint) -> Iterator[str]:
    """How assumptions of `read_urdf` begin that do not hold because the robot file says it itself."""
    units = UNITS[joint.kind]
    for what, keys in {
        "position": (f"position_{units.motion}",),
        "velocity limit": (f"velocity_{units.motion}_s", units.torque),
        "acceleration limit": (f"acceleration_{units.motion}_s2",),
    }.items():
        if all(table.has(key) for key in keys):
            yield f"joint {joint.name!r}: {what} "


def _with_limits(table: Table, joint: Joint, home: float) -> tuple[Joint, float]:
    """Return a joint of a URDF with the limits, and its home, that the robot file gives it instead."""
    units = UNITS[joint.kind]
    low, high = _range(table, units, joint.position_limits)
    jerk = table.positive_or_none(f"jerk_{units.motion}_s3")
    limited = replace(
        joint,
        position_limits=(low, high),
        velocity_limit=units.to_si * table.positive(f"velocity_{units.motion}_s", joint.velocity_limit / units.to_si),
        acceleration_limit=units.to_si
        * table.positive(f"acceleration_{units.motion}_s2", joint.acceleration_limit / units.to_si),
        torque_limit=table.positive(units.torque, joint.torque_limit),
        jerk_limit=None if jerk is None else units.to_si * jerk,
        passive=table.flag("passive", False),
    )
    inside = home if low < home < high else (low + high) / 2.0
    return limited, _home(table, units, inside, (low, high))


def _range(table: Table, units: Units, default: tuple[float, float] | None = None) -> tuple[float, float]:
    """Read lowest and highest position [rad or m]."""
    key = f"position_{units.motion}"
    in_units = None if default is None else tuple(bound / units.to_si for bound in default)
    low, high = (units.to_si * bound for bound in table.numbers(key, 2, in_units))
    if low >= high:
        table.fault(f"{key} must be [lowest, highest] with lowest below highest")
    return low, high


def _home(table: Table, units: Units, default: float, position_range: tuple[float, float]) -> float:
    """Read where motions begin and end [rad or m]."""
    home = units.to_si * table.number(f"home_{units.motion}", default / units.to_si)
    if not position_range[0] < home < position_range[1]:
        table.fault(f"home_{units.motion} = {home / units.to_si:g} must lie inside position_{units.motion}")
    return home


def _by_denavit_hartenberg(table: Table) -> _Parts:
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
    return _Parts(tuple(joints), drives, tuple(home), (*chain.link_frames, *frames), base_link, part_faults)


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
    low, high = _range(table, units)
    home = _home(table, units, 0.0, (low, high))
    placement, end = chain.place(table)
    jerk = table.positive_or_none(f"jerk_{units.motion}_s3")
    passive = table.flag("passive", False)
    link = Link(name, neglected=True) if passive and not table.has("link") else read_link(table, name)
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
        link=_seen_from_joint(read_link(table, name), end),
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
    return read_body(table.table("base_link"), _BASE) if table.has("base_link") else Link(_BASE)


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
        placed = PlacedLink(read_link(entry, name), rotation, origin)
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
    inertia = (read_inertia(table.table("inertia_kg_m2")),) if table.has("inertia_kg_m2") else ()
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
