"""Harmonic-drive models of all joints, and the stiffness of their gears from encoders on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals, GearTorque
from jointbench.identification.drives.harmonic_joint import HarmonicJoint, fit_harmonic_joint
from jointbench.identification.drives.prediction import (
    HARMONIC_PARAMETERS,
    LinearTorque,
    Load,
    exact_motor_torque,
    fit_linear_torque,
    motor_torque_by_stand_in,
)
from jointbench.identification.friction.memory import Carriers, FrictionWithMemory, fit_with_memory
from jointbench.identification.judgement import Verdict, judge_parameter
from jointbench.identification.least_squares import weighted_least_squares
from jointbench.model import Robot
from jointbench.model.tree import motion_arrays
from jointbench.signals import Motion


@dataclass(frozen=True)
class GearStiffness:
    """Compliance of one gear, its torque sensor included.

    Attributes:
        name: of the joint.
        flexibility: 1/stiffness [rad/(N·m)]; 0 where not told.
        sigma: its standard deviation; infinite where not told.
        verdict: the word on it; a flexibility that is not above zero is refused.
    """

    name: str
    flexibility: float
    sigma: float
    verdict: Verdict

    @property
    def stiffness(self) -> float | None:
        """Stiffness [N·m/rad], None where refused."""
        return None if self.verdict.is_refused else 1.0 / self.flexibility

    @property
    def interval(self) -> tuple[float, float]:
        """Interval that holds the flexibility with 95 % probability [rad/(N·m)]."""
        half = float(special.ndtri(0.975)) * self.sigma
        return self.flexibility - half, self.flexibility + half


def fit_stiffness(robot: Robot, signals: DriveSignals) -> tuple[GearStiffness | None, ...]:
    """Identify each gear's stiffness K from twist and torque.

    q_motor - q_link = tau_r / K + zero, by least squares.

    Args:
        robot: the robot.
        signals: with `twist` and `gear_torque`.

    Returns:
        One for each joint, None of passive ones.

    Raises:
        FitError: the signals lack encoders on both sides, or torque sensors; or a joint has too few rows.
    """
    gear, twist = signals.gear_torque, signals.twist
    if gear is None or twist is None:
        missing = "torque sensors" if gear is None else "encoders on both sides of the gears"
        raise FitError(f"the signals of {robot.name!r} are without {missing}, and stiffness is torque over twist")
    gears: list[GearStiffness | None] = []
    for j, name in enumerate(robot.joint_names):
        if not robot.modelled[j]:
            gears.append(None)
            continue
        used = signals.moving_rows[:, j, None]
        if int(used.sum()) <= 2:
            raise FitError(f"joint {name!r} has {int(used.sum())} rows away from rest; record a motion that moves it")
        torque, twisted = signals.joint_rows(np.stack([gear.value[:, j], twist[:, j]], axis=1), j).T
        columns = np.stack([torque, np.ones_like(torque)], axis=1)[:, None]
        estimate = weighted_least_squares(columns, twisted[:, None], used)
        value, sigma = float(estimate.parameters[0]), float(np.sqrt(estimate.covariance[0, 0]))
        gears.append(GearStiffness(name, value, sigma, _judge(name, value, sigma)))
    return tuple(gears)


def _judge(joint: str, value: float, sigma: float) -> Verdict:
    name = f"{joint}.flexibility"
    if value <= 0.0 and np.isfinite(sigma):
        return Verdict(name, "refused", f"{value:.3g} ± {sigma:.2g} rad/(N·m) is not above zero, as any gear's is")
    return judge_parameter(name, value, sigma)


_FLEXIBILITY = HARMONIC_PARAMETERS.index("flexibility")


class RmsError(NamedTuple):
    """Error of the motor torque per joint [N·m], shape (n_joints,) each: over all rows, and over moving ones alone."""

    all: Array
    moving: Array


@dataclass(frozen=True, eq=False)
class MemoryJoint:
    """Motor and gear of one joint whose friction has memory.

    torque = (1 + gain_error) tau_r + offset + viscous v + rotor_inertia dv/dt + friction(position, v, tau_r), with
    position and velocity v of the motor, at the joint side.

    Attributes:
        name: of the joint.
        gain_error: of the motor's torque [-]; zero where it was not asked for.
        offset: [N·m].
        viscous: [N·m·s/rad].
        rotor_inertia: [kg·m²].
        friction: all else that friction is.
    """

    name: str
    gain_error: float
    offset: float
    viscous: float
    rotor_inertia: float
    friction: FrictionWithMemory

    def torque(self, motor: Motion, gear: Array, stretches: Sequence[slice]) -> Array:
        """Motor torque of a motion [N·m], shape (n,).

        Args:
            motor: position, velocity and acceleration, shape (n,) each.
            gear: torque onto the link [N·m], shape (n,).
            stretches: without gaps; in each the memory begins anew.
        """
        turning = [self.friction.torque(motor.q[part], motor.dq[part], gear[part]) for part in stretches]
        rest = (1.0 + self.gain_error) * gear + self.offset + self.viscous * motor.dq + self.rotor_inertia * motor.ddq
        return rest + np.concatenate(turning)


@dataclass(frozen=True, eq=False)
class HarmonicModel:
    """Links, gears and motors of a robot with harmonic drives, and the usual model beside them.

    Attributes:
        robot: whose.
        links: stage 1, torque from the gears onto the links.
        joints: stage 2 with the published parameters, one per joint; None of a passive joint.
        simplified: the usual model of the motors' torque, all friction in proportion to nothing but speed and its sign.
        load: what load friction grows with.
        memory: stage 2 with friction that has memory, one per joint; None of a passive joint.
    """

    robot: Robot
    links: LinearTorque
    joints: tuple[HarmonicJoint | None, ...]
    simplified: LinearTorque
    load: Load
    memory: tuple[MemoryJoint | None, ...]

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The word on every parameter of gears and motors: "j1.load_friction" … "j6.offset"."""
        return tuple(verdict for joint in self.joints if joint is not None for verdict in joint.verdicts)

    @property
    def parameters(self) -> Array:
        """a1 … a7 as predictions use them, shape (7, n_joints); zero of passive joints."""
        nothing = np.zeros(len(HARMONIC_PARAMETERS))
        return np.stack([nothing if joint is None else joint.parameters for joint in self.joints], axis=1)

    def predict(self, q: Array, dq: Array, ddq: Array, sample_period: float) -> Array:
        """Motor torque that a motion needs, the load friction solved exactly.

        Args:
            q, dq, ddq: of the links [rad, rad/s, rad/s²], shape (n, n_joints), sampled evenly, n >= 3.
            sample_period: [s]; the gears' torque is differenced over it.

        Returns:
            Motor torque at the joints [N·m], shape (n, n_joints); zero of passive joints.

        Raises:
            ShapeError: the arrays differ in shape, do not match the robot, or have fewer than 3 rows.
        """
        q, dq, ddq = motion_arrays(self.robot, q=q, dq=dq, ddq=ddq)
        gear = GearTorque.sampled(self._gear_torque(q, dq, ddq), sample_period)
        return exact_motor_torque(self.parameters, dq, ddq, gear, self.load) * self.robot.modelled

    def predict_by_stand_in(self, q: Array, dq: Array, ddq: Array, sample_period: float) -> Array:
        """Predict in the published way: the simplified model's torque stands for the motor's in the load friction.

        Raises:
            FitError: load friction grows with the gear's torque, which needs no stand-in.
            ShapeError: as `predict`.
        """
        if self.load == "gear":
            raise FitError(
                "load friction of this model grows with the gear's torque, so nothing stands in; use predict"
            )
        q, dq, ddq = motion_arrays(self.robot, q=q, dq=dq, ddq=ddq)
        gear = GearTorque.sampled(self._gear_torque(q, dq, ddq), sample_period)
        stand_in = self.simplified.predict(q, dq, ddq)
        return motor_torque_by_stand_in(self.parameters, dq, ddq, gear, stand_in) * self.robot.modelled

    def _gear_torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """True torque from the gears, the sensors' zeros apart [N·m]."""
        return self.links.predict(q, dq, ddq) - self.links.offsets

    def predict_with_memory(self, signals: DriveSignals) -> Array:
        """Motor torque of a recorded motion by the friction with memory, at the samples.

        Args:
            signals: of any motion; the motors' positions are those of their encoders where there are some, and else
                those of the links ahead by the predicted twist. Torques are not looked at.

        Returns:
            Motor torque at the joints [N·m], shape (n, n_joints); zero of passive joints.
        """
        gear = GearTorque.sampled(self._gear_torque(signals.q, signals.dq, signals.ddq), signals.sample_period)
        torque = np.zeros_like(signals.q)
        for j, (joint, plain) in enumerate(zip(self.memory, self.joints, strict=True)):
            if joint is not None and plain is not None:
                motor = motor_motion(signals, gear, float(plain.parameters[_FLEXIBILITY]), j)
                torque[:, j] = joint.torque(motor, gear.value[:, j], stretches_of(signals))
        return torque

    def rms_errors(self, signals: DriveSignals) -> dict[str, RmsError]:
        """Error of the motor torque per joint, by "memory", "exact", "simplified" and "stand_in".

        Args:
            signals: of any motion; their torque sensors are not looked at.
        """
        motion = (signals.q, signals.dq, signals.ddq)
        ways = {
            "memory": self.predict_with_memory(signals),
            "exact": self.predict(*motion, signals.sample_period),
            "simplified": self.simplified.predict(*motion),
        }
        if self.load == "motor":
            ways["stand_in"] = self.predict_by_stand_in(*motion, signals.sample_period)
        used = signals.used & self.robot.modelled
        return {
            way: rms_error(signals.rows(torque) - signals.motor_torque, used, signals) for way, torque in ways.items()
        }


def fit_harmonic(
    robot: Robot, signals: DriveSignals, *, current_gain: bool = False, load: Load | Literal["choose"] = "motor"
) -> HarmonicModel:
    """Identify a robot with harmonic drives in two stages.

    1. tau_r = W [links, friction behind the sensor, its offset], all joints together, weighted least squares.
    2. tau_m - tau_r = a1 |tau_m| s + a2 s + a3 dqm + a4 ddqm + a6, each joint by itself, with dqm and ddqm of the
       motor by way of the flexibility a5: `fit_harmonic_joint`. Stage 1's offset is first taken off tau_r.

    Args:
        robot: its joints have drives of their own, none coupled.
        signals: with the torque sensors; positions are those of the links.
        current_gain: whether to tell by how much the motors' torque is measured wrong in proportion, a7, too. The
            published model has no such term; it trusts the current as much as the torque sensor.
        load: what load friction grows with: the motor's torque, as published, or the gear's onto the link; "choose"
            takes the one that leaves less of all joints' torque.

    Returns:
        The model; look at its verdicts.

    Raises:
        FitError: there is no torque sensor, joints are coupled, or rows are too few.
        ShapeError: the arrays do not match the robot.
        NumericalError: the robot's geometry is nearly degenerate.

    Source: Zhang & Ding, Information and Control 52(3):292, 2023.
    """
    gear = signals.gear_torque
    if gear is None:
        raise FitError(
            "the signals have no gear_torque; the harmonic model needs a torque sensor behind each gear. "
            "Record joint torque, or fit the usual model"
        )
    if robot.couplings:
        named = ", ".join(coupling.name for coupling in robot.couplings)
        raise FitError(f"joints of robot {robot.name!r} share motors ({named}); the harmonic model is of single joints")
    motion_arrays(robot, q=signals.q)
    used: NDArray[np.bool_] = signals.used & robot.modelled
    links = fit_linear_torque(robot, "link", signals, signals.rows(gear.value), used)
    gear = GearTorque(gear.value - links.offsets, gear.rate, gear.acceleration)
    laws: tuple[Load, ...] = ("motor", "gear") if load == "choose" else (load,)
    simplified = fit_linear_torque(robot, "motor", signals, signals.motor_torque, used)
    candidates = [
        tuple(
            fit_harmonic_joint(
                name,
                signals.dq[:, j],
                signals.ddq[:, j],
                gear.of(j),
                signals.motor_torque[:, j],
                used[:, j],
                links.offset_sigma[j],
                current_gain=current_gain,
                load=law,
                rows=partial(signals.joint_rows, joint=j),
            )
            if robot.modelled[j]
            else None
            for j, name in enumerate(robot.joint_names)
        )
        for law in laws
    ]
    square_sums = [sum(joint.residual_rms**2 for joint in joints if joint is not None) for joints in candidates]
    best = int(np.argmin(square_sums))
    memory = tuple(
        None if joint is None else _fit_memory_joint(joint, signals, gear, used[:, j], j, current_gain=current_gain)
        for j, joint in enumerate(candidates[best])
    )
    return HarmonicModel(robot, links, candidates[best], simplified, laws[best], memory)


def _fit_memory_joint(
    plain: HarmonicJoint,
    signals: DriveSignals,
    gear: GearTorque,
    used: NDArray[np.bool_],
    joint: int,
    *,
    current_gain: bool,
) -> MemoryJoint:
    """Stage 2 of one joint with friction that has memory, over all rows."""
    carriers = Carriers()
    motor, carried = motor_motion(signals, gear, float(plain.parameters[_FLEXIBILITY]), joint), gear.value[:, joint]
    columns = np.concatenate(
        [carriers.columns(motor.q[part], motor.dq[part], carried[part]) for part in stretches_of(signals)]
    )
    free = np.stack([np.ones_like(carried), motor.dq, motor.ddq, carried], axis=1)
    rows = signals.joint_rows(np.hstack([free, columns]), joint)[used]
    torque = signals.motor_torque[used, joint] - rows[:, 3]
    count = 4 if current_gain else 3
    p, friction = fit_with_memory(carriers, rows[:, :count], rows[:, 4:], torque)
    offset, viscous, inertia = p[:3].tolist()
    return MemoryJoint(plain.name, float(p[3]) if current_gain else 0.0, offset, viscous, inertia, friction)


def motor_motion(signals: DriveSignals, gear: GearTorque, flexibility: float, joint: int) -> Motion:
    """Return a motor's motion at the joint side: by its own encoder, or ahead of the link by the gear's twist.

    Args:
        signals: of the motion.
        gear: torque onto the links.
        flexibility: of the gear [rad/(N·m)].
        joint: which.
    """
    q, dq, ddq = (values[:, joint] for values in (signals.q, signals.dq, signals.ddq))
    if signals.twist is not None and not signals.by_motor:
        twist = GearTorque.sampled(signals.twist[:, joint], signals.sample_period)
        return Motion(q + twist.value, dq + twist.rate, ddq + twist.acceleration)
    if signals.by_motor:
        return Motion(q, dq, ddq)
    own = gear.of(joint)
    return Motion(q + flexibility * own.value, dq + flexibility * own.rate, ddq + flexibility * own.acceleration)


def stretches_of(signals: DriveSignals) -> Sequence[slice]:
    """Samples without a gap between them."""
    return (slice(0, len(signals.q)),) if signals.filter is None else signals.filter.stretches


def rms_error(error: Array, used: NDArray[np.bool_], signals: DriveSignals) -> RmsError:
    """RMS of an error at the rows over all that are used, and over those of them away from rest, by joint."""
    return RmsError(_rms(error, used), _rms(error, used & signals.moving_rows))


def _rms(error: Array, used: NDArray[np.bool_]) -> Array:
    squares, rows = np.sum(np.where(used, error, 0.0) ** 2, axis=0), used.sum(axis=0)
    return np.sqrt(np.divide(squares, rows, out=np.full(len(rows), np.nan), where=rows > 0))
