"""Joints without drives, and springs: free swings and rests in closed form."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from hil_tests.pendulum import (
    ARM_INERTIA,
    COBOT6_PLANT,
    GRAVITY,
    LENGTH,
    MASS,
    ROTOR_INERTIA,
    drive_open,
    pendulum_robot,
    pendulum_truth,
    seconds,
)
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.model import TICK, PlantKind
from hil_tests.virtual_bench.plant import Plant
from hil_tests.virtual_bench.plant_file import PlantFile, read_plant_file
from hil_tests.virtual_bench.sensors import Sensors
from jointbench.arrays import Array
from jointbench.robot import Drive, Robot, load_robot
from jointwire import CHANNELS

KINDS: tuple[PlantKind, ...] = ("harmonic", "ideal")
REHAB_PLANT = COBOT6_PLANT.parent / "rehab_arm.toml"
REHAB_ARM = load_robot("rehab_arm")
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


@pytest.mark.parametrize("kind", KINDS)
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


def rehab_truth() -> PlantFile:
    return read_plant_file(REHAB_PLANT, REHAB_ARM)


def test_the_hand_hangs_still_at_home_and_swings_when_the_arm_moves() -> None:
    plant = Plant(REHAB_ARM, rehab_truth(), "harmonic")
    off = np.zeros(5, dtype=bool)
    home = [plant.advance(off, np.zeros(5)).link_position[4] for _ in range(seconds(1.0))]
    assert np.abs(home).max() < math.radians(4.0)  # the hand's mass centre is 2.5° off its plane
    driven = np.array([True, False, False, False, False])
    moved = [plant.advance(driven, np.array([1.5, 0, 0, 0, 0])).link_position[4] for _ in range(seconds(0.3))]
    assert np.ptp(moved) > math.radians(5.0)


def test_a_passive_board_measures_and_drives_nothing() -> None:
    facts = Sensors(REHAB_ARM, rehab_truth(), "harmonic", seed=1).facts(4)
    names = {channel.name for channel in CHANNELS if facts["board.channels"] & 1 << channel.bit}
    assert names == {"link_position", "bus_voltage"}
    others = Sensors(REHAB_ARM, rehab_truth(), "harmonic", seed=1).facts(3)["board.channels"]
    assert facts["board.channels"] & others == facts["board.channels"] != others


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS)
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
        ("sine_spring_Nm = 7.5", "sine_spring_Nm = -7.5", r"joint 'j2': sine_spring_Nm = -7.5 must not be negative"),
        ("[friction]", '[friction]\nlaw = "makkar"', r"joint 'j1': .*makkar_g1_Nm"),
        ("[friction]", '[friction]\nlaw = "dahl"', r"law = 'dahl'.*stribeck.*makkar"),
    ],
)
def test_what_a_plant_file_says_wrong_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = REHAB_PLANT.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / "plant.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BenchFileError, match=words):
        read_plant_file(path, REHAB_ARM)
