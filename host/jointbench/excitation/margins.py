"""How far a motion stays from a robot's limits."""

from dataclasses import dataclass

import numpy as np

from jointbench.dynamics import inverse_dynamics
from jointbench.robot import Array, Robot


@dataclass(frozen=True)
class JointMargins:
    """What a motion leaves of one joint's limits, as fractions: 0 touches the limit, below 0 breaks it.

    Attributes:
        joint: name.
        position: smallest distance to either end of the range, over the range.
        velocity, acceleration: 1 - largest magnitude / limit.
        torque: the same of the torque that the nominal inertias ask for; None where the robot has none.
    """

    joint: str
    position: float
    velocity: float
    acceleration: float
    torque: float | None = None

    @property
    def smallest(self) -> float:
        """The smallest of the four."""
        known = (self.position, self.velocity, self.acceleration, self.torque)
        return min(margin for margin in known if margin is not None)


def motion_margins(robot: Robot, q: Array, dq: Array, ddq: Array) -> tuple[JointMargins, ...]:
    """Margins of every joint over a sampled motion, shape (n_samples, n_joints) each."""
    low, high = robot.position_limits.T
    position = np.minimum(q - low, high - q).min(axis=0) / (high - low)
    velocity = 1.0 - np.abs(dq).max(axis=0) / robot.velocity_limits
    acceleration = 1.0 - np.abs(ddq).max(axis=0) / robot.acceleration_limits
    torque: list[float | None] = [None] * robot.n_joints
    if robot.standard_parameters is not None:
        needed = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
        torque = (1.0 - np.abs(needed).max(axis=0) / robot.torque_limits).tolist()
    rows = zip(robot.joint_names, position.tolist(), velocity.tolist(), acceleration.tolist(), torque, strict=True)
    return tuple(JointMargins(*row) for row in rows)
