"""What a difference of parameters makes of the joints' torques over a motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import model_columns
from jointbench.errors import FitError
from jointbench.identification.comparison.all_parameters import AllParameters
from jointbench.identification.friction_in_model.joint_laws import JointLaws, friction_data
from jointbench.identification.model import Model
from jointbench.robot import Robot
from jointbench.signals import Motion

PARTS = ("all", "links", "drives", "friction")

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
        torque: root mean square of all of one model's torque [N·m or N], shape (n_joints,).
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


class MotionTorque:
    """Torque of a motion as a function of all parameters of a model; the motion is thinned to what it takes."""

    def __init__(self, model: Model, motion: Motion) -> None:
        """For a model's base parameters and friction laws; their values are given to each method."""
        step = max(1, len(motion.q) // _STATES)
        self._dq = motion.dq[::step]
        columns, _ = model_columns(model.robot, motion.q[::step], self._dq, motion.ddq[::step])
        self._base = model.base.project(columns).reshape(*self._dq.shape, model.base.rank)
        self._laws = JointLaws(model.base, {}) if model.friction is None else model.friction.laws

    def at(self, values: Array) -> Array:
        """The torque for these values of `AllParameters` [N·m or N], shape (n, n_joints)."""
        base, of_laws = self._split(values)
        return self._base @ base + self._laws.torque(self._dq, self._load(base), of_laws)

    def columns(self, values: Array) -> Array:
        """Its derivative by each of them, shape (n, n_joints, n_parameters)."""
        laws, (base, of_laws) = self._laws, self._split(values)
        load, by_base = self._load(base), self._base.copy()
        by_laws = np.zeros((*self._dq.shape, laws.n_parameters))
        for name, j in laws.joints.items():
            part = laws.parts[name]
            data = friction_data(self._dq[:, j], load[:, j])
            by_laws[:, j, part] = laws.laws[name].jacobian(data, of_laws[part])
            slope = laws.load_slope(name, data, of_laws)
            by_base[:, j] += slope[:, None] * np.where(laws.loading, self._base[:, j], 0.0)
        return np.concatenate([by_base[:, :, laws.kept], by_laws], axis=2)

    def _split(self, values: Array) -> tuple[Array, Array]:
        """All base parameters, those that laws stand for zero; and the laws'."""
        kept, of_laws = np.split(values, [int(self._laws.kept.sum())])
        return self._laws.full(kept), of_laws

    def _load(self, base: Array) -> Array:
        return self._base @ np.where(self._laws.loading, base, 0.0)


def torque_differences(
    torque: MotionTorque, a: AllParameters, chosen: NDArray[np.intp], difference: Array, covariance: Array
) -> dict[str, TorqueDifference]:
    """The difference of torque that a difference of parameters makes, by part: all of it, links, drives and friction.

    Args:
        torque: of a motion.
        a: parameters of one model.
        chosen: those that both models tell, shape (n,).
        difference: of these from the other model's, shape (n,).
        covariance: of the difference, shape (n, n).
    """
    before = torque.at(a.values)
    parts = np.array(a.parts, dtype=object)[chosen]
    found: dict[str, TorqueDifference] = {}
    for part in PARTS:
        mine = np.flatnonzero(parts == part) if part != "all" else np.arange(len(chosen))
        step = np.zeros(len(a.values))
        step[chosen[mine]] = difference[mine]
        columns = torque.columns(a.values + 0.5 * step)[:, :, chosen[mine]]
        spread = np.einsum("njp,pr,njr->j", columns, covariance[np.ix_(mine, mine)], columns, optimize=True)
        found[part] = TorqueDifference(
            rms=np.sqrt(np.mean((torque.at(a.values + step) - before) ** 2, axis=0)),
            sigma=np.sqrt(np.maximum(spread / len(columns), 0.0)),
            torque=np.sqrt(np.mean(before**2, axis=0)),
        )
    return found


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
