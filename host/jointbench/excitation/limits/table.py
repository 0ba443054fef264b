"""The table that a robot stands on, or any other level surface: all of the robot stays above it."""

from __future__ import annotations

from jointbench.arrays import Vector3
from jointbench.excitation.limits.faces import Face

_UP = 2
_BELOW = -1


def table_faces(name: str, joint: int, ends: tuple[Vector3, ...], radius: float, height: float) -> tuple[Face, ...]:
    """Both round ends of a capsule above a table: so is all that lies between them.

    Args:
        name: what stays above it.
        joint: index of the joint that moves it.
        ends: of its axis in the frame of that joint's link [m]; one for a ball or, with radius 0, for a point.
        radius: [m].
        height: of the table, in the base frame [m].
    """
    return tuple(Face(f"table under {name}", joint, end, radius, _UP, _BELOW, height) for end in dict.fromkeys(ends))
