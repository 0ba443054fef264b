"""Settings of joints and of the boards' motors: servo, limits, filter and stream, as values in SI and as registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import cast

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.client import RegisterName
from jointbench.bench.conversation import range_text, si_text
from jointbench.bench.identity import Facts
from jointbench.errors import BoardRefused, FileError
from jointbench.model import DriveTrain, Robot, inverse_dynamics
from jointbench.signals import butterworth_sections
from jointwire import BRIDGE_CHANNELS, BY_NAME, CHANNEL_BY_NAME, HIGHEST_DIVIDER, JOINT_CHANNELS, ChannelKind

BANDWIDTH = 65.0  # [rad/s], ten hertz: several times what excitations move at, well below gear resonances
DAMPING_RATIO = 0.7
# The servo must beat friction, too: a joint gives its full torque at this error at the latest [rad].
FULL_TORQUE_ERROR = 0.04
# Beyond planned motion, so that noise and overshoot do not trip a sound joint, and a runaway one soon does.
VELOCITY_MARGIN = 1.3
FOLLOWING_LIMIT = 0.06  # [rad]
# Of the current limit, that an error of one count of the encoder asks for at most: a stiffer servo answers to counts.
COUNT_SHARE = 0.0175
_POSES = 64
SAMPLE_EVERY = tuple(1 << exponent for exponent in range(HIGHEST_DIVIDER + 1))  # ticks
_UNSTREAMED = 1 << CHANNEL_BY_NAME["motor_velocity"].bit  # with it a block of 64 ticks would not fit a frame
_SLOW = (ChannelKind.BUS_VOLTAGE, ChannelKind.TEMPERATURE)  # they change slowly, and keep their own pace
COEFFICIENTS = ("b0", "b1", "b2", "a1", "a2")
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


@dataclass(frozen=True)
class ServoOverride:
    """Values of the bench file for a joint's servo instead of the default rule; None where it has none.

    Attributes:
        stiffness: joint torque per position error [N·m/rad].
        damping: joint torque per velocity error [N·m·s/rad].
    """

    stiffness: float | None = None
    damping: float | None = None


def default_settings(
    robot: Robot, overrides: Mapping[str, ServoOverride] | None = None, limits: Mapping[str, float] | None = None
) -> tuple[JointSettings, ...]:
    """Settings of every joint: stiffness = J w², damping = 2 zeta stiffness / w.

    J is the largest inertia that the joint feels in any pose by the robot's nominal masses (with the rotors' where
    known); without nominal masses the stiffness follows from the torque limit alone. A joint in torque mode has no
    servo: its motor's current is held at zero, wherever the joint goes within its limits.

    Args:
        robot: limits, drives and nominal masses.
        overrides: by joint name, from the bench file.
        limits: of the bench file: its velocity_rad_s and current_A hold where they are below the robot's.

    Raises:
        FileError: an override is of a joint in torque mode.
    """
    slowest, weakest = ((limits or {}).get(name, np.inf) for name in ("velocity_rad_s", "current_A"))
    inertia = (_largest_inertia(robot) + np.diag(robot.drive_train.known_inertia)).tolist()
    settings: list[JointSettings] = []
    for joint, drive, moved in zip(robot.independent_joints, robot.drives, inertia, strict=True):
        override = (overrides or {}).get(joint.name, ServoOverride())
        stiffness = override.stiffness or max(moved * BANDWIDTH**2, joint.torque_limit / FULL_TORQUE_ERROR)
        damping = override.damping or 2.0 * DAMPING_RATIO * stiffness / BANDWIDTH
        following_limit = FOLLOWING_LIMIT
        if drive.torque_mode:
            if override != ServoOverride():
                raise FileError(
                    f"joint {joint.name!r} has servo values in the bench file, but by the robot's file it is in torque "
                    "mode and has no servo; take them or torque_mode out"
                )
            low, high = joint.position_limits
            stiffness, damping, following_limit = 0.0, 0.0, high - low
        settings.append(
            JointSettings(
                stiffness=stiffness,
                damping=damping,
                viscous_feedforward=0.0,
                current_limit=min(drive.current_limit, weakest),
                position_limits=joint.position_limits,
                velocity_limit=VELOCITY_MARGIN * min(joint.velocity_limit, slowest),
                following_limit=following_limit,
            )
        )
    return tuple(settings)


def softened(settings: Sequence[JointSettings], train: DriveTrain, facts: Sequence[Facts]) -> tuple[JointSettings, ...]:
    """Stiffness and damping of each joint, made less where an error of one encoder count would ask for too much.

    Args:
        settings: of each joint, in joint order.
        train: as many motors as joints.
        facts: of each motor's board.
    """
    shares = np.ones(len(settings))
    for motor, (row, fact) in enumerate(zip(motor_settings(settings, train), facts, strict=True)):
        of_a_count = 2.0 * np.pi * row.stiffness / fact.motor_counts if fact.has_motor else 0.0
        if of_a_count > COUNT_SHARE * row.joint.current_limit:
            moved = train.matrix[motor] != 0.0
            shares[moved] = np.minimum(shares[moved], COUNT_SHARE * row.joint.current_limit / of_a_count)
    return tuple(
        replace(joint, stiffness=share * joint.stiffness, damping=share * joint.damping)
        for joint, share in zip(settings, shares.tolist(), strict=True)
    )


def _largest_inertia(robot: Robot) -> Array:
    """Largest diagonal of the mass matrix over poses within the limits, shape (n_joints,); 0 without masses."""
    parameters = robot.standard_parameters
    if parameters is None:
        return np.zeros(robot.n_joints)
    low, high = robot.position_limits.T
    rng = np.random.default_rng(0)  # a fixed set of poses: the same robot gets the same servo
    poses = np.vstack([robot.home, rng.uniform(low, high, size=(_POSES, robot.n_joints))])
    rest = np.zeros_like(poses)
    gravity = inverse_dynamics(robot, poses, rest, rest, parameters)
    diagonal = np.empty_like(poses)
    for joint in range(robot.n_joints):
        unit = rest.copy()
        unit[:, joint] = 1.0
        diagonal[:, joint] = (inverse_dynamics(robot, poses, rest, unit, parameters) - gravity)[:, joint]
    return diagonal.max(axis=0)


def stream_registers(facts: Facts, sample_every: int) -> dict[RegisterName, int]:
    """Raw register values for what a board streams: all that it has, in blocks as long as they may be.

    Rates that are as they shall be are left out.

    Args:
        facts: of the board.
        sample_every: ticks from one sample to the next, one of SAMPLE_EVERY.

    Raises:
        FileError: no board can sample that often.
    """
    if sample_every not in SAMPLE_EVERY:
        allowed = ", ".join(map(str, SAMPLE_EVERY))
        raise FileError(f"sample_every = {sample_every}: boards sample each {allowed} ticks")
    kinds = [kind for kind in ChannelKind if kind not in _SLOW]
    channels = facts.registers["board.channels"]
    raw: dict[RegisterName, int] = {
        "stream.channels": channels & (JOINT_CHANNELS | BRIDGE_CHANNELS if facts.has_motor else ~_UNSTREAMED),
        "stream.block": BY_NAME["stream.block"].maximum,
        "stream.always": 0,
    }
    exponent = sample_every.bit_length() - 1
    for kind in kinds:
        name = cast(RegisterName, f"stream.every_{kind.name.lower()}")
        if facts.registers[name] != exponent:
            raw[name] = exponent
    return raw


def butterworth_registers(cutoff_hz: float, tick_period: float, order: int = 2) -> dict[RegisterName, int]:
    """Butterworth low-pass as the registers filter.1.b0 ... filter.2.a2, Q27; its gain at rest is exactly one.

    Args:
        cutoff_hz: where the gain is -3 dB [Hz].
        tick_period: [s].
        order: 2 (the second section passes all through) or 4.

    Raises:
        SignalError: another order, or the cut-off is not between 0.1 % and 45 % of the sampling rate.
    """
    sections = butterworth_sections(order, cutoff_hz, 1.0 / tick_period)
    return {
        cast(RegisterName, f"filter.{number}.{name}"): value
        for number, section in enumerate(sections, 1)
        for name, value in zip(COEFFICIENTS, section, strict=True)
    }


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
            BoardRefused: a value does not fit its register; names it and what is allowed.
            SignalError: the filter cannot be built.
        """
        own = self.joint
        raw = stream_registers(facts, sample_every)
        raw["adc.cic_order"] = own.cic_order
        raw |= butterworth_registers(own.cutoff_hz, facts.tick_period, own.filter_order)
        if facts.has_motor:
            raw |= {name: round(value / BY_NAME[name].scale) for name, value in self._driving(facts).items()}
            raw["limit.feedforward"] = raw["limit.unexpected"] = raw["limit.float"] = 0  # what needs one sets it
        for name, value in raw.items():
            register = BY_NAME[name]
            if not register.minimum <= value <= register.maximum:
                raise BoardRefused(
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
        return np.array([attrgetter(name)(joint) for joint in joints], dtype=np.float64)

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
    return tuple(MotorSettings(*column) for column in columns)
