"""Torque constants together with model parameters, from recordings without and with a known payload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals
from jointbench.identification.drives.harmonic_joint import MotorRows, motor_rows
from jointbench.identification.judgement import POORLY_EXCITED_RELATIVE_SIGMA, Verdict, judge_parameter
from jointbench.identification.least_squares import Estimate, weighted_least_squares
from jointbench.model import BaseParameters, Robot, base_parameters
from jointbench.model.tree import parameter_vector

_STEPS = 50
_CONVERGED = 1e-9
"""Of the inverse constants, relative: far below what any error bar shows."""

_BELIEVABLE = 3.0
"""A start for a constant within this factor of the robot file's is taken; beyond it the file's is safer."""

_SINGULAR = 1e-10
"""Relative singular value under which a direction is open, as in `weighted_least_squares`."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Index of each motor's inverse torque constant while it drives and while it brakes.

    Attributes:
        index: of it, first row driving and second row braking, shape (2, n_motors); the same where there is but one.
        count: how many there are.
    """

    index: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, by_direction: NDArray[np.bool_]) -> Factors:
        """Give motors with `by_direction`, shape (n_motors,), two constants and the others one."""
        first = np.arange(len(by_direction))
        second = np.where(by_direction, len(first) + np.cumsum(by_direction) - 1, first)
        return cls(np.stack([first, second]), len(first) + int(by_direction.sum()))

    def at(self, rows: MotorRows, torque: Array) -> NDArray[np.intp]:
        """Return the index at each row, by the sign of the motor's power in the *model*, shape (n, n_motors).

        Were it the measured current's sign, its noise would choose the rows, and bias both.
        """
        return np.where(torque * rows.velocity >= 0.0, self.index[0], self.index[1])


def solve_factors(rows: MotorRows, factors: Factors, nominal: Array) -> tuple[Array, Array]:
    """Gauss-Newton over 1/k and pi of current = (columns @ pi + known) / k, motors weighted by what they leave.

    Args:
        rows: of all recordings.
        factors: which 1/k there are.
        nominal: torque constants to start from where the rows give no believable start [N·m/A], shape (n_motors,).

    Returns:
        1/k [A/(N·m)], shape (factors.count,), and pi, shape (rank,). Directions that the rows leave open stay where
        they started.
    """
    start = np.array([_start(rows, motor, constant) for motor, constant in enumerate(nominal)])
    first = factors.index[0]
    inverse = np.ones(factors.count)
    inverse[first], inverse[factors.index[1]] = start, start
    parameters = _step(start[:, None] * rows.columns, rows.current - start * rows.known, rows, np.ones(len(first)))
    for _ in range(_STEPS):
        torque = rows.torque(parameters)
        per_row = inverse[factors.at(rows, torque)]
        error = np.where(rows.used, rows.current - per_row * torque, 0.0)
        spread = np.sqrt(np.sum(error**2, axis=0) / np.maximum(rows.used.sum(axis=0), 1))
        step = _step(_slopes(rows, factors, inverse, torque), error, rows, 1.0 / np.where(spread > 0.0, spread, 1.0))
        reached = inverse + step[: factors.count]
        # An inverse constant is positive; a step that would leave that goes half way.
        reached = np.where(reached > 0.0, reached, 0.5 * inverse)
        moved = float(np.max(np.abs(reached / inverse - 1.0)))
        inverse, parameters = reached, parameters + step[factors.count :]
        if moved <= _CONVERGED:
            break
    return inverse, parameters


def factor_estimate(rows: MotorRows, factors: Factors, inverse: Array, parameters: Array) -> Estimate:
    """1/k and pi with the covariance of both, by the columns at the solution."""
    torque = rows.torque(parameters)
    slopes = _slopes(rows, factors, inverse, torque)
    here = np.concatenate([inverse, parameters])
    error = rows.current - inverse[factors.at(rows, torque)] * torque
    return weighted_least_squares(slopes, error + slopes @ here, rows.used)


def _start(rows: MotorRows, motor: int, nominal: float) -> float:
    """1/k of one motor by itself, where the problem is linear: current = columns @ (pi / k) + known (1/k)."""
    used = rows.used[:, motor]
    if nominal == 0.0 or not used.any():
        return 1.0 if nominal == 0.0 else 1.0 / nominal
    columns = np.column_stack([rows.columns[used, motor], rows.known[used, motor]])
    reciprocal = float(_scaled_least_squares(columns, rows.current[used, motor])[-1])
    return reciprocal if 1.0 / _BELIEVABLE < reciprocal * nominal < _BELIEVABLE else 1.0 / nominal


def _slopes(rows: MotorRows, factors: Factors, inverse: Array, torque: Array) -> Array:
    """Derivative of the currents by 1/k and by pi, shape (n, n_motors, factors.count + rank)."""
    which = factors.at(rows, torque)
    by_inverse = np.where(which[:, :, None] == np.arange(factors.count), torque[:, :, None], 0.0)
    return np.concatenate([by_inverse, inverse[which][:, :, None] * rows.columns], axis=2)


def _step(slopes: Array, error: Array, rows: MotorRows, weight: Array) -> Array:
    """Weighted least squares over the used rows, motors weighted by `weight`."""
    weights = np.broadcast_to(weight, rows.used.shape)[rows.used]
    return _scaled_least_squares(slopes[rows.used] * weights[:, None], error[rows.used] * weights)


def _scaled_least_squares(columns: Array, values: Array) -> Array:
    """Least squares with columns of one length; the shortest solution where they leave a direction open."""
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq(columns / scale, values, rcond=_SINGULAR)[0] / scale)


@dataclass(frozen=True)
class MotorGain:
    """Torque constant of one motor.

    Attributes:
        name: of the drive.
        torque_constant: motor torque per current [N·m/A], gear losses in proportion to torque included; nan where the
            two recordings do not tell it.
        sigma: its standard deviation [N·m/A], infinite then.
        payload_torque: what the payload asked of this motor over the rows used, root mean square [N·m], motor side.
        verdict: the word on it.
        efficiency: share of the torque that the gear passes on, in either direction of power; None where not asked.
        efficiency_sigma: its standard deviation.
        efficiency_verdict: the word on the loss, 1 - efficiency.
    """

    name: str
    torque_constant: float
    sigma: float
    payload_torque: float
    verdict: Verdict
    efficiency: float | None = None
    efficiency_sigma: float | None = None
    efficiency_verdict: Verdict | None = None


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Torque constants of a robot's motors, and the model that was found with them.

    Attributes:
        robot: whose; `base` and `parameters` are of it without the payload.
        motors: in the order of `robot.drive_train`; None of what is no motor.
        base: base parameters of links and drives.
        parameters: their values [SI], shape (rank,); covariance: shape (rank, rank).
        covariance: of `parameters`.
        current_sigma: what is left of each motor's current, standard deviation [A], shape (n_motors,).
    """

    robot: Robot
    motors: tuple[MotorGain | None, ...]
    base: BaseParameters
    parameters: Array
    covariance: Array
    current_sigma: Array

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The word on each motor's torque constant, and on its efficiency where that was asked."""
        known = [motor for motor in self.motors if motor is not None]
        return tuple(word for motor in known for word in (motor.verdict, motor.efficiency_verdict) if word is not None)

    @property
    def torque_constants(self) -> Array:
        """Motor torque per current [N·m/A], shape (n_motors,), nan where not told."""
        return np.array([np.nan if motor is None else motor.torque_constant for motor in self.motors])


def identify_gains(
    robot: Robot, without: DriveSignals, loaded: DriveSignals, payload: ArrayLike, *, directions: bool = False
) -> DriveGains:
    """Identify every motor's torque constant from two recordings, the second with a known payload.

    current_i = (1/k_i) (A_i pi + b_i), with A_i pi the torque that links and drives ask of motor i, b_i what the
    payload asks in addition, and k_i the torque constant. Without b the scale of k and pi together would be free; so a
    motor is told by the payload's torque on it, or by the parameters it shares with motors that are. The noise is the
    currents', so the error to be least is theirs: Gauss-Newton over 1/k and pi, starting motor by motor, where the
    problem is linear in 1/k and pi/k.

    With `directions` each motor has two constants, k η while it drives and k/η while the load drives it.

    Args:
        robot: the robot without payload; its own torque constants are what `motor_torque` was made with.
        without, loaded: the two recordings.
        payload: ten standard parameters per link that the payload adds, shape (10 * n_links,): those of
            `with_payload(robot, …)` less those of the robot.
        directions: whether to tell efficiency from the torque constant.

    Returns:
        The constants with error bars and verdicts; a motor on which the payload has no effect is refused, not guessed.

    Raises:
        FitError: the payload has no inertia, the recordings no rows, or no motor is told at all.
        RobotError: there are more motors than joints, which may work against each other unseen.
        ShapeError: the arrays do not match the robot.

    Source: Gautier & Briot, J. Dyn. Sys. Meas. Control 136(5), 2014, for the two runs and the payload's known
    parameters on the other side; they solve for k itself by total least squares.
    """
    added = parameter_vector(robot, payload)
    if not added.any():
        raise FitError("the payload has no mass and no inertia, and so tells no torque constant; give one that weighs")
    _ = robot.transmission_matrix
    base = base_parameters(robot)
    nothing = np.zeros_like(added)
    parts = [motor_rows(robot, base, without, nothing), motor_rows(robot, base, loaded, added)]
    rows = MotorRows(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))
    if int(rows.used.sum()) <= base.rank + rows.current.shape[1]:
        raise FitError(
            f"{int(rows.used.sum())} rows away from rest are too few for {base.rank} parameters; record more motion"
        )
    nominal = np.array([drive.torque_constant for drive in robot.drive_train.drives])
    estimate = _estimate(rows, nominal, np.full(len(nominal), directions))
    if directions:
        # A motor that hardly ever brakes has one constant, and its efficiency is refused.
        told = np.max(estimate.relative_sigma, axis=0) <= POORLY_EXCITED_RELATIVE_SIGMA
        estimate = estimate if told.all() else _estimate(rows, nominal, told)
    return _result(robot, base, rows, estimate, directions)


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Inverse constants and parameters with their joint covariance."""

    factors: Factors
    values: Array
    covariance: Array
    current_sigma: Array

    @property
    def relative_sigma(self) -> Array:
        """Relative σ of each motor's constants, driving and braking, shape (2, n_motors)."""
        return np.sqrt(np.diag(self.covariance))[self.factors.index] / self.values[self.factors.index]

    def logarithms(self, motor: int) -> tuple[Array, Array]:
        """Logarithms of a motor's 1/k, driving and braking, and their covariance."""
        own = self.factors.index[:, motor]
        values = self.values[own]
        return np.log(values), self.covariance[np.ix_(own, own)] / np.outer(values, values)


def _estimate(rows: MotorRows, nominal: Array, by_direction: NDArray[np.bool_]) -> _Estimate:
    factors = Factors.of(by_direction)
    inverse, parameters = solve_factors(rows, factors, nominal)
    solution = factor_estimate(rows, factors, inverse, parameters)
    return _Estimate(factors, np.concatenate([inverse, parameters]), solution.covariance, solution.joint_sigma)


def _result(robot: Robot, base: BaseParameters, rows: MotorRows, estimate: _Estimate, directions: bool) -> DriveGains:
    motors: list[MotorGain | None] = []
    for i, drive in enumerate(robot.drive_train.drives):
        used = rows.used[:, i]
        asked = float(np.sqrt(np.mean(rows.known[used, i] ** 2))) if used.any() else 0.0
        known = drive.torque_constant != 0.0
        motors.append(_motor(drive.name, estimate, i, asked, directions) if known else None)
    if all(motor is None or motor.verdict.is_refused for motor in motors):
        reasons = "; ".join(str(motor.verdict) for motor in motors if motor is not None)
        raise FitError(f"no torque constant is told: {reasons}")
    count = estimate.factors.count
    return DriveGains(
        robot, tuple(motors), base, estimate.values[count:], estimate.covariance[count:, count:], estimate.current_sigma
    )


def _motor(name: str, estimate: _Estimate, motor: int, asked: float, directions: bool) -> MotorGain:
    """Judge one motor: in logarithms k is the mean of its two constants, the efficiency half their difference."""
    if not np.max(estimate.relative_sigma[:, motor]) <= POORLY_EXCITED_RELATIVE_SIGMA:
        current_sigma = float(estimate.current_sigma[motor])
        reason = "it never moves away from rest in these recordings"
        if np.isfinite(current_sigma):
            reason = (
                f"the payload changes this motor's torque by {asked:.2g} N·m, and {current_sigma:.2g} A of its current "
                f"stay unexplained: too little to tell the constant; let the payload weigh on it or swing about it"
            )
        return MotorGain(name, np.nan, np.inf, asked, Verdict(f"{name}.torque_constant", "refused", reason))
    logs, covariance = estimate.logarithms(motor)
    mean, half = np.array([0.5, 0.5]), np.array([-0.5, 0.5])
    constant = float(np.exp(-mean @ logs))
    sigma = constant * float(np.sqrt(mean @ covariance @ mean))
    verdict = judge_parameter(f"{name}.torque_constant", constant, sigma)
    if not directions:
        return MotorGain(name, constant, sigma, asked, verdict)
    if estimate.factors.index[0, motor] == estimate.factors.index[1, motor]:
        reason = "the motor brakes, or drives, too seldom or too little in these recordings to tell the two apart"
        word = Verdict(f"{name}.gear_loss", "refused", reason)
        return MotorGain(name, constant, sigma, asked, verdict, efficiency_verdict=word)
    efficiency = float(np.exp(half @ logs))
    efficiency_sigma = efficiency * float(np.sqrt(half @ covariance @ half))
    word = judge_parameter(f"{name}.gear_loss", 1.0 - efficiency, efficiency_sigma)
    return MotorGain(name, constant, sigma, asked, verdict, efficiency, efficiency_sigma, word)
