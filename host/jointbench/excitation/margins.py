"""How far a motion stays from a robot's limits, and how much of them it visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation.limits.motion_limits import Limit, Motion, SpaceLimit
from jointbench.excitation.limits.torque_limits import TorqueLimit, torque_limit
from jointbench.robot import Robot

_STILL = 1e-6
"""Share of a joint's largest speed below which it counts as standing: rounding is no reversal."""


@dataclass(frozen=True)
class JointMargins:
    """What a motion leaves of one joint's limits, as fractions: 0 touches the limit, below 0 breaks it.

    Attributes:
        joint: name.
        position: smallest distance to either end of the range, over the range.
        velocity, acceleration: 1 - largest magnitude / limit.
        torque: the same of the torque that the nominal inertias ask for; None where the robot has none.
        jerk: the same of the jerk; None where the joint has no such limit.
        position_coverage: share of the range of positions that the motion visits.
        velocity_coverage: share of the range of velocities, from one limit to the other, that it visits.
        reversals: how often it turns round: where friction changes its sign.
    """

    joint: str
    position: float
    velocity: float
    acceleration: float
    torque: float | None = None
    jerk: float | None = None
    position_coverage: float | None = None
    velocity_coverage: float | None = None
    reversals: int | None = None

    @property
    def smallest(self) -> float:
        """The smallest of the margins."""
        known = (self.position, self.velocity, self.acceleration, self.torque, self.jerk)
        return min(margin for margin in known if margin is not None)

    def scaled(self, share: float) -> JointMargins:
        """Margins of the motion at a share of its size about home: of the position at least, of the torque unknown."""

        def of(value: float | None, whole: float = 1.0) -> float | None:
            return None if value is None else whole - share * (whole - value)

        return replace(
            self,
            velocity=1.0 - share * (1.0 - self.velocity),
            acceleration=1.0 - share * (1.0 - self.acceleration),
            torque=None,
            jerk=of(self.jerk),
            position_coverage=of(self.position_coverage, 0.0),
            velocity_coverage=of(self.velocity_coverage, 0.0),
        )


def motion_margins(
    robot: Robot,
    q: Array,
    dq: Array,
    ddq: Array,
    dddq: Array | None = None,
    torque_from: TorqueLimit | None = None,
) -> tuple[JointMargins, ...]:
    """Margins of every joint over a sampled motion, shape (n_samples, n_joints) each; of the jerk where it is given.

    Args:
        robot: the robot.
        q, dq, ddq, dddq: the motion and its derivatives [rad or m, s].
        torque_from: what predicts torque; the robot's own inertias where not given.
    """
    low, high = robot.position_limits.T
    position = np.minimum(q - low, high - q).min(axis=0) / (high - low)
    velocity = 1.0 - np.abs(dq).max(axis=0) / robot.velocity_limits
    acceleration = 1.0 - np.abs(ddq).max(axis=0) / robot.acceleration_limits
    torque = _torque(robot, torque_from or torque_limit(robot), (q, dq, ddq, np.zeros_like(q)))
    jerk = _jerk(robot, dddq)
    visited = (q.max(axis=0) - q.min(axis=0)) / (high - low)
    speeds = (dq.max(axis=0) - dq.min(axis=0)) / (2.0 * robot.velocity_limits)
    return tuple(
        JointMargins(
            joint=name,
            position=float(position[j]),
            velocity=float(velocity[j]),
            acceleration=float(acceleration[j]),
            torque=torque[j],
            jerk=jerk[j],
            position_coverage=float(visited[j]),
            velocity_coverage=float(speeds[j]),
            reversals=_reversals(dq[:, j]),
        )
        for j, name in enumerate(robot.joint_names)
    )


def space_margins(limits: Sequence[Limit], motion: Motion) -> dict[str, float]:
    """Smallest distance [m] that a sampled motion leaves to each limit in space, by its name, the nearest first."""
    distances: dict[str, float] = {}
    for limit in limits:
        if isinstance(limit, SpaceLimit):
            usage = limit.usage(motion).max(axis=0).tolist()
            distances |= {name: limit.distance(k, usage[k]) for k, name in enumerate(limit.names)}
    return dict(sorted(distances.items(), key=lambda each: each[1]))


def _torque(robot: Robot, limit: TorqueLimit | None, motion: Motion) -> list[float | None]:
    if limit is None:
        return [None] * robot.n_joints
    usage = limit.usage(motion).max(axis=0).reshape(2, -1).max(axis=0) * limit.allowed / robot.torque_limits
    return [1.0 - share if modelled else None for share, modelled in zip(usage.tolist(), robot.modelled, strict=True)]


def _jerk(robot: Robot, dddq: Array | None) -> list[float | None]:
    limits = [joint.jerk_limit for joint in robot.independent_joints]
    if dddq is None:
        return [None] * len(limits)
    largest = np.abs(dddq).max(axis=0).tolist()
    return [None if limit is None else 1.0 - value / limit for limit, value in zip(limits, largest, strict=True)]


def _reversals(velocity: Array) -> int:
    """How often a joint's velocity changes its sign."""
    moving = velocity[np.abs(velocity) > _STILL * np.abs(velocity).max(initial=0.0)]
    return int(np.count_nonzero(np.diff(np.sign(moving))))
