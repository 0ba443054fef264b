"""Robots on a base that is free to move: its motion, their regressors, inverse dynamics and base parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import IDENTITY, Array
from jointbench.errors import ShapeError
from jointbench.model.base_parameters import BaseParameters, base_parameters, column_groups
from jointbench.model.base_words import Group
from jointbench.model.equations_of_motion import momentum_regressor
from jointbench.model.inverse_dynamics import inverse_dynamics, regressor
from jointbench.model.model_columns import model_parameter_names
from jointbench.model.robot import Robot
from jointbench.model.tree import motion_arrays
from jointbench.model.variants import BASE_JOINTS, on_free_base, with_passive


@dataclass(frozen=True, eq=False)
class FreeBaseMotion:
    """The motion of a free base over samples, in its own axes, shape (n_samples, 3) each.

    Its position does not matter, nor the velocity of its origin: no force depends on them.

    Attributes:
        omega, alpha: angular velocity [rad/s] and acceleration [rad/s²].
        specific_force: acceleration of its frame's origin minus gravity [m/s²], as an accelerometer there measures.
    """

    omega: Array
    alpha: Array
    specific_force: Array

    def __post_init__(self) -> None:
        """Refuse what is not three columns of the same samples.

        Raises:
            ShapeError: an array has another shape than (n_samples, 3), or than the first one.
        """
        for name in ("omega", "alpha", "specific_force"):
            shape = getattr(self, name).shape
            if shape != (*self.omega.shape[:1], 3):
                raise ShapeError(
                    f"{name} of the base has shape {shape}; omega, alpha and specific_force need one shape "
                    f"(n_samples, 3)"
                )

    @staticmethod
    def from_world(
        robot: Robot, rotation: ArrayLike, omega: ArrayLike, alpha: ArrayLike, acceleration: ArrayLike
    ) -> FreeBaseMotion:
        """Make it from motion capture, in the axes of the world, where the robot's gravity is given.

        Args:
            robot: whose base it is.
            rotation: the base's axes in the world as columns, shape (n_samples, 3, 3).
            omega, alpha: angular velocity [rad/s] and acceleration [rad/s²], shape (n_samples, 3).
            acceleration: of the base frame's origin [m/s²], shape (n_samples, 3).

        Raises:
            ShapeError: an array has another shape.
        """
        base_axes = np.asarray(rotation, dtype=np.float64)
        vectors = [np.asarray(vector, dtype=np.float64) for vector in (omega, alpha, acceleration)]
        if any(base_axes.shape != (*vector.shape, 3) or vector.shape[1:] != (3,) for vector in vectors):
            shapes = ", ".join(str(vector.shape) for vector in vectors)
            raise ShapeError(
                f"rotation has shape {base_axes.shape} and omega, alpha, acceleration have {shapes}; needed are "
                f"(n_samples, 3, 3) and (n_samples, 3)"
            )
        vectors[-1] = vectors[-1] - robot.gravity
        return FreeBaseMotion(*(np.einsum("kba,kb->ka", base_axes, vector) for vector in vectors))

    @staticmethod
    def from_imu(
        omega: ArrayLike,
        alpha: ArrayLike,
        specific_force: ArrayLike,
        rotation: ArrayLike = IDENTITY,
        origin: ArrayLike = (0.0, 0.0, 0.0),
    ) -> FreeBaseMotion:
        """Make it from what an inertial measurement unit on the base measures.

        At the base frame's origin specific_force is that of the unit, less alpha × origin + omega × (omega × origin).

        Args:
            omega: angular velocity [rad/s], in the unit's axes, shape (n_samples, 3).
            alpha: its derivative [rad/s²], likewise.
            specific_force: what the accelerometer measures [m/s²], likewise.
            rotation: the unit's axes in the base's as columns, shape (3, 3).
            origin: of the unit in the base frame [m], shape (3,).

        Raises:
            ShapeError: omega, alpha and specific_force differ in shape, or are not (n_samples, 3).
        """
        unit_axes, lever = (np.asarray(vectors, dtype=np.float64) for vectors in (rotation, origin))
        unit = FreeBaseMotion(*(np.asarray(vectors, dtype=np.float64) for vectors in (omega, alpha, specific_force)))
        base_omega, base_alpha, unit_force = (
            vectors @ unit_axes.T for vectors in (unit.omega, unit.alpha, unit.specific_force)
        )
        return FreeBaseMotion(
            base_omega,
            base_alpha,
            unit_force - np.cross(base_alpha, lever) - np.cross(base_omega, np.cross(base_omega, lever)),
        )

    def with_base(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
        """Return the motion of the joints of `on_free_base`: the base's six, then the robot's.

        The six are at position zero, where their axes are the base's own.
        The three that turn carry each other: with their speeds x, y, z, alpha = (ddx + y z, ddy - x z, ddz + x y).

        Args:
            q, dq, ddq: of the robot's joints, shape (n_samples, n_joints).

        Returns:
            q, dq, ddq, shape (n_samples, 6 + n_joints) each.

        Raises:
            ShapeError: the base's motion has another number of samples.
        """
        if len(self.omega) != len(q):
            raise ShapeError(
                f"the base's motion has {len(self.omega)} samples but q has {len(q)}; they must be the same"
            )
        x, y, z = self.omega.T
        rates_of_change = self.alpha + np.stack([-y * z, x * z, -x * y], axis=1)
        return (
            np.hstack([np.zeros((len(q), BASE_JOINTS)), q]),
            np.hstack([np.zeros_like(self.omega), self.omega, dq]),
            np.hstack([self.specific_force, rates_of_change, ddq]),
        )


_NEGLECTED_COLUMNS = 10 * (BASE_JOINTS - 1)
"""Columns of the links between ground and base, which are neglected."""


def floating_regressor(robot: Robot, base: FreeBaseMotion, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
    """Regressor of a robot on a free base: [f, n, tau] = W @ pi, stacked over samples.

    Force f and moment n about the base frame's origin, in its axes, are what must act on the base from outside, as
    ground contact does; pi has the ten standard parameters of the base's link first, then those of each link.

    Args:
        robot: with a base link; rows of passive joints and columns of neglected links are zero.
        base: motion of the base.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.

    Returns:
        W, shape (n_samples * (6 + n_joints), 10 * (1 + n_links)); the rows of a sample are fx, fy, fz [N], nx, ny, nz
        [N·m], then the joints'.

    Raises:
        RobotError: the robot's base does not move.
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Ayusawa, Venture & Nakamura, Int. J. Robotics Research 33(3), 2014.
    """
    freed = on_free_base(robot)
    return regressor(freed, *base.with_base(*motion_arrays(robot, q=q, dq=dq, ddq=ddq)))[:, _NEGLECTED_COLUMNS:]


def floating_inverse_dynamics(
    robot: Robot, base: FreeBaseMotion, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, standard_parameters: ArrayLike
) -> Array:
    """Wrench on the free base and joint torques that a motion needs, without friction and rotor inertia.

    Args:
        robot, base, q, dq, ddq: as in `floating_regressor`.
        standard_parameters: of the base's link, then of each link, shape (10 * (1 + n_links),).

    Returns:
        f, n, tau [N, N·m; N·m, N for prismatic joints], shape (n_samples, 6 + n_joints).

    Raises:
        RobotError: the robot's base does not move.
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, sec. 9.5.
    """
    freed, values = on_free_base(robot), np.asarray(standard_parameters, dtype=np.float64)
    size = 10 * (1 + robot.n_links)
    if values.shape != (size,):
        raise ShapeError(
            f"standard_parameters has shape {values.shape}; robot {robot.name!r} on its free base needs ({size},): "
            f"ten of its base link, then ten per link in link order"
        )
    motion = base.with_base(*motion_arrays(robot, q=q, dq=dq, ddq=ddq))
    return inverse_dynamics(freed, *motion, np.concatenate([np.zeros(_NEGLECTED_COLUMNS), values]))


def floating_momentum_regressor(
    robot: Robot, velocity: ArrayLike, omega: ArrayLike, q: ArrayLike, dq: ArrayLike
) -> Array:
    """Regressor of the momentum of a robot on a free base, stacked over samples: M(q) [velocity, omega, dq] = P @ pi.

    Its first six rows are the whole robot's linear momentum, and its angular momentum about the base frame's origin, in
    the base's axes.

    Args:
        robot: with a base link; rows of passive joints and columns of neglected links are zero.
        velocity, omega: of the base frame's origin [m/s] and of the base [rad/s], in its axes, shape (n_samples, 3).
        q, dq: joint position [rad] and velocity [rad/s] (m, m/s), shape (n_samples, n_joints).

    Returns:
        P, shape (n_samples * (6 + n_joints), 10 * (1 + n_links)), rows as in `floating_regressor`.

    Raises:
        RobotError: the robot's base does not move.
        ShapeError: the arrays differ in shape or do not match the robot.
    """
    freed, (q, dq) = on_free_base(robot), motion_arrays(robot, q=q, dq=dq)
    twist = [np.asarray(vectors, dtype=np.float64) for vectors in (velocity, omega)]
    if any(vectors.shape != (len(q), 3) for vectors in twist):
        shapes = " and ".join(str(vectors.shape) for vectors in twist)
        raise ShapeError(
            f"velocity and omega of the base have shapes {shapes}; needed is ({len(q)}, 3), as q has samples"
        )
    positions = np.hstack([np.zeros((len(q), BASE_JOINTS)), q])
    return momentum_regressor(freed, positions, np.hstack([*twist, dq]))[:, _NEGLECTED_COLUMNS:]


def floating_standard_parameters(robot: Robot) -> Array | None:
    """Ten parameters of the base's link, then of each link, shape (10 * (1 + n_links),), or None where any is unknown.

    Raises:
        RobotError: the robot's base does not move.
    """
    parameters = on_free_base(robot).standard_parameters
    return None if parameters is None else parameters[_NEGLECTED_COLUMNS:]


def floating_base_parameters(robot: Robot, *, torques: bool = True, seed: int = 0) -> BaseParameters:
    """Find the base parameters of a robot on a free base, from random motions.

    Args:
        robot: with a base link.
        torques: whether joint torques are measured, or the wrench on the base alone. That tells as many parameters, if
            all joints move, and nothing of the joints' friction is in it.
        seed: of the random motions.

    Returns:
        The base parameters, of columns as those of `floating_regressor`.

    Raises:
        RobotError: the robot's base does not move.
        NumericalError: no clear gap separates independent from dependent columns.

    Source: Ayusawa, Venture & Nakamura, Int. J. Robotics Research 33(3), 2014: identifiability from the base link.
    """
    freed = on_free_base(robot)
    if not torques:
        freed = with_passive(freed, *robot.joint_names)
    base = base_parameters(freed, drives=False, seed=seed)
    return _OfFreeBase(
        robot=freed,
        rank=base.rank,
        gap=base.gap,
        names=base.names,
        columns=base.columns - _NEGLECTED_COLUMNS,
        full_names=base.full_names[_NEGLECTED_COLUMNS:],
        grouping=base.grouping[:, _NEGLECTED_COLUMNS:],
    )


@dataclass(frozen=True, eq=False)
class _OfFreeBase(BaseParameters):
    """Base parameters of all links but the neglected ones between ground and base."""

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        names = model_parameter_names(self.robot, drives=False)
        grouping = np.pad(self.grouping, ((0, 0), (_NEGLECTED_COLUMNS, 0)))
        return column_groups(self.robot, names, (self.columns + _NEGLECTED_COLUMNS).tolist(), grouping)
