"""What joints' settings are to their motors, and the same as registers of the motors' boards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ConfigurationDiffers
from jointbench.link.client import RegisterName
from jointbench.link.current_filter import butterworth_registers
from jointbench.link.identity import Facts
from jointbench.link.settings import JointSettings
from jointbench.link.stream_registers import stream_registers
from jointbench.link.words import range_text, si_text
from jointbench.robot import DriveTrain
from jointwire import BY_NAME

_ABSOLUTE_ZERO = -273.15  # [degC]


@dataclass(frozen=True)
class MotorSettings:
    """Servo and limits of one motor, in its own angle and current.

    Attributes:
        stiffness: [A/rad].
        damping: [A·s/rad].
        integral: [A/(rad·s)].
        viscous_feedforward: [A·s/rad].
        friction_current: [A].
        friction_band: [rad/s].
        position_limits: [rad].
        velocity_limit: [rad/s].
        following_limit: [rad].
        joint: of the joint that the motor is counted with: whatever else is the same on both sides of a gear.
    """

    stiffness: float
    damping: float
    integral: float
    viscous_feedforward: float
    friction_current: float
    friction_band: float
    position_limits: tuple[float, float]
    velocity_limit: float
    following_limit: float
    joint: JointSettings

    def registers(self, joint: str, node: int, facts: Facts, sample_every: int = 1) -> dict[RegisterName, int]:
        """Raw register values for this motor's board; of one without a motor only those of what it samples.

        Args:
            joint, node: for messages.
            facts: of the board.
            sample_every: ticks from one sample that it streams to the next.

        Raises:
            ConfigurationDiffers: a value does not fit its register; names it and what is allowed.
            SignalError: the filter cannot be built.
        """
        own = self.joint
        raw = stream_registers(facts, sample_every)
        raw["adc.cic_order"] = own.cic_order
        raw |= butterworth_registers(own.cutoff_hz, facts.tick_period, own.filter_order)
        if facts.has_motor:
            raw |= {name: round(value / BY_NAME[name].scale) for name, value in self._driving(facts).items()}
        for name, value in raw.items():
            register = BY_NAME[name]
            if not register.minimum <= value <= register.maximum:
                raise ConfigurationDiffers(
                    joint, node, f"{name} would be {si_text(register, value)}, allowed is {range_text(register)}"
                )
        return raw

    def _driving(self, facts: Facts) -> dict[RegisterName, float]:
        """Registers of servo and limits, in their units."""
        counts = facts.motor_counts / (2.0 * np.pi)  # of the motor's angle [1/rad]
        per_tick = counts * facts.tick_period
        joint = self.joint
        values: dict[RegisterName, float] = {
            "servo.kp": self.stiffness / counts,
            "servo.kd": self.damping / per_tick,
            "servo.ki": self.integral / counts * facts.tick_period,
            "servo.velocity_feedforward": self.viscous_feedforward / per_tick,
            "servo.friction": self.friction_current,
            "servo.friction_band": self.friction_band * per_tick,
            "limit.current": joint.current_limit,
            "limit.continuous_current": (
                joint.current_limit if joint.continuous_current is None else joint.continuous_current
            ),
            "limit.position_min": self.position_limits[0] * counts,
            "limit.position_max": self.position_limits[1] * counts,
            "limit.velocity": self.velocity_limit * per_tick,
            "limit.following": self.following_limit * counts,
            "limit.link_timeout": joint.link_timeout,
            "limit.thermal_time": joint.thermal_time,
            "limit.temperature": joint.temperature_limit - _ABSOLUTE_ZERO,
        }
        if joint.supply_limits:
            values["limit.supply_min"], values["limit.supply_max"] = joint.supply_limits
        return values


def motor_settings(joints: Sequence[JointSettings], train: DriveTrain) -> tuple[MotorSettings, ...]:
    """Settings of each motor that give the joints theirs.

    With φ = M q each servo works on its own motor, so that stiffness at the joints is Mᵀ K M with a diagonal K. Where a
    motor moves one joint all values are that joint's through the gear. Where joints share motors, there may be no
    diagonal K that gives them just what they ask for; then

    - stiffness, damping and integral are at least what each joint asks for: K - M⁻ᵀ diag(joints') M⁻¹ is positive
      semi-definite, its rows being diagonally dominant;
    - what is fed forward against friction is at most what each joint asks for, as too much would drive it by itself;
    - no joint is farther from its reference than it may be, wherever in its window each motor is;
    - the window of a motor's position and velocity is the projection of the joints' box on its row of M. Together the
      windows are wider than the box at the box's corners and edges: a trajectory is held against the box itself before
      it is loaded (`Gate`).

    Args:
        joints: settings of each joint, in joint order.
        train: as many motors as joints.
    """
    matrix, inverse = train.matrix, train.inverse
    constants = np.abs([drive.torque_constant for drive in train.drives])
    ampere = np.divide(1.0, constants, out=np.zeros_like(constants), where=constants > 0.0)  # of motor torque [A/(N·m)]

    def of_joints(name: str) -> Array:
        return np.array([attrgetter(name)(each) for each in joints], dtype=np.float64)

    def at_least(name: str) -> Array:
        exact = (inverse.T * of_joints(name)) @ inverse
        return np.abs(exact).sum(axis=1) * ampere

    def at_most(name: str) -> Array:
        exact = (inverse.T * of_joints(name)) @ inverse
        return np.maximum(2.0 * np.diag(exact) - np.abs(exact).sum(axis=1), 0.0) * ampere

    def shared(values: Array, mix: Array) -> Array:
        """The most of each motor k with Σ_k |mix_jk| motor_k ≤ values_j for all joints j, when all have as much."""
        share = values / np.abs(mix).sum(axis=1)
        return np.where(mix.T != 0.0, share, np.inf).min(axis=1)

    ends = matrix[:, :, None] * of_joints("position_limits")  # of each joint's window, at each motor
    columns = zip(
        at_least("stiffness"),
        at_least("damping"),
        at_least("integral"),
        at_most("viscous_feedforward"),
        shared(of_joints("friction_torque"), matrix.T) * ampere,
        np.abs(matrix) @ of_joints("friction_band"),
        zip(ends.min(axis=2).sum(axis=1), ends.max(axis=2).sum(axis=1), strict=True),
        np.abs(matrix) @ of_joints("velocity_limit"),
        shared(of_joints("following_limit"), inverse),
        joints,
        strict=True,
    )
    return tuple(MotorSettings(*each) for each in columns)
