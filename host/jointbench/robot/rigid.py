"""Rigid bodies put together: links that are fixed to each other are one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import IDENTITY, Array, Matrix3, Vector3
from jointbench.robot.joint import as_matrix
from jointbench.robot.link import Link


@dataclass(frozen=True)
class Placed:
    """A link somewhere on another one: rotation and origin [m] of its frame in the other's."""

    link: Link
    rotation: Matrix3
    origin: Vector3


def joined(link: Link, parts: Sequence[Placed]) -> Link:
    """A link with others fixed to it, as one link in its own frame; parts without inertia add nothing.

    Masses and first moments add; inertias do about the common centre of mass, by the parallel-axis theorem.
    """
    bodies = [_body(each) for each in (Placed(link, IDENTITY, (0.0, 0.0, 0.0)), *parts) if each.link.mass is not None]
    if not bodies or (len(bodies) == 1 and link.mass is not None):
        return link
    mass = sum(body[0] for body in bodies)
    center = sum(body[0] * body[1] for body in bodies) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part_mass, part_center, part_inertia in bodies:
        arm = part_center - center
        inertia += part_inertia + part_mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assumed = link.assumed or any(part.link.assumed for part in parts)
    x, y, z = np.asarray(center).tolist()
    return replace(
        link,
        mass=float(mass),
        center_of_mass=(x, y, z),
        inertia_about_center_of_mass=as_matrix(inertia),
        assumed=assumed,
    )


def _body(placed: Placed) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it in the frame that it is placed in."""
    link, rotation = placed.link, np.array(placed.rotation)
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        raise ValueError(f"link {link.name!r} has no inertia")
    center = np.array(placed.origin) + rotation @ link.center_of_mass
    return link.mass, center, rotation @ np.array(link.inertia_about_center_of_mass) @ rotation.T
