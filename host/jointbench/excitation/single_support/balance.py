"""Balance of a robot on one foot: the ground force that the links' inertias predict, and where it must act."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation, RobotError
from jointbench.excitation.excitation import Support
from jointbench.model import Foot, FreeBaseMotion, Robot, floating_inverse_dynamics, floating_standard_parameters

ZMP_TOLERANCE = 1e-3
"""Tolerance of a planned zero-moment point beyond its margin [m]: balancing converges well below it."""


@dataclass(frozen=True, eq=False)
class Balance:
    """Ground reaction under the foot over a motion.

    Attributes:
        foot: that the robot stands on.
        points: zero-moment points, forward and left of the sole's middle [m], shape (n_samples, 2).
        vertical_force: of the ground on the foot [N], shape (n_samples,).
        friction: horizontal over vertical force, shape (n_samples,).
        weight: [N].
    """

    foot: Foot
    points: Array
    vertical_force: Array
    friction: Array
    weight: float

    @staticmethod
    def of(
        robot: Robot,
        foot: str,
        q: Array,
        dq: Array,
        ddq: Array,
        parameters: Array | None = None,
        zmp_offset: tuple[float, float] = (0.0, 0.0),
    ) -> Balance:
        """Predict the balance of a motion.

        Args:
            robot: on a floating base, the foot that it stands on.
            foot: name of that foot.
            q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).
            parameters: ten of the base's link, then ten per link; the robot's own where not given.
            zmp_offset: added to the points [m].

        Raises:
            RobotError, InfeasibleExcitation: the robot has no such foot, or it is not its base.
            RobotError: the robot's file does not tell all inertias, and none are given.
        """
        sole = support_sole(robot, foot)
        values = floating_standard_parameters(robot) if parameters is None else parameters
        if values is None:
            raise RobotError(f"the file of robot {robot.name!r} does not tell all inertias; give parameters")
        at_rest = np.zeros((len(q), 3))
        base = FreeBaseMotion(at_rest, at_rest, np.broadcast_to(-np.array(robot.gravity), at_rest.shape))
        force, moment = np.split(floating_inverse_dynamics(robot, base, q, dq, ddq, values)[:, :6], 2, axis=1)
        # About the sole's middle, in its axes.
        moment = (moment - np.cross(sole.origin, force)) @ sole.axes
        force = force @ sole.axes
        points = np.stack([-moment[:, 1], moment[:, 0]], axis=1) / force[:, 2:]
        return Balance(
            foot=sole,
            points=points + zmp_offset,
            vertical_force=force[:, 2],
            friction=np.linalg.norm(force[:, :2], axis=1) / force[:, 2],
            weight=float(values[::10].sum() * np.linalg.norm(robot.gravity)),
        )

    def room(self, margin: tuple[float, float]) -> Array:
        """Distance of the points from the margin's edge [m], the smallest of all sides, shape (n_samples,)."""
        return (sole_half_lengths(self.foot) - margin - np.abs(self.points)).min(axis=1)

    def support(self, margin: tuple[float, float], zmp_offset: tuple[float, float]) -> Support:
        """Summary that is stored beside the motion."""
        return Support(
            foot=self.foot.name,
            margin=margin,
            zmp_offset=zmp_offset,
            room=float(self.room(margin).min()),
            distance=float(self.foot.distance_to_edge(self.points).min()),
            friction=float(self.friction.max()),
            lightest=float(self.vertical_force.min() / self.weight),
        )

    def refuse_fall(self, margin: tuple[float, float], time: Array) -> None:
        """Refuse a motion that leaves the room inside the margin, or the ground.

        Args:
            margin: what is to be kept free of the sole [m].
            time: of the samples [s], shape (n_samples,).

        Raises:
            InfeasibleExcitation: says where, when, how far, and what to do.
        """
        lightest = int(self.vertical_force.argmin())
        if self.vertical_force[lightest] <= 0.0:
            raise InfeasibleExcitation(
                f"the ground would have to pull foot {self.foot.name!r} down at {time[lightest]:.2f} s; move slower"
            )
        room = self.room(margin)
        worst = int(room.argmin())
        if room[worst] >= -ZMP_TOLERANCE:
            return
        x, y = (1e3 * self.points[worst]).tolist()
        raise InfeasibleExcitation(
            f"on foot {self.foot.name!r} the predicted zero-moment point is {x:.0f} mm forward and {y:.0f} mm left of "
            f"the sole's middle at {time[worst]:.2f} s, {-1e3 * room[worst]:.0f} mm beyond what a margin of "
            f"{1e3 * margin[0]:g} mm lengthwise and {1e3 * margin[1]:g} mm sideways leaves; move less or slower, "
            f"choose another home, or a smaller margin where the model is good"
        )


def support_sole(robot: Robot, foot: str) -> Foot:
    """The foot that is the robot's base.

    Raises:
        RobotError: the robot has no such foot.
        InfeasibleExcitation: it is not the base, so that it moves.
    """
    sole = robot.foot(foot)
    if sole.joint != -1 or robot.base_link is None:
        raise InfeasibleExcitation(
            f"foot {foot!r} of robot {robot.name!r} is not its free base; single support is planned on a base that "
            f"rests on the ground"
        )
    return sole


def sole_half_lengths(foot: Foot) -> Array:
    """Half the length and half the width of the largest rectangle about a sole's middle [m], shape (2,)."""
    return np.abs(foot.points).min(axis=0)
