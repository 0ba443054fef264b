"""The model of one harmonic-drive joint, fitted to its motor's current."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals, GearTorque
from jointbench.identification.drives.prediction import HARMONIC_PARAMETERS, Load, torque_slopes
from jointbench.identification.judgement import Verdict, judge_parameter
from jointbench.identification.least_squares import Estimate, weighted_least_squares
from jointbench.model import BaseParameters, Robot, model_columns, regressor
from jointbench.model.tree import motion_arrays


class MotorRows(NamedTuple):
    """current [A] = (columns @ pi + known) / k; arrays of shape (n, n_motors), `columns` (n, n_motors, rank).

    Attributes:
        current: by the robot's own torque constants [A].
        columns: torque at the motor per base parameter of links and drives [SI].
        known: torque at the motor that the payload asks for [N·m].
        velocity: of the motor [rad/s].
        used: rows in which all joints that the motor turns are away from rest.
    """

    current: Array
    columns: Array
    known: Array
    velocity: Array
    used: NDArray[np.bool_]

    def torque(self, parameters: Array) -> Array:
        """Torque of the motors [N·m], shape (n, n_motors)."""
        return self.columns @ parameters + self.known

    def since(self, row: int) -> MotorRows:
        """Return the rows from this one on."""
        return MotorRows(self.current[row:], self.columns[row:], self.known[row:], self.velocity[row:], self.used[row:])


def motor_rows(robot: Robot, base: BaseParameters, signals: DriveSignals, payload: Array) -> MotorRows:
    """Rows of one recording.

    Args:
        robot: without payload, as many motors as joints.
        base: its base parameters with drives.
        signals: the recording; its `motor_torque` is taken back to currents.
        payload: standard parameters that are known to be there in addition, shape (10 * n_links,).

    Raises:
        ShapeError: the arrays do not match the robot.
    """
    train = robot.drive_train
    motion = motion_arrays(robot, q=signals.q, dq=signals.dq, ddq=signals.ddq)
    full, _ = model_columns(robot, *motion)
    columns = signals.rows(base.project(full).reshape(*motion[0].shape, base.rank))
    known = train.motor_torque(signals.rows((regressor(robot, *motion) @ payload).reshape(motion[0].shape)))
    nominal = np.array([drive.torque_constant for drive in train.drives])
    torque = train.motor_torque(signals.motor_torque)
    current = np.divide(torque, nominal, out=np.zeros_like(torque), where=nominal != 0.0)
    still = (~(signals.moving_rows & robot.modelled)).astype(np.float64) @ (train.matrix != 0.0).T > 0.0
    return MotorRows(
        current=current,
        columns=np.einsum("njp,ji->nip", columns, train.inverse),
        known=known,
        velocity=train.motor_motion(signals.rows(motion[1])),
        used=~still & (nominal != 0.0),
    )


_COUNT = len(HARMONIC_PARAMETERS)
_LOAD_FRICTION, _FLEXIBILITY, _OFFSET, _GAIN_ERROR = 0, 4, 5, 6
_MAY_BE_LEFT_OUT = (_FLEXIBILITY, _GAIN_ERROR, _LOAD_FRICTION)
"""Terms that a joint without load, or a stiff one, does not show: predictions do without them. A gain error goes before
load friction, from which only a motor that also brakes can tell it."""

_LARGEST_LOAD_FRICTION = 0.95
"""Steps stay inside: at 1 the gear passes on nothing, and the torque's slopes are infinite."""

_DATA_SHEET = 0.05
"""A gain error that is told no better than this, which a motor's data sheet promises, is not taken."""

_STEPS = 20
_CONVERGED = 1e-3
"""Of a step, in standard deviations of white noise: far below what any error bar shows."""

_SINGULAR = 1e-10
"""Relative singular value under which a direction is open, as in `weighted_least_squares`."""

_TWO_SIGMA = 2.0


@dataclass(frozen=True, eq=False)
class HarmonicJoint:
    """Parameters a1 … a7 of one joint, at the joint side, and what the data tell of each.

    Attributes:
        name: of the joint.
        all_terms: estimate of all together; a gain error that was not asked for is zero, and has no variance.
        parameters: as predictions use them: a term that may be left out and is refused is zero, and the others are
            fitted without it; shape (7,).
        covariance: of these, with what the terms left out may yet be; zero for those themselves, shape (7, 7).
        left_out: the words on what is left out, by its place among `HARMONIC_PARAMETERS`.
        residual_rms: of the motor torque over the rows used, with `parameters` [N·m].
    """

    name: str
    all_terms: Estimate
    parameters: Array
    covariance: Array
    left_out: Mapping[int, Verdict]
    residual_rms: float

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The word on each; of what is left out, that of the fit it was left out of. None on what was not asked for."""
        judged = (self._judge(index) for index in range(_COUNT))
        return tuple(verdict for verdict in judged if verdict is not None)

    @property
    def flexibility_interval(self) -> tuple[float, float]:
        """Interval of a5 = 1/stiffness [rad/(N·m)] that holds it with 95 % probability, as the data have it."""
        return _interval(self.all_terms, _FLEXIBILITY)

    @property
    def stiffness(self) -> float | None:
        """Stiffness of gear and sensor [N·m/rad]; None where the data do not tell it."""
        flexibility = float(self.parameters[_FLEXIBILITY])
        return 1.0 / flexibility if flexibility > 0.0 else None

    @property
    def least_stiffness(self) -> float | None:
        """Below this the stiffness is not, with 97.5 % probability [N·m/rad]; None where nothing is known."""
        upper = self.flexibility_interval[1]
        return 1.0 / upper if 0.0 < upper < np.inf else None

    def _judge(self, index: int) -> Verdict | None:
        if index not in self.left_out:
            variance = float(self.covariance[index, index])
            return _judge(self.name, index, float(self.parameters[index]), variance) if variance > 0.0 else None
        verdict = self.left_out[index]
        low, high = self.flexibility_interval
        if index != _FLEXIBILITY or not np.isfinite(high):
            return verdict
        bound = f"; the stiffness is above {self.least_stiffness:.3g} N·m/rad" if self.least_stiffness else ""
        said = f"{verdict.reason}, 95 % interval {low:.2g} to {high:.2g} rad/(N·m){bound}"
        return Verdict(verdict.name, verdict.word, said)


def fit_harmonic_joint(
    name: str,
    dq: Array,
    ddq: Array,
    gear: GearTorque,
    motor_torque: Array,
    used: NDArray[np.bool_],
    sensor_zero_sigma: float = 0.0,
    *,
    current_gain: bool = False,
    load: Load = "motor",
    rows: Callable[[Array], Array] = np.asarray,
) -> HarmonicJoint:
    """Identify load friction, Coulomb and viscous friction, rotor inertia, flexibility and offset of one joint.

    Gauss-Newton on the error of the exactly solved motor torque, from least squares of tau_m - tau_r on the columns
    |tau_r| s, s, dq, ddq and 1. Torque and columns are computed at every sample and go through `rows` before they are
    compared, all rows alike, those at rest too.

    Args:
        name: of the joint.
        dq, ddq: of the link [rad/s, rad/s²], shape (n,).
        gear: torque onto the link by the sensor, its zero taken off, shape (n,). Smooth it as `drive_signals` does: its
            noise is in the columns too, and white noise of a hundredth of the load biases a1 … a5 by more than a σ.
        motor_torque: at the joint side [N·m], shape (n_rows,).
        used: rows to use, shape (n_rows,).
        sensor_zero_sigma: standard deviation of what is left of the torque sensor's zero [N·m].
        current_gain: whether to tell a gain error of the motor torque too, trusting the torque sensor's.
        load: what load friction grows with: the motor's torque, as published, or the gear's.
        rows: from samples (n, ...) to rows (n_rows, ...), linear: what filtered the motor's torque.

    Returns:
        The joint; look at its verdicts.

    Raises:
        FitError: fewer than 14 rows to use.

    Source: Zhang & Ding, Information and Control 52(3):292, 2023, for model and columns.
    """
    count = int(used.sum())
    if count < 2 * _COUNT:
        raise FitError(f"joint {name!r} has {count} rows; {2 * _COUNT} at least are needed: record a longer motion")
    data = _Joint(dq, ddq, gear, motor_torque, used, sensor_zero_sigma, load, rows)
    kept = np.ones(_COUNT, dtype=np.bool_)
    kept[_GAIN_ERROR] = current_gain
    all_terms = adopted = _estimate(data, kept)
    left_out: dict[int, Verdict] = {}
    doubt: dict[int, float] = {}
    for index in (index for index in _MAY_BE_LEFT_OUT if kept[index]):
        value, variance = _value_and_variance(adopted, index)
        verdict = _judge(name, index, value, variance)
        if verdict.is_refused:
            left_out[index] = verdict
            doubt[index] = _doubt(index, value, variance)
            kept[index] = False
            adopted = _estimate(data, kept)
    slopes, linear = data.linearised(adopted.parameters)
    residual_rms = float(np.sqrt(np.mean((linear - slopes @ adopted.parameters)[used] ** 2)))
    covariance = adopted.covariance.copy()
    for index, square in doubt.items():
        moved = np.linalg.lstsq(slopes[used][:, kept], slopes[used, index], rcond=_SINGULAR)[0]
        covariance[np.ix_(kept, kept)] += square * np.outer(moved, moved)
    return HarmonicJoint(name, all_terms, adopted.parameters, covariance, left_out, residual_rms)


def _doubt(index: int, value: float, variance: float) -> float:
    """Mean square of what a left-out term may really be, which the others' error bars then have to carry."""
    limit = {_LOAD_FRICTION: _LARGEST_LOAD_FRICTION, _GAIN_ERROR: _DATA_SHEET}.get(index)
    square = variance + (max(value, 0.0) if index == _FLEXIBILITY else value) ** 2
    if limit is not None:
        return min(square, limit**2)
    return square if np.isfinite(square) else 0.0  # no motion shows it, so that it moves none of the others


@dataclass(frozen=True, eq=False)
class _Joint:
    """Data that the estimate of one joint is made from, as `fit_harmonic_joint` is given it."""

    dq: Array
    ddq: Array
    gear: GearTorque
    motor_torque: Array
    used: NDArray[np.bool_]
    sensor_zero_sigma: float
    load: Load
    rows: Callable[[Array], Array]

    def linearised(self, parameters: Array) -> tuple[Array, Array]:
        """Columns, and the torque they must add up to at the solution: tau_m - tau + columns @ a."""
        torque, slopes = torque_slopes(parameters, self.dq, self.ddq, self.gear, self.load)
        filtered = self.rows(np.column_stack([torque, slopes]))
        torque, slopes = filtered[:, 0], filtered[:, 1:]
        return slopes, self.motor_torque - torque + slopes @ parameters


def _estimate(data: _Joint, kept: NDArray[np.bool_]) -> Estimate:
    """Gauss-Newton over the parameters kept, the others zero; error bars from the last columns."""
    parameters = _first_step(data, kept)
    for _ in range(_STEPS):
        slopes, values = data.linearised(parameters)
        rows, goal = slopes[data.used][:, kept], values[data.used]
        scale = np.linalg.norm(rows, axis=0)
        scale[scale == 0.0] = 1.0
        step = np.linalg.lstsq(rows / scale, goal, rcond=_SINGULAR)[0] / scale - parameters[kept]
        bound = _LARGEST_LOAD_FRICTION
        reached = parameters.copy()
        reached[kept] += step
        reached[_LOAD_FRICTION] = np.clip(reached[_LOAD_FRICTION], -bound, bound)
        noise = float(np.std(goal - rows @ reached[kept]))
        moved = np.linalg.norm(rows @ (reached - parameters)[kept])
        parameters = reached
        if moved <= _CONVERGED * max(noise, np.finfo(np.float64).tiny):
            break
    slopes, values = data.linearised(parameters)
    last = weighted_least_squares(slopes[:, None, kept], values[:, None], data.used[:, None])
    covariance = np.zeros((_COUNT, _COUNT))
    # An error of the sensor's zero acts as the sign's column does, without the sign.
    shift = (slopes[:, 1] * np.sign(slopes[:, 1]))[data.used]
    moved = np.linalg.lstsq(slopes[data.used][:, kept], shift, rcond=_SINGULAR)[0] * data.sensor_zero_sigma
    covariance[np.ix_(kept, kept)] = last.covariance + np.outer(moved, moved)
    known = np.where(np.isinf(np.diag(covariance)), 0.0, parameters)
    return Estimate(known, covariance, last.condition_number, last.joint_sigma, last.lags)


def _first_step(data: _Joint, kept: NDArray[np.bool_]) -> Array:
    """Least squares of tau_m - tau_r on all columns but a5's and a7's, with |tau_r| for what the gear carries."""
    sign = np.sign(data.dq)
    nothing = np.zeros_like(sign)
    terms = [np.abs(data.gear.value) * sign, sign, data.dq, data.ddq, nothing, np.ones_like(sign), nothing]
    columns, first = data.rows(np.stack([*terms, data.gear.value], axis=1))[data.used], kept.copy()
    first[[_FLEXIBILITY, _GAIN_ERROR]] = False
    parameters = np.zeros(_COUNT)
    missing = data.motor_torque[data.used] - columns[:, -1]
    parameters[first] = np.linalg.lstsq(columns[:, :-1][:, first], missing, rcond=_SINGULAR)[0]
    bound = _LARGEST_LOAD_FRICTION
    parameters[_LOAD_FRICTION] = np.clip(parameters[_LOAD_FRICTION], -bound, bound)
    return parameters


def _judge(joint: str, index: int, value: float, variance: float) -> Verdict:
    """Word on one parameter; what is measured wrong can be negative, the joint's own cannot."""
    name, sigma = f"{joint}.{HARMONIC_PARAMETERS[index]}", float(np.sqrt(variance))
    if index == _LOAD_FRICTION and abs(value) >= _LARGEST_LOAD_FRICTION:
        return Verdict(name, "refused", f"it runs to {value:.2f}, where the gear would pass on nothing: load too small")
    if index == _GAIN_ERROR and sigma > _DATA_SHEET:
        figures = (
            f"± {sigma:.0%} is no better than a data sheet" if np.isfinite(sigma) else "it has no effect on the torque"
        )
        advice = "let the motor drive and brake a load: where it only drives, a gain error looks like load friction"
        return Verdict(name, "refused" if np.isfinite(sigma) else "not observable", f"{figures}; {advice}")
    if index not in (_OFFSET, _GAIN_ERROR) and value < -_TWO_SIGMA * sigma:
        return Verdict(
            name, "refused",
            f"{value:.4g} ± {sigma:.2g} is below zero by more than 2 σ, which no joint is; it stands for something "
            f"else, such as a delay between the two torques, or a current's gain error",
        )  # fmt: skip
    return judge_parameter(name, value, sigma)


def _value_and_variance(estimate: Estimate, index: int) -> tuple[float, float]:
    return float(estimate.parameters[index]), float(estimate.covariance[index, index])


def _interval(estimate: Estimate, index: int) -> tuple[float, float]:
    value, variance = _value_and_variance(estimate, index)
    half = float(special.ndtri(0.975)) * float(np.sqrt(variance))
    return value - half, value + half
