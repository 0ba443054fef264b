"""Feet: soles with a force sensor at each of four corners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array, Vector3
from jointbench.errors import BadFoot

CORNERS = ("front left", "front right", "rear right", "rear left")
_FLAT = 1e-3  # [m]


@dataclass(frozen=True)
class Foot:
    """A flat sole, and where its sensors are.

    Attributes:
        name: of the foot, and of the board that reads its sensors.
        joint: index of the joint that moves it; -1 for the base.
        corners: places of the sensors in the frame of that joint's link [m], in the order of CORNERS.
    """

    name: str
    joint: int
    corners: tuple[Vector3, Vector3, Vector3, Vector3]

    def __post_init__(self) -> None:
        """Refuse corners that span no sole.

        Raises:
            BadFoot: they are not flat, or do not go round it in the order of CORNERS.
        """
        corners = np.array(self.corners)
        sides = np.roll(corners, -1, axis=0) - corners
        areas = np.cross(sides, np.roll(sides, -1, axis=0))
        if not (areas @ areas.mean(axis=0) > 0.0).all():
            raise BadFoot(
                f"foot {self.name!r}: its corners go round no sole; give four in the order {', '.join(CORNERS)}"
            )
        off = float(np.abs((corners - corners.mean(axis=0)) @ self.axes[:, 2]).max())
        if off > _FLAT:
            raise BadFoot(
                f"foot {self.name!r}: its corners lie {1e3 * off:.1f} mm off a plane; a sole is flat to "
                f"{1e3 * _FLAT:g} mm"
            )

    @cached_property
    def origin(self) -> Array:
        """Middle of the corners in the link's frame [m], shape (3,)."""
        return np.array(self.corners).mean(axis=0)

    @cached_property
    def axes(self) -> Array:
        """Forward, left and up in the link's frame as columns, shape (3, 3)."""
        front_left, front_right, rear_right, rear_left = np.array(self.corners)
        forward = front_left + front_right - rear_left - rear_right
        up = np.cross(forward, front_left + rear_left - front_right - rear_right)
        x, z = forward / np.linalg.norm(forward), up / np.linalg.norm(up)
        return np.stack([x, np.cross(z, x), z], axis=1).astype(np.float64)

    @cached_property
    def points(self) -> Array:
        """The corners in the sole's plane, forward and left of its middle [m], shape (4, 2)."""
        return (np.array(self.corners) - self.origin) @ self.axes[:, :2]

    def pressure_point(self, forces: Array) -> Array:
        """Where the ground's pressure acts, forward and left of the sole's middle: sum of f_i p_i over sum of f_i [m].

        On a flat ground this is the zero-moment point.

        Args:
            forces: at the corners, normal to the sole and positive when it is pressed [N], shape (..., 4).

        Returns:
            Shape (..., 2); NaN where the forces' sum is not above zero.
        """
        total = forces.sum(axis=-1, keepdims=True)
        return np.divide(forces @ self.points, total, out=np.full((*forces.shape[:-1], 2), np.nan), where=total > 0.0)

    def distance_to_edge(self, points: Array) -> Array:
        """How far points of the sole are from its nearest edge, between the corners [m]; negative outside.

        Args:
            points: forward and left of the sole's middle [m], shape (..., 2).

        Returns:
            Shape (...).
        """
        along = np.roll(self.points, -1, axis=0) - self.points
        # The corners go round clockwise as seen from above, so that the right of each side is inside.
        inwards = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.linalg.norm(along, axis=1, keepdims=True)
        return np.asarray((points @ inwards.T - (self.points * inwards).sum(axis=1)).min(axis=-1), dtype=np.float64)
