"""Limits of joint torques and motor currents, as far as known parameters predict them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError, ShapeError
from jointbench.excitation.limits.certificate import torque_bounds
from jointbench.excitation.limits.motion_limits import USABLE_MOTION, Limit, Motion, check_share, joint_limits
from jointbench.model import (
    PARAMETER_NAMES,
    DriveTrain,
    Robot,
    drive_columns,
    drive_parameter_names,
    inverse_dynamics,
    inverse_dynamics_adjoint,
    known_drive_parameters,
    model_parameter_names,
)
from jointbench.model.tree import parameter_vector

USABLE_TORQUE = 0.8
"""Share of the torque limit that a model known beforehand may ask for: the rest is for its error."""


def check_prior(robot: Robot, prior: Mapping[str, float]) -> None:
    """Refuse prior values of parameters that the robot does not have, or that are not finite.

    Args:
        robot: the robot.
        prior: values of full parameters by name, such as {"j1.coulomb": 4.0} (SI).

    Raises:
        ExcitationError: an unknown name, or a value that is not a finite number.
    """
    known = dict.fromkeys(model_parameter_names(robot))
    for name, value in prior.items():
        if name not in known:
            raise ExcitationError(
                f"prior value of {name!r}: robot {robot.name!r} has no such parameter; there is "
                f"{next(iter(known))} … {next(reversed(known))}"
            )
        if not math.isfinite(value):
            raise ExcitationError(f"prior value of {name!r} is {value:g}; leave it out where it is not known")


@dataclass(frozen=True, eq=False)
class DriveLoad:
    """Torque of the drives: tau = inertia @ ddq + viscous @ dq + offset, and ± coulomb at most.

    Attributes:
        inertia, viscous: shape (n_joints, n_joints).
        coulomb: largest magnitude, shape (n_joints,).
        offset: shape (n_joints,).
    """

    inertia: Array
    viscous: Array
    coulomb: Array
    offset: Array

    def smooth(self, dq: Array, ddq: Array) -> Array:
        """Torque without Coulomb's friction [N·m or N], shape (n_samples, n_joints)."""
        return ddq @ self.inertia.T + dq @ self.viscous.T + self.offset

    @staticmethod
    def known(robot: Robot) -> DriveLoad:
        """Load by the robot's own parameters: rotor inertias and the friction of its drives."""
        train = robot.drive_train
        return DriveLoad(train.known_inertia, train.known_viscous, train.known_coulomb, np.zeros(robot.n_joints))

    @staticmethod
    def fitted(robot: Robot, parameters: Array) -> DriveLoad:
        """Load by parameters of an earlier fit, in the order of `drive_parameter_names`.

        Raises:
            ShapeError: there are more or fewer of them.
        """
        names = drive_parameter_names(robot)
        parameters = np.asarray(parameters, dtype=np.float64)
        if parameters.shape != (len(names),):
            raise ShapeError(
                f"drive_parameters has shape {parameters.shape}; robot {robot.name!r} has {len(names)} of them: "
                f"{', '.join(names)}"
            )
        n = robot.n_joints
        identity, at_rest = np.eye(n), np.zeros((n, n))

        def torque(dq: Array, ddq: Array) -> Array:
            return (drive_columns(robot, dq, ddq, sign=np.zeros_like)[0] @ parameters).reshape(n, n)

        offset = torque(at_rest, at_rest)[0]
        friction_magnitudes = np.array([name.endswith(".coulomb") for name in names]) * np.abs(parameters)
        columns, _ = drive_columns(robot, identity[:1], at_rest[:1], sign=np.ones_like)
        return DriveLoad(
            inertia=(torque(at_rest, identity) - offset).T,
            viscous=(torque(identity, at_rest) - offset).T,
            coulomb=np.abs(columns) @ friction_magnitudes,
            offset=offset,
        )


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
        """Names, such as "joint 'j2' torque (+)"."""
        return tuple(f"joint {name!r} torque ({side})" for side in "+-" for name in self.robot.joint_names)

    def usage(self, motion: Motion) -> Array:
        """Share of the limit, shape (n_samples, 2 n_joints)."""
        torque = self.predict(motion)
        return (
            np.concatenate([torque + self.drives.coulomb, self.drives.coulomb - torque], axis=1) * self._usage_per_unit
        )

    def predict(self, motion: Motion) -> Array:
        """Torque at the joints without Coulomb's friction [N·m or N], shape (n_samples, n_joints)."""
        q, dq, ddq, _ = motion
        return inverse_dynamics(self.robot, q, dq, ddq, self.standard_parameters) + self.drives.smooth(dq, ddq)

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; none by the jerk."""
        n = self.robot.n_joints
        weights = np.zeros_like(motion[0])
        weights[np.arange(len(scalars)), scalars % n] = self._usage_per_unit[scalars] * np.where(scalars < n, 1.0, -1.0)
        return self.adjoint(motion, weights)

    def adjoint(self, motion: Motion, weights: Array) -> Motion:
        """Derivatives of Σ weights · torque by position, velocity, acceleration and jerk; weights as `predict`."""
        q, dq, ddq, dddq = motion
        by_q, by_dq, by_ddq = inverse_dynamics_adjoint(self.robot, q, dq, ddq, self.standard_parameters, weights)
        drives = self.drives
        return by_q, by_dq + weights @ drives.viscous, by_ddq + weights @ drives.inertia, np.zeros_like(dddq)

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        """Bound by the torque's second derivative: step²/8 of its largest magnitude."""
        return step * step / 8.0 * np.concatenate([self.curvature(bounds)] * 2) * self._usage_per_unit

    def curvature(self, bounds: Array) -> Array:
        """Largest magnitude of the second derivative of `predict` by time, shape (n_joints,)."""
        links = torque_bounds(self.robot, self.standard_parameters, bounds, self.home)[2]
        return links + np.abs(self.drives.viscous) @ bounds[3] + np.abs(self.drives.inertia) @ bounds[4]

    def describe(self, scalar: int, usage: float) -> str:
        """Describe it, such as "joint 'j2' torque reaches 31 N·m, at most 25 N·m is allowed"."""
        joint = scalar % self.robot.n_joints
        allowed = self.allowed[joint]
        unit = "N·m" if self.robot.independent_joints[joint].kind == "revolute" else "N"
        return (
            f"joint {self.robot.joint_names[joint]!r} torque reaches {usage * allowed:.6g} {unit}, "
            f"at most {allowed:.6g} {unit} of the limit {self.robot.torque_limits[joint]:.6g} {unit} is allowed"
        )

    @cached_property
    def _usage_per_unit(self) -> Array:
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


@dataclass(frozen=True, eq=False)
class CurrentLimit:
    """Current of every motor, by magnitude; the scalars are all motors upwards, then all downwards.

    i = M⁻ᵀ tau / torque constant, with tau of a `TorqueLimit`; Coulomb friction counts in full on both sides here, too.
    Where joints share motors, no limits of their torques say the same.

    Attributes:
        torque: what predicts the joints' torques.
        allowed: largest magnitude of each motor's current [A], shape (n_motors,).
    """

    torque: TorqueLimit
    allowed: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names, such as "motor 'j2' current (+)"."""
        return tuple(f"motor {drive.name!r} current ({side})" for side in "+-" for drive in self._train.drives)

    def usage(self, motion: Motion) -> Array:
        """Share of the limit, shape (n_samples, 2 n_motors)."""
        current = self.torque.predict(motion) @ self._current_per_torque
        friction = self.torque.drives.coulomb @ np.abs(self._current_per_torque)
        return np.concatenate([current + friction, friction - current], axis=1) * self._usage_per_unit

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; none by the jerk."""
        n = self._train.n_motors
        usage_per_unit = self._usage_per_unit[scalars] * np.where(scalars < n, 1.0, -1.0)
        return self.torque.adjoint(motion, usage_per_unit[:, None] * self._current_per_torque.T[scalars % n])

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        """Bound by the torques' second derivatives: step²/8 of their largest magnitude."""
        curvature = self.torque.curvature(bounds) @ np.abs(self._current_per_torque)
        return step * step / 8.0 * np.concatenate([curvature] * 2) * self._usage_per_unit

    def describe(self, scalar: int, usage: float) -> str:
        """Describe it, such as "motor 'j2' current reaches 8.1 A, at most 7 A of the limit 7 A is allowed"."""
        motor = scalar % self._train.n_motors
        drive, allowed = self._train.drives[motor], self.allowed[motor]
        return (
            f"motor {drive.name!r} current reaches {usage * allowed:.6g} A, "
            f"at most {allowed:.6g} A of the limit {drive.current_limit:.6g} A is allowed"
        )

    @property
    def is_implied(self) -> bool:
        """True where the limits of the joints' torques already keep all currents within theirs."""
        return bool(
            np.all(
                self.torque.allowed @ np.abs(self._current_per_torque) * self._usage_per_unit[: self._train.n_motors]
                <= 1.0
            )
        )

    @cached_property
    def _train(self) -> DriveTrain:
        return self.torque.robot.drive_train

    @cached_property
    def _current_per_torque(self) -> Array:
        """Motor current per joint torque [A/(N·m)], shape (n_joints, n_motors); 0 where there is no motor or model."""
        constants = np.array([drive.torque_constant for drive in self._train.drives])
        per_torque = np.divide(1.0, constants, out=np.zeros_like(constants), where=constants != 0.0)
        return self.torque.robot.modelled[:, None] * self._train.inverse * per_torque

    @cached_property
    def _usage_per_unit(self) -> Array:
        usage_per_unit = np.divide(1.0, self.allowed, out=np.zeros_like(self.allowed), where=self.allowed > 0.0)
        return np.concatenate([usage_per_unit, usage_per_unit])


def current_limit(torque: TorqueLimit, share: float) -> CurrentLimit | None:
    """The limit of the motor currents, None where that of the joints' torques says as much.

    Args:
        torque: what predicts the joints' torques.
        share: of each motor's current limit that may be used.
    """
    limits = np.array([drive.current_limit for drive in torque.robot.drive_train.drives])
    limit = CurrentLimit(torque, share * limits)
    return None if limit.is_implied else limit


def usable_limits(
    robot: Robot,
    home: Array | None = None,
    *,
    motion_share: float = USABLE_MOTION,
    torque_share: float = USABLE_TORQUE,
    prior: Mapping[str, float] | None = None,
) -> tuple[Limit, ...]:
    """Shares of the joints' limits: position, velocity, acceleration, jerk where given, torque where predictable.

    Torque is predictable where all inertias are known. Of the drives, what is not known counts as nothing. The motors'
    current limits are among them where those of the joints' torques do not imply them.

    Args:
        robot: the robot.
        home: [rad or m], shape (n_joints,); the robot's own where not given.
        motion_share: of position (as a way from home), velocity, acceleration and jerk that may be used.
        torque_share: of the limits of torque and current that may be used.
        prior: values of full parameters by name that the robot's file does not know, or better ones (SI).

    Raises:
        ExcitationError: a share is not above 0 and at most 1, or `prior` has an unknown name or what is no number.
        InfeasibleExcitation: home is not inside a joint's position limits, or a limit allows no motion.
    """
    check_share("motion_share", motion_share)
    check_share("torque_share", torque_share)
    torque = torque_limit(robot, home, torque_share, *_prior_parameters(robot, prior or {}))
    current = None if torque is None else current_limit(torque, torque_share)
    return (*joint_limits(robot, home, motion_share), *(limit for limit in (torque, current) if limit is not None))


def _prior_parameters(robot: Robot, prior: Mapping[str, float]) -> tuple[Array | None, Array | None]:
    """Standard parameters of the links, None where one is not known, and parameters of the drives."""
    if not prior:
        return robot.standard_parameters, None
    check_prior(robot, prior)
    links = np.full((len(robot.joints), len(PARAMETER_NAMES)), np.nan)
    for joint, values in zip(robot.joints, links, strict=True):
        if joint.link.neglected:
            values[:] = 0.0
        if joint.link.standard_parameters is not None:
            values[:] = joint.link.standard_parameters
        values[:] = [
            prior.get(f"{joint.name}.{name}", value) for name, value in zip(PARAMETER_NAMES, values, strict=True)
        ]
    drives = zip(drive_parameter_names(robot), np.nan_to_num(known_drive_parameters(robot)), strict=True)
    known = np.isfinite(links).all()
    return links.ravel() if known else None, np.array([prior.get(name, value) for name, value in drives])
