"""Coupled drives, joints without drives and springs in the plant, against closed forms."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import rehab_arm_with_a_free_hand
from hil_tests.pendulum import (
    ARM_INERTIA,
    GRAVITY,
    LENGTH,
    MASS,
    ROTOR_INERTIA,
    drive_open,
    pendulum_robot,
    pendulum_truth,
    seconds,
)
from hil_tests.test_plant import shift
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.friction import MeshRipple
from hil_tests.virtual_bench.model import TICK, PlantKind
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from hil_tests.virtual_bench.truth import true_parameters
from jointbench.arrays import Array
from jointbench.model import BevelDifferential, Coupling, Drive, Joint, Link, Robot, load_robot, modified_dh
from jointwire import CHANNELS

RATIO, TORQUE_CONSTANT = 100.0, 0.1
ROTORS = (6e-5, 4e-5)  # of the two motors, about their own axes
BEVELS = (RATIO**2 * ROTORS[0], RATIO**2 * ROTORS[1])  # at the input bevels
LOAD_MASS, LOAD_RADIUS, LOAD_INERTIA = 3.0, 0.2, 0.03  # what pitches; inertia about its centre of mass, all axes
THIRD_BEVEL = 0.01  # of what rotates only


def pair_robot(gravity: bool = True) -> Robot:
    """Return a rotation about the upright axis and a pitch that meets it; at zero the load hangs."""
    ball = ((LOAD_INERTIA, 0.0, 0.0), (0.0, LOAD_INERTIA, 0.0), (0.0, 0.0, LOAD_INERTIA))
    bevel = ((THIRD_BEVEL, 0.0, 0.0), (0.0, THIRD_BEVEL, 0.0), (0.0, 0.0, THIRD_BEVEL))
    links = (Link("bevel", 1.0, (0.0, 0.0, 0.0), bevel), Link("load", LOAD_MASS, (0.0, -LOAD_RADIUS, 0.0), ball))
    alphas = (0.0, 1.5707963267948966)  # the pitch axis lies level, and y of its frame points up at zero
    joints = tuple(
        Joint(name, "revolute", parent, *modified_dh(alpha, 0.0, 0.0, 0.0), (-3.0, 3.0), 5.0, 50.0, 15.0, link)
        for parent, (name, alpha, link) in enumerate(zip(("turn", "pitch"), alphas, links, strict=True), start=-1)
    )
    drives = tuple(Drive(name, name, "direct", RATIO, TORQUE_CONSTANT, 10.0) for name in ("turn", "pitch"))
    pair = Coupling("pair", ("turn", "pitch"), ((RATIO, RATIO), (-RATIO, RATIO)))
    down = (0.0, 0.0, -GRAVITY if gravity else 0.0)
    return Robot("pair", joints, drives, (pair,), down, (0.0, 0.0), "closed form", "one bevel differential")


def pair_truth(steps_per_tick: int = 2, joint: Mapping[str, float | tuple[float, ...]] | None = None) -> PlantFile:
    """Return its plant without friction and damping, but for what `joint` sets of both joints."""
    truth = pendulum_truth(steps_per_tick)
    part = dataclasses.replace(truth.joints[0], **dict(joint or {}))
    parts: tuple[JointTruth, ...] = tuple(
        dataclasses.replace(part, link=each.link, rotor_inertia=rotor)
        for each, rotor in zip(pair_robot().joints, ROTORS, strict=True)
    )
    return dataclasses.replace(truth, joints=parts)


KINDS: tuple[PlantKind, ...] = ("harmonic", "ideal")
BEVELS_OF_JOINTS = np.array([[1.0, 1.0], [-1.0, 1.0]])
PAIR = BevelDifferential(
    RATIO,
    first_bevel=BEVELS[0],
    second_bevel=BEVELS[1],
    third_bevel=THIRD_BEVEL + LOAD_INERTIA,  # the hanging load turns with it, its centre of mass on the axis
    carrier=LOAD_INERTIA + LOAD_MASS * LOAD_RADIUS**2,
    load_mass=LOAD_MASS,
    load_radius=LOAD_RADIUS,
)
PLANTS = Path(__file__).parent / "virtual_bench" / "plants"
NURSING_ARM = load_robot("nursing_arm")
ON = np.ones(2, dtype=bool)


def nursing_truth() -> PlantFile:
    return read_plant_file(PLANTS / "nursing_arm.toml", NURSING_ARM)


def test_one_current_accelerates_both_joints_as_the_paper_says() -> None:
    """J ddq + G = [T1 - T2, T1 + T2], J12 = J1 - J2: told by how far both joints come in the first ticks."""
    plant = Plant(pair_robot(), pair_truth(), "ideal")
    current, ticks = 0.5, 20
    end = drive_open(plant, np.tile([current, 0.0], (ticks, 1)))[-1].motor_position
    torque = RATIO * TORQUE_CONSTANT * current
    expected = np.linalg.solve(PAIR.inertia, [torque, torque])
    # The current needs its lag to come up: t²/2 - lag t + lag² of motion; gravity comes with the motion itself.
    lag, t = pair_truth().current_lag, ticks * TICK
    moved = expected * (0.5 * t**2 - lag * t + lag**2 * (1.0 - math.exp(-t / lag)))
    # 0.2 %: what the load's swing of 4 mrad does in 20 ms, with gravity and with the rotation's inertia.
    np.testing.assert_allclose(end, moved, rtol=2e-3)
    without_coupling = torque / np.diag(PAIR.inertia)
    assert np.all(np.abs(without_coupling / expected - 1.0) > 0.05)  # J12 is seen


@pytest.mark.parametrize("kind", KINDS)
def test_with_one_motor_held_the_other_moves_both_joints_alike(kind: PlantKind) -> None:
    """The second motor's bevel stands, q2 - q1 = φ2 = 0: what a differential does when one motor is off."""
    plant = Plant(pair_robot(), pair_truth(joint={"viscous": 2.0, "damping": 2.0}), kind)
    one = np.array([True, False])
    path = np.array([plant.advance(one, np.array([1.2, 5.0])).motor_position for _ in range(seconds(0.5))])
    assert path[-1, 0] > 0.3
    bevels = path @ BEVELS_OF_JOINTS.T
    np.testing.assert_allclose(bevels[:, 0], 2.0 * path[:, 0], rtol=0, atol=1e-3)
    # 1 mrad: the closed brake is a spring of 100 kN·m/rad and gives way under the other motor's tens of N·m.
    np.testing.assert_allclose(bevels[:, 1], 0.0, rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_brakes_hold_the_bevels(kind: PlantKind) -> None:
    plant = Plant(NURSING_ARM, nursing_truth(), kind)
    start = plant.motor_position
    np.testing.assert_array_equal(start, NURSING_ARM.home)
    for _ in range(seconds(0.5)):
        plant.advance(np.zeros(6, dtype=bool), np.full(6, 1.0))
    assert np.abs(plant.motor_position - start).max() < 1e-6


def frictionless(truth: PlantFile) -> PlantFile:
    gone = {"coulomb": 0.0, "viscous": 0.0, "load_friction": 0.0, "damping": 0.0, "makkar": None}
    return dataclasses.replace(truth, joints=tuple(dataclasses.replace(joint, **gone) for joint in truth.joints))


@pytest.mark.parametrize("kind", KINDS)
def test_energy_is_conserved_without_friction(kind: PlantKind) -> None:
    robot = dataclasses.replace(NURSING_ARM, home=(0.4, -0.9, 0.5, 1.1, -0.6, 0.7))
    plant = Plant(robot, frictionless(nursing_truth()), kind)
    on, nothing = np.ones(6, dtype=bool), np.zeros(6)
    plant.advance(on, nothing)
    start, rest = plant.energy(), plant.motor_position
    energies: list[float] = []
    for _ in range(seconds(0.6)):
        plant.advance(on, nothing)
        energies.append(plant.energy())
    assert np.abs(plant.motor_position - rest).max() > 0.1  # it falls, slowly: rotors behind 3060 are heavy
    # Runge-Kutta at 1 ms takes what the gears' fast vibration has (1000 rad/s), millijoules; the fall drifts by none.
    assert max(abs(energy - start) for energy in energies) < (2e-3 if kind == "harmonic" else 1e-6)


def test_what_motors_give_is_what_joints_and_friction_take() -> None:
    """Power balance over a motion of both joints under gravity: motors' work = energy gained + friction's work.

    Friction's work is written out here: Makkar's law at the joints, and a share of the load at each bevel's gear.
    """
    g1, g2, g3, g4, g5, g6 = gammas = (0.6, 60.0, 8.0, 1.5, 50.0, 1.2)
    share = 0.3  # more than any gear takes, so that the balance would show it missing
    part = {"makkar": gammas[:5], "coulomb": g4, "viscous": g6, "load_friction": share, "damping": 0.0}
    truth = pair_truth(steps_per_tick=4, joint=part)
    plant = Plant(pair_robot(), truth, "harmonic")
    t = TICK * np.arange(seconds(1.5))
    currents = np.stack([0.9 * np.sin(2 * math.pi * 1.1 * t), 0.7 * np.sin(2 * math.pi * 1.7 * t)], axis=1)
    begin, start = plant.motor_position, plant.energy()
    motions = drive_open(plant, currents)
    positions = np.array([begin, *(motion.motor_position for motion in motions)])
    joint_torque = np.array([motion.torque.mean(axis=0) for motion in motions])
    motor_torque = RATIO * TORQUE_CONSTANT * np.array([motion.current.mean(axis=0) for motion in motions])
    velocity = np.diff(positions, axis=0) / TICK  # mean of the tick
    bevel_velocity = velocity @ BEVELS_OF_JOINTS.T
    given = float(np.sum(motor_torque * bevel_velocity) * TICK)
    curve = g1 * (np.tanh(g2 * velocity) - np.tanh(g3 * velocity)) + g4 * np.tanh(g5 * velocity) + g6 * velocity
    gear_load = joint_torque @ np.linalg.inv(BEVELS_OF_JOINTS)
    loss = share * np.abs(gear_load) * np.tanh(bevel_velocity / truth.transition)
    lost_in_gears = float(np.sum(loss * bevel_velocity) * TICK)
    taken = float(np.sum(curve * velocity) * TICK) + lost_in_gears
    gained = plant.energy() - start
    assert taken > 1.0
    assert lost_in_gears > 0.05 * given
    # 0.2 %: means over a tick stand for products of what changes within it.
    assert given == pytest.approx(taken + gained, rel=2e-3)


def test_the_friction_that_motors_feel_is_the_one_the_truth_tells() -> None:
    """Without weight and teeth, turn a joint of a pair at steady speeds: what motors give there is the told curve."""
    robot = dataclasses.replace(NURSING_ARM, gravity=(0.0, 0.0, 0.0))
    truth = dataclasses.replace(nursing_truth(), mesh_ripple=0.0)
    told = true_parameters(robot, truth, "harmonic", Sensors(robot, truth, "harmonic", seed=0))
    per_current = np.array([drive.torque_per_current for drive in robot.drives])
    bevels = np.kron(np.eye(3), BEVELS_OF_JOINTS)
    stiffness = np.repeat([3e4, 1e4, 3e3], 2)
    moving = (0, 3)  # the shoulder's rotation and the elbow's pitch
    for speed in (math.radians(1.0), math.radians(-5.0), math.radians(20.0)):
        plant = Plant(robot, truth, "harmonic")
        pull = np.zeros((seconds(0.8), 6))
        q = plant.motor_position
        for tick in range(len(pull)):  # a stiff servo at the bevels; its first command is steep, hence the wait
            wanted = np.array(robot.home)
            wanted[list(moving)] += speed * (tick + 1) * TICK
            before, q = q, plant.motor_position
            rate = np.zeros(6)
            rate[list(moving)] = speed
            torque = bevels @ (stiffness * (wanted - q) + 0.05 * stiffness * (rate - (q - before) / TICK))
            motion = plant.advance(np.ones(6, dtype=bool), torque / per_current)
            pull[tick] = (per_current * motion.current.mean(axis=0)) @ bevels
        for joint in moving:
            friction = told[robot.joint_names[joint]]["friction"]
            assert friction["law"] == "makkar"
            g1, g2, g3, g4, g5, g6 = friction["gammas"]
            curve = g1 * (math.tanh(g2 * speed) - math.tanh(g3 * speed)) + g4 * math.tanh(g5 * speed) + g6 * speed
            curve += math.copysign(friction["grease_drag"] * abs(speed) ** (2.0 / 3.0), speed)
            # 1 %: the servo's last ripple, averaged over a tenth of a second.
            assert pull[-100:, joint].mean() == pytest.approx(curve, rel=0.01)


def test_friction_swells_from_tooth_to_tooth_about_its_mean() -> None:
    swell, teeth = 0.03, 24
    ripple = MeshRipple(swell, teeth, 2)
    factors: list[Array] = []
    for place in np.linspace(0.0, 2.0 * math.pi / teeth, 48, endpoint=False):
        ripple.turn_to(np.array([place, place + math.pi / teeth]))
        factors.append(ripple.swell(np.ones(2)))
    told = np.array(factors)
    np.testing.assert_allclose(told.mean(axis=0), 1.0, atol=1e-12)
    np.testing.assert_allclose(told.max(axis=0), 1.0 + swell, atol=1e-12)
    np.testing.assert_allclose(told.sum(axis=1), 2.0, atol=1e-12)  # half a tooth apart: one swells, the other shrinks


def test_teeth_brake_what_turns_under_a_steady_current() -> None:
    """J11 ddq = T - g6 dq - g4 (1 + share sin(teeth q)): what of the acceleration goes by teeth."""
    coulomb, share, teeth = 1.5, 0.03, 24
    part = {"makkar": (0.0, 60.0, 8.0, coulomb, 50.0), "coulomb": coulomb, "viscous": 1.2, "load_friction": 0.0}
    truth = dataclasses.replace(pair_truth(steps_per_tick=4, joint=part), mesh_ripple=share, mesh_teeth=teeth)
    robot = dataclasses.replace(pair_robot(), gravity=(0.0, 0.0, 0.0))
    motions = drive_open(Plant(robot, truth, "harmonic"), np.tile([0.1, -0.1], (seconds(2.0), 1)))
    q = np.array([motion.motor_position[0] for motion in motions[seconds(0.5) :: 10]])  # slower than the gear swings
    dq, ddq = (q[2:] - q[:-2]) / (20.0 * TICK), np.diff(q, 2) / (10.0 * TICK) ** 2
    columns = np.stack([np.ones_like(dq), dq, np.sin(teeth * q[1:-1]), np.cos(teeth * q[1:-1])], axis=1)
    _, _, in_phase, across = np.linalg.lstsq(columns, ddq)[0] * PAIR.inertia[0, 0]
    # 5 %: a tick's worth of delay, and the gear that gives way to what the teeth do.
    assert in_phase == pytest.approx(-share * coulomb, rel=0.05)
    assert abs(across) < 0.05 * share * coulomb


def test_halving_the_step_shifts_no_motion_in_time() -> None:
    t = TICK * np.arange(seconds(0.8))
    currents = np.stack([0.4 * np.sin(2 * math.pi * f * t) for f in (1.0, 1.3, 1.7, 2.1, 2.6, 3.1)], axis=1)
    currents *= [drive.current_limit for drive in NURSING_ARM.drives]
    paths: list[Array] = []
    for factor in (1, 2):
        truth = nursing_truth()
        truth = dataclasses.replace(truth, steps_per_tick=factor * truth.steps_per_tick)
        motions = drive_open(Plant(NURSING_ARM, truth, "harmonic"), currents)
        paths.append(np.array([motion.motor_position for motion in motions]))
    assert np.ptp(paths[1], axis=0).min() > 0.005
    assert abs(shift(paths[1], paths[0])) < 2e-6  # as test_plant.py asks of cobot6
    assert np.abs(paths[0] - paths[1]).max() < 8e-6  # two counts of a motor encoder


def test_boards_count_motors_and_bevels() -> None:
    """What a board of a pair counts: its motor, and its bevel within a turn; no link encoder, no torque sensor."""
    truth = nursing_truth()
    sensors = Sensors(NURSING_ARM, truth, "harmonic", seed=4)
    still = Plant(NURSING_ARM, truth, "harmonic").standing()
    q = np.array([0.3, -0.2, 0.1, 0.5, -0.4, 0.25])
    first, second = (
        sensors.read(dataclasses.replace(still, motor_position=position, link_position=position))
        for position in (np.zeros(6), q)
    )
    turns = NURSING_ARM.transmission_matrix @ q / (2.0 * math.pi)
    np.testing.assert_allclose(second.motor_exact - first.motor_exact, 512 * turns, rtol=1e-12)
    facts = [sensors.facts(motor) for motor in range(6)]
    zeros = np.array([fact["encoder.link_zero"] for fact in facts])
    bevel_turns = turns / 3060.0
    counts = (second.link_count - zeros + 2**18) % 2**19 - 2**18
    np.testing.assert_array_equal(counts, np.floor(bevel_turns * 2**19))
    assert {fact["drive.ratio"] for fact in facts} == {3_060_000}
    for fact in facts:
        names = {channel.name for channel in CHANNELS if fact["board.channels"] & 1 << channel.bit}
        assert {"motor_current", "motor_position", "current_command"} <= names
        assert not {"link_position", "joint_torque"} & names


def test_the_pendulum_of_a_pair_swings_by_both_rotors() -> None:
    """Small swings of the free pitch: ω² = m g r / J22, while the rotation takes part through J12."""
    robot = pair_robot()
    plant = Plant(dataclasses.replace(robot, home=(0.0, 0.02)), pair_truth(), "ideal")
    motions = drive_open(plant, np.zeros((seconds(6.0), 2)))
    pitch = np.array([motion.motor_position[1] for motion in motions])
    falling = np.flatnonzero((pitch[:-1] > 0) & (pitch[1:] <= 0))
    crossings = falling + pitch[falling] / (pitch[falling] - pitch[falling + 1])
    measured = 2.0 * math.pi / (TICK * np.diff(crossings).mean())
    inertia = PAIR.inertia
    free = inertia[1, 1] - inertia[0, 1] ** 2 / inertia[0, 0]  # nothing turns the rotation but J12
    # 0.01 %: a swing of 20 mrad is 25 ppm slower than a small one.
    assert measured == pytest.approx(math.sqrt(LOAD_MASS * GRAVITY * LOAD_RADIUS / free), rel=1e-4)


PLANT_PASSIVE_KINDS: tuple[PlantKind, ...] = ("harmonic", "ideal")
HANGING = -0.5 * math.pi


def free_pendulum(home: float) -> Robot:
    """Return the pendulum with nothing that drives it."""
    robot = pendulum_robot(home)
    joint = dataclasses.replace(robot.joints[0], passive=True)
    return dataclasses.replace(robot, joints=(joint,), drives=(Drive.none("swing"),))


def free_truth(**joint: float) -> PlantFile:
    return pendulum_truth(joint={"rotor_inertia": 0.0, "stiffness": 1e10, **joint})


def period_of(path: Array) -> float:
    """Period [s] of swings about 0, one position a tick, by linear interpolation of the falling zero crossings."""
    falling = np.flatnonzero((path[:-1] > 0) & (path[1:] <= 0))
    assert len(falling) > 3
    crossings = falling + path[falling] / (path[falling] - path[falling + 1])
    return TICK * float(np.diff(crossings).mean())


@pytest.mark.parametrize("kind", PLANT_PASSIVE_KINDS)
def test_a_passive_joint_swings_at_the_period_of_its_pendulum(kind: PlantKind) -> None:
    swing = 0.02
    plant = Plant(free_pendulum(HANGING + swing), free_truth(), kind)
    off = np.zeros(1, dtype=bool)
    path = np.array([plant.advance(off, np.zeros(1)).link_position[0] for _ in range(seconds(5.0))]) - HANGING
    expected = 2.0 * math.pi * math.sqrt(ARM_INERTIA / (MASS * GRAVITY * LENGTH))
    # A swing of 20 mrad takes swing²/16 = 25 ppm longer than a small one; the rest is interpolation.
    assert period_of(path) == pytest.approx(expected * (1.0 + swing**2 / 16.0), rel=2e-5)
    assert np.ptp(path[-1500:]) == pytest.approx(2 * swing, rel=1e-3)  # and no brake takes anything from it


def test_its_bearing_brings_it_to_rest_and_its_drive_does_nothing() -> None:
    plant = Plant(free_pendulum(HANGING + 0.3), free_truth(coulomb=0.02, viscous=0.3), "harmonic")
    motions = drive_open(plant, np.full((seconds(4.0), 1), 4.0))
    assert motions[-1].current.max() == 0.0
    assert motions[-1].motor_position[0] == pytest.approx(HANGING, abs=0.02 / (MASS * GRAVITY * LENGTH))


@pytest.fixture
def free_hand(tmp_path: Path) -> tuple[Robot, PlantFile]:
    """Robot and plant whose fifth joint has no motor."""
    folder = rehab_arm_with_a_free_hand(tmp_path).parent
    robot = load_robot(folder / "rehab_arm.toml")
    return robot, read_plant_file(folder / "plant.toml", robot)


def test_the_hand_hangs_still_at_home_and_swings_when_the_arm_moves(free_hand: tuple[Robot, PlantFile]) -> None:
    plant = Plant(*free_hand, "harmonic")
    off = np.zeros(5, dtype=bool)
    home = [plant.advance(off, np.zeros(5)).link_position[4] for _ in range(seconds(1.0))]
    assert np.abs(home).max() < math.radians(4.0)  # the hand's mass centre is 2.5° off its plane
    driven = np.array([True, False, False, False, False])
    moved = [plant.advance(driven, np.array([1.5, 0, 0, 0, 0])).link_position[4] for _ in range(seconds(0.3))]
    assert np.ptp(moved) > math.radians(5.0)


def test_a_passive_board_measures_and_drives_nothing(free_hand: tuple[Robot, PlantFile]) -> None:
    facts = Sensors(*free_hand, "harmonic", seed=1).facts(4)
    names = {channel.name for channel in CHANNELS if facts["board.channels"] & 1 << channel.bit}
    assert names == {"link_position", "bus_voltage"}
    others = Sensors(*free_hand, "harmonic", seed=1).facts(3)["board.channels"]
    assert facts["board.channels"] & others == facts["board.channels"] != others


@pytest.mark.parametrize("kind", PLANT_PASSIVE_KINDS)
def test_brakes_carry_what_springs_and_weight_leave(kind: PlantKind) -> None:
    torsion, zero, sine, sine_zero, home = 30.0, 0.4, 5.0, 1.1, -0.3
    springs = {"torsion_spring": torsion, "torsion_zero": zero, "sine_spring": sine, "sine_zero": sine_zero}
    plant = Plant(pendulum_robot(home), pendulum_truth(joint=springs), kind)
    motion = plant.advance(np.zeros(1, dtype=bool), np.zeros(1))
    q = motion.link_position[0]
    weight = MASS * GRAVITY * LENGTH * math.cos(q)
    expected = weight + torsion * (q - zero) + sine * math.sin(q - sine_zero)
    assert motion.torque[-1, 0] == pytest.approx(expected, abs=1e-6)
    assert abs(expected - weight) > 10.0


@pytest.mark.parametrize("kind", PLANT_PASSIVE_KINDS)
def test_a_torsion_spring_sets_the_period(kind: PlantKind) -> None:
    torsion = 60.0
    truth = pendulum_truth(joint={"torsion_spring": torsion, "torsion_zero": 0.2, "stiffness": 1e5})
    plant = Plant(dataclasses.replace(pendulum_robot(0.25, gravity=False)), truth, kind)
    start = plant.energy()
    motions = drive_open(plant, np.zeros((seconds(3.0), 1)))
    path = np.array([motion.link_position[0] for motion in motions]) - 0.2
    # The gear of 100 kN·m/rad lends the rotor's spring 0.03 % of its compliance, half of that in the period.
    assert period_of(path) == pytest.approx(2 * math.pi * math.sqrt((ARM_INERTIA + ROTOR_INERTIA) / torsion), rel=3e-4)
    assert plant.energy() == pytest.approx(start, abs=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("coulomb_Nm = 0.006", "coulomb_Nm = 0.006\nrotor_inertia_kg_m2 = 1e-6", r"joint 'j5': .*rotor_inertia_kg_m2"),
        ("sine_spring_Nm = 7.5", "sine_spring_Nm = -7.5", r"joint 'j2': sine_spring_Nm = -7.5 must not be below 0"),
        ("[friction]", '[friction]\nlaw = "makkar"', r"joint 'j1': .*makkar_g1_Nm"),
        ("[friction]", '[friction]\nlaw = "dahl"', r"law = 'dahl'.*stribeck.*makkar"),
    ],
)
def test_what_a_plant_file_says_wrong_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    folder = rehab_arm_with_a_free_hand(tmp_path).parent
    path = folder / "plant.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BenchFileError, match=words):
        read_plant_file(path, load_robot(folder / "rehab_arm.toml"))
