"""How a joint shall be driven and guarded, in SI at the joint."""

from __future__ import annotations

from dataclasses import dataclass


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
        cutoff_hz: of the filter on current and torque [Hz]; a bench whose samples are each few ticks lowers it to a
            fifth of their rate, unless `configure` is told it.
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
