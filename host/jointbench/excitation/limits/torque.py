"""The limit of the joint torques, as far as a model known beforehand predicts them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import inverse_dynamics, inverse_dynamics_adjoint
from jointbench.dynamics.shapes import parameter_vector
from jointbench.excitation.limits.drive_load import DriveLoad
from jointbench.excitation.limits.limit import Motion
from jointbench.excitation.limits.torque_bounds import torque_bounds
from jointbench.robot import Robot

USABLE_TORQUE = 0.8
"""Share of the torque limit that a model known beforehand may ask for: the rest is for its error."""


@dataclass(frozen=True, eq=False)
class TorqueLimit:
    """Torque of every joint, by magnitude; the scalars are all joints upwards, then all downwards.

    tau = M(q) ddq + C(q, dq) dq + g(q) + what the drives need. Coulomb's friction counts in full on both sides,
    whichever way the joint turns, which keeps usage smooth and on the safe side.

    Attributes:
        robot: the robot.
        home: [rad or m], shape (n_joints,).
        standard_parameters: ten per link in link order, shape (10 * n_links,).
        drives: what they need.
        allowed: largest magnitude [N·m or N], shape (n_joints,).
    """

    robot: Robot
    home: Array
    standard_parameters: Array
    drives: DriveLoad
    allowed: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Such as "joint 'j2' torque (+)"."""
        return tuple(f"joint {name!r} torque ({side})" for side in "+-" for name in self.robot.joint_names)

    def usage(self, motion: Motion) -> Array:
        """Share of the limit, shape (n_samples, 2 n_joints)."""
        torque = self.predict(motion)
        return np.concatenate([torque + self.drives.coulomb, self.drives.coulomb - torque], axis=1) * self._shares

    def predict(self, motion: Motion) -> Array:
        """Torque at the joints without Coulomb's friction [N·m or N], shape (n_samples, n_joints)."""
        q, dq, ddq, _ = motion
        return inverse_dynamics(self.robot, q, dq, ddq, self.standard_parameters) + self.drives.smooth(dq, ddq)

    def gradient(self, motion: Motion, which: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; none by the jerk."""
        n = self.robot.n_joints
        weights = np.zeros_like(motion[0])
        weights[np.arange(len(which)), which % n] = self._shares[which] * np.where(which < n, 1.0, -1.0)
        return self.adjoint(motion, weights)

    def adjoint(self, motion: Motion, weights: Array) -> Motion:
        """Derivatives of Σ weights · torque by position, velocity, acceleration and jerk; weights as `predict`."""
        q, dq, ddq, dddq = motion
        by_q, by_dq, by_ddq = inverse_dynamics_adjoint(self.robot, q, dq, ddq, self.standard_parameters, weights)
        drives = self.drives
        return by_q, by_dq + weights @ drives.viscous, by_ddq + weights @ drives.inertia, np.zeros_like(dddq)

    def between(self, bounds: Array, step: float) -> Array:
        """From the bound of the torque's second derivative: step²/8 of it."""
        return step * step / 8.0 * np.concatenate([self.curvature(bounds)] * 2) * self._shares

    def curvature(self, bounds: Array) -> Array:
        """Largest magnitude of the second derivative of `predict` by time, shape (n_joints,)."""
        links = torque_bounds(self.robot, self.standard_parameters, bounds, self.home)[2]
        return links + np.abs(self.drives.viscous) @ bounds[3] + np.abs(self.drives.inertia) @ bounds[4]

    def say(self, scalar: int, usage: float) -> str:
        """Such as "joint 'j2' torque reaches 31 N·m, at most 25 N·m is allowed"."""
        joint = scalar % self.robot.n_joints
        allowed = self.allowed[joint]
        unit = "N·m" if self.robot.independent_joints[joint].kind == "revolute" else "N"
        return (
            f"joint {self.robot.joint_names[joint]!r} torque reaches {usage * allowed:.6g} {unit}, "
            f"at most {allowed:.6g} {unit} of the limit {self.robot.torque_limits[joint]:.6g} {unit} is allowed"
        )

    @cached_property
    def _shares(self) -> Array:
        # Of passive joints the model says no torque.
        return np.concatenate([self.robot.modelled / self.allowed] * 2)


def torque_limit(
    robot: Robot,
    home: Array | None = None,
    share: float = USABLE_TORQUE,
    standard_parameters: Array | None = None,
    drive_parameters: Array | None = None,
) -> TorqueLimit | None:
    """The limit of the joint torques, None where no link inertias are known to predict them from.

    Args:
        robot: the robot.
        home: [rad or m], shape (n_joints,); the robot's own where not given.
        share: of the torque limit that may be used.
        standard_parameters: of an earlier fit, shape (10 * n_links,); the robot's own where not given.
        drive_parameters: of an earlier fit, in the order of `drive_parameter_names`; where not given, the rotor
            inertias that the robot knows, and no friction.

    Raises:
        ShapeError: parameters do not match the robot.
    """
    parameters = robot.standard_parameters if standard_parameters is None else standard_parameters
    if parameters is None:
        return None
    drives = DriveLoad.known(robot) if drive_parameters is None else DriveLoad.fitted(robot, drive_parameters)
    return TorqueLimit(
        robot,
        np.asarray(robot.home if home is None else home, dtype=np.float64),
        parameter_vector(robot, parameters),
        drives,
        share * robot.torque_limits,
    )
