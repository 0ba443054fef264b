"""Plants of another make than the one that a plant file describes, and the plant of a seed."""

from dataclasses import replace
from typing import cast

import numpy as np

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.kinds import Variant
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, Scatter
from jointbench.arrays import Array, Matrix3, Vector3
from jointbench.model import Link, LinkAxis, Robot

PUBLISHED_LINKS = 0.12
"""Share of their mass that links have in the "published" variant, see `in_variant`."""


def in_variant(truth: PlantFile, robot: Robot, variant: Variant) -> PlantFile:
    """A plant of another make.

    - "frictionless": what its links are, and rotors and gears, but nothing rubs: for models of bodies alone.
    - "unmodelled": the same with effects that no candidate law contains (`unmodelled.py`).
    - "published": friction and rotors are a1 … a4 of the plant file, those that the robot's paper prints, for every
      seed: of the motor's torque a share a1 does not arrive, Coulomb a2, viscous a3, reflected rotor inertia a4. Links
      have PUBLISHED_LINKS of their masses, which the paper does not print: motors of which 20 % arrives carry no more.
      Their inertias about the mass centres stay, or gears would vibrate faster than a step of the plant follows.

    Raises:
        BenchFileError: the plant file has no published parameters, and they are asked for.
    """
    if variant == "unmodelled":
        return replace(truth, unmodelled=0)
    if variant == "frictionless":
        none = {"coulomb": 0.0, "viscous": 0.0, "stribeck": 0.0, "load_friction": 0.0, "makkar": None}
        joints = tuple(replace(part, **none, grease_drag=0.0) for part in truth.joints)
        return replace(truth, joints=joints, mesh_ripple=0.0)
    parts: list[JointTruth] = []
    for part, drive in zip(truth.joints, robot.drives, strict=True):
        if part.published is None:
            raise BenchFileError(f'variant "published": the plant file of {robot.name!r} has no published parameters')
        lost, coulomb, viscous, rotor = part.published
        link = part.link
        assert link.mass is not None
        parts.append(
            replace(
                part,
                link=replace(link, mass=PUBLISHED_LINKS * link.mass),
                lost_torque=lost,
                coulomb=coulomb,
                viscous=viscous,
                rotor_inertia=rotor / drive.ratio**2,
                stribeck=0.0,
                load_friction=0.0,
            )
        )
    return replace(truth, joints=tuple(parts), scatter=Scatter())


def true_robot(truth: PlantFile, robot: Robot) -> Robot:
    """The robot as it is: with the ratios of the plant file where these are not those of the robot's file."""
    drives = tuple(
        drive if part.ratio is None else replace(drive, ratio=part.ratio)
        for part, drive in zip(truth.joints, robot.drives, strict=True)
    )
    return replace(robot, drives=drives) if drives != robot.drives else robot


_STREAM = 0x504C414E54  # so that nothing else is drawn from the same numbers
_FARTHEST = 2.5  # standard deviations; a draw beyond is drawn back to it, so that no body is impossible


def plant_of_seed(plant: PlantFile, robot: Robot, seed: int) -> PlantFile:
    """Draw one robot of those that the file's table `drawn` describes; a file without it describes one robot only.

    A joint's draws depend on the seed and its place alone, so that a shorter chain has the same first joints.
    """
    scatter = plant.scatter
    if scatter == Scatter():
        return plant
    alike = {axis.link: (k, axis) for k, kind in enumerate(robot.link_kinds) for axis in kind.links}
    joints = tuple(
        _joint(part, joint.link.name, alike, len(alike) > 0, scatter, seed, place)
        for place, (joint, part) in enumerate(zip(robot.independent_joints, plant.joints, strict=True))
    )
    base, feet = plant.base_link, plant.feet
    if base is not None:
        base = _link(base, alike.get(base.name), bool(alike), scatter, seed, len(joints))
        feet = tuple(
            replace(foot, cable_pull=_moved(foot.cable_pull, scatter.cable_pull * _normal(seed, 2, k, 3)))
            for k, foot in enumerate(feet)
        )
    return replace(plant, joints=joints, base_link=base, feet=feet)


def _joint(
    part: JointTruth,
    link_name: str,
    alike: dict[str, tuple[int, LinkAxis]],
    has_kinds: bool,
    scatter: Scatter,
    seed: int,
    place: int,
) -> JointTruth:
    rotor, friction = 1.0 + np.array([scatter.rotor, scatter.friction]) * _normal(seed, 1, place, 2)
    makkar = part.makkar
    if makkar is not None:
        g1, g2, g3, g4, g5 = makkar
        makkar = (g1 * friction, g2, g3, g4 * friction, g5)
    return replace(
        part,
        link=_link(part.link, alike.get(link_name), has_kinds, scatter, seed, place),
        rotor_inertia=float(part.rotor_inertia * rotor),
        coulomb=float(part.coulomb * friction),
        viscous=float(part.viscous * friction),
        stribeck=float(part.stribeck * friction),
        grease_drag=float(part.grease_drag * friction),
        makkar=makkar,
        mesh_phases=_phases(seed, place),
    )


def _link(
    link: Link, kind: tuple[int, LinkAxis] | None, has_kinds: bool, scatter: Scatter, seed: int, place: int
) -> Link:
    """A link of a kind as all of its kind; one of no kind, of a robot that has some, as the file has it."""
    assert link.mass is not None  # the plant file requires every inertia
    assert link.center_of_mass is not None
    if kind is None and has_kinds:
        return link
    mass, inertia, *center = _normal(seed, *((0, place) if kind is None else (3, kind[0])), 5)
    way = scatter.center * (np.array(center) if kind is None else center[0] * kind[1].direction)
    size = (1.0 + scatter.inertia * inertia) * (1.0 + scatter.mass * mass)
    tensor = size * np.array(link.inertia_about_center_of_mass)
    rows = cast(Matrix3, tuple(tuple(row) for row in tensor.tolist()))
    return replace(
        link,
        mass=float(link.mass * (1.0 + scatter.mass * mass)),
        center_of_mass=_moved(link.center_of_mass, way),
        inertia_about_center_of_mass=rows,
    )


def _phases(seed: int, place: int) -> tuple[float, float]:
    first, second = np.random.default_rng([_STREAM, seed, 4, place]).uniform(0.0, 2.0 * np.pi, 2).tolist()
    return first, second


def _moved(place: Vector3, way: Array) -> Vector3:
    x, y, z = (np.array(place) + way).tolist()
    return (x, y, z)


def _normal(seed: int, what: int, place: int, count: int) -> Array:
    drawn = np.random.default_rng([_STREAM, seed, what, place]).standard_normal(count)
    return np.clip(drawn, -_FARTHEST, _FARTHEST)
