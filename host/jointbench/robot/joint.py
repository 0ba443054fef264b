"""A joint: where it sits on its parent, how it moves, and how far."""

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from jointbench.arrays import Array, Matrix3, Vector3
from jointbench.robot.link import Link

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
