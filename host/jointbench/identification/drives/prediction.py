"""Torque predictions of a harmonic-drive model, linear in its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals, GearTorque
from jointbench.identification.judgement import Verdict, judge_parameter
from jointbench.identification.least_squares import Estimate, weighted_least_squares
from jointbench.model import Robot, base_parameters, compensation_parameter_names, model_columns

Side = Literal["link", "motor"]


@dataclass(frozen=True, eq=False)
class LinearTorque:
    """tau = W p, fitted.

    Attributes:
        robot: whose.
        side: "link": base parameters of the links, Coulomb and viscous friction behind the sensor, its offset.
            "motor": the same with the rotors, as `fit` does it: all friction counts as the joint's.
        names: of p, each group in full.
        columns: of p among those of `model_columns`, shape (p,).
        estimate: p, its covariance, and what is left over.
    """

    robot: Robot
    side: Side
    names: tuple[str, ...]
    columns: NDArray[np.intp]
    estimate: Estimate

    @property
    def parameters(self) -> Array:
        """Values of p [SI], shape (p,); 0 where not told."""
        return self.estimate.parameters

    @property
    def sigma(self) -> Array:
        """Standard deviation of each, shape (p,); infinite where not told."""
        return np.sqrt(np.diag(self.estimate.covariance))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter."""
        values = zip(self.names, self.parameters, self.sigma, strict=True)
        return tuple(judge_parameter(name, float(value), float(sigma)) for name, value, sigma in values)

    @property
    def offsets(self) -> Array:
        """Zero error of the torque at each joint, shape (n_joints,); 0 where not told."""
        return self._of_joints("offset", self.parameters)

    @property
    def offset_sigma(self) -> Array:
        """Standard deviation of each of them; 0 where it is no parameter of its own or not told."""
        return self._of_joints("offset", np.where(np.isinf(self.sigma), 0.0, self.sigma))

    def _of_joints(self, quantity: str, values: Array) -> Array:
        named = dict(zip(self.names, values, strict=True))
        return np.array([named.get(f"{name}.{quantity}", 0.0) for name in self.robot.joint_names])

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Torque [N·m or N] of a motion, arrays of shape (n, n_joints) each.

        Raises:
            ShapeError: the arrays differ in shape or do not match the robot.
        """
        full, _ = model_columns(self.robot, q, dq, ddq)
        return (full[:, self.columns] @ self.parameters).reshape(-1, self.robot.n_joints)


def fit_linear_torque(
    robot: Robot, side: Side, signals: DriveSignals, torque: Array, used: NDArray[np.bool_]
) -> LinearTorque:
    """Fit a torque's linear model by weighted least squares, columns filtered as the torque was.

    Args:
        robot: the robot.
        side: which torque it is.
        signals: the motion.
        torque: at the rows [N·m or N], shape (n_rows, n_joints).
        used: rows to use, shape (n_rows, n_joints).

    Raises:
        FitError: not more rows than parameters.
        ShapeError: the arrays differ in shape or do not match the robot.
        NumericalError: the robot's geometry is nearly degenerate.
    """
    full, full_names = model_columns(robot, signals.q, signals.dq, signals.ddq)
    base = base_parameters(robot, drives=side == "motor")
    columns, names = list(base.columns), list(base.names)
    if side == "link":
        # Of compensations only what neither links nor drives do as well.
        more = set(compensation_parameter_names(robot))
        doubled = more - set(base_parameters(robot).leading_names) if more else more
        for column, name in enumerate(full_names[10 * robot.n_links :], start=10 * robot.n_links):
            if not name.endswith(".rotor_inertia") and name not in doubled:
                columns.append(np.intp(column))
                names.append(name)
    if int(used.sum()) <= len(columns):
        raise FitError(f"{int(used.sum())} rows are too few for {len(columns)} parameters; record more motion")
    regressor = signals.rows(full[:, columns].reshape(*signals.q.shape, len(columns)))
    estimate = weighted_least_squares(regressor, torque, used)
    return LinearTorque(robot, side, tuple(names), np.array(columns, dtype=np.intp), estimate)


HARMONIC_PARAMETERS = ("load_friction", "coulomb", "viscous", "rotor_inertia", "flexibility", "offset", "gain_error")
"""a1 [-], a2 [N·m], a3 [N·m·s/rad], a4 [kg·m²], a5 = 1/stiffness [rad/(N·m)], all at the joint side; and what is
wrong about the measured motor torque: a6 [N·m], its current's zero, and a7 [-], its gain or torque constant."""


Load = Literal["motor", "gear"]
"""What load friction grows with: the motor's torque, as published, or the gear's onto the link."""


def torque_but_load_friction(parameters: ArrayLike, dq: Array, ddq: Array, gear: GearTorque) -> tuple[Array, Array]:
    """Motor torque without the friction that grows with it, and the sign of the motor's velocity.

    R = tau_r + a2 s + a3 dqm + a4 ddqm, s = sign(dqm), with the motor ahead of the link by the gear's twist:
    dqm = dq + a5 dtau_r/dt, ddqm = ddq + a5 d²tau_r/dt².

    Args:
        parameters: a1 … a7, shape (7,) of one joint or (7, n_joints).
        dq, ddq: of the link [rad/s, rad/s²], shape (n,) or (n, n_joints).
        gear: torque onto the link, same shape.

    Returns:
        R [N·m] and s, same shape.

    Source: Zhang & Ding, Information and Control 52(3):292, 2023, eq. 11.
    """
    _, coulomb, viscous, inertia, flexibility, _, _ = np.asarray(parameters, dtype=np.float64)
    motor_velocity = dq + flexibility * gear.rate
    motor_acceleration = ddq + flexibility * gear.acceleration
    sign = np.sign(motor_velocity)
    return gear.value + coulomb * sign + viscous * motor_velocity + inertia * motor_acceleration, sign


def exact_motor_torque(parameters: ArrayLike, dq: Array, ddq: Array, gear: GearTorque, load: Load = "motor") -> Array:
    """Motor torque (1 + a7) tau + a6 of a harmonic joint, tau being the solution of tau = R + a1 |tau| s.

    For |a1| < 1 there is one, of R's own sign: tau = R / (1 - a1 s sign(R)). So the motor gives more than R while it
    drives (s R > 0) and less while it brakes: seen from the motor, the gear passes on 1 - a1 and 1 + a1 of its torque.

    With the load of the gear there is nothing to solve: tau = R + a1 |tau_r| s.

    Args:
        parameters, dq, ddq, gear: as of `torque_but_load_friction`.
        load: what load friction grows with.

    Returns:
        (1 + a7) tau + a6 [N·m], at the joint side.

    Raises:
        FitError: |a1| is 1 or more, so that there is no motor torque for some motions and two for others.
    """
    values = np.asarray(parameters, dtype=np.float64)
    load_friction, offset, gain = values[0], values[5], 1.0 + values[6]
    rest, sign = torque_but_load_friction(parameters, dq, ddq, gear)
    if load == "gear":
        return gain * (rest + load_friction * np.abs(gear.value) * sign) + offset
    if np.any(np.abs(load_friction) >= 1.0):
        worst = float(np.ravel(load_friction)[np.argmax(np.abs(load_friction))])
        raise FitError(
            f"load_friction = {worst:.3g} must lie between -1 and 1: a gear that loses all of the motor's torque "
            f"cannot be driven; look at the joint's verdicts, and leave the term out where the data cannot tell it"
        )
    return gain * rest / (1.0 - load_friction * sign * np.sign(rest)) + offset


def motor_torque_by_stand_in(parameters: ArrayLike, dq: Array, ddq: Array, gear: GearTorque, stand_in: Array) -> Array:
    """Motor torque (1 + a7) (R + a1 |stand_in| s) + a6, with another model's torque inside the load friction.

    This is the published way. The exact torque, a6 and a7 apart, is its fixed point; an error of the stand-in
    becomes one of the result, a1 times as large.

    Args:
        parameters, dq, ddq, gear: as of `torque_but_load_friction`.
        stand_in: torque of a simpler model [N·m], same shape as dq.

    Returns:
        Motor torque [N·m], at the joint side.

    Source: Zhang & Ding, Information and Control 52(3):292, 2023.
    """
    rest, sign = torque_but_load_friction(parameters, dq, ddq, gear)
    values = np.asarray(parameters, dtype=np.float64)
    return (1.0 + values[6]) * (rest + values[0] * np.abs(stand_in) * sign) + values[5]


def torque_slopes(
    parameters: ArrayLike, dq: Array, ddq: Array, gear: GearTorque, load: Load = "motor"
) -> tuple[Array, Array]:
    """Exact motor torque of one joint and its derivatives by a1 … a7.

    They are the five columns |tau| s, s, dqm, ddqm and a3 dtau_r/dt + a4 d²tau_r/dt², each times
    (1 + a7) / (1 - a1 s sign(R)); 1; and tau.

    Args:
        parameters: shape (7,).
        dq, ddq, gear: of one joint, shape (n,).
        load: what load friction grows with; where that is the gear's torque, the columns begin with |tau_r| s and are
            over 1.

    Returns:
        (1 + a7) tau + a6 [N·m], shape (n,), and its derivatives, shape (n, 7).
    """
    load_friction, _, viscous, inertia, flexibility, offset, gain_error = np.asarray(parameters, dtype=np.float64)
    rest, sign = torque_but_load_friction(parameters, dq, ddq, gear)
    if load == "gear":
        passed, carried = np.ones_like(rest), np.abs(gear.value)
        torque = rest + load_friction * carried * sign
    else:
        passed = 1.0 - load_friction * sign * np.sign(rest)
        torque = rest / passed
        carried = np.abs(torque)
    columns = (
        carried * sign,
        sign,
        dq + flexibility * gear.rate,
        ddq + flexibility * gear.acceleration,
        viscous * gear.rate + inertia * gear.acceleration,
    )
    gain = 1.0 + gain_error
    slopes = gain * np.stack(columns, axis=1) / passed[:, None]
    return gain * torque + offset, np.column_stack([slopes, np.ones_like(torque), torque])
