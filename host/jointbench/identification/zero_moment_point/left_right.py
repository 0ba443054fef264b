"""Left is right: which links of a biped are mirror images of others, and what that makes of their parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import forward_kinematics
from jointbench.errors import NotMirrored
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, standard_parameters
from jointbench.robot import Robot

_SAME_LINE = 1e-6
"""How far a joint's axis may be from the image of the other leg's [m, and as a sine]: robot files are exact."""


class MirrorImage(NamedTuple):
    """A link whose body is the mirror image of another's.

    Attributes:
        link, source: indices of both among the base's link and then each joint's.
        turn: its ten standard parameters are turn @ those of the source, shape (10, 10).
    """

    link: int
    source: int
    turn: Array


def mirror_images(robot: Robot) -> tuple[MirrorImage, ...]:
    """Links of the swing leg as mirror images of the support leg's: P = M P_source Mᵀ of pseudo-inertias.

    From foot to foot the k-th link mirrors the k-th last, and the one in the middle none. In the posture where all
    joints are at zero the plane lies half way between that link's two joints, across the line from one to the other.

    Args:
        robot: its base is the foot it stands on, its other foot the end of its only chain of links.

    Raises:
        NotMirrored: there is no such chain, or a joint's axis has no mirror image; names it.
    """
    if robot.n_links % 2 or [joint.parent for joint in robot.joints] != list(range(-1, robot.n_links - 1)):
        raise NotMirrored(
            f"robot {robot.name!r} is not one chain from foot to foot with a link in the middle: its legs cannot be "
            f"compared; take left_is_right=False"
        )
    places = _places(robot)
    middle = robot.n_links // 2
    axis = places[middle, :3, :3] @ robot.joints[middle - 1].axis
    here, there = places[middle : middle + 2, :3, 3]
    across = there - here - axis * (axis @ (there - here))
    distance = float(np.linalg.norm(across))
    if distance < _SAME_LINE:
        names = [joint.name for joint in robot.joints[middle - 1 : middle + 1]]
        raise NotMirrored(
            f"robot {robot.name!r}: joints {names[0]!r} and {names[1]!r} on its middle link are on one line, which "
            f"tells no plane between its legs; take left_is_right=False"
        )
    normal = across / distance
    mirror = np.eye(4)
    mirror[:3, :3] -= 2.0 * np.outer(normal, normal)
    mirror[:3, 3] = normal * (normal @ (2.0 * here + across))
    _check(robot, places, mirror)
    images: list[MirrorImage] = []
    for source in range(len(places) // 2):
        link = len(places) - 1 - source
        moved = np.linalg.inv(places[link]) @ mirror @ places[source]
        turn = standard_parameters(moved @ pseudo_inertia(np.eye(10)) @ moved.T).T
        images.append(MirrorImage(link, source, turn))
    return tuple(images)


def _places(robot: Robot) -> Array:
    """Frames of the base's link and of each joint's where all joints are at zero, shape (1 + n_links, 4, 4)."""
    rotations, origins = forward_kinematics(robot, np.zeros((1, robot.n_joints)))
    places = np.tile(np.eye(4), (1 + robot.n_links, 1, 1))
    places[1:, :3, :3], places[1:, :3, 3] = rotations[0], origins[0]
    return places


def _check(robot: Robot, places: Array, mirror: Array) -> None:
    """Refuse legs whose joints are not on mirrored axes."""
    axes = np.array([place[:3, :3] @ joint.axis for place, joint in zip(places[1:], robot.joints, strict=True)])
    for first in reversed(range(robot.n_links // 2)):  # outwards, as a wrong joint moves those beyond it
        last = robot.n_links - 1 - first
        axis = mirror[:3, :3] @ axes[first]
        away = mirror[:3, :3] @ places[1 + first, :3, 3] + mirror[:3, 3] - places[1 + last, :3, 3]
        off = max(np.linalg.norm(np.cross(axis, axes[last])), np.linalg.norm(np.cross(axis, away)))
        if off > _SAME_LINE:
            names = robot.joints[first].name, robot.joints[last].name
            raise NotMirrored(
                f"robot {robot.name!r}: the axis of {names[1]!r} is not the mirror image of that of {names[0]!r}, off "
                f"by {off:.2g} (m, or as a sine); correct the robot's file, or take left_is_right=False"
            )
