"""Links with their inertia, shape and feet, and the joints that move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, cast

import numpy as np

from jointbench.arrays import IDENTITY, Array, Matrix3, Vector3
from jointbench.errors import RobotError

PARAMETER_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""The ten standard parameters of a link in their order everywhere; inertia about the link frame's origin."""

CORNERS = ("front left", "front right", "rear right", "rear left")

_FLAT = 1e-3  # [m]

Z_AXIS: Vector3 = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Capsule:
    """All points no farther than `radius` from a segment, its axis, that is fixed to a link or to the base.

    Attributes:
        link: name of the link that it contains, of a link fixed to one, or of the base.
        joint: index of the joint that moves it; -1 for the base.
        start, end: of the axis, in the frame of that joint's link [m]; equal for a ball.
        radius: above zero [m].
    """

    link: str
    joint: int
    start: Vector3
    end: Vector3
    radius: float


@dataclass(frozen=True)
class Link:
    """A rigid body fixed to its joint's frame; its inertia is optional and may be a guess.

    Attributes:
        name: unique within the robot.
        mass: [kg].
        center_of_mass: in the link frame [m].
        inertia_about_center_of_mass: in the axes of the link frame [kg·m²].
        assumed: True when the values are plausible rather than published or measured.
        neglected: True where no inertia is given because it is taken for nothing, not because it is unknown.
    """

    name: str
    mass: float | None = None
    center_of_mass: Vector3 | None = None
    inertia_about_center_of_mass: Matrix3 | None = None
    assumed: bool = False
    neglected: bool = False

    @property
    def modelled(self) -> bool:
        """True where it has parameters of its own: of all links but the neglected ones."""
        return self.mass is not None or not self.neglected

    @property
    def standard_parameters(self) -> Array | None:
        """The link's ten parameters in the order of PARAMETER_NAMES, shape (10,), or None where not known.

        The inertia moves to the link frame by the parallel-axis theorem: I = I_c + m (|c|² E - c cᵀ).
        """
        if self.mass is None or self.center_of_mass is None or self.inertia_about_center_of_mass is None:
            return None if self.modelled else np.zeros(len(PARAMETER_NAMES))
        c = np.array(self.center_of_mass)
        inertia = np.array(self.inertia_about_center_of_mass) + self.mass * (c @ c * np.eye(3) - np.outer(c, c))
        upper = inertia[np.triu_indices(3)]
        return np.concatenate([[self.mass], self.mass * c, upper])

    @property
    def physical_fault(self) -> str | None:
        """Reason why no body can have this inertia, None where one can, or where none is given.

        A body exists when its mass is positive and the second moments about its centre of mass,
        S = tr(I)/2 E - I, are positive definite: the triangle inequality of the principal inertias.
        """
        if self.mass is None or self.inertia_about_center_of_mass is None:
            return None
        if self.mass <= 0.0:
            return f"mass {self.mass:g} kg is not positive"
        low, middle, high = np.linalg.eigvalsh(np.array(self.inertia_about_center_of_mass))
        if low <= 0.0:
            return f"smallest principal inertia {low:.4g} kg·m² is not positive"
        if low + middle <= high:
            return (
                f"principal inertias {low:.4g}, {middle:.4g}, {high:.4g} kg·m² break the triangle inequality: "
                f"the largest must be less than the sum of the others"
            )
        return None


@dataclass(frozen=True)
class LinkAxis:
    """The line on which a link's centre of mass lies, from the joint at its start to its end.

    Attributes:
        link: its name.
        start, end: in the link's frame [m].
    """

    link: str
    start: Vector3
    end: Vector3

    def __post_init__(self) -> None:
        """Refuse an axis without a direction.

        Raises:
            RobotError: it starts where it ends.
        """
        if self.length == 0.0:
            raise RobotError(f"the axis of link {self.link!r} starts where it ends; give two places on it")

    @cached_property
    def length(self) -> float:
        """Distance from start to end [m]."""
        return float(np.linalg.norm(np.subtract(self.end, self.start)))

    @cached_property
    def direction(self) -> Array:
        """Direction from start to end, of length 1, shape (3,)."""
        return np.subtract(self.end, self.start) / self.length

    def along(self, point: Vector3) -> float:
        """Distance of a point of the link's frame along the axis, from its start [m]."""
        return float(np.subtract(point, self.start) @ self.direction)


@dataclass(frozen=True)
class LinkKind:
    """Links of one mass, whose centres of mass are equally far along their axes, as a left and a right thigh are.

    Attributes:
        name: of the kind.
        links: their axes, at least one, of one length.
    """

    name: str
    links: tuple[LinkAxis, ...]

    def __post_init__(self) -> None:
        """Refuse what is no kind.

        Raises:
            RobotError: it has no links, or their axes have different lengths.
        """
        if not self.links:
            raise RobotError(f"link kind {self.name!r} has no links; name at least one")
        for axis in self.links:
            if not np.isclose(axis.length, self.length, rtol=1e-6, atol=0.0):
                raise RobotError(
                    f"link kind {self.name!r}: the axis of {axis.link!r} is {1e3 * axis.length:g} mm long, that of "
                    f"{self.links[0].link!r} {1e3 * self.length:g} mm; links of one kind are alike"
                )

    @property
    def length(self) -> float:
        """Length of the axes [m]."""
        return self.links[0].length


@dataclass(frozen=True)
class Foot:
    """A flat sole, and where its sensors are.

    Attributes:
        name: of the foot, and of the board that reads its sensors.
        joint: index of the joint that moves it; -1 for the base.
        corners: places of the sensors in the frame of that joint's link [m], in the order of CORNERS.
    """

    name: str
    joint: int
    corners: tuple[Vector3, Vector3, Vector3, Vector3]

    def __post_init__(self) -> None:
        """Refuse corners that span no sole.

        Raises:
            RobotError: they are not flat, or do not go round it in the order of CORNERS.
        """
        corners = np.array(self.corners)
        sides = np.roll(corners, -1, axis=0) - corners
        areas = np.cross(sides, np.roll(sides, -1, axis=0))
        if not (areas @ areas.mean(axis=0) > 0.0).all():
            raise RobotError(
                f"foot {self.name!r}: its corners go round no sole; give four in the order {', '.join(CORNERS)}"
            )
        flatness_error = float(np.abs((corners - corners.mean(axis=0)) @ self.axes[:, 2]).max())
        if flatness_error > _FLAT:
            raise RobotError(
                f"foot {self.name!r}: its corners lie {1e3 * flatness_error:.1f} mm off a plane; a sole is flat to "
                f"{1e3 * _FLAT:g} mm"
            )

    @cached_property
    def origin(self) -> Array:
        """Middle of the corners in the link's frame [m], shape (3,)."""
        return np.array(self.corners).mean(axis=0)

    @cached_property
    def axes(self) -> Array:
        """Forward, left and up in the link's frame as columns, shape (3, 3)."""
        front_left, front_right, rear_right, rear_left = np.array(self.corners)
        forward = front_left + front_right - rear_left - rear_right
        up = np.cross(forward, front_left + rear_left - front_right - rear_right)
        x, z = forward / np.linalg.norm(forward), up / np.linalg.norm(up)
        return np.stack([x, np.cross(z, x), z], axis=1).astype(np.float64)

    @cached_property
    def points(self) -> Array:
        """The corners in the sole's plane, forward and left of its middle [m], shape (4, 2)."""
        return (np.array(self.corners) - self.origin) @ self.axes[:, :2]

    def pressure_point(self, forces: Array) -> Array:
        """Centre of the ground's pressure, forward and left of the sole's middle: sum of f_i p_i over sum of f_i [m].

        On a flat ground this is the zero-moment point.

        Args:
            forces: at the corners, normal to the sole and positive when it is pressed [N], shape (..., 4).

        Returns:
            Shape (..., 2); NaN where the forces' sum is not above zero.
        """
        total = forces.sum(axis=-1, keepdims=True)
        return np.divide(forces @ self.points, total, out=np.full((*forces.shape[:-1], 2), np.nan), where=total > 0.0)

    def distance_to_edge(self, points: Array) -> Array:
        """Distance of points of the sole from its nearest edge, between the corners [m]; negative outside.

        Args:
            points: forward and left of the sole's middle [m], shape (..., 2).

        Returns:
            Shape (...).
        """
        sides = np.roll(self.points, -1, axis=0) - self.points
        # The corners go round clockwise as seen from above, so that the right of each side is inside.
        normals = np.stack([sides[:, 1], -sides[:, 0]], axis=1) / np.linalg.norm(sides, axis=1, keepdims=True)
        return np.asarray((points @ normals.T - (self.points * normals).sum(axis=1)).min(axis=-1), dtype=np.float64)


@dataclass(frozen=True)
class Mimic:
    """Rule of a joint that has no position of its own: position = factor * (position of `joint`) + offset.

    Attributes:
        joint: index of the joint it follows, which follows no other.
        factor: its motion per motion of that joint.
        offset: [rad or m].
    """

    joint: int
    factor: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint, and the link that moves with it.

    The link's frame in that of its parent is the fixed placement (rotation, origin), then a turn about the axis by q
    for a revolute joint, or a shift along it by q for a prismatic one.

    Attributes:
        name: unique within the robot.
        kind: "revolute" (position in rad, torque in N·m) or "prismatic" (position in m, force in N).
        parent: index of the joint whose link carries this one; -1 for the base.
        rotation: of the link's frame in its parent's at q = 0, rows as tuples.
        origin: of the link's frame in its parent's at q = 0 [m].
        axis: of the motion, in the link's frame, of length 1.
        position_limits: lowest and highest position [rad or m].
        velocity_limit, acceleration_limit: largest magnitudes [rad/s, rad/s²; m/s, m/s²].
        torque_limit: largest magnitude at the joint [N·m or N].
        link: the body that moves with the joint.
        mimic: which joint it follows, None where its position is its own.
        jerk_limit: largest magnitude [rad/s³ or m/s³], None where there is no limit.
        passive: its position is measured, but its torque has no model, as of a joint that is moved by hand.
    """

    name: str
    kind: Literal["revolute", "prismatic"]
    parent: int
    rotation: Matrix3
    origin: Vector3
    position_limits: tuple[float, float]
    velocity_limit: float
    acceleration_limit: float
    torque_limit: float
    link: Link
    axis: Vector3 = Z_AXIS
    mimic: Mimic | None = None
    jerk_limit: float | None = None
    passive: bool = False

    @property
    def placement(self) -> tuple[Array, Array]:
        """Rotation (3, 3) and origin [m] (3,) of the link's frame in its parent's frame at q = 0."""
        return np.array(self.rotation), np.array(self.origin)


def modified_dh(alpha: float, a: float, d: float, theta: float) -> tuple[Matrix3, Vector3]:
    """Placement Rx(alpha) Tx(a) Rz(theta) Tz(d) of a link's frame whose joint moves about or along z.

    Args:
        alpha, theta: [rad]; a revolute joint's position adds to theta.
        a, d: [m]; a prismatic joint's position adds to d.

    Returns:
        Rotation and origin [m] in the parent's frame.

    Source: Craig, Introduction to Robotics, 1986, sec. 3.4.
    """
    ca, sa = np.cos(alpha), np.sin(alpha)
    ct, st = np.cos(theta), np.sin(theta)
    rotation = np.array([[ct, -st, 0.0], [st * ca, ct * ca, -sa], [st * sa, ct * sa, ca]])
    return as_matrix(rotation), (float(a), float(-sa * d), float(ca * d))


def standard_dh(alpha: float, a: float, d: float, theta: float) -> tuple[Placement, Placement]:
    """Placement Rz(theta) Tz(d) Tx(a) Rx(alpha) of a link's frame, whose joint moves about or along the z before it.

    Args:
        alpha, theta: [rad]; a revolute joint's position adds to theta.
        a, d: [m]; a prismatic joint's position adds to d.

    Returns:
        Where the joint moves, Rz(theta) Tz(d) in the frame of the link before it, and from there the link's frame,
        Tx(a) Rx(alpha); rotation and origin [m] each.

    Source: Denavit & Hartenberg, J. Applied Mechanics 22, 1955; as in Siciliano et al., Robotics, 2009, sec. 2.8.2.
    """
    ca, sa = np.cos(alpha), np.sin(alpha)
    ct, st = np.cos(theta), np.sin(theta)
    joint = as_matrix(np.array([[ct, -st, 0.0], [st, ct, 0.0], [0.0, 0.0, 1.0]]))
    link = as_matrix(np.array([[1.0, 0.0, 0.0], [0.0, ca, -sa], [0.0, sa, ca]]))
    return Placement(joint, (0.0, 0.0, float(d))), Placement(link, (float(a), 0.0, 0.0))


class Placement(NamedTuple):
    """Rotation, rows as tuples, and origin [m] of a frame in another one."""

    rotation: Matrix3
    origin: Vector3

    def then(self, other: Placement) -> Placement:
        """Return the placement of a frame that lies so in this one."""
        rotation = np.array(self.rotation)
        x, y, z = (np.array(self.origin) + rotation @ np.array(other.origin)).tolist()
        return Placement(as_matrix(rotation @ np.array(other.rotation)), (x, y, z))

    def point(self, point: Vector3) -> Vector3:
        """Return a point of the frame in the other one [m]."""
        return self.then(Placement(IDENTITY, point)).origin


HERE = Placement(IDENTITY, (0.0, 0.0, 0.0))
"""The frame itself."""


def as_matrix(array: Array) -> Matrix3:
    """Return a (3, 3) array as the tuples of frozen records."""
    return cast(Matrix3, tuple(map(tuple, array.tolist())))


@dataclass(frozen=True)
class PlacedLink:
    """A link fixed to another one, with rotation and origin [m] of its frame in the other's."""

    link: Link
    rotation: Matrix3
    origin: Vector3


def combine_links(link: Link, placed_links: Sequence[PlacedLink]) -> Link:
    """Combine a link with others fixed to it, in its own frame; links without inertia add nothing.

    Masses and first moments add; inertias do about the common centre of mass, by the parallel-axis theorem.
    """
    bodies = [
        _body(placed)
        for placed in (PlacedLink(link, IDENTITY, (0.0, 0.0, 0.0)), *placed_links)
        if placed.link.mass is not None
    ]
    if not bodies or (len(bodies) == 1 and link.mass is not None):
        return link
    mass = sum(body[0] for body in bodies)
    center = sum(body[0] * body[1] for body in bodies) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part_mass, part_center, part_inertia in bodies:
        arm = part_center - center
        inertia += part_inertia + part_mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assumed = link.assumed or any(placed.link.assumed for placed in placed_links)
    x, y, z = np.asarray(center).tolist()
    return replace(
        link,
        mass=float(mass),
        center_of_mass=(x, y, z),
        inertia_about_center_of_mass=as_matrix(inertia),
        assumed=assumed,
    )


def _body(placed: PlacedLink) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it in the frame that it is placed in."""
    link, rotation = placed.link, np.array(placed.rotation)
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        raise ValueError(f"link {link.name!r} has no inertia")
    center = np.array(placed.origin) + rotation @ link.center_of_mass
    return link.mass, center, rotation @ np.array(link.inertia_about_center_of_mass) @ rotation.T
