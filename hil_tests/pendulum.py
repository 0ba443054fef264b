"""A robot with one joint, whose motion has closed forms: what the plant is tested against."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import Motion, Plant
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, read_plant_file
from jointbench.arrays import Array
from jointbench.model import Drive, Joint, Link, Robot, load_robot, modified_dh

COBOT6_PLANT = Path(__file__).parent / "virtual_bench" / "plants" / "cobot6.toml"
GRAVITY = 9.81
MASS, LENGTH, INERTIA = 2.0, 0.3, 0.02  # inertia about the centre of mass
ARM_INERTIA = INERTIA + MASS * LENGTH**2
RATIO, TORQUE_CONSTANT = 100.0, 0.1
ROTOR_INERTIA = 3e-5 * RATIO**2  # at the joint


def pendulum_robot(home: float = 0.0, gravity: bool = True) -> Robot:
    """Return one hinge along the base's y axis; at q = 0 the arm is level, and gravity pulls with -m g l cos q."""
    link = Link("arm", MASS, (LENGTH, 0.0, 0.0), ((INERTIA, 0.0, 0.0), (0.0, INERTIA, 0.0), (0.0, 0.0, INERTIA)))
    # alpha = 90 degrees turns the joint's y axis up and its z axis to the base's -y.
    joint = Joint("swing", "revolute", -1, *modified_dh(math.pi / 2, 0.0, 0.0, 0.0), (-9.0, 9.0), 5.0, 50.0, 50.0, link)
    drive = Drive("swing", "swing", "harmonic", RATIO, TORQUE_CONSTANT, 10.0)
    down = (0.0, 0.0, -GRAVITY if gravity else 0.0)
    return Robot("pendulum", (joint,), (drive,), (), down, (home,), "closed form", "one hinge")


def pendulum_truth(steps_per_tick: int = 2, joint: Mapping[str, float] | None = None) -> PlantFile:
    """Return its plant without friction and damping, but for what `joint` sets."""
    truth = read_plant_file(COBOT6_PLANT, load_robot("cobot6"))
    link = pendulum_robot().joints[0].link
    part = JointTruth(
        link=link, rotor_inertia=ROTOR_INERTIA / RATIO**2, coulomb=0.0, viscous=0.0, stribeck=0.0,
        stribeck_velocity=0.05, load_friction=0.0, stiffness=1e4, damping=0.0, current_range=12.5, torque_range=80.0,
    )  # fmt: skip
    part = dataclasses.replace(part, **dict(joint or {}))
    return dataclasses.replace(truth, steps_per_tick=steps_per_tick, joints=(part,))


def drive_open(plant: Plant, currents: Array) -> list[Motion]:
    """Play one row of currents [A] per tick with every drive on."""
    on = np.ones(currents.shape[1], dtype=bool)
    return [plant.advance(on, row) for row in currents]


def seconds(duration: float) -> int:
    """Ticks of a duration."""
    return round(duration / TICK)
