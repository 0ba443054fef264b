"""What the joints do over a plan, each quantity between its limits, in the units that a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import Limit, Motion, TorqueLimit
from jointbench.results.units import torque_unit
from jointbench.robot import Robot

_DERIVATIVES = ("position", "velocity", "acceleration", "jerk")
_TURNING = ("°", "°/s", "°/s²", "°/s³")
_SLIDING = ("mm", "mm/s", "mm/s²", "mm/s³")
_MM = 1e3


@dataclass(frozen=True, eq=False)
class Trace:
    """One quantity of all joints over a motion.

    Attributes:
        name: position, velocity, acceleration, jerk or torque.
        values: shape (n_samples, n_joints).
        limits: of the robot itself, lowest and highest, shape (n_joints, 2); infinite where a joint has none.
            What nothing is said of, as the torque of a passive joint, is not a number, here and in `values`.
        units: of each joint.
        either_way: what may come on top to both sides, as Coulomb's friction does, shape (n_joints,).
    """

    name: str
    values: Array
    limits: Array
    units: tuple[str, ...]
    either_way: Array

    @property
    def lowest(self) -> Array:
        """Shape (n_joints,)."""
        return self.values.min(axis=0) - self.either_way

    @property
    def highest(self) -> Array:
        """Shape (n_joints,)."""
        return self.values.max(axis=0) + self.either_way

    @property
    def peak(self) -> Array:
        """Largest magnitude, shape (n_joints,)."""
        return np.maximum(np.abs(self.lowest), np.abs(self.highest))

    @property
    def share(self) -> Array:
        """Share of the limit that the peak is; of a range of positions, the share that is visited; (n_joints,)."""
        low, high = self.limits.T
        return (self.highest - self.lowest) / (high - low) if self.name == "position" else self.peak / high

    def says(self, joint: int) -> bool:
        """Whether anything is said of a joint."""
        return not bool(np.isnan(self.limits[joint, 1]))

    @property
    def unit(self) -> str:
        """At the head of a column of all joints."""
        return " or ".join(dict.fromkeys(self.units))


def plain(value: float, digits: int = 4) -> str:
    """A value with so many significant digits, or all of its whole ones, and never a power of ten where it is large."""
    shown = f"{value:.{digits}g}" if abs(value) < 10.0**digits else f"{value:.0f}"
    return shown.replace("-", "−")


def plan_traces(robot: Robot, motion: Motion, limits: Sequence[Limit]) -> tuple[Trace, ...]:
    """Position, velocity and acceleration; jerk where a joint has a limit of it; torque where it can be predicted.

    Args:
        robot: the robot.
        motion: position, velocity, acceleration, jerk, shape (n_samples, n_joints) each, SI.
        limits: that the motion was planned within; the one of torque says what to predict it from.
    """
    joints = robot.independent_joints
    turns = np.array([joint.kind == "revolute" for joint in joints])
    scale = np.where(turns, np.rad2deg(1.0), _MM)
    jerk = np.array([np.inf if joint.jerk_limit is None else joint.jerk_limit for joint in joints])
    largest = (robot.velocity_limits, robot.acceleration_limits, jerk)
    allowed = [robot.position_limits, *(np.column_stack([-each, each]) for each in largest)]
    none = np.zeros(len(joints))
    traces = [
        Trace(name, scale * values, scale[:, None] * bounds, tuple(np.where(turns, turning, sliding).tolist()), none)
        for name, values, bounds, turning, sliding in zip(
            _DERIVATIVES, motion, allowed, _TURNING, _SLIDING, strict=True
        )
        if name != "jerk" or np.isfinite(jerk).any()
    ]
    return (*traces, *(_torque(robot, motion, limit) for limit in limits if isinstance(limit, TorqueLimit)))


def _torque(robot: Robot, motion: Motion, limit: TorqueLimit) -> Trace:
    """What the limit predicts: its upward and downward usage differ by twice the torque, and add up to Coulomb's."""
    usage = limit.usage(motion)
    upwards, downwards = np.split(usage, 2, axis=1)
    said = np.where(robot.modelled, 1.0, np.nan)
    largest = said * robot.torque_limits
    return Trace(
        "torque",
        0.5 * (upwards - downwards) * said * limit.allowed,
        np.column_stack([-largest, largest]),
        tuple(torque_unit(robot, joint) for joint in range(robot.n_joints)),
        0.5 * (upwards + downwards)[0] * limit.allowed,
    )
