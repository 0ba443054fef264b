"""The plant's physics against closed forms, conservation laws and an independent integrator."""

import dataclasses
import math

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
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.friction import PreslidingFriction
from hil_tests.virtual_bench.model import TICK, PlantKind
from hil_tests.virtual_bench.plant import OVERSAMPLES, Plant
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file
from hil_tests.virtual_bench.standing_plant import StandingPlant
from jointbench.arrays import Array
from jointbench.robot import Coupling, Robot, load_robot

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


def test_friction_over_distance_is_of_arms_with_stribeck_friction() -> None:
    robot = load_robot("nursing_arm")
    truth = read_plant_file(COBOT6_PLANT.with_name("nursing_arm.toml"), robot)
    with pytest.raises(BenchFileError, match='plant "presliding" has the sizes of the law "stribeck"'):
        Plant(robot, truth, "presliding")
    robot = load_robot("gorobot2")
    with pytest.raises(BenchFileError, match="'gorobot2' stands on its feet"):
        StandingPlant(robot, read_plant_file(COBOT6_PLANT.with_name("gorobot2.toml"), robot), "presliding")


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


def test_prismatic_joints_and_more_drives_than_joints_are_refused_by_name() -> None:
    robot = pendulum_robot()
    slide = dataclasses.replace(robot, joints=(dataclasses.replace(robot.joints[0], kind="prismatic"),))
    with pytest.raises(BenchFileError, match="joint 'swing' of 'pendulum' is prismatic"):
        Plant(slide, pendulum_truth(), "ideal")
    beside = dataclasses.replace(robot.drives[0], name="beside")
    twice = dataclasses.replace(robot, couplings=(Coupling("both", ("swing",), ((RATIO,), (RATIO,)), (beside,)),))
    with pytest.raises(BenchFileError, match="robot 'pendulum' has 2 motors for 1 joints"):
        Plant(twice, pendulum_truth(), "ideal")
