"""Limits of position, velocity, acceleration and jerk of joints, and the interface of every limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.model import Robot

Motion = tuple[Array, Array, Array, Array]
"""Position, velocity, acceleration, jerk of every joint at samples, shape (n_samples, n_joints) each."""

USABLE_MOTION = 0.95
"""Share of the motion limits that a plan uses: the board stops at the limit itself and follows with an error."""

QUANTITIES = ("position", "velocity", "acceleration", "jerk")
_UNITS = {"revolute": ("rad", "rad/s", "rad/s²", "rad/s³"), "prismatic": ("m", "m/s", "m/s²", "m/s³")}


class Limit(Protocol):
    """A limit of one kind on all joints, points or pairs that it concerns: each is a scalar with a name.

    Both sides of a two-sided limit are scalars of their own, so that each is smooth.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each scalar, such as "joint 'j2' velocity (+)"."""
        ...

    def usage(self, motion: Motion) -> Array:
        """Share of the limit that is used, at most 1 where it is kept, shape (n_samples, n_scalars)."""
        ...

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage of scalar which[k] at sample k by position, velocity, acceleration and jerk.

        Args:
            motion: at n_samples samples.
            scalars: index of a scalar, shape (n_samples,).
        """
        ...

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        """Largest excess of usage between two samples over the larger of them, shape (n_scalars,).

        With f between two samples h apart: f <= larger + h²/8 max|f''|, or, if only max|f'| is known, + h/2 max|f'|.

        Args:
            bounds: largest magnitude of the derivatives 0 … 5 of position - home anywhere, shape (6, n_joints).
            step: largest time between the samples [s].
        """
        ...

    def describe(self, scalar: int, usage: float) -> str:
        """Describe a usage, such as "joint 'j2' velocity reaches 2.31 rad/s, 2.1 rad/s is allowed"."""
        ...


@runtime_checkable
class SpaceLimit(Limit, Protocol):
    """A limit in space, whose usage has a distance behind it."""

    def distance(self, scalar: int, usage: float) -> float:
        """Clearance at a usage [m], below 0 where the limit is broken."""
        ...


@dataclass(frozen=True, eq=False)
class JointLimit:
    """One derivative of every joint's position, by magnitude; the position itself by its way from home.

    Upwards, usage is x / up with x = position - home, or velocity, acceleration, jerk; downwards it is -x / down. The
    scalars are those of all joints upwards, then of all downwards.

    Attributes:
        order: of the derivative, 0 to 3.
        joints: their names.
        units: of the derivative, per joint.
        middle: what x is taken from: home for the position, else 0; shape (n_joints,).
        up, down: largest x and -x, shape (n_joints,); infinite where there is no limit.
    """

    order: int
    joints: tuple[str, ...]
    units: tuple[str, ...]
    middle: Array
    up: Array
    down: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names, such as "joint 'j2' velocity (+)"."""
        quantity = QUANTITIES[self.order]
        return tuple(f"joint {name!r} {quantity} ({side})" for side in "+-" for name in self.joints)

    def usage(self, motion: Motion) -> Array:
        """Share of the limit, shape (n_samples, 2 n_joints)."""
        displacement = motion[self.order] - self.middle
        return np.concatenate([displacement, displacement], axis=1) * self._usage_per_unit

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage, all but one of them 0: usage is linear."""
        by_derivative = np.zeros((4, *motion[0].shape))
        by_derivative[self.order, np.arange(len(scalars)), scalars % len(self.joints)] = self._usage_per_unit[scalars]
        return by_derivative[0], by_derivative[1], by_derivative[2], by_derivative[3]

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        """Bound by the derivative two orders higher: step²/8 of its largest magnitude."""
        curvature = np.concatenate([bounds[self.order + 2]] * 2)
        return step * step / 8.0 * curvature * np.abs(self._usage_per_unit)

    def describe(self, scalar: int, usage: float) -> str:
        """Describe it, such as "joint 'j2' velocity reaches 2.31 rad/s, at most 2.1 rad/s is allowed"."""
        joint = scalar % len(self.joints)
        upwards = scalar < len(self.joints)
        allowed = self.middle[joint] + (self.up[joint] if upwards else -self.down[joint])
        value = self.middle[joint] + usage * (allowed - self.middle[joint])
        unit = self.units[joint]
        return (
            f"joint {self.joints[joint]!r} {QUANTITIES[self.order]} reaches {value:.6g} {unit}, "
            f"at {'most' if upwards else 'least'} {allowed:.6g} {unit} is allowed"
        )

    @cached_property
    def _usage_per_unit(self) -> Array:
        return np.concatenate([1.0 / self.up, -1.0 / self.down])


def joint_limits(robot: Robot, home: Array | None = None, share: float = USABLE_MOTION) -> tuple[JointLimit, ...]:
    """Limits of position, velocity and acceleration, and of jerk where a joint has one.

    Args:
        robot: its limits; of the position, the share of the way from home to either end may be used.
        home: [rad or m], shape (n_joints,); the robot's own where not given.
        share: of each limit that may be used.

    Raises:
        InfeasibleExcitation: home is not inside a joint's position limits, or another limit allows no motion.
    """
    middle = np.asarray(robot.home if home is None else home, dtype=np.float64)
    joints = robot.independent_joints
    low, high = robot.position_limits.T
    for joint, position, low_limit, high_limit in zip(
        joints, middle.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        if not low_limit < position < high_limit:
            unit = _UNITS[joint.kind][0]
            raise InfeasibleExcitation(
                f"robot {robot.name!r}, joint {joint.name!r}: home {position:.6g} {unit} is not inside its position "
                f"limits {low_limit:.6g} to {high_limit:.6g} {unit}, "
                f"by {max(low_limit - position, position - high_limit):.3g} {unit}; choose a home between them"
            )
    derivatives = [robot.velocity_limits, robot.acceleration_limits]
    if any(joint.jerk_limit is not None for joint in joints):
        derivatives.append(np.array([np.inf if joint.jerk_limit is None else joint.jerk_limit for joint in joints]))
    limits = [(middle, share * (high - middle), share * (middle - low))]
    limits += [(np.zeros(len(joints)), share * largest, share * largest) for largest in derivatives]
    for order, (_, allowed, _) in enumerate(limits):
        for joint, value in zip(joints, allowed.tolist(), strict=True):
            if not value > 0.0:
                raise InfeasibleExcitation(
                    f"robot {robot.name!r}, joint {joint.name!r}: a {QUANTITIES[order]} limit of {value / share:.6g} "
                    f"{_UNITS[joint.kind][order]} allows no motion; give one above 0"
                )
    return tuple(
        JointLimit(order, robot.joint_names, tuple(_UNITS[joint.kind][order] for joint in joints), *bounds)
        for order, bounds in enumerate(limits)
    )


def check_share(name: str, value: float) -> None:
    """Refuse a share of limits that allows nothing, or more than they do.

    Raises:
        ExcitationError: not above 0 and at most 1.
    """
    if not 0.0 < value <= 1.0:
        raise ExcitationError(f"{name} = {value:g} must be above 0 and at most 1; less than 1 leaves room for errors")
