"""Robots whose base is free to move: the wrench on the base stands beside the joint torques, linear in all parameters.

The base hangs on six joints that nothing drives (`on_free_base`). They are taken at the base itself, at position zero,
whatever its pose is: what acts along and about them is the wrench on it in its own axes, and no pose is singular.
All else that takes a robot and its motion, such as `normal_equations`, takes that robot and `FreeBaseMotion.beside`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.base_parameters import BaseParameters, base_parameters
from jointbench.dynamics.base_words import Group, groups_of
from jointbench.dynamics.free_base_motion import FreeBaseMotion
from jointbench.dynamics.model_columns import model_parameter_names
from jointbench.dynamics.momentum import momentum_regressor
from jointbench.dynamics.newton_euler import inverse_dynamics
from jointbench.dynamics.regressor import regressor
from jointbench.dynamics.shapes import motion_arrays
from jointbench.errors import ShapeError
from jointbench.robot import Robot, with_passive
from jointbench.robot.free_base import BASE_JOINTS, on_free_base

_BEFORE = 10 * (BASE_JOINTS - 1)
"""Columns of the links between ground and base, which are neglected."""


def floating_regressor(robot: Robot, base: FreeBaseMotion, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
    """Regressor of a robot on a free base: [f, n, tau] = W @ pi, stacked over samples.

    Force f and moment n about the base frame's origin, in its axes, are what must act on the base from outside, as
    ground contact does; pi has the ten standard parameters of the base's link first, then those of each link.

    Args:
        robot: with a base link; rows of passive joints and columns of neglected links are zero.
        base: how the base moves.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints);
            m, m/s, m/s² for prismatic joints.

    Returns:
        W, shape (n_samples * (6 + n_joints), 10 * (1 + n_links)); the rows of a sample are fx, fy, fz [N], nx, ny, nz
        [N·m], then the joints'.

    Raises:
        FixedBase: the robot's base does not move.
        ShapeError: the arrays differ in shape or do not match the robot.

    Source: Ayusawa, Venture & Nakamura, Int. J. Robotics Research 33(3), 2014.
    """
    freed = on_free_base(robot)
    return regressor(freed, *base.beside(*motion_arrays(robot, q=q, dq=dq, ddq=ddq)))[:, _BEFORE:]


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
        FixedBase: the robot's base does not move.
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
    motion = base.beside(*motion_arrays(robot, q=q, dq=dq, ddq=ddq))
    return inverse_dynamics(freed, *motion, np.concatenate([np.zeros(_BEFORE), values]))


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
        FixedBase: the robot's base does not move.
        ShapeError: the arrays differ in shape or do not match the robot.
    """
    freed, (q, dq) = on_free_base(robot), motion_arrays(robot, q=q, dq=dq)
    twist = [np.asarray(each, dtype=np.float64) for each in (velocity, omega)]
    if any(each.shape != (len(q), 3) for each in twist):
        shapes = " and ".join(str(each.shape) for each in twist)
        raise ShapeError(
            f"velocity and omega of the base have shapes {shapes}; needed is ({len(q)}, 3), as q has samples"
        )
    positions = np.hstack([np.zeros((len(q), BASE_JOINTS)), q])
    return momentum_regressor(freed, positions, np.hstack([*twist, dq]))[:, _BEFORE:]


def floating_standard_parameters(robot: Robot) -> Array | None:
    """Ten parameters of the base's link, then of each link, shape (10 * (1 + n_links),), or None where any is unknown.

    Raises:
        FixedBase: the robot's base does not move.
    """
    parameters = on_free_base(robot).standard_parameters
    return None if parameters is None else parameters[_BEFORE:]


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
        FixedBase: the robot's base does not move.
        UnclearRank: no clear gap separates independent from dependent columns.

    Source: Ayusawa, Venture & Nakamura, Int. J. Robotics Research 33(3), 2014: identifiability from the base link.
    """
    freed = on_free_base(robot)
    if not torques:
        freed = with_passive(freed, *robot.joint_names)
    found = base_parameters(freed, drives=False, seed=seed)
    return _OfFreeBase(
        robot=freed,
        rank=found.rank,
        gap=found.gap,
        names=found.names,
        columns=found.columns - _BEFORE,
        full_names=found.full_names[_BEFORE:],
        grouping=found.grouping[:, _BEFORE:],
    )


@dataclass(frozen=True, eq=False)
class _OfFreeBase(BaseParameters):
    """Base parameters of all links but the neglected ones between ground and base."""

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        names = model_parameter_names(self.robot, drives=False)
        grouping = np.pad(self.grouping, ((0, 0), (_BEFORE, 0)))
        return groups_of(self.robot, names, (self.columns + _BEFORE).tolist(), grouping)
