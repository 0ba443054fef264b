"""The improved model of harmonic joints: links by their torque sensors, then gears and motors by what is left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointbench.dynamics.shapes import motion_arrays
from jointbench.errors import FitError
from jointbench.identification.drives.drive_signals import DriveSignals, GearTorque
from jointbench.identification.drives.harmonic_joint import HarmonicJoint, fit_harmonic_joint
from jointbench.identification.drives.linear_torque import LinearTorque, fit_linear_torque
from jointbench.identification.drives.prediction import (
    HARMONIC_PARAMETERS,
    Load,
    exact_motor_torque,
    motor_torque_by_stand_in,
)
from jointbench.identification.judgement.verdict import Verdict
from jointbench.robot import Array, Robot


@dataclass(frozen=True, eq=False)
class HarmonicModel:
    """Links, gears and motors of a robot with harmonic drives, and the usual model beside them.

    Attributes:
        robot: whose.
        links: stage 1, torque from the gears onto the links.
        joints: stage 2, one per joint; None of a passive joint.
        simplified: the usual model of the motors' torque, all friction in proportion to nothing but speed and its sign.
        load: what load friction grows with.
    """

    robot: Robot
    links: LinearTorque
    joints: tuple[HarmonicJoint | None, ...]
    simplified: LinearTorque
    load: Load

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
        """The same in the published way: the simplified model's torque stands for the motor's in the load friction.

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

    def rms_errors(self, signals: DriveSignals) -> dict[str, Array]:
        """Error of the motor torque per joint over the used rows [N·m], by "exact", "simplified" and "stand_in".

        Args:
            signals: of any motion; their torque sensors are not looked at.
        """
        motion = (signals.q, signals.dq, signals.ddq)
        ways = {
            "exact": self.predict(*motion, signals.sample_period),
            "simplified": self.simplified.predict(*motion),
        }
        if self.load == "motor":
            ways["stand_in"] = self.predict_by_stand_in(*motion, signals.sample_period)
        return {way: _rms(torque - signals.motor_torque, signals.used) for way, torque in ways.items()}


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
        UnclearRank: the robot's geometry is nearly degenerate.

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
    motion = (signals.q, signals.dq, signals.ddq)
    used: NDArray[np.bool_] = signals.used & robot.modelled
    links = fit_linear_torque(robot, "link", *motion, gear.value, used)
    gear = GearTorque(gear.value - links.offsets, gear.rate, gear.acceleration)
    laws: tuple[Load, ...] = ("motor", "gear") if load == "choose" else (load,)
    simplified = fit_linear_torque(robot, "motor", *motion, signals.motor_torque, used)
    models = [
        HarmonicModel(
            robot=robot,
            links=links,
            joints=tuple(
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
                )
                if robot.modelled[j]
                else None
                for j, name in enumerate(robot.joint_names)
            ),
            simplified=simplified,
            load=law,
        )
        for law in laws
    ]
    return min(models, key=lambda model: sum(joint.residual_rms**2 for joint in model.joints if joint is not None))


def _rms(error: Array, used: NDArray[np.bool_]) -> Array:
    squares, rows = np.sum(np.where(used, error, 0.0) ** 2, axis=0), used.sum(axis=0)
    return np.sqrt(np.divide(squares, rows, out=np.full(len(rows), np.nan), where=rows > 0))
