"""Motions that a hand has taught: a recorded path, forth and back, at a speed that keeps the robot's limits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, InfeasibleExcitation
from jointbench.excitation.excitation import Excitation
from jointbench.excitation.families.splines import UniformSpline
from jointbench.excitation.limits.certificate import is_feasible
from jointbench.excitation.limits.torque_limits import usable_limits
from jointbench.excitation.limits.workspace import Workspace
from jointbench.excitation.plan import make_excitation, min_samples
from jointbench.model import Robot, base_parameters

NODE_PERIOD = 0.25
"""Time between the points of a recording that the motion goes through [s]: hands move at 1 Hz and below."""

_DEGREE = 5  # of the spline, which has as many weights fewer than steps
_EDGE = 3  # points at rest at each end of a spline of degree 5
_SLOWER = 1.25  # from one speed that is tried to the next
_SLOWEST = 16.0  # times as long as it was taught
_LEAST_WAY = 0.01  # [rad or m], below which nothing was taught
_DURATION_STEP = 0.032  # [s], of the boards' knots
_SAMPLES = 150


def taught_excitation(
    robot: Robot, position: Array, sample_period: float, *, workspace: Workspace | None = None
) -> Excitation:
    """Make a motion through recorded positions, there and back the same way, from rest to rest.

    A spline of degree 5 goes through the mean of the positions in each quarter of a second. It is played as it was
    taught where that keeps the limits, and otherwise slower by factors of 1.25 until it does.

    Args:
        robot: its limits; of each only the usable share is used.
        position: recorded joint positions [rad or m], NaN where one is missing, shape (n_samples, n_joints).
        sample_period: of the recording [s].
        workspace: where the robot may move; anywhere where not given.

    Returns:
        The motion, whose home is where the recording begins. Joints without a model stay there.

    Raises:
        ExcitationError: nothing moved, or the recording is too short.
        InfeasibleExcitation: a limit is broken at any speed, as where the path leaves the limits of position.

    >>> from jointbench.model import load_robot
    >>> robot = load_robot("cobot6:2")
    >>> time = np.arange(0.0, 4.0, 0.01)[:, None]
    >>> motion = taught_excitation(robot, np.array(robot.home) + 0.1 * np.sin(time), 0.01)
    >>> motion.duration, motion.tightest.smallest > 0.0
    (10.752, True)
    """
    points = _points(position, round(NODE_PERIOD / sample_period))
    home = points[0]
    way = (points - home) * robot.modelled
    if np.abs(way).max() < _LEAST_WAY:
        raise ExcitationError(
            f"no joint moved by more than {_LEAST_WAY:g} rad in the recording; lead the arm farther while it floats"
        )
    still = np.zeros((_EDGE, robot.n_joints))
    values = np.vstack([still, way, way[::-1], still])
    steps = len(values) + _DEGREE
    begun = replace(robot, home=tuple(home.tolist()))
    limits = (*usable_limits(begun), *(workspace.limits(begun) if workspace else ()))
    for power in range(math.ceil(math.log(_SLOWEST, _SLOWER)) + 1):
        duration = _DURATION_STEP * math.ceil(steps * NODE_PERIOD * _SLOWER**power / _DURATION_STEP)
        basis = UniformSpline(steps, duration)
        weights = basis.through(values)
        if is_feasible(limits, basis, home, weights):
            samples = max(_SAMPLES, min_samples(basis))
            return make_excitation(begun, base_parameters(begun), basis, weights, samples, 0, limits=limits)
    raise InfeasibleExcitation(
        f"the taught path of {robot.name!r} breaks a limit even {_SLOWEST:g} times slower than it was taught; "
        f"positions [rad or m]: {_ranges(robot, points)}; lead the arm again, farther from limits and obstacles"
    )


def _points(position: Array, every: int) -> Array:
    """Mean positions of groups of samples, those that are missing left out, shape (n_points, n_joints)."""
    n = len(position) // every
    known = np.isfinite(position[: n * every]).all(axis=1).reshape(n, every)
    groups = position[: n * every].reshape(n, every, -1)[known.all(axis=1)]
    if len(groups) < 4:
        raise ExcitationError(f"{len(groups)} quarters of a second were recorded whole; at least 4 tell a path")
    return groups.mean(axis=1)


def _ranges(robot: Robot, points: Array) -> str:
    low, high = points.min(axis=0), points.max(axis=0)
    return ", ".join(
        f"{name} {low[k]:.3g} to {high[k]:.3g} (limits {limits[0]:.3g}, {limits[1]:.3g})"
        for k, (name, limits) in enumerate(zip(robot.joint_names, robot.position_limits.tolist(), strict=True))
    )
