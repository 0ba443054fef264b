"""A joint: where it sits on its parent, how it moves, and how far."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointbench.robot.arrays import Array
from jointbench.robot.link import Link


@dataclass(frozen=True)
class Joint:
    """A joint in modified Denavit-Hartenberg form, moving along or about the z axis of its link's frame.

    The frame of link i in that of its parent is Rx(alpha) Tx(a) Rz(theta) Tz(d), with theta = theta_offset + q
    for a revolute joint and d = d + q for a prismatic one (Craig, Introduction to Robotics, 1986).

    Attributes:
        name: unique within the robot.
        kind: "revolute" (position in rad, torque in N·m) or "prismatic" (position in m, force in N).
        parent: index of the joint whose link carries this one; -1 for the base.
        alpha, theta_offset: [rad].
        a, d: [m].
        position_limits: lowest and highest position [rad or m].
        velocity_limit, acceleration_limit: largest magnitudes [rad/s, rad/s²; m/s, m/s²].
        torque_limit: largest magnitude at the joint [N·m or N].
        link: the body that moves with the joint.
    """

    name: str
    kind: Literal["revolute", "prismatic"]
    parent: int
    alpha: float
    a: float
    d: float
    theta_offset: float
    position_limits: tuple[float, float]
    velocity_limit: float
    acceleration_limit: float
    torque_limit: float
    link: Link

    @property
    def placement(self) -> tuple[Array, Array]:
        """Rotation (3, 3) and origin [m] (3,) of the link's frame in its parent's frame at q = 0."""
        ca, sa = np.cos(self.alpha), np.sin(self.alpha)
        ct, st = np.cos(self.theta_offset), np.sin(self.theta_offset)
        rotation = np.array([[ct, -st, 0.0], [st * ca, ct * ca, -sa], [st * sa, ct * sa, ca]])
        return rotation, np.array([self.a, -sa * self.d, ca * self.d])
