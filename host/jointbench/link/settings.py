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
        cutoff_hz: of the current filter [Hz].
        link_timeout: the motor is switched off this long after the last valid frame [s].
    """

    stiffness: float
    damping: float
    viscous_feedforward: float
    current_limit: float
    position_limits: tuple[float, float]
    velocity_limit: float
    following_limit: float
    cutoff_hz: float = 100.0
    link_timeout: float = 0.5

    def registers(self, joint: str, node: int, drive: Drive, facts: Facts) -> dict[RegisterName, int]:
        """Raw register values for this joint's board.

        Raises:
            ConfigurationDiffers: a value does not fit its register; names it and what is allowed.
        """
        counts = abs(drive.ratio) * facts.motor_counts / (2.0 * np.pi)  # motor counts per joint angle [1/rad]
        ampere = 1.0 / abs(drive.torque_per_current)  # motor current per joint torque [A/(N·m)]
        per_tick = counts * facts.tick_period
        window = sorted(np.sign(drive.ratio) * counts * limit for limit in self.position_limits)
        values: dict[RegisterName, float] = {
            "servo.kp": self.stiffness * ampere / counts,
            "servo.kd": self.damping * ampere / per_tick,
            "servo.velocity_feedforward": self.viscous_feedforward * ampere / per_tick,
            "limit.current": self.current_limit,
            "limit.position_min": window[0],
            "limit.position_max": window[1],
            "limit.velocity": self.velocity_limit * per_tick,
            "limit.following": self.following_limit * counts,
            "limit.link_timeout": self.link_timeout,
        }
        raw: dict[RegisterName, int] = {name: round(value / BY_NAME[name].scale) for name, value in values.items()}
        raw |= butterworth_registers(self.cutoff_hz, facts.tick_period)
        channels = JOINT_CHANNELS & facts.registers["board.channels"]
        raw |= {"stream.channels": channels, "stream.block": BY_NAME["stream.block"].maximum, "stream.always": 0}
        for name, value in raw.items():
            register = BY_NAME[name]
            if not register.minimum <= value <= register.maximum:
                raise ConfigurationDiffers(
                    joint, node, f"{name} would be {si_text(register, value)}, allowed is {range_text(register)}"
                )
        return raw
