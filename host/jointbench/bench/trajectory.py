"""Trajectories of all joints: moves from pose to pose, and the knots that boards play."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.bench.identity import Facts
from jointbench.errors import ExcitationError
from jointbench.model import Robot

_STILL = 1e-6  # [rad]; a joint that is asked to move less is asked to stay
THERE = 0.005  # [rad]; a joint this near to a pose is there: ten times nearer than the boards ask of a start
# Of s(u) = 10 u³ - 15 u⁴ + 6 u⁵ (Flash & Hogan, J. Neuroscience 5(7), 1985): the largest s' and |s''| on [0, 1].
_PEAK_VELOCITY = 15.0 / 8.0
_PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)
MOST_REPEATS = 65535  # 16 bits of a LOAD
_WHOLE = 1e-6  # of a knot step: far below a microsecond, far above rounding of a period in seconds


def _why_undriven(robot: Robot, facts: Sequence[Facts], index: int) -> str:
    """Reason why a joint follows no reference; empty of one that does."""
    if not facts[index].has_motor:
        return "nothing drives it: its board has no motor"
    return "its motor holds no position: it is in torque mode" if robot.drives[index].torque_mode else ""


def check_driven(q: Array, robot: Robot, facts: Sequence[Facts]) -> None:
    """Refuse a motion of a joint that follows no reference: nothing drives it, or it is in torque mode.

    Args:
        q: where joints shall be [rad], shape (n, n_joints).
        robot: their names.
        facts: of each joint's board.

    Raises:
        ExcitationError: names the joint and what it is asked for.
    """
    for index, name in enumerate(robot.joint_names):
        low, high = float(q[:, index].min()), float(q[:, index].max())
        why = _why_undriven(robot, facts, index)
        if why and high - low > _STILL:
            raise ExcitationError(
                f"joint {name!r} is asked to move from {low:g} to {high:g} rad, but {why}. Keep it where it is: plan "
                "with `passive = true` in the robot's file"
            )


def pose_within_reach(robot: Robot, facts: Sequence[Facts], start: Array, pose: Array) -> Array:
    """A pose to go to: joints without a motor or in torque mode stay where they are.

    Args:
        robot: where such joints count as at home.
        facts: of each joint's board.
        start: where the joints are [rad], shape (n_joints,).
        pose: where they shall be; of such a joint its home, or where it is.

    Raises:
        ExcitationError: such a joint is asked elsewhere.
    """
    goal = pose.copy()
    for index, name in enumerate(robot.joint_names):
        if why := _why_undriven(robot, facts, index):
            if min(abs(pose[index] - place) for place in (robot.home[index], start[index])) > THERE:
                raise ExcitationError(
                    f"joint {name!r} is asked to go to {pose[index]:g} rad, but {why}. It is at {start[index]:.4g} "
                    f"rad; give its home, {robot.home[index]:g} rad, and move it by hand"
                )
            goal[index] = start[index]
    return goal


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
        ExcitationError: not a whole number from 1 to 65535.
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise ExcitationError(
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
        ExcitationError: the period is no whole number of knot steps, a value does not fit the wire, or a joint that
            nothing drives is to move.
    """
    tick_period, knot_ticks = facts[0].tick_period, facts[0].knot_ticks
    step = tick_period * knot_ticks
    steps = round(trajectory.period / step)
    if steps < 1 or abs(trajectory.period / step - steps) > _WHOLE:
        nearest = max(steps, 1) * step
        raise ExcitationError(
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
        raise ExcitationError("the trajectory leaves the 32-bit range of motor counts; check ratios and units")
    return np.ascontiguousarray(knots.transpose(1, 0, 2)).astype(np.int32)
