"""The plant of a seed: bodies, motors and friction that differ from the plant file's by what the file says."""

from dataclasses import replace
from typing import cast

import numpy as np

from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile, Scatter
from jointbench.arrays import Array, Matrix3, Vector3
from jointbench.robot import Link, LinkAxis, Robot

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
