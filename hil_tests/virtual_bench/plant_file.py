"""The plant file: what an emulated robot truly is, in TOML with units in the names of the keys."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from hil_tests.virtual_bench.errors import BenchFileError
from jointbench.arrays import Vector3
from jointbench.errors import FileError
from jointbench.model import Drive, Link, Robot
from jointbench.model.table import Table, read_table

VERSION = 1
TICK = 1e-3  # of benches whose file names no other
_LAWS = ("stribeck", "makkar")
# A passive joint has no gear. The second hinge, which a plant with flexible gears has at every joint, is held there.
_HELD_STIFFNESS = 1e10  # [N·m/rad]
_NO_CONVERTER = 1.0  # range of a converter that a board does not have [A], [N·m]


@dataclass(frozen=True)
class JointTruth:
    """One joint as it really is, in SI units at the joint side unless said otherwise.

    What is the motor's (rotor inertia, current range) is of the joint's own drive, where drives are coupled too. A
    passive joint has none of it: no rotor, and no gear that could bend.

    Attributes:
        link: true inertia of the link that moves with the joint.
        rotor_inertia: of the motor about its own axis [kg·m²], motor side.
        coulomb, viscous: friction [N·m], [N·m·s/rad].
        stribeck, stribeck_velocity: what standing adds to `coulomb` [N·m], and the speed at which it is gone [rad/s].
        load_friction: friction per torque through the gear (meshing) [N·m per N·m]; in a coupling, of the drive's gear.
        stiffness, damping: of gear and torque sensor together [N·m/rad], [N·m·s/rad].
        current_range, torque_range: what the 12-bit converters reach to both sides [A], [N·m].
        makkar: g1 … g5 of Makkar's law [N·m, s/rad, s/rad, N·m, s/rad], None for the Stribeck law; `coulomb` is g4 then
            and `viscous` g6.
        published: a1 … a4 that the robot's paper prints of the joint, for `in_variant`; None without such a table.
        lost_torque: share of the motor's torque that does not arrive, whichever way the load points.
        grease_drag: beside Makkar's law, what grows with the speed to the power of 2/3 [N·m], at 1 rad/s.
        mesh_phases: of the teeth's swell and of its second harmonic [rad].
        torsion_spring, torsion_zero: [N·m/rad], and where it is at rest [rad].
        sine_spring, sine_zero: largest torque [N·m], and where it is at rest [rad].
        ratio: motor turns per joint turn, signed, where it is not what the robot's file says; None: it is.
    """

    link: Link
    rotor_inertia: float
    coulomb: float
    viscous: float
    stribeck: float
    stribeck_velocity: float
    load_friction: float
    stiffness: float
    damping: float
    current_range: float
    torque_range: float
    makkar: tuple[float, ...] | None = None
    published: tuple[float, ...] | None = None
    lost_torque: float = 0.0
    grease_drag: float = 0.0
    mesh_phases: tuple[float, float] = (0.0, 0.0)
    torsion_spring: float = 0.0
    torsion_zero: float = 0.0
    sine_spring: float = 0.0
    sine_zero: float = 0.0
    ratio: float | None = None


@dataclass(frozen=True)
class Scatter:
    """How much plants of two seeds differ from the file, each about it: standard deviations of normal draws.

    Attributes:
        mass, inertia: of links, as shares; links of one kind of the robot's have one draw.
        center: of links' centres of mass, along each axis of the frame, of kinds along their own axis [m].
        rotor, friction: of a joint's motor and of all its friction, as shares.
        cable_pull: of each component of a foot's cable [N].
    """

    mass: float = 0.0
    inertia: float = 0.0
    center: float = 0.0
    rotor: float = 0.0
    friction: float = 0.0
    cable_pull: float = 0.0


def read_scatter(table: Table) -> Scatter:
    """Read the table `drawn` of a plant file."""
    scatter = Scatter(
        mass=table.magnitude("mass_share", 0.0),
        inertia=table.magnitude("inertia_share", 0.0),
        center=1e-3 * table.magnitude("center_mm", 0.0),
        rotor=table.magnitude("rotor_share", 0.0),
        friction=table.magnitude("friction_share", 0.0),
        cable_pull=table.magnitude("cable_pull_N", 0.0),
    )
    table.finish()
    return scatter


@dataclass(frozen=True)
class FootTruth:
    """A foot as it is: a cable pulls at the origin of its link's frame.

    Attributes:
        cable_pull: in the world's axes, where the robot stands at home [N].
        cable_stiffness: how much more it pulls back for each way from there [N/m].
    """

    name: str
    cable_pull: Vector3
    cable_stiffness: float = 0.0


@dataclass(frozen=True)
class ForceTruth:
    """How good the sensors at the corners of feet are, in N; gains by themselves.

    Attributes:
        noise: rms of one sample, a tick long.
        gain_spread, offset_spread: of a corner's gain about 1, and of its zero before calibration; uniform, both ways.
        zero_calibration: what the calibration of the unloaded foot leaves of the zero, one sigma.
        range: of a corner, where it saturates.
        step: of one count.
        hysteresis_width: what a corner reads less on the way up than on the way down, by half of it to three halves.
        hysteresis_reach: half the way of the force over which the widest loop turns from one to the other.
        drift: where a corner's zero goes as its board grows warm, one sigma; warming: time constant of that [s].
    """

    noise: float
    gain_spread: float
    offset_spread: float
    zero_calibration: float
    range: float
    step: float
    hysteresis_width: float = 0.0
    hysteresis_reach: float = 1.0
    drift: float = 0.0
    warming: float = 1.0


@dataclass(frozen=True)
class SensorTruth:
    """How good the sensors are: rms of the noise of one ADC sample, spreads between boards, calibration left-overs.

    Attributes:
        has_torque: whether there are torque sensors at the joints at all.
        force: of the sensors in the feet, None where the robot has no feet.
    """

    current_noise: float
    current_gain_spread: float
    current_offset_spread: float
    current_zero_calibration: float
    torque_noise: float
    torque_offset_spread: float
    torque_zero_calibration: float
    motor_encoder_counts: int
    link_encoder_counts: int
    bus_voltage_noise: float
    temperature_noise: float
    has_torque: bool = True
    force: ForceTruth | None = None


@dataclass(frozen=True)
class PowerTruth:
    """Supply and motor windings, the same for all joints.

    Attributes:
        supply, source_resistance: what feeds all drives [V], [Ω].
        winding_resistance, winding_inductance: of a motor between its terminals [Ω], [H].
        winding_thermal_resistance, winding_time_constant: from the winding to the air [K/W], [s].
        ambient: temperature of the air [degC].
    """

    supply: float
    source_resistance: float
    winding_resistance: float
    winding_thermal_resistance: float
    winding_time_constant: float
    ambient: float
    winding_inductance: float = 5e-4

    def voltage_under(self, power: float) -> float:
        """What the supply gives while the drives draw `power` [W], or give it back [V]."""
        return self.supply - self.source_resistance * (power / self.supply)


@dataclass(frozen=True)
class PlantFile:
    """Everything a plant file says, in SI units; `joints` in the robot's order.

    Attributes:
        tick: of the bench it is on, in which it takes `steps_per_tick` steps.
        mesh_ripple, mesh_teeth: by what share friction swells from tooth to tooth, and how many a turn of a joint has.
        mesh_second: the same of twice as many teeth, as of the other flank.
        warming, warming_time: by what share it is less once the gears are warm, and time constant of that [s].
        unmodelled: seed of the effects of `unmodelled.py` that joints have, None without.
        base_link: true inertia of the base where it is free to move, None where it stands still.
        feet: in the robot's order; floor_friction: coefficient of the floor under them.
        scatter: how much the plant of one seed differs from that of another.
    """

    steps_per_tick: int
    current_lag: float
    brake_frequency: float
    power: PowerTruth
    transition: float
    ideal_transition: float
    sensors: SensorTruth
    joints: tuple[JointTruth, ...]
    mesh_ripple: float = 0.0
    mesh_teeth: int = 0
    mesh_second: float = 0.0
    warming: float = 0.0
    warming_time: float = 1.0
    unmodelled: int | None = None
    base_link: Link | None = None
    feet: tuple[FootTruth, ...] = ()
    floor_friction: float = 0.0
    tick: float = TICK
    scatter: Scatter = Scatter()

    def of_chain(self, robot: Robot) -> "PlantFile":
        """The same of a robot that ends behind some of its joints."""
        left = {foot.name for foot in robot.feet}
        feet = tuple(foot for foot in self.feet if foot.name in left)
        return replace(self, joints=self.joints[: robot.n_joints], feet=feet)

    def on_ticks_of(self, tick: float) -> "PlantFile":
        """The same on a bench of another tick [s]; its steps are no longer than before."""
        return replace(self, tick=tick, steps_per_tick=math.ceil(self.steps_per_tick * tick / self.tick))


def read_plant_file(path: Path, robot: Robot) -> PlantFile:
    """Read the plant file of `robot`.

    Raises:
        BenchFileError: the file cannot be read, an entry is wrong, or it does not describe this robot's joints.
    """
    try:
        return _plant(read_table(path, "plant"), robot)
    except FileError as error:
        raise BenchFileError(str(error)) from error


def _plant(table: Table, robot: Robot) -> PlantFile:
    table.version(VERSION)
    table.text("name")
    drive, friction = table.table("drive"), table.table("friction")
    scatter = read_scatter(table.table("drawn")) if table.has("drawn") else Scatter()
    entries = {entry.text("name"): entry for entry in table.tables("joints")}
    if tuple(entries) != robot.joint_names:
        table.fault(
            f"describes the joints {', '.join(entries) or 'none'}, but robot {robot.name!r} has "
            f"{', '.join(robot.joint_names)}; list exactly these, in this order"
        )
    law = friction.text("law", "stribeck", _LAWS)
    described = zip(entries.items(), robot.drives, strict=True)
    sensors = _sensors(table.table("sensors"), bool(robot.feet))
    plant = PlantFile(
        steps_per_tick=table.whole("steps_per_tick", 1),
        current_lag=1e-6 * drive.positive("current_lag_us"),
        brake_frequency=2.0 * math.pi * drive.positive("brake_frequency_Hz"),
        power=_power(drive),
        transition=friction.positive("transition_rad_s"),
        ideal_transition=friction.positive("ideal_transition_rad_s"),
        mesh_ripple=friction.magnitude("mesh_ripple", 0.0),
        mesh_teeth=friction.whole("mesh_teeth", 1) if friction.has("mesh_ripple") else 0,
        mesh_second=friction.magnitude("mesh_second_ripple", 0.0),
        warming=friction.magnitude("warming", 0.0),
        warming_time=friction.positive("warming_s", 1.0),
        scatter=scatter,
        sensors=sensors,
        joints=tuple(
            _joint(entry, name, drive, law, sensors.has_torque, table.where) for (name, entry), drive in described
        ),
    )
    if robot.base_link is not None:
        plant = _standing(plant, table, robot)
    for read in (drive, friction, table):
        read.finish()
    return plant


def _power(table: Table) -> PowerTruth:
    """Read supply and windings; the defaults are those of a frameless motor of 100 W and its power supply."""
    return PowerTruth(
        supply=1e-3 * table.positive("supply_mV"),
        source_resistance=1e-3 * table.magnitude("source_resistance_mOhm", 100.0),
        winding_resistance=1e-3 * table.magnitude("winding_resistance_mOhm", 500.0),
        winding_thermal_resistance=table.positive("winding_thermal_resistance_K_W", 2.0),
        winding_time_constant=table.positive("winding_time_constant_s", 60.0),
        ambient=table.number("ambient_degC", 22.0),
        winding_inductance=1e-6 * table.positive("winding_inductance_uH", 500.0),
    )


def _sensors(table: Table, feet: bool) -> SensorTruth:
    torque = any(table.has(f"torque_{key}_Nm") for key in ("noise", "offset_spread", "zero_calibration"))
    sensors = SensorTruth(
        current_noise=1e-3 * table.positive("current_noise_mA"),
        current_gain_spread=table.magnitude("current_gain_spread"),
        current_offset_spread=1e-3 * table.magnitude("current_offset_spread_mA"),
        current_zero_calibration=1e-3 * table.magnitude("current_zero_calibration_mA"),
        torque_noise=table.positive("torque_noise_Nm") if torque else 0.0,
        torque_offset_spread=table.magnitude("torque_offset_spread_Nm") if torque else 0.0,
        torque_zero_calibration=table.magnitude("torque_zero_calibration_Nm") if torque else 0.0,
        motor_encoder_counts=table.whole("motor_encoder_counts", 1),
        link_encoder_counts=table.whole("link_encoder_counts", 1),
        bus_voltage_noise=1e-3 * table.magnitude("bus_voltage_noise_mV", 20.0),
        temperature_noise=table.magnitude("temperature_noise_K", 0.05),
        has_torque=torque,
        force=_force(table) if feet else None,
    )
    table.finish()
    return sensors


def _force(table: Table) -> ForceTruth:
    return ForceTruth(
        noise=table.positive("force_noise_N"),
        gain_spread=table.magnitude("force_gain_spread"),
        offset_spread=table.magnitude("force_offset_spread_N"),
        zero_calibration=table.magnitude("force_zero_calibration_N"),
        range=table.positive("force_range_N"),
        step=table.positive("force_step_N"),
        hysteresis_width=table.magnitude("force_hysteresis_N", 0.0),
        hysteresis_reach=table.positive("force_hysteresis_reach_N", 1.0),
        drift=table.magnitude("force_drift_N", 0.0),
        warming=table.positive("force_warming_s", 1.0),
    )


def _standing(plant: PlantFile, table: Table, robot: Robot) -> PlantFile:
    """Add what a robot on a free base has: its base, its feet and the floor."""
    base, floor = table.table("base_link"), table.table("floor")
    entries = table.tables("feet")
    feet: list[FootTruth] = []
    for entry in entries:
        pull = cast(Vector3, entry.numbers("cable_pull_N", 3))
        feet.append(FootTruth(entry.text("name"), pull, entry.magnitude("cable_stiffness_N_m", 0.0)))
        entry.finish()
    if [foot.name for foot in feet] != [foot.name for foot in robot.feet]:
        table.fault(
            f"describes the feet {', '.join(foot.name for foot in feet) or 'none'}, but robot {robot.name!r} has "
            f"{', '.join(foot.name for foot in robot.feet) or 'none'}; list exactly these, in this order"
        )
    base.where = f"{table.where}: base_link"
    link = _link(base, base.text("name"))
    if link.physical_fault:
        base.fault(f"no body has this inertia: {link.physical_fault}")
    standing = replace(plant, base_link=link, feet=tuple(feet), floor_friction=floor.positive("friction"))
    base.finish()
    floor.finish()
    return standing


def _joint(table: Table, name: str, drive: Drive, law: str, has_torque: bool, file_name: str) -> JointTruth:
    table.where = f"{file_name}: joint {name!r}"
    link = _link(table, name)
    joint = (
        _passive(table, link)
        if drive.kind == "none"
        else _driven(table, link, law, has_torque, drive.kind == "coupled")
    )
    joint = replace(
        joint,
        torsion_spring=table.magnitude("torsion_spring_Nm_rad", 0.0),
        torsion_zero=math.radians(table.number("torsion_zero_deg", 0.0)),
        sine_spring=table.magnitude("sine_spring_Nm", 0.0),
        sine_zero=math.radians(table.number("sine_zero_deg", 0.0)),
    )
    table.finish()
    if link.physical_fault:
        table.fault(f"no body has this inertia: {link.physical_fault}")
    return joint


def _link(table: Table, name: str) -> Link:
    inertia = table.table("inertia_kg_m2")
    xx, yy, zz = (inertia.positive(key) for key in ("xx", "yy", "zz"))
    xy, xz, yz = (inertia.number(key, 0.0) for key in ("xy", "xz", "yz"))
    inertia.finish()
    center = tuple(1e-3 * value for value in table.numbers("center_of_mass_mm", 3))
    tensor = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    return Link(name, table.positive("mass_kg"), cast(Vector3, center), tensor)


def _ratio(table: Table, coupled: bool) -> float | None:
    if not table.has("ratio"):
        return None
    ratio = table.number("ratio")
    if coupled or ratio == 0.0:
        table.fault(f"ratio = {ratio:g} must not be 0, and stands only at a joint with a motor of its own")
    return ratio


def _driven(table: Table, link: Link, law: str, has_torque: bool, coupled: bool) -> JointTruth:
    makkar = _makkar(table) if law == "makkar" else None
    return JointTruth(
        link=link,
        rotor_inertia=table.positive("rotor_inertia_kg_m2"),
        coulomb=table.magnitude("coulomb_Nm") if makkar is None else makkar[3],
        viscous=table.magnitude("viscous_Nms_rad"),
        stribeck=table.magnitude("stribeck_Nm") if makkar is None else 0.0,
        stribeck_velocity=table.positive("stribeck_velocity_rad_s") if makkar is None else 1.0,
        load_friction=table.magnitude("load_friction"),
        stiffness=table.positive("stiffness_Nm_rad"),
        damping=table.magnitude("damping_Nms_rad"),
        current_range=table.positive("current_range_A"),
        torque_range=table.positive("torque_range_Nm") if has_torque else _NO_CONVERTER,
        makkar=makkar,
        published=table.numbers("published", 4) if table.has("published") else None,
        grease_drag=table.magnitude("grease_drag_Nm", 0.0) if makkar is not None else 0.0,
        ratio=_ratio(table, coupled),
    )


def _makkar(table: Table) -> tuple[float, ...]:
    """Read g1 … g5 of Makkar's law; g6 is `viscous_Nms_rad`, as in the other one."""
    sizes = [table.magnitude(key) for key in ("makkar_g1_Nm", "makkar_g4_Nm")]
    rates = [table.positive(f"makkar_g{k}_s_rad") for k in (2, 3, 5)]
    return (sizes[0], rates[0], rates[1], sizes[1], rates[2])


def _passive(table: Table, link: Link) -> JointTruth:
    """Read a joint without a drive: a bearing that turns almost freely."""
    return JointTruth(
        link=link,
        rotor_inertia=0.0,
        coulomb=table.magnitude("coulomb_Nm"),
        viscous=table.magnitude("viscous_Nms_rad"),
        stribeck=0.0,
        stribeck_velocity=1.0,
        load_friction=0.0,
        stiffness=_HELD_STIFFNESS,
        damping=0.0,
        current_range=_NO_CONVERTER,
        torque_range=_NO_CONVERTER,
    )
