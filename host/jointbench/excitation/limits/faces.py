"""Points of a robot that must stay on one side of planes, such as the faces of a box or a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, Vector3
from jointbench.dynamics.tree import tree_of
from jointbench.excitation.limits.limit import Motion
from jointbench.excitation.limits.numbered import numbered
from jointbench.excitation.limits.reach import Reach
from jointbench.robot import Robot

_LEAST_WAY = 1e-3
"""Shortest way [m] from home to a face that usage is a share of: nearer to it, small motions would count as large."""


@dataclass(frozen=True)
class Face:
    """A plane across one of the base frame's axes, and a ball that must not pass it.

    Attributes:
        name: what both are called.
        joint: index of the joint that moves the ball.
        local: the ball's middle in the frame of that joint's link [m].
        radius: of the ball [m], 0 for a point.
        axis: of the base frame: 0, 1, 2 are x, y, z.
        side: 1 where the plane is above the ball, along the axis, -1 where it is below.
        at: where the plane is along the axis [m].
    """

    name: str
    joint: int
    local: Vector3
    radius: float
    axis: int
    side: int
    at: float


@dataclass(frozen=True, eq=False)
class FaceLimit:
    """Share of the way from home to each face: 0 at home, 1 where it is touched; above 1 where home is beyond it.

    usage = 1 - room / |room at home|, room = side * (at - position along the axis) - radius.

    Attributes:
        robot: the kinematic tree.
        home: [rad or m], shape (n_joints,).
        faces: one for each scalar.
    """

    robot: Robot
    home: Array
    faces: Sequence[Face]

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the faces, numbered where they repeat."""
        return numbered([face.name for face in self.faces])

    def usage(self, motion: Motion) -> Array:
        """Share of the way to each face, shape (n_samples, n_faces)."""
        return 1.0 - self._room(motion[0]) / self._way

    def gradient(self, motion: Motion, which: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; only positions count."""
        from jointbench.excitation.limits.kernels import add_slopes

        joints, local = self._points
        by_position, still = np.zeros(motion[0].shape), np.zeros(motion[0].shape)
        direction = self._directions[which] / self._way[which, None]
        q = np.ascontiguousarray(motion[0])
        add_slopes(tree_of(self.robot), q, joints[which], local[which], direction, by_position)
        return by_position, still, still, still

    def between(self, bounds: Array, step: float) -> Array:
        """From the largest acceleration of each point, or its speed where that says more."""
        speed, acceleration = self._reach.bounds(bounds)
        return np.minimum(step / 2.0 * speed, step * step / 8.0 * acceleration) / self._way

    def distance(self, scalar: int, usage: float) -> float:
        """Room in front of a face [m], below 0 beyond it."""
        return float((1.0 - usage) * self._way[scalar])

    def say(self, scalar: int, usage: float) -> str:
        """Such as "table under 'forearm': it reaches z = 0.0123 m, at least 0.02 m is allowed"."""
        face = self.faces[scalar]
        reached = face.at - face.side * self.distance(scalar, usage)
        return (
            f"{self.names[scalar]}: it reaches {'xyz'[face.axis]} = {reached:.6g} m, "
            f"at {'most' if face.side > 0 else 'least'} {face.at:.6g} m is allowed"
        )

    def _room(self, q: Array) -> Array:
        from jointbench.excitation.limits.kernels import place_points

        joints, local = self._points
        placed = np.empty((len(q), len(joints), 3))
        place_points(tree_of(self.robot), np.ascontiguousarray(q), joints, local, placed)
        return self._allowed - np.einsum("kia,ia->ki", placed, self._directions)

    @cached_property
    def _points(self) -> tuple[NDArray[np.int64], Array]:
        joints = np.array([face.joint for face in self.faces], dtype=np.int64)
        return joints, np.array([face.local for face in self.faces])

    @cached_property
    def _directions(self) -> Array:
        """Towards each face, shape (n_faces, 3)."""
        return np.array([np.eye(3)[face.axis] * face.side for face in self.faces])

    @cached_property
    def _allowed(self) -> Array:
        """How far along its direction each point may be [m]."""
        return np.array([face.side * face.at - face.radius for face in self.faces])

    @cached_property
    def _way(self) -> Array:
        """What counts as the way from home to each face [m]."""
        return np.maximum(np.abs(self._room(self.home[None])[0]), _LEAST_WAY)

    @cached_property
    def _reach(self) -> Reach:
        joints, local = self._points
        offset = np.sqrt(np.sum(local * local, axis=1))
        return Reach.of(self.robot, self.home, joints.tolist(), offset, [-1] * len(joints))
