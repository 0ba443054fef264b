"""Cartesian boxes for points of a robot."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jointbench.arrays import Vector3
from jointbench.excitation.limits.faces import Face


@dataclass(frozen=True)
class PlacedBox:
    """A point of a robot and the box in which it must stay.

    Attributes:
        point: what it is called.
        joint: index of the joint that moves it.
        local: the point in the frame of that joint's link [m].
        lowest, highest: corners of the box in the base frame [m]; infinite where there is no face.
    """

    point: str
    joint: int
    local: Vector3
    lowest: Vector3
    highest: Vector3


def box_faces(box: PlacedBox) -> tuple[Face, ...]:
    """The faces that a box has."""
    return tuple(
        Face(f"{word} {'xyz'[axis]} of point {box.point!r}", box.joint, box.local, 0.0, axis, side, corner[axis])
        for side, word, corner in ((-1, "lowest", box.lowest), (1, "highest", box.highest))
        for axis in range(3)
        if math.isfinite(corner[axis])
    )
