"""Getting from one pose to another: minimum jerk, at rest at both ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.robot import Robot

# Of s(u) = 10 u³ - 15 u⁴ + 6 u⁵ (Flash & Hogan, J. Neuroscience 5(7), 1985): the largest s' and |s''| on [0, 1].
_PEAK_VELOCITY = 15.0 / 8.0
_PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class PointToPoint:
    """A minimum-jerk quintic of all joints together.

    Attributes:
        start, goal: [rad], shape (n_joints,).
        period: [s].
    """

    start: Array
    goal: Array
    period: float

    def evaluate(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at times t [s] within the period, each (len(t), n_joints)."""
        u = (np.asarray(t, dtype=float) / self.period)[:, None]
        way = (self.goal - self.start)[None, :]
        s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        ds = 30.0 * u**2 * (1.0 - u) ** 2 / self.period
        dds = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / self.period**2
        return self.start + way * s, way * ds, way * dds


def plan_move(robot: Robot, start: Array, goal: Array, step: float, speed: float = 0.5) -> PointToPoint:
    """Plan the shortest such motion that keeps within a fraction of the velocity and acceleration limits.

    Args:
        robot: its limits.
        start: [rad], shape (n_joints,).
        goal: the same for the end.
        step: the period is a whole number of these [s].
        speed: fraction of the limits, above 0 to 1.
    """
    way = np.abs(goal - start)
    by_velocity = _PEAK_VELOCITY * way / (speed * robot.velocity_limits)
    by_acceleration = np.sqrt(_PEAK_ACCELERATION * way / (speed * robot.acceleration_limits))
    shortest = max(float(by_velocity.max()), float(by_acceleration.max()))
    # 1e-9: a period that is whole but for rounding must not grow by a step; at least one step for no way at all.
    steps = max(int(np.ceil(shortest / step - 1e-9)), 1)
    return PointToPoint(np.asarray(start, dtype=float), np.asarray(goal, dtype=float), steps * step)
