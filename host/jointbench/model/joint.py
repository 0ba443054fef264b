"""Joints: where one sits on its parent, how it moves, how far; and links that are fixed to each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from jointbench.arrays import IDENTITY, Array, Matrix3, Vector3
from jointbench.model.link import Link

Z_AXIS: Vector3 = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Mimic:
    """What moves a joint that has no position of its own: position = factor * (position of `joint`) + offset.

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


def as_matrix(array: Array) -> Matrix3:
    """A (3, 3) array as the tuples of frozen records."""
    return cast(Matrix3, tuple(map(tuple, array.tolist())))


@dataclass(frozen=True)
class Placed:
    """A link somewhere on another one: rotation and origin [m] of its frame in the other's."""

    link: Link
    rotation: Matrix3
    origin: Vector3


def joined(link: Link, parts: Sequence[Placed]) -> Link:
    """A link with others fixed to it, as one link in its own frame; parts without inertia add nothing.

    Masses and first moments add; inertias do about the common centre of mass, by the parallel-axis theorem.
    """
    bodies = [_body(each) for each in (Placed(link, IDENTITY, (0.0, 0.0, 0.0)), *parts) if each.link.mass is not None]
    if not bodies or (len(bodies) == 1 and link.mass is not None):
        return link
    mass = sum(body[0] for body in bodies)
    center = sum(body[0] * body[1] for body in bodies) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part_mass, part_center, part_inertia in bodies:
        arm = part_center - center
        inertia += part_inertia + part_mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assumed = link.assumed or any(part.link.assumed for part in parts)
    x, y, z = np.asarray(center).tolist()
    return replace(
        link,
        mass=float(mass),
        center_of_mass=(x, y, z),
        inertia_about_center_of_mass=as_matrix(inertia),
        assumed=assumed,
    )


def _body(placed: Placed) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it in the frame that it is placed in."""
    link, rotation = placed.link, np.array(placed.rotation)
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        raise ValueError(f"link {link.name!r} has no inertia")
    center = np.array(placed.origin) + rotation @ link.center_of_mass
    return link.mass, center, rotation @ np.array(link.inertia_about_center_of_mass) @ rotation.T
