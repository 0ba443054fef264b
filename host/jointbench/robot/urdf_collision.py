"""The shapes of a URDF's <collision>, each put into the capsule that contains it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.robot.element import Element


@dataclass(frozen=True, eq=False)
class Around:
    """A capsule about the origin of a shape: half of its axis [m], shape (3,), and its radius [m], 0 for nothing."""

    half: Array
    radius: float


def capsule_around(collision: Element) -> Around | None:
    """The capsule that contains the shape of a <collision>; None for a mesh, which is not opened.

    A ball and a capsule are themselves; a cylinder's capsule has round ends beyond its flat ones; a box's has its axis
    along the longest edge and passes through all corners.

    Raises:
        RobotFileError: it has no shape, or one whose size is missing, mistyped or negative.
    """
    geometry = collision.needed("geometry")
    if (ball := geometry.child("sphere")) is not None:
        return Around(np.zeros(3), _size(ball, "radius"))
    for tag in ("cylinder", "capsule"):
        if (round_one := geometry.child(tag)) is not None:
            return Around(np.array([0.0, 0.0, _size(round_one, "length") / 2.0]), _size(round_one, "radius"))
    if (box := geometry.child("box")) is not None:
        box.text("size")  # a box of no size is a mistake, not nothing
        edges = np.array(box.vector("size", (0.0, 0.0, 0.0)))
        if edges.min() < 0.0:
            box.fault(f"size = {edges.min():g} must not be below 0")
        longest = int(np.argmax(edges))
        across = np.delete(edges, longest)
        return Around(np.eye(3)[longest] * edges[longest] / 2.0, math.hypot(*across.tolist()) / 2.0)
    if geometry.child("mesh") is None:
        geometry.fault("has none of <sphere>, <cylinder>, <capsule>, <box> and <mesh>; add the shape")
    return None


def _size(shape: Element, attribute: str) -> float:
    value = shape.number(attribute)
    if value < 0.0:
        shape.fault(f"{attribute} = {value:g} must not be below 0")
    return value
