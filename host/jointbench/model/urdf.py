"""URDF files: links, joints and collision shapes in XML, as ROS and most drawing programs write them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import IDENTITY, Array, Vector3
from jointbench.model.drive import Drive
from jointbench.model.joint import Capsule, Joint, Link, Mimic, PlacedLink, as_matrix, combine_links
from jointbench.model.robot import MOST_JOINTS, STANDARD_GRAVITY, Frame, Robot
from jointbench.model.table import Element, read_xml


@dataclass(frozen=True, eq=False)
class CenteredCapsule:
    """A capsule about the origin of a shape: half of its axis [m], shape (3,), and its radius [m], 0 for nothing."""

    half: Array
    radius: float


def capsule_around(collision: Element) -> CenteredCapsule | None:
    """Return the capsule that contains the shape of a <collision>; None for a mesh, which is not opened.

    A ball and a capsule are themselves; a cylinder's capsule has round ends beyond its flat ones; a box's has its axis
    along the longest edge and passes through all corners.

    Raises:
        FileError: it has no shape, or one whose size is missing, mistyped or negative.
    """
    geometry = collision.needed("geometry")
    if (ball := geometry.child("sphere")) is not None:
        return CenteredCapsule(np.zeros(3), _size(ball, "radius"))
    for tag in ("cylinder", "capsule"):
        if (round_shape := geometry.child(tag)) is not None:
            return CenteredCapsule(
                np.array([0.0, 0.0, _size(round_shape, "length") / 2.0]), _size(round_shape, "radius")
            )
    if (box := geometry.child("box")) is not None:
        box.text("size")  # a box of no size is a mistake, not nothing
        edges = np.array(box.vector("size", (0.0, 0.0, 0.0)))
        if edges.min() < 0.0:
            box.fault(f"size = {edges.min():g} must not be below 0")
        longest = int(np.argmax(edges))
        other_edges = np.delete(edges, longest)
        return CenteredCapsule(np.eye(3)[longest] * edges[longest] / 2.0, math.hypot(*other_edges.tolist()) / 2.0)
    if geometry.child("mesh") is None:
        geometry.fault("has none of <sphere>, <cylinder>, <capsule>, <box> and <mesh>; add the shape")
    return None


def _size(shape: Element, attribute: str) -> float:
    value = shape.number(attribute)
    if value < 0.0:
        shape.fault(f"{attribute} = {value:g} must not be below 0")
    return value


_KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}
_REACHED_IN_S = 0.2  # the velocity limit, where a file says nothing of acceleration
_UNLIMITED = 10.0, 10.0  # rad/s and N·m of a continuous joint without <limit>, which the format allows: a wheel's
_ORIGIN: Vector3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class _Edge:
    """A <joint> as written: which links it joins, and where."""

    element: Element
    name: str
    kind: str
    parent: str
    child: str
    rotation: Array
    origin: Array


def read_urdf(path: Path, *, floating_base: bool = False) -> Robot:
    """Read a robot from its URDF file.

    Fixed joints are no joints here: what they carry becomes part of the link that carries them, and keeps its name as a
    frame. The root link is the base. Each joint has a drive that stands for torque at the joint itself; a URDF knows
    no motors. Where it gives no acceleration limit, that is what reaches the velocity limit in 0.2 s. The shapes of
    <collision> become capsules that contain them; meshes are not used.

    Args:
        path: the file; nothing that it refers to is opened.
        floating_base: whether the root link is free to move; it stands still otherwise.

    Returns:
        The robot; impossible inertias and what was assumed are in its `warnings`.

    Raises:
        FileError: the file cannot be read, is no URDF, or an entry is missing, mistyped or contradicts another.
    """
    document = read_xml(path)
    if document.tag != "robot":
        document.fault(f"its root is <{document.tag}>, a URDF's is <robot>")
    links = _unique(document, "link")
    edges = [_edge(element, links) for element in _unique(document, "joint").values()]
    root = _root(document, links, edges)
    return _Reader(document, links, edges).robot(root, floating_base)


class _Reader:
    def __init__(self, document: Element, links: dict[str, Element], edges: list[_Edge]) -> None:
        self._document, self._links = document, links
        self._below: dict[str, list[_Edge]] = {name: [] for name in links}
        for edge in edges:
            self._below[edge.parent].append(edge)
        self._joints: list[Joint] = []
        self._home: list[float] = []
        self._frames: list[Frame] = []
        self._capsules: list[Capsule] = []
        self._assumed: list[str] = []
        self._followed: list[tuple[int, Element]] = []
        self._faults: list[tuple[str, str]] = []

    def robot(self, root: str, floating_base: bool) -> Robot:
        self._add_below(root)
        if not self._joints:
            self._document.fault("no joint moves; a robot needs at least one that is not fixed")
        if len(self._joints) > MOST_JOINTS:
            self._document.fault(f"{len(self._joints)} joints move; at most {MOST_JOINTS} are allowed")
        base_link = self._body(root)
        self._resolve_mimics()
        joints = tuple(self._joints)
        independent = [joint for joint in joints if joint.mimic is None]
        home = tuple(position for joint, position in zip(joints, self._home, strict=True) if joint.mimic is None)
        return Robot(
            name=self._document.name(),
            joints=joints,
            drives=tuple(
                Drive(joint.name, joint.name, "direct", 1.0, 1.0, joint.torque_limit) for joint in independent
            ),
            couplings=(),
            gravity=STANDARD_GRAVITY,
            home=home,
            source=self._document.where,
            description=f"read from a URDF with {len(self._links)} links",
            frames=tuple(self._frames),
            assumptions=tuple(self._assumed),
            capsules=tuple(self._capsules),
            base_link=base_link if floating_base else None,
            part_faults=tuple(self._faults),
        )

    def _add_below(self, root: str) -> None:
        """Add all that the base carries, depth first and else in the file's order: links as frames, and joints."""
        self._add_frame(Frame(root, -1, IDENTITY, _ORIGIN))
        stack = [(edge, -1, np.eye(3), np.zeros(3)) for edge in reversed(self._below[root])]
        while stack:
            edge, carrier, rotation, origin = stack.pop()
            rotation, origin = rotation @ edge.rotation, origin + rotation @ edge.origin
            if edge.kind != "fixed":
                carrier = self._add_joint(edge, carrier, rotation, origin)
                rotation, origin = np.eye(3), np.zeros(3)
            self._add_frame(Frame(edge.child, carrier, as_matrix(rotation), _vector(origin)))
            stack += [(child_edge, carrier, rotation, origin) for child_edge in reversed(self._below[edge.child])]

    def _add_frame(self, frame: Frame) -> None:
        """Add a link's frame, and the capsules that contain its shapes."""
        self._frames.append(frame)
        for element in self._links[frame.name].children("collision"):
            rotation, origin = placement(element)
            shape = capsule_around(element)
            if shape is None:
                assumption = f"link {frame.name!r}: its collision mesh is not used"
                self._assumed += [assumption] if assumption not in self._assumed else []
            elif shape.radius > 0.0:
                axes, middle = np.array(frame.rotation), np.array(frame.origin)
                middle, half = middle + axes @ origin, axes @ rotation @ shape.half
                ends = _vector(middle - half), _vector(middle + half)
                self._capsules.append(Capsule(frame.name, frame.joint, *ends, shape.radius))

    def _add_joint(self, edge: _Edge, carrier: int, rotation: Array, origin: Array) -> int:
        element, index = edge.element, len(self._joints)
        kind = _KINDS[edge.kind]
        limit = element.child("limit")
        if limit is None and edge.kind != "continuous":
            element.fault("has no element <limit>; give its velocity and effort")
        low, high = (-math.pi, math.pi) if limit is None else _range(limit, edge.kind)
        if kind == "revolute" and edge.kind != "continuous" and limit is not None and not _has_range(limit):
            self._assumed.append(f"joint {edge.name!r}: position from -180 to 180 degrees; the file gives no range")
        if limit is None:
            velocity, effort = _UNLIMITED
            self._assumed.append(
                f"joint {edge.name!r}: velocity limit {velocity:g} rad/s and effort {effort:g} N·m; the file gives "
                "it no <limit>"
            )
        else:
            velocity, effort = limit.positive("velocity"), limit.positive("effort")
        acceleration = velocity / _REACHED_IN_S
        if limit is not None and limit.has("acceleration"):
            acceleration = limit.positive("acceleration")
        elif limit is not None:
            self._assumed.append(
                f"joint {edge.name!r}: acceleration limit {acceleration:g}, which reaches the velocity limit in "
                f"{_REACHED_IN_S:g} s; the file gives none"
            )
        self._joints.append(
            Joint(
                name=edge.name,
                kind="revolute" if kind == "revolute" else "prismatic",
                parent=carrier,
                rotation=as_matrix(rotation),
                origin=_vector(origin),
                axis=_axis(element),
                position_limits=(low, high),
                velocity_limit=velocity,
                acceleration_limit=acceleration,
                torque_limit=effort,
                link=self._body(edge.child),
            )
        )
        self._home.append(0.0 if low < 0.0 < high else (low + high) / 2.0)
        if (mimic := element.child("mimic")) is not None:
            self._followed.append((index, mimic))
        return index

    def _body(self, name: str) -> Link:
        """Return a link with all that is fixed to it; faults of them are noted."""
        link, fixed_links = _link(name, self._links[name]), list(self._fixed_below(name))
        for body in (link, *(placed.link for placed in fixed_links)):
            if body.physical_fault:
                self._faults.append((body.name, body.physical_fault))
        return combine_links(link, fixed_links)

    def _fixed_below(self, name: str) -> Iterator[PlacedLink]:
        """Links that are fixed to a link, over any number of fixed joints."""
        stack = [(name, np.eye(3), np.zeros(3))]
        while stack:
            name, rotation, origin = stack.pop()
            for edge in self._below[name]:
                if edge.kind == "fixed":
                    child_rotation, child_origin = rotation @ edge.rotation, origin + rotation @ edge.origin
                    yield PlacedLink(
                        _link(edge.child, self._links[edge.child]), as_matrix(child_rotation), _vector(child_origin)
                    )
                    stack.append((edge.child, child_rotation, child_origin))

    def _resolve_mimics(self) -> None:
        """Resolve the names of joints that others mimic, also over joints that mimic others themselves."""
        index = {joint.name: i for i, joint in enumerate(self._joints)}
        elements = dict(self._followed)
        for i, element in self._followed:
            followed, factor, offset, seen = i, 1.0, 0.0, list[str]()
            while (rule := elements.get(followed)) is not None:
                name = rule.text("joint")
                if name not in index:
                    rule.fault(f"no moving joint {name!r}; there are {', '.join(index)}")
                if name in seen:
                    element.fault(f"joints {', '.join(seen)} mimic each other in a loop; let one of them be free")
                seen.append(name)
                offset += factor * rule.number("offset", 0.0)
                factor *= rule.number("multiplier", 1.0)
                followed = index[name]
            self._joints[i] = replace(self._joints[i], mimic=Mimic(followed, factor, offset))


def _unique(document: Element, tag: str) -> dict[str, Element]:
    elements: dict[str, Element] = {}
    for element in document.children(tag):
        name = element.name()
        if name in elements:
            document.fault(f"{tag} {name!r} is there twice; names must differ")
        elements[name] = element
    return elements


def _edge(element: Element, links: dict[str, Element]) -> _Edge:
    kind = element.text("type")
    if kind not in (*_KINDS, "fixed"):
        element.fault(f"type {kind!r} is not read; allowed are {', '.join((*_KINDS, 'fixed'))}")
    ends: list[str] = []
    for tag in ("parent", "child"):
        name = element.needed(tag).text("link")
        if name not in links:
            element.fault(f"<{tag}> names link {name!r}, which is not in the file")
        ends.append(name)
    rotation, origin = placement(element)
    return _Edge(element, element.name(), kind, ends[0], ends[1], rotation, origin)


def _root(document: Element, links: dict[str, Element], edges: list[_Edge]) -> str:
    """Name of the only link that no joint carries; every other one hangs below it."""
    carrying_joint: dict[str, str] = {}
    for edge in edges:
        if edge.child in carrying_joint:
            edge.element.fault(
                f"link {edge.child!r} already hangs on joint {carrying_joint[edge.child]!r}; closed loops are not read"
            )
        carrying_joint[edge.child] = edge.name
    if not links:
        document.fault("has no element <link>; a robot needs at least two")
    roots = [name for name in links if name not in carrying_joint]
    if len(roots) != 1:
        document.fault(
            f"{len(roots)} links hang on no joint ({', '.join(roots) or 'the joints form a loop'}); "
            f"exactly one must be the base"
        )
    below: dict[str, list[str]] = {}
    for edge in edges:
        below.setdefault(edge.parent, []).append(edge.child)
    reached = [roots[0]]
    for name in reached:  # which grows on the way
        reached += below.get(name, ())
    if len(reached) < len(links):
        loop_links = ", ".join(sorted(set(links).difference(reached)))
        document.fault(f"links {loop_links} hang on each other in a loop, and not on {roots[0]!r}")
    return roots[0]


def placement(element: Element) -> tuple[Array, Array]:
    """Rotation and origin of an element's <origin>; roll, pitch and yaw are about fixed axes."""
    origin = element.child("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    rotation = scipy.spatial.transform.Rotation.from_euler("xyz", origin.vector("rpy", _ORIGIN))
    return rotation.as_matrix(), np.array(origin.vector("xyz", _ORIGIN))


def _link(name: str, element: Element) -> Link:
    inertial = element.child("inertial")
    if inertial is None:
        return Link(name)
    rotation, center = placement(inertial)
    about = inertial.needed("inertia")
    xx, xy, xz, yy, yz, zz = (about.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    inertia = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
    return Link(name, inertial.needed("mass").number("value"), _vector(center), as_matrix(inertia))


def _has_range(limit: Element) -> bool:
    return limit.has("lower") or limit.has("upper")


def _range(limit: Element, kind: str) -> tuple[float, float]:
    """Lowest and highest position; half a turn to both sides where a joint that turns has no range."""
    if kind == "continuous" or (kind == "revolute" and not _has_range(limit)):
        return -math.pi, math.pi
    low, high = limit.number("lower", 0.0), limit.number("upper", 0.0)
    if low >= high:
        limit.fault(f"lower = {low:g} must be below upper = {high:g}")
    return low, high


def _axis(joint: Element) -> Vector3:
    element = joint.child("axis")
    axis = np.array(element.vector("xyz", (1.0, 0.0, 0.0)) if element else (1.0, 0.0, 0.0))
    size = float(np.abs(axis).max())
    if size < 1e-6:
        joint.fault("its <axis> is zero; give the direction it moves about or along")
    axis = axis / size  # so that no square is beyond all numbers
    return _vector(axis / np.linalg.norm(axis))


def _vector(array: Array) -> Vector3:
    x, y, z = array.tolist()
    return x, y, z
