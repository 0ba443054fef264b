"""What a difference of parameters makes of the joints' torques over a motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.dynamics import BaseParameters, model_columns
from jointbench.errors import FitError
from jointbench.robot import Array, Robot
from jointbench.signals import Motion

PARTS = ("all", "links", "drives", "friction")

_FRICTION = ("viscous", "coulomb")
_DRIVES = ("rotor_inertia", "offset")

_STATES = 1000
"""Of a motion that are looked at: more would say the same."""

_BOUND = 1.96
"""σ that a weighted sum of squares stays within in 95 % of cases, were all of it in one direction; less otherwise."""


@dataclass(frozen=True)
class TorqueDifference:
    """Root mean square over a motion of a difference of torque, by joint: what is found, and what chance makes.

    Attributes:
        rms: of the difference found [N·m or N], shape (n_joints,).
        sigma: what it would be for equal models [N·m or N], shape (n_joints,).
        torque: root mean square of the torque itself [N·m or N], shape (n_joints,).
    """

    rms: Array
    sigma: Array
    torque: Array

    @property
    def at_most(self) -> Array:
        """Upper limit of the true difference with 95 % probability [N·m or N], shape (n_joints,)."""
        return self.rms + _BOUND * self.sigma

    @property
    def at_least(self) -> Array:
        """Lower limit, alike."""
        return np.maximum(self.rms - _BOUND * self.sigma, 0.0)


def torque_difference(columns: Array, difference: Array, covariance: Array, parameters: Array) -> TorqueDifference:
    """The difference of torque that a difference of parameters makes.

    Args:
        columns: base regressor of a motion, shape (n, n_joints, p).
        difference: of parameters, shape (p,).
        covariance: of the difference, shape (p, p).
        parameters: of one of the models, shape (p,).
    """
    spread = np.einsum("njp,pr,njr->j", columns, covariance, columns, optimize=True) / len(columns)
    return TorqueDifference(
        rms=np.sqrt(np.mean((columns @ difference) ** 2, axis=0)),
        sigma=np.sqrt(np.maximum(spread, 0.0)),
        torque=np.sqrt(np.mean((columns @ parameters) ** 2, axis=0)),
    )


def part_of(name: str) -> str:
    """Which of `PARTS` a base parameter belongs to, by the full parameter that leads it."""
    quantity = name.rpartition(".")[2]
    return "friction" if quantity in _FRICTION else "drives" if quantity in _DRIVES else "links"


def motion_columns(robot: Robot, base: BaseParameters, motion: Motion) -> Array:
    """Base regressor of a motion, thinned to what it takes, shape (n, n_joints, rank)."""
    step = max(1, len(motion.q) // _STATES)
    columns, _ = model_columns(robot, motion.q[::step], motion.dq[::step], motion.ddq[::step])
    return base.project(columns).reshape(-1, robot.n_joints, base.rank)


def states_within_limits(robot: Robot, seed: int = 0) -> Motion:
    """Random states anywhere within the robot's limits: a motion that prefers none.

    Raises:
        FitError: a joint has no limit of position, speed or acceleration.
    """
    lower, upper = robot.position_limits.T
    limits = {"position": upper - lower, "velocity": robot.velocity_limits, "acceleration": robot.acceleration_limits}
    for what, values in limits.items():
        for name, value in zip(robot.joint_names, values, strict=True):
            if not np.isfinite(value):
                raise FitError(
                    f"robot {robot.name!r} has no {what} limit for joint {name}, so it is not known which motions "
                    f"matter; give a run whose motion does"
                )
    q, dq, ddq = np.random.default_rng(seed).uniform(-1.0, 1.0, (3, _STATES, robot.n_joints))
    return Motion(
        0.5 * (lower + upper + q * (upper - lower)), dq * robot.velocity_limits, ddq * robot.acceleration_limits
    )
