"""Torque constants together with model parameters, from recordings without and with a payload of known mass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals
from jointbench.identification.drives.harmonic_joint import MotorRows, motor_rows
from jointbench.identification.drives.inverse_constants import BELIEVABLE, GainEstimate, estimate_gains
from jointbench.identification.judgement import POORLY_EXCITED_RELATIVE_SIGMA, Verdict, judge_parameter
from jointbench.identification.payload import friction_parameters
from jointbench.identification.payload_body import WIDTH, KnownPayload, PayloadBody, PayloadFrame
from jointbench.model import BaseParameters, Drive, Robot, base_parameters
from jointbench.model.tree import parameter_vector


@dataclass(frozen=True)
class MotorGain:
    """Torque constant of one motor.

    Attributes:
        name: of the drive.
        torque_constant: motor torque per current [N·m/A], gear losses in proportion to torque included; nan where it is
            refused or not observable.
        sigma: its standard deviation [N·m/A], infinite then.
        nominal: the constant of the robot's file [N·m/A].
        payload_torque: what the payload asked of this motor over the rows used, root mean square [N·m], motor side.
        verdict: the word on it.
        efficiency: share of the torque that the gear passes on, in either direction of power; None where not asked.
        efficiency_sigma: its standard deviation.
        efficiency_verdict: the word on the loss, 1 - efficiency.
    """

    name: str
    torque_constant: float
    sigma: float
    nominal: float
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
        payload: the payload, where some of it was free.
        same_friction: whether friction was taken as the same in both recordings.
    """

    robot: Robot
    motors: tuple[MotorGain | None, ...]
    base: BaseParameters
    parameters: Array
    covariance: Array
    current_sigma: Array
    payload: PayloadBody | None = None
    same_friction: bool = False

    @property
    def condition(self) -> str:
        """Assumption of the constants that no recording can show, in a sentence."""
        given = "if what was given of the payload is right: 1 % in its mass is 1 % in every torque constant"
        return f"{given}; and if friction did not change between the recordings" if self.same_friction else given

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
    robot: Robot,
    without: DriveSignals,
    loaded: DriveSignals,
    payload: ArrayLike | KnownPayload,
    *,
    on: str | None = None,
    same_friction: bool = True,
    directions: bool = False,
) -> DriveGains:
    """Identify every motor's torque constant from two recordings, the second with a payload whose mass is known.

    current_i = (1/k_i) (A_i pi + P_i p + b_i), with A_i pi the torque that links and drives ask of motor i, b_i what
    the known part of the payload asks in addition, P_i p what its unknown part does, and k_i the torque constant.
    Without b the scale of k, pi and p together would be free; so a motor is told by the payload's torque on it, or by
    the parameters it shares with motors that are. The noise is the currents', so the error to be least is theirs:
    Gauss-Newton over 1/k, pi and p, starting motor by motor, where the problem is linear in 1/k, pi/k and p/k.

    With `directions` each motor has two constants, k η while it drives and k/η while the load drives it.

    Args:
        robot: the robot without payload; its own torque constants are what `motor_torque` was made with.
        without, loaded: the two recordings.
        payload: what is known of it, such as `KnownPayload.of(mass)`; the rest is estimated, too. Or all of it, as the
            ten standard parameters per link that it adds, shape (10 * n_links,): those of `with_payload(robot, …)`
            less those of the robot.
        on: frame or link that the payload is fixed to; None: the last joint's link. It matters for a `KnownPayload`.
        same_friction: whether friction and offsets are the same in both recordings; else they may have changed.
        directions: whether to tell efficiency from the torque constant.

    Returns:
        The constants with error bars and verdicts; a motor on which the payload has no effect is not observable.

    Raises:
        FileError: the robot has no such frame.
        FitError: nothing is known of the payload, the recordings have no rows, or no motor is told at all.
        RobotError: there are more motors than joints, which may work against each other unseen.
        ShapeError: the arrays do not match the robot.

    Source: Gautier & Briot, J. Dyn. Sys. Meas. Control 136(5), 2014, for the two runs and the payload's known
    parameters on the other side, of which the mass is enough; they solve for k itself by total least squares.
    """
    if isinstance(payload, KnownPayload):
        frame, known = PayloadFrame.of(robot, on), payload
        added, free = frame.added(robot, known.parameters), frame.added(robot, np.eye(WIDTH)[:, ~known.known])
    else:
        frame, known = None, None
        added, free = parameter_vector(robot, payload), np.zeros((WIDTH * robot.n_links, 0))
    if not added.any():
        raise FitError("the payload has no mass and no inertia, and so tells no torque constant; give one that weighs")
    _ = robot.transmission_matrix
    base = base_parameters(robot)
    body = base.grouping[:, : len(free)] @ free
    changes = np.empty(0, np.intp) if same_friction else friction_parameters(base)
    parts = [
        _extended(motor_rows(robot, base, without, np.zeros_like(added)), body, changes, loaded=False),
        _extended(motor_rows(robot, base, loaded, added), body, changes, loaded=True),
    ]
    rows = MotorRows(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))
    n_parameters = rows.columns.shape[2]
    if int(rows.used.sum()) <= n_parameters + rows.current.shape[1]:
        raise FitError(
            f"{int(rows.used.sum())} rows away from rest are too few for {n_parameters} parameters; record more motion"
        )
    nominal = np.array([drive.torque_constant for drive in robot.drive_train.drives])
    estimate = estimate_gains(rows, nominal, np.full(len(nominal), directions))
    judged = _result(robot, base, rows.since(len(parts[0].current)), estimate, directions)
    gains = replace(judged, same_friction=same_friction)
    if frame is None or known is None or known.known.all():
        return gains
    part = slice(base.rank, base.rank + body.shape[1])
    covariance = estimate.parameter_covariance[part, part]
    values = np.where(np.isfinite(np.diag(covariance)), estimate.parameters[part], 0.0)
    return replace(gains, payload=PayloadBody.of(robot, frame, known, values, covariance))


def _extended(rows: MotorRows, body: Array, changes: NDArray[np.intp], *, loaded: bool) -> MotorRows:
    """Rows with columns for the payload's unknown part and for changed friction, zero without the payload.

    Args:
        rows: with the columns of the base parameters.
        body: base parameters that each unknown parameter of the payload adds to, shape (rank, n_free).
        changes: indices of the base parameters that may have changed.
        loaded: whether the rows are of the recording with the payload.
    """
    further = np.concatenate([rows.columns @ body, rows.columns[:, :, changes]], axis=2)
    return rows._replace(columns=np.concatenate([rows.columns, further if loaded else 0.0 * further], axis=2))


def _result(
    robot: Robot, base: BaseParameters, rows: MotorRows, estimate: GainEstimate, directions: bool
) -> DriveGains:
    torque = rows.columns[:, :, base.rank :] @ estimate.parameters[base.rank :] + rows.known
    motors: list[MotorGain | None] = []
    for i, drive in enumerate(robot.drive_train.drives):
        used = rows.used[:, i]
        asked = float(np.sqrt(np.mean(torque[used, i] ** 2))) if used.any() else 0.0
        motors.append(_motor(drive, estimate, i, asked, directions) if drive.torque_constant != 0.0 else None)
    if all(motor is None or motor.verdict.is_refused for motor in motors):
        reasons = "; ".join(str(motor.verdict) for motor in motors if motor is not None)
        raise FitError(f"no torque constant is told: {reasons}")
    own = slice(0, base.rank)
    parameters, covariance = estimate.parameters[own], estimate.parameter_covariance[own, own]
    return DriveGains(robot, tuple(motors), base, parameters, covariance, estimate.current_sigma)


def _motor(drive: Drive, estimate: GainEstimate, motor: int, asked: float, directions: bool) -> MotorGain:
    """Judge one motor: in logarithms k is the mean of its two constants, the efficiency half their difference."""
    name, nominal = drive.name, drive.torque_constant
    if not estimate.told[motor]:
        verdict = _untold(drive, float(estimate.relative_sigma[motor]), asked, float(estimate.current_sigma[motor]))
        return MotorGain(name, np.nan, np.inf, nominal, asked, verdict)
    logs, covariance = estimate.logarithms(motor)
    mean, half = np.array([0.5, 0.5]), np.array([-0.5, 0.5])
    constant = float(np.exp(-mean @ logs))
    sigma = constant * float(np.sqrt(mean @ covariance @ mean))
    verdict = judge_parameter(f"{name}.torque_constant", constant, sigma)
    if not directions:
        return MotorGain(name, constant, sigma, nominal, asked, verdict)
    if estimate.factors.index[0, motor] == estimate.factors.index[1, motor]:
        reason = "the motor brakes, or drives, too seldom or too little in these recordings to tell the two apart"
        word = Verdict(f"{name}.gear_loss", "refused", reason)
        return MotorGain(name, constant, sigma, nominal, asked, verdict, efficiency_verdict=word)
    efficiency = float(np.exp(half @ logs))
    efficiency_sigma = efficiency * float(np.sqrt(half @ covariance @ half))
    word = judge_parameter(f"{name}.gear_loss", 1.0 - efficiency, efficiency_sigma)
    return MotorGain(name, constant, sigma, nominal, asked, verdict, efficiency, efficiency_sigma, word)


def _untold(drive: Drive, relative: float, asked: float, current_sigma: float) -> Verdict:
    """Verdict on a constant that the recordings do not tell: not observable where they hold no information on it."""
    name = f"{drive.name}.torque_constant"
    if not np.isfinite(current_sigma):
        return Verdict(name, "not observable", "it never moves away from rest in these recordings")
    if relative <= POORLY_EXCITED_RELATIVE_SIGMA:
        file = f"the robot file's {drive.torque_constant:.3g} N·m/A"
        return Verdict(name, "refused", f"it is more than {BELIEVABLE:g} times {file}, or less than a third; mend that")
    figures = (
        f"the payload changes this motor's torque by {asked:.2g} N·m, and {current_sigma:.2g} A of its current stay "
        f"unexplained"
    )
    advice = "too little to tell the constant; let the payload weigh on it or swing about it"
    return Verdict(name, "not observable", f"{figures}: {advice}")
