"""The plant's physics against closed forms, conservation laws and an independent integrator; its variants and draws."""

import dataclasses
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hil_tests.pendulum import (
    ARM_INERTIA,
    COBOT6_PLANT,
    GRAVITY,
    LENGTH,
    MASS,
    RATIO,
    ROTOR_INERTIA,
    TORQUE_CONSTANT,
    drive_open,
    pendulum_robot,
    pendulum_truth,
    seconds,
)
from hil_tests.test_plant_feet import ROBOT
from hil_tests.test_plant_feet import TRUTH as PLANT_DRAWN_TRUTH
from hil_tests.test_plant_sensors import still
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.drive import Windings
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.friction import (
    RANGES,
    MakkarFriction,
    PreslidingFriction,
    PreslidingMakkarFriction,
    Unmodelled,
)
from hil_tests.virtual_bench.model import TICK, PlantKind
from hil_tests.virtual_bench.plant import OVERSAMPLES, Plant
from hil_tests.virtual_bench.plant_file import PlantFile, PowerTruth, Scatter, read_plant_file
from hil_tests.virtual_bench.plant_variants import in_variant, plant_of_seed
from hil_tests.virtual_bench.sensors import FootSensors, Sensors
from hil_tests.virtual_bench.standing_plant import StandingPlant
from jointbench.arrays import Array
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.model import Coupling, Robot, load_robot
from jointbench.model.joint import Mimic
from jointwire import JOINT_BOARD_CHANNELS

COBOT6 = load_robot("cobot6")
REACHING = (0.4, -0.6, 0.9, -1.2, 0.7, 0.3)  # far from upright, so that gravity matters
KINDS: tuple[PlantKind, ...] = ("harmonic", "presliding", "ideal")


def cobot6_truth(frictionless: bool = False) -> PlantFile:
    truth = read_plant_file(COBOT6_PLANT, COBOT6)
    if not frictionless:
        return truth
    none = {"coulomb": 0.0, "viscous": 0.0, "stribeck": 0.0, "load_friction": 0.0, "damping": 0.0}
    return dataclasses.replace(truth, joints=tuple(dataclasses.replace(joint, **none) for joint in truth.joints))


def potential_energy(robot: Robot, truth: PlantFile, q: Array) -> float:
    """Potential energy by multiplying out the transforms from frame to frame: no code of the plant."""
    pose, energy = np.eye(4), 0.0
    for joint, part, position in zip(robot.joints, truth.joints, q, strict=True):
        ct, st = math.cos(position), math.sin(position)
        placed = np.eye(4)
        placed[:3, :3], placed[:3, 3] = joint.placement
        pose = pose @ placed @ [[ct, -st, 0, 0], [st, ct, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
        assert part.link.mass is not None
        assert part.link.center_of_mass is not None
        energy -= part.link.mass * np.dot(robot.gravity, (pose @ (*part.link.center_of_mass, 1.0))[:3])
    return float(energy)


@pytest.mark.parametrize("kind", KINDS)
def test_at_rest_the_torque_sensor_carries_gravity(kind: PlantKind) -> None:
    robot, truth = dataclasses.replace(COBOT6, home=REACHING), cobot6_truth()
    plant = Plant(robot, truth, kind)
    motion = plant.advance(np.zeros(6, dtype=bool), np.zeros(6))
    q, step = motion.link_position, 1e-5
    shifts = step * np.eye(6)
    gravity = [
        (potential_energy(robot, truth, q + d) - potential_energy(robot, truth, q - d)) / (2 * step) for d in shifts
    ]
    # 1e-6 N·m: what a central difference of step 1e-5 leaves of 35 N·m.
    np.testing.assert_allclose(motion.torque[-1], gravity, rtol=0, atol=1e-6)
    assert np.abs(gravity).max() > 20.0


@pytest.mark.parametrize("kind", KINDS)
def test_energy_is_conserved_without_friction(kind: PlantKind) -> None:
    plant = Plant(dataclasses.replace(COBOT6, home=REACHING), cobot6_truth(frictionless=True), kind)
    on, nothing = np.ones(6, dtype=bool), np.zeros(6)
    plant.advance(on, nothing)
    start, rest = plant.energy(), plant.motor_position
    energies = []
    for _ in range(seconds(0.5)):
        plant.advance(on, nothing)
        energies.append(plant.energy())
    fallen = np.abs(plant.motor_position - rest).max()
    assert fallen > 0.3  # it has really moved, tens of joules from potential to kinetic energy
    # Runge-Kutta loses a little of the gears' fast vibration (2000 rad/s at 0.5 ms): millijoules, no drift in the fall.
    assert max(abs(energy - start) for energy in energies) < (1e-6 if kind == "ideal" else 2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_friction_only_takes_energy(kind: PlantKind) -> None:
    plant = Plant(dataclasses.replace(COBOT6, home=REACHING), cobot6_truth(), kind)
    on, nothing = np.ones(6, dtype=bool), np.zeros(6)
    energies = []
    for _ in range(seconds(1.0)):
        plant.advance(on, nothing)
        energies.append(plant.energy())
    assert np.diff(energies).max() < 1e-9  # rounding of a sum of tens of joules
    assert energies[0] - energies[-1] > 1.0


def test_ideal_pendulum_agrees_with_an_independent_integrator() -> None:
    coulomb, viscous = 0.8, 0.5
    truth = pendulum_truth(steps_per_tick=8, joint={"coulomb": coulomb, "viscous": viscous})
    plant = Plant(pendulum_robot(), truth, "ideal")
    start, begin = plant.motor_position[0], plant.time
    ticks = np.arange(seconds(1.0))
    commands = 1.5 * np.sin(2 * math.pi * 1.3 * ticks * TICK)
    motions = drive_open(plant, commands[:, None])

    def slope(t: float, state: Array, before: float, command: float) -> list[float]:
        position, velocity = state
        current = command + (before - command) * math.exp(-t / truth.current_lag)
        torque = (
            RATIO * TORQUE_CONSTANT * current
            - coulomb * math.tanh(velocity / truth.ideal_transition)
            - viscous * velocity
            - MASS * GRAVITY * LENGTH * math.cos(position)
        )
        return [velocity, torque / (ARM_INERTIA + ROTOR_INERTIA)]

    state, current, positions, velocities = np.array([start, 0.0]), 0.0, [], []
    for command in commands:
        solution = solve_ivp(slope, (0.0, TICK), state, args=(current, command), rtol=1e-9, atol=1e-11)
        state = solution.y[:, -1]
        current = command + (current - command) * math.exp(-TICK / truth.current_lag)
        positions.append(state[0])
        velocities.append(state[1])
    difference = np.array([motion.motor_position[0] for motion in motions]) - positions
    assert begin + len(ticks) * TICK == pytest.approx(plant.time)
    assert np.ptp(positions) > 0.5
    # 1 µrad is a fifteenth of an encoder count.
    assert np.abs(difference).max() < 1e-6


def test_ideal_torque_sensor_carries_what_the_link_needs() -> None:
    plant = Plant(pendulum_robot(), pendulum_truth(joint={"coulomb": 0.8, "viscous": 0.5}), "ideal")
    currents = 1.5 * np.sin(2 * math.pi * 1.3 * np.arange(1000) * TICK)
    motions = drive_open(plant, currents[:, None])
    q = np.array([motion.link_position[0] for motion in motions])
    torque = np.array([motion.torque[-1, 0] for motion in motions])  # 1/32 tick before the tick's end
    acceleration = np.gradient(np.gradient(q, TICK), TICK)
    needed = ARM_INERTIA * acceleration + MASS * GRAVITY * LENGTH * np.cos(q)
    smooth = np.abs(np.gradient(q, TICK)) > 0.05  # Coulomb friction's jumps defeat numerical differentiation
    smooth[:5] = smooth[-5:] = False
    assert smooth.sum() > 700
    # 1 %: the differences' error and the 1/32 tick; leaving out the rotor or friction would be 10 % and more.
    assert np.abs(torque - needed)[smooth].max() < 0.01 * np.abs(needed).max()


def test_flexible_joint_rings_at_its_natural_frequency() -> None:
    stiffness = 1e4
    truth = pendulum_truth(steps_per_tick=8, joint={"stiffness": stiffness})
    plant = Plant(pendulum_robot(gravity=False), truth, "harmonic")
    currents = np.zeros((seconds(0.5), 1))
    currents[:3] = 5.0  # a knock
    torque = np.concatenate([motion.torque[:, 0] for motion in drive_open(plant, currents)[10:]])
    times = TICK * (np.arange(len(torque)) + 0.5) / OVERSAMPLES
    rising = np.flatnonzero((torque[:-1] < 0) & (torque[1:] >= 0))
    crossings = times[rising] - torque[rising] * TICK / OVERSAMPLES / (torque[rising + 1] - torque[rising])
    measured = 2 * math.pi * (len(crossings) - 1) / (crossings[-1] - crossings[0])
    assert len(crossings) > 15
    # 0.1 %: Runge-Kutta's phase error at a tenth of a radian per step is 1e-6; the rest is linear interpolation.
    assert measured == pytest.approx(math.sqrt(stiffness * (1 / ARM_INERTIA + 1 / ROTOR_INERTIA)), rel=1e-3)


def test_steady_speed_balances_motor_and_friction() -> None:
    viscous, coulomb, stribeck, current = 4.0, 1.2, 0.4, 0.5
    part = {"viscous": viscous, "coulomb": coulomb, "stribeck": stribeck, "load_friction": 0.05, "damping": 2.0}
    plant = Plant(pendulum_robot(gravity=False), pendulum_truth(joint=part), "harmonic")
    motions = drive_open(plant, np.full((seconds(3.0), 1), current))
    speed = (motions[-1].motor_position[0] - motions[-101].motor_position[0]) / (100 * TICK)
    # At constant speed no torque passes the gear, and at this speed nothing is left of the Stribeck rise.
    assert speed == pytest.approx((RATIO * TORQUE_CONSTANT * current - coulomb) / viscous, rel=1e-6)


def test_load_adds_friction_in_proportion() -> None:
    """Lift the arm's weight at a steady creep: what friction takes grows with the gear's torque."""
    load_friction, coulomb, viscous = 0.2, 0.5, 30.0
    part = {"load_friction": load_friction, "coulomb": coulomb, "viscous": viscous}
    plant = Plant(pendulum_robot(), pendulum_truth(joint=part), "harmonic")
    currents = np.full((seconds(1.0), 1), 1.2)
    q = np.array([motion.link_position[0] for motion in drive_open(plant, currents)])
    speed = (q[-1] - q[-101]) / (100 * TICK)
    weight = MASS * GRAVITY * LENGTH * math.cos(q[-51])
    # Creeping in balance: motor = weight (1 + load_friction) + coulomb + viscous speed; 2 %: the weight still changes.
    assert speed * viscous == pytest.approx(12.0 - coulomb - weight * (1 + load_friction), rel=0.02)


def shift(reference: Array, other: Array) -> float:
    """Time [s] by which `other` lags `reference`, both positions by tick, by least squares over all joints."""
    velocity = np.gradient(reference, TICK, axis=0)
    return float(-(velocity * (other - reference)).sum() / (velocity**2).sum())


def swing(kind: PlantKind, factor: int) -> tuple[Array, Array]:
    """Positions of link and motor over one second of motion with `factor` times the plant file's steps."""
    truth = cobot6_truth()
    truth = dataclasses.replace(truth, steps_per_tick=factor * truth.steps_per_tick)
    times = TICK * np.arange(seconds(1.0))
    currents = COBOT6.torque_limits / [abs(drive.torque_per_current) for drive in COBOT6.drives] * 0.25
    currents = currents * np.sin(2 * math.pi * times[:, None] * np.array([1.0, 1.3, 1.7, 2.1, 2.6, 3.1]))
    motions = drive_open(Plant(COBOT6, truth, kind), currents)
    links, motors = zip(*((motion.link_position, motion.motor_position) for motion in motions), strict=True)
    return np.array(links), np.array(motors)


def test_shift_finds_a_shift() -> None:
    times = TICK * np.arange(1000)
    assert shift(np.sin(7 * times)[:, None], np.sin(7 * (times - 1e-4))[:, None]) == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_halving_the_step_shifts_no_motion_in_time(kind: PlantKind) -> None:
    coarse, fine = swing(kind, 1), swing(kind, 2)
    for reference, other in zip(fine, coarse, strict=True):
        # An identification feels shifts from about 100 µs on: a fiftieth of that does not matter beside it.
        assert abs(shift(reference, other)) < 2e-6
        # Nothing holds the arm to its path here: 200 µrad after 1 s is what a torque of 0.25 mN·m on 0.6 kg·m² does,
        # far below what any sensor sees.
        assert np.abs(other - reference).max() < 200e-6
        assert np.ptp(reference, axis=0).min() > 0.05


def test_friction_over_distance_remembers_where_it_stood() -> None:
    position, none = np.zeros(1), np.zeros(1)
    friction = PreslidingFriction(np.array([2.0]), np.array([0.5]), np.array([0.1]), np.array([30.0]), position)
    friction.begin()

    def go_to(mrad: float) -> float:
        position[0] = 1e-3 * mrad
        torque = float(friction.torque(none, none)[0])
        friction.step()
        return torque / 2.5  # of coulomb + stribeck

    # The shares 35, 30, 20 and 15 % are held over 0.1, 0.3, 1 and 2.5 mrad.
    assert go_to(0.2) == pytest.approx(0.35 + 0.30 * 2 / 3 + 0.20 * 0.2 + 0.15 * 0.08)
    assert go_to(4.0) == pytest.approx(1.0)
    assert go_to(3.8) == pytest.approx(-0.35 + 0.30 * 1 / 3 + 0.20 * 0.8 + 0.15 * 0.92)
    assert go_to(4.0) == pytest.approx(0.35 + 0.30 + 0.20 + 0.15)  # a small loop closes on itself
    assert go_to(-4.0) == pytest.approx(-1.0)
    loaded = friction.torque(np.array([0.1]), np.array([0.01]))
    assert loaded == pytest.approx(-(2.0 + 0.5 * math.exp(-1.0) + 0.3))


def test_makkars_law_over_distance_slides_as_the_law_does_and_holds_before() -> None:
    """Sliding it is Makkar's law, grease and load included; at rest it holds by where it stood, of any speed's sign."""
    gammas, grease, load = np.array([[3.0], [80.0], [10.0], [11.0], [60.0]]), np.array([2.0]), np.array([30.0])
    position, deflection = np.zeros(1), np.array([0.01])
    friction = PreslidingMakkarFriction(gammas, grease, load, position)
    of_speed = MakkarFriction(gammas, grease, load, 0.02)
    friction.begin()
    position[0] = 0.01  # past every stop
    for speed in (0.15, 0.3, 1.0):  # from where the law's tanh of 60 s/rad is 1 to 3e-8
        velocity = np.array([speed])
        expected = float(of_speed.torque(velocity, deflection)[0])
        assert float(friction.torque(velocity, deflection)[0]) == pytest.approx(expected, rel=1e-6)
    none = np.zeros(1)
    assert float(friction.torque(none, deflection)[0]) == pytest.approx(3.0 + 11.0 + 0.3)
    friction.step()
    position[0] = 0.0099  # the first stop gives way by 0.1 of its 0.2 mrad
    held = float(friction.torque(none, deflection)[0])
    assert held == pytest.approx((3.0 + 11.0 + 0.3) * (1.0 - 0.35 - 0.30 / 3 - 0.20 / 10 - 0.15 / 25))
    assert float(of_speed.torque(none, deflection)[0]) == 0.0


def test_friction_over_distance_is_not_of_a_standing_robot() -> None:
    robot = load_robot("gorobot2")
    with pytest.raises(BenchFileError, match="'gorobot2' stands on its feet"):
        StandingPlant(robot, read_plant_file(COBOT6_PLANT.with_name("gorobot2.toml"), robot), "presliding")


def test_an_arm_of_makkars_law_is_held_by_friction_over_distance() -> None:
    """Without current the shoulder stands within its stops; by friction of speed it sinks."""
    robot = load_robot("nursing_arm")
    truth = read_plant_file(COBOT6_PLANT.with_name("nursing_arm.toml"), robot)

    def sinks(kind: PlantKind) -> float:
        """Way of the second joint from 0.2 to 0.3 s [rad], under 8 N·m of gravity and 14 N·m of friction."""
        motions = drive_open(Plant(robot, truth, kind), np.zeros((300, 6)))
        return abs(float(motions[299].motor_position[1] - motions[199].motor_position[1]))

    assert sinks("presliding") < 2e-5  # it swings by so much about where the stops hold it
    assert sinks("harmonic") > 5e-4


def test_current_follows_its_command_with_the_lag() -> None:
    truth = pendulum_truth()
    plant = Plant(pendulum_robot(), truth, "ideal")
    first = plant.advance(np.array([True]), np.array([2.0])).current[:, 0]
    second = plant.advance(np.array([True]), np.array([-1.0])).current[:, 0]
    instants = TICK * (np.arange(OVERSAMPLES) + 0.5) / OVERSAMPLES
    end = 2.0 * (1 - math.exp(-TICK / truth.current_lag))
    np.testing.assert_allclose(first, 2.0 * (1 - np.exp(-instants / truth.current_lag)), rtol=1e-9)
    np.testing.assert_allclose(second, -1.0 + (end + 1.0) * np.exp(-instants / truth.current_lag), rtol=1e-9)
    limited = [plant.advance(np.array([True]), np.array([1e3])).current[-1, 0] for _ in range(10)]
    assert limited[-1] == pytest.approx(pendulum_robot().drives[0].current_limit)
    assert plant.advance(np.array([False]), np.array([1e3])).current[-1, 0] == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_brakes_hold_the_arm(kind: PlantKind) -> None:
    plant = Plant(dataclasses.replace(COBOT6, home=REACHING), cobot6_truth(), kind)
    start = plant.motor_position
    np.testing.assert_array_equal(start, REACHING)
    for _ in range(seconds(1.0)):
        plant.advance(np.zeros(6, dtype=bool), np.full(6, 3.0))
    assert np.abs(plant.motor_position - start).max() < 1e-6


def test_a_brake_that_closes_in_motion_stops_the_motor() -> None:
    truth = pendulum_truth(joint={"viscous": 1.0, "damping": 2.0})
    plant = Plant(pendulum_robot(gravity=False), truth, "harmonic")
    q = [motion.motor_position[0] for motion in drive_open(plant, np.full((seconds(0.3), 1), 1.0))]
    closed_at, speed = q[-1], (q[-1] - q[-2]) / TICK
    assert speed > 1.0
    for _ in range(seconds(0.5)):
        plant.advance(np.array([False]), np.zeros(1))
    stopped = plant.motor_position[0]
    plant.advance(np.array([False]), np.zeros(1))
    assert plant.motor_position[0] == pytest.approx(stopped, abs=2e-6)  # the arm still trembles on gear and brake
    assert closed_at < stopped < closed_at + 0.05


def test_a_brake_slips_beyond_its_holding_torque() -> None:
    plant = Plant(dataclasses.replace(pendulum_robot(), gravity=(0.0, 0.0, -40 * GRAVITY)), pendulum_truth(), "ideal")
    start = plant.motor_position[0]  # 235 N·m on a brake that holds 150
    for _ in range(seconds(0.2)):
        plant.advance(np.array([False]), np.zeros(1))
    assert plant.motor_position[0] < start - 0.02


def test_two_plants_in_one_process_do_not_disturb_each_other() -> None:
    alone = Plant(COBOT6, cobot6_truth(), "harmonic")
    on, current = np.ones(6, dtype=bool), np.full(6, 0.8)
    expected = [alone.advance(on, current).motor_position for _ in range(20)]
    first = Plant(COBOT6, cobot6_truth(), "harmonic")
    second = Plant(pendulum_robot(), pendulum_truth(), "ideal")
    for position in expected:
        np.testing.assert_array_equal(first.advance(on, current).motor_position, position)
        second.advance(np.ones(1, dtype=bool), np.ones(1))


def test_friction_too_steep_for_the_step_is_refused_by_joint() -> None:
    with pytest.raises(BenchFileError, match=r"joint 'swing' .* steps_per_tick = 1; use at least [0-9]+, or a wider"):
        Plant(pendulum_robot(), pendulum_truth(steps_per_tick=1, joint={"coulomb": 5.0}), "ideal")


def test_joints_that_are_no_driven_hinges_and_more_drives_than_joints_are_refused_by_name() -> None:
    robot = pendulum_robot()
    slide = dataclasses.replace(robot, joints=(dataclasses.replace(robot.joints[0], kind="prismatic"),))
    with pytest.raises(BenchFileError, match="joint 'swing' of 'pendulum' is prismatic"):
        Plant(slide, pendulum_truth(), "ideal")
    follower = dataclasses.replace(robot.joints[0], name="follower", parent=0, mimic=Mimic(0, 0.5, 0.0))
    with pytest.raises(BenchFileError, match="robot 'pendulum' has joints that follow others"):
        Plant(dataclasses.replace(robot, joints=(robot.joints[0], follower)), pendulum_truth(), "ideal")
    beside = dataclasses.replace(robot.drives[0], name="beside")
    twice = dataclasses.replace(robot, couplings=(Coupling("both", ("swing",), ((RATIO,), (RATIO,)), (beside,)),))
    with pytest.raises(BenchFileError, match="robot 'pendulum' has 2 motors for 1 joints"):
        Plant(twice, pendulum_truth(), "ideal")


TRUTH = read_plant_file(COBOT6_PLANT, COBOT6)


def speed_after(truth: PlantFile, current: float, ticks: int = 20) -> float:
    """Of a joint without gravity that is driven by a constant current [rad/s]."""
    plant = Plant(pendulum_robot(gravity=False), truth, "harmonic")
    motions = drive_open(plant, np.full((ticks, 1), current))
    return float((motions[-1].link_position - motions[-2].link_position)[0] / 1e-3)


def test_of_a_lost_torque_the_rest_arrives() -> None:
    """Without friction speed goes by the torque that arrives."""
    lossy = pendulum_truth(joint={"lost_torque": 0.8})
    assert speed_after(lossy, 5.0) == pytest.approx(speed_after(pendulum_truth(), 1.0), rel=0.02)
    assert RATIO * TORQUE_CONSTANT == 10.0


def test_the_published_plant_has_the_papers_numbers_and_light_links() -> None:
    published = in_variant(TRUTH, COBOT6, "published")
    for part, of_file, drive in zip(published.joints, TRUTH.joints, COBOT6.drives, strict=True):
        assert of_file.published is not None
        a1, a2, a3, a4 = of_file.published
        assert (part.lost_torque, part.coulomb, part.viscous, part.stribeck, part.load_friction) == (a1, a2, a3, 0, 0)
        assert part.rotor_inertia * drive.ratio**2 == pytest.approx(a4)
        assert part.link.physical_fault is None
    Plant(COBOT6, published, "harmonic")  # its friction is not too steep for the step


def test_a_plant_without_published_parameters_says_so() -> None:
    joints = tuple(dataclasses.replace(joint, published=None) for joint in TRUTH.joints)
    with pytest.raises(BenchFileError, match="no published parameters"):
        in_variant(dataclasses.replace(TRUTH, joints=joints), COBOT6, "published")


def test_a_frictionless_plant_loses_nothing() -> None:
    bare = in_variant(TRUTH, COBOT6, "frictionless")
    plant = Plant(COBOT6, bare, "harmonic")
    assert not plant._friction.torque(np.full(6, 0.3), np.full(6, 1e-3)).any()  # pyright: ignore[reportPrivateUsage]


def effects(seed: int = 1) -> Unmodelled:
    """Of two joints with Coulomb friction of 1 and 4 N·m."""
    return Unmodelled(np.array([1.0, 4.0]), np.array([100.0, 50.0]), seed)


def test_effects_are_drawn_within_their_ranges_and_otherwise_for_another_seed() -> None:
    for name, (low, high) in RANGES.items():
        drawn = np.array([effects(seed).drawn[name] for seed in range(20)])
        assert ((drawn >= low) & (drawn <= high)).all()
        assert len(np.unique(drawn)) == drawn.size
    assert np.array_equal(effects().drawn["swell"], effects().drawn["swell"])


def test_friction_swells_once_and_twice_a_turn_and_falls_as_it_warms() -> None:
    some = effects()
    turn = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    rub = np.array([some.rub(np.ones(2), np.full(2, q), 0.0) for q in turn])
    swell = some.drawn["swell"]
    spectrum = 2.0 * np.abs(np.fft.rfft(rub, axis=0)) / len(turn)
    np.testing.assert_allclose(spectrum[1], swell, rtol=1e-9)
    np.testing.assert_allclose(spectrum[2], swell / 2.0, rtol=1e-9)
    assert rub.max() <= some.largest_swell
    warm = some.rub(np.ones(2), np.zeros(2), 1e6) / some.rub(np.ones(2), np.zeros(2), 0.0)
    np.testing.assert_allclose(warm, 1.0 - some.drawn["drop"], rtol=1e-9)


def test_gears_ripple_twice_and_four_times_a_turn_of_the_motor_and_motors_thirty_times() -> None:
    """The first joint's motor turns 100 times as far; its turn is 2π / 100 of the joint."""
    some = effects()
    turn = np.linspace(0.0, 2.0 * np.pi / 100.0, 400, endpoint=False)
    driven = np.array([some.drive(np.full(2, 10.0), np.full(2, q)) for q in turn])[:, 0]
    spectrum = 2.0 * np.abs(np.fft.rfft(driven)) / len(turn)
    np.testing.assert_allclose(spectrum[2], some.drawn["gear_ripple"][0], rtol=1e-9)
    np.testing.assert_allclose(spectrum[4], some.drawn["gear_ripple"][0] / 2.0, rtol=1e-9)
    np.testing.assert_allclose(spectrum[30], 10.0 * some.drawn["motor_ripple"][0], rtol=1e-9)


def test_a_plant_with_effects_moves_otherwise() -> None:
    rubbing = {"coulomb": 2.0, "stribeck_velocity": 0.05}
    plain = pendulum_truth(joint=rubbing)
    rippled = dataclasses.replace(plain, unmodelled=3)
    assert speed_after(plain, 5.0) != speed_after(rippled, 5.0)
    assert speed_after(rippled, 5.0) != speed_after(dataclasses.replace(plain, unmodelled=4), 5.0)


BENCHES = Path(__file__).resolve().parent / "benches"
FILE = replace(
    PLANT_DRAWN_TRUTH, scatter=Scatter(mass=0.05, inertia=0.1, center=5e-3, rotor=0.05, friction=0.1, cable_pull=0.5)
)


def phi(plant: PlantFile) -> Array:
    """The eight parameters; refuses links of a kind that differ, or lie off their axis."""
    assert plant.base_link is not None
    blocks = [plant.base_link.standard_parameters, *(joint.link.standard_parameters for joint in plant.joints)]
    return ReducedParameters(ROBOT).of_parameters(np.concatenate([block for block in blocks if block is not None]))


def test_a_seed_draws_a_robot_whose_links_of_a_kind_are_alike() -> None:
    drawn = np.array([phi(plant_of_seed(FILE, ROBOT, seed)) for seed in range(40)])
    off = (drawn - phi(FILE)) / np.concatenate([np.full(4, 5e-3), 0.05 * phi(FILE)[4:]])
    assert (off.std(axis=0) > 0.7).all()
    assert (off.std(axis=0) < 1.3).all()
    assert (np.abs(off.mean(axis=0)) < 0.5).all()
    assert np.array_equal(phi(plant_of_seed(FILE, ROBOT, 7)), drawn[7])


def test_friction_motors_and_cables_are_drawn_too_and_small_links_are_not() -> None:
    one, other = (plant_of_seed(FILE, ROBOT, seed) for seed in (1, 2))
    for name in ("coulomb", "viscous", "stribeck", "rotor_inertia"):
        values = [[getattr(joint, name) for joint in plant.joints] for plant in (FILE, one, other)]
        assert len({tuple(row) for row in values}) == 3
    assert one.joints[0].viscous / FILE.joints[0].viscous == pytest.approx(
        one.joints[0].coulomb / FILE.joints[0].coulomb
    )
    assert one.feet[0].cable_pull != other.feet[0].cable_pull
    assert one.joints[0].link == FILE.joints[0].link  # of no kind


def test_a_file_that_says_nothing_describes_one_robot() -> None:
    assert plant_of_seed(replace(FILE, scatter=Scatter()), ROBOT, 3) is not None
    assert plant_of_seed(replace(FILE, scatter=Scatter()), ROBOT, 3).joints == FILE.joints


def cells(**settings: float) -> FootSensors:
    """Of one foot, without noise and gain errors."""
    assert PLANT_DRAWN_TRUTH.sensors.force is not None
    exact = replace(
        PLANT_DRAWN_TRUTH.sensors.force, noise=1e-9, gain_spread=0.0, offset_spread=0.0, step=4e-3, **settings
    )
    return FootSensors(exact, 1, np.random.default_rng(0), np.random.default_rng(0))


def test_a_cell_reads_less_on_the_way_up_than_on_the_way_down() -> None:
    sensors = cells(hysteresis_width=0.4, hysteresis_reach=30.0, drift=0.0, warming=1.0, range=1000.0)
    way = np.concatenate([np.linspace(0.0, 100.0, 100), np.linspace(100.0, 0.0, 100)[1:]])
    first, *_ = (sensors.read(np.full((1, 4), force)) for force in way)  # once round, to forget how it began
    read = np.array([4e-3 * sensors.read(np.full((1, 4), force))[0] for force in way])
    width = read[::-1][:100] - read[:100]
    assert first.shape == (1, 4)
    assert (width[50] > 0.0).all()
    assert (width.max(axis=0) <= 0.6 + 8e-3).all()
    assert width[50].std() > 0.01  # each cell has its own


def test_a_cells_zero_goes_with_the_warmth() -> None:
    sensors = cells(hysteresis_width=0.0, drift=0.2, warming=0.5, range=1000.0)
    read = np.array([4e-3 * sensors.read(np.full((1, 4), 10.0))[0] for _ in range(3000)])
    moved = read - read[0]
    assert (np.abs(moved[-1]) > 0.01).any()
    np.testing.assert_allclose(moved[500] / moved[-1], -np.expm1(-1.0), rtol=0.1)


@pytest.mark.parametrize("name", ["cobot6", "gorobot2", "modular7", "nursing_arm", "nursing_dual", "rehab_arm"])
def test_every_demo_has_a_plant_of_each_seed(name: str) -> None:
    bench = read_bench_file(BENCHES / f"{name}.toml")
    plants = [plant_of_seed(bench.plant, bench.robot, seed) for seed in (0, 1, 1)]
    assert plants[1] == plants[2]
    if name in ("gorobot2", "nursing_arm", "nursing_dual"):
        assert plants[0] != plants[1]
    for plant in plants:
        assert all(not joint.link.physical_fault for joint in plant.joints)


POWER = PowerTruth(
    supply=48.0,
    source_resistance=0.1,
    winding_resistance=0.5,
    winding_thermal_resistance=2.0,
    winding_time_constant=60.0,
    ambient=22.0,
)


def pendulum(**joint: float) -> tuple[Plant, PlantFile]:
    truth = dataclasses.replace(pendulum_truth(joint=joint), power=POWER)
    return Plant(pendulum_robot(gravity=False), truth, "ideal"), truth


def test_windings_warm_up_exponentially_to_their_steady_temperature() -> None:
    windings = Windings(POWER, 2)
    loss = np.array([10.0, 0.0])
    currents = np.tile(np.sqrt(loss / POWER.winding_resistance), (4, 1))
    for _ in range(seconds(60.0)):
        assert windings.advance(currents) == pytest.approx(10.0, rel=1e-12)
    # After one time constant 1 - 1/e of 20 K; the recurrence is exact but for rounding in 60 000 steps.
    np.testing.assert_allclose(windings.temperature, [22.0 + 20.0 * (1.0 - math.exp(-1.0)), 22.0], rtol=1e-10)


def test_a_current_heats_by_its_square() -> None:
    plant, _ = pendulum(viscous=5.0)
    motions = drive_open(plant, np.full((seconds(0.5), 1), -3.0))
    rise = motions[-1].temperature[0] - POWER.ambient
    loss = POWER.winding_resistance * 3.0**2
    expected = POWER.winding_thermal_resistance * loss * (1.0 - math.exp(-0.5 / POWER.winding_time_constant))
    # The current reaches its command with a lag of 0.3 ms: a loss of 1.5 lags (twice one, less half of one) of 500 ms.
    assert rise == pytest.approx(expected, rel=1.5 * 0.3 / 500 + 1e-4)
    assert rise < expected


def test_a_running_motor_draws_its_losses_and_its_work_from_the_supply() -> None:
    viscous, current = 4.0, 1.0
    plant, _ = pendulum(viscous=viscous)
    motion = drive_open(plant, np.full((seconds(3.0), 1), current))[-1]
    speed = RATIO * TORQUE_CONSTANT * current / viscous
    power = POWER.winding_resistance * current**2 + viscous * speed**2
    # At a steady speed all work goes into friction.
    sag = POWER.source_resistance * power / POWER.supply
    assert POWER.supply - motion.bus_voltage == pytest.approx(sag, rel=1e-4)


def test_a_braking_motor_gives_back() -> None:
    plant, _ = pendulum(viscous=4.0)
    drive_open(plant, np.full((seconds(1.0), 1), 1.0))
    braking = drive_open(plant, np.full((3, 1), -1.0))[-1]
    assert braking.bus_voltage > POWER.supply


def test_a_standing_robot_draws_nothing_and_has_the_temperature_of_the_air() -> None:
    motion = Plant(COBOT6, TRUTH, "harmonic").standing()
    assert motion.bus_voltage == TRUTH.power.supply
    np.testing.assert_array_equal(motion.temperature, TRUTH.power.ambient)


def test_facts_read_voltage_and_temperature() -> None:
    sensors = Sensors(COBOT6, TRUTH, "harmonic", seed=2)
    facts = sensors.facts(0)
    readings = [sensors.read(still(temperature=61.25, bus_voltage=47.3)) for _ in range(4000)]
    volts = np.array([reading.bus_voltage for reading in readings]) * facts["voltage.scale"] * 1e-6
    kelvin = np.array([reading.temperature for reading in readings]) - facts["temperature.zero"]
    kelvin = kelvin * facts["temperature.scale"] * 1e-6
    # Five standard errors of 4000 readings.
    np.testing.assert_allclose(volts.mean(axis=0), 47.3, rtol=0, atol=5 * TRUTH.sensors.bus_voltage_noise / 63)
    np.testing.assert_allclose(
        kelvin.mean(axis=0), 61.25 + 273.15, rtol=0, atol=5 * TRUTH.sensors.temperature_noise / 63
    )
    # The rms of 4000 readings is known to 1.1 %; each board has noise of its own.
    np.testing.assert_allclose(volts.std(axis=0), TRUTH.sensors.bus_voltage_noise, rtol=0.06)
    np.testing.assert_allclose(kelvin.std(axis=0), TRUTH.sensors.temperature_noise, rtol=0.06)
    assert abs(np.corrcoef(volts[:, 0], volts[:, 1])[0, 1]) < 5 / 63
    assert facts["board.channels"] == JOINT_BOARD_CHANNELS


@pytest.mark.parametrize("supply", [12.0, 24.0, 48.0, 80.0])
def test_a_supply_a_quarter_higher_still_fits_sixteen_bits(supply: float) -> None:
    truth = dataclasses.replace(TRUTH, power=dataclasses.replace(TRUTH.power, supply=supply))
    sensors = Sensors(COBOT6, truth, "harmonic", seed=2)
    counts = sensors.read(still(bus_voltage=1.25 * supply)).bus_voltage
    assert counts.max() < 2**15 + 5 * truth.sensors.bus_voltage_noise / (sensors.facts(0)["voltage.scale"] * 1e-6)
    assert sensors.facts(0)["voltage.scale"] * 1e-6 < 1.25 * supply / (2**15 - 1) + 1e-3  # in whole millivolts


def test_one_tick_of_the_plant_is_one_of_the_windings() -> None:
    plant, _ = pendulum()
    before = plant.standing().temperature[0]
    (motion,) = drive_open(plant, np.full((1, 1), 5.0))
    loss = POWER.winding_resistance * float((motion.current**2).mean())
    part = 1.0 - math.exp(-TICK / POWER.winding_time_constant)
    assert motion.temperature[0] - before == pytest.approx(part * POWER.winding_thermal_resistance * loss, rel=1e-9)
