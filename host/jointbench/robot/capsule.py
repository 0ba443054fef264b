"""Capsules: the room that a link takes up, as the motions that are planned must know it."""

from __future__ import annotations

from dataclasses import dataclass

from jointbench.arrays import Vector3


@dataclass(frozen=True)
class Capsule:
    """All points no farther than `radius` from a segment, its axis, that is fixed to a link or to the base.

    Attributes:
        link: whose room it is: the link itself, what is fixed to it, or the base.
        joint: index of the joint that moves it; -1 for the base.
        start, end: of the axis, in the frame of that joint's link [m]; equal for a ball.
        radius: above zero [m].
    """

    link: str
    joint: int
    start: Vector3
    end: Vector3
    radius: float
