"""How a joint's board shall behave, in SI at the joint, and the same as registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.errors import ConfigurationDiffers
from jointbench.link.client import RegisterName
from jointbench.link.current_filter import butterworth_registers
from jointbench.link.identity import Facts
from jointbench.link.words import range_text, si_text
from jointbench.robot import Drive
from jointwire import BY_NAME, JOINT_CHANNELS

_ABSOLUTE_ZERO = -273.15  # [degC]


@dataclass(frozen=True)
class JointSettings:
    """Servo, limits and filter of one joint; all at the joint's side unless said otherwise.

    Attributes:
        stiffness: torque per position error [N·m/rad].
        damping: torque per velocity error [N·m·s/rad].
        viscous_feedforward: torque per planned velocity [N·m·s/rad].
        current_limit: of the motor [A].
        position_limits: the window outside which the board trips [rad].
        velocity_limit: above which the board trips [rad/s].
        following_limit: difference of reference and position above which the board trips [rad].
        cutoff_hz: of the filter on current and torque [Hz].
        filter_order: of that Butterworth filter, 2 or 4.
        cic_order: of the decimator before it: 1 sums a tick's samples, 2 weighs two ticks' by a triangle.
        link_timeout: the motor is switched off this long after the last valid frame [s]; from half of it on its
            current goes down to zero.
        integral: torque per position error and time [N·m/(rad·s)].
        friction_torque: feed-forward with the sign of the planned velocity [N·m].
        friction_band: planned velocity from which all of it is given [rad/s].
        continuous_current: root mean square above which the board trips [A]; None: current_limit.
        thermal_time: time constant of that mean [s].
        supply_limits: the window outside which the board trips [V]; None: as wide as the register.
        temperature_limit: of the motor, above which the board trips [degC].
    """

    stiffness: float
    damping: float
    viscous_feedforward: float
    current_limit: float
    position_limits: tuple[float, float]
    velocity_limit: float
    following_limit: float
    cutoff_hz: float = 100.0
    filter_order: int = 2
    cic_order: int = 1
    link_timeout: float = 0.5
    integral: float = 0.0
    friction_torque: float = 0.0
    friction_band: float = 0.02
    continuous_current: float | None = None
    thermal_time: float = 10.0
    supply_limits: tuple[float, float] | None = None
    temperature_limit: float = 100.0

    def registers(self, joint: str, node: int, drive: Drive, facts: Facts) -> dict[RegisterName, int]:
        """Raw register values for this joint's board.

        Raises:
            ConfigurationDiffers: a value does not fit its register; names it and what is allowed.
            SignalError: the filter cannot be built.
        """
        counts = abs(drive.ratio) * facts.motor_counts / (2.0 * np.pi)  # motor counts per joint angle [1/rad]
        ampere = 1.0 / abs(drive.torque_per_current)  # motor current per joint torque [A/(N·m)]
        per_tick = counts * facts.tick_period
        window = sorted(np.sign(drive.ratio) * counts * limit for limit in self.position_limits)
        values: dict[RegisterName, float] = {
            "servo.kp": self.stiffness * ampere / counts,
            "servo.kd": self.damping * ampere / per_tick,
            "servo.ki": self.integral * ampere / counts * facts.tick_period,
            "servo.velocity_feedforward": self.viscous_feedforward * ampere / per_tick,
            "servo.friction": self.friction_torque * ampere,
            "servo.friction_band": self.friction_band * per_tick,
            "limit.current": self.current_limit,
            "limit.position_min": window[0],
            "limit.position_max": window[1],
            "limit.velocity": self.velocity_limit * per_tick,
            "limit.following": self.following_limit * counts,
            "limit.link_timeout": self.link_timeout,
            "limit.thermal_time": self.thermal_time,
            "limit.temperature": self.temperature_limit - _ABSOLUTE_ZERO,
        }
        continuous = self.current_limit if self.continuous_current is None else self.continuous_current
        values["limit.continuous_current"] = continuous
        if self.supply_limits:
            values["limit.supply_min"], values["limit.supply_max"] = self.supply_limits
        raw: dict[RegisterName, int] = {name: round(value / BY_NAME[name].scale) for name, value in values.items()}
        raw["adc.cic_order"] = self.cic_order
        raw |= butterworth_registers(self.cutoff_hz, facts.tick_period, self.filter_order)
        channels = JOINT_CHANNELS & facts.registers["board.channels"]
        raw |= {"stream.channels": channels, "stream.block": BY_NAME["stream.block"].maximum, "stream.always": 0}
        for name, value in raw.items():
            register = BY_NAME[name]
            if not register.minimum <= value <= register.maximum:
                raise ConfigurationDiffers(
                    joint, node, f"{name} would be {si_text(register, value)}, allowed is {range_text(register)}"
                )
        return raw
