"""Trajectories as the boards play them: knots in motor counts, cubic Hermite between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import TrajectoryError
from jointbench.link.identity import Facts
from jointbench.link.reach import check_driven
from jointbench.robot import Robot

MOST_REPEATS = 65535  # 16 bits of a LOAD
_WHOLE = 1e-6  # of a knot step: far below a microsecond, far above rounding of a period in seconds


class Trajectory(Protocol):
    """A motion of all joints, from t = 0 to t = period."""

    @property
    def period(self) -> float:
        """[s]."""
        ...

    def evaluate(self, time: Array, /) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration [rad, rad/s, rad/s²] at times [s], each (n, n_joints)."""
        ...


def check_repeats(repeats: int) -> None:
    """Refuse to play a motion never, or more often than the boards count.

    Raises:
        TrajectoryError: not a whole number from 1 to 65535.
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise TrajectoryError(
            f"repeats = {repeats} must be a whole number from 1 to {MOST_REPEATS}; two show how much of the torque "
            "repeats"
        )


def trajectory_knots(trajectory: Trajectory, robot: Robot, facts: Sequence[Facts]) -> NDArray[np.int32]:
    """Knots of a trajectory for each joint's board.

    Motor position = M q counts / 2 pi, with M the robot's transmission matrix; velocity in counts/tick, Q8.

    Args:
        trajectory: what to play.
        robot: its transmission matrix turns joints into motors.
        facts: of each joint's board, in joint order.

    Returns:
        Position and velocity of each knot, shape (n_joints, n_knots, 2).

    Raises:
        TrajectoryError: the period is no whole number of knot steps, a value does not fit the wire, or a joint that
            nothing drives is to move.
    """
    tick_period, knot_ticks = facts[0].tick_period, facts[0].knot_ticks
    step = tick_period * knot_ticks
    steps = round(trajectory.period / step)
    if steps < 1 or abs(trajectory.period / step - steps) > _WHOLE:
        nearest = max(steps, 1) * step
        raise TrajectoryError(
            f"period {trajectory.period:g} s is no whole number of knot steps of {step:g} s; "
            f"the nearest that is: {nearest:g} s"
        )
    q, dq, _ = trajectory.evaluate(np.arange(steps + 1, dtype=np.float64) * step)
    check_driven(q, robot, facts)
    counts = np.array([fact.motor_counts for fact in facts]) / (2.0 * np.pi)
    position = q @ robot.transmission_matrix.T * counts
    velocity = dq @ robot.transmission_matrix.T * (counts * tick_period * 256.0)
    knots = np.round(np.stack([position, velocity], axis=-1))
    if not np.all(np.abs(knots) < 2**31):
        raise TrajectoryError("the trajectory leaves the 32-bit range of motor counts; check ratios and units")
    return np.ascontiguousarray(knots.transpose(1, 0, 2)).astype(np.int32)
