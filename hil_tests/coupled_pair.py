"""A robot of one bevel differential, whose motion has closed forms: what the coupled plant is tested against."""

import dataclasses
from collections.abc import Mapping

from hil_tests.pendulum import GRAVITY, pendulum_truth
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile
from jointbench.robot import Coupling, Drive, Joint, Link, Robot, modified_dh

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
