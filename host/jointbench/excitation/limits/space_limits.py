"""Limits in space: balls that must not pass planes, and capsules that must not touch each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array, Vector3
from jointbench.excitation.limits.motion_limits import Motion
from jointbench.model import Robot
from jointbench.model.tree import tree_of

_MIN_HOME_CLEARANCE = 1e-3
"""Shortest way [m] from home to a face that usage is a share of: nearer to it, small motions would count as large."""

_UP = 2
_BELOW = -1


@dataclass(frozen=True, eq=False)
class Reach:
    """Bounds of the motion of points of links, relative to links that carry these, or to the base.

    Seen from there, joint j moves a point at most as fast as its lever, and joints j and m together accelerate it by
    at most |dq_j| |dq_m| times the lever of the outer one, if the inner one turns:

        |p'| <= Σ_j |dq_j| lever_j
        |p''| <= Σ_j |ddq_j| lever_j + Σ_j Σ_m |dq_j| |dq_m| lever_outer

    The lever of a joint that turns is the way from its origin to the point along the bodies in between, slides pulled
    out as far as they can be; that of a joint that slides is 1. All of it forgets directions, as if the arm were
    stretched out and every joint at its fastest.

    Attributes:
        robot: the kinematic tree.
        home: what positions are bounded about [rad or m], shape (n_joints,).
        carried: whether joint j moves point p as seen from there, shape (n_points, n_links).
        offset: from the link's origin to the point [m], shape (n_points,).
    """

    robot: Robot
    home: Array
    carried: NDArray[np.bool_]
    offset: Array

    @staticmethod
    def of(robot: Robot, home: Array, links: Sequence[int], offset: Array, seen_from: Sequence[int]) -> Reach:
        """Reach of points.

        Args:
            robot: the kinematic tree.
            home: [rad or m], shape (n_joints,).
            links: index of each point's link, -1 for the base.
            offset: largest distance from the link's origin [m], shape (n_points,).
            seen_from: index of a link that carries it, -1 for the base.
        """
        moves = _joints_moving_links(robot)
        carried = np.array([moves[link] & ~moves[above] for link, above in zip(links, seen_from, strict=True)])
        return Reach(robot, home, carried.reshape(len(links), robot.n_links), offset)

    def bounds(self, bounds: Array) -> tuple[Array, Array]:
        """Largest speed [m/s] and acceleration [m/s²] of the points, shape (n_points,) each.

        Args:
            bounds: largest magnitude of the derivatives 0, 1, 2 (and more) of position - home, shape (3…, n_joints).
        """
        index, factor, _ = self.robot.coordinates
        excursion, speed, acceleration = np.abs(factor) * bounds[:3, index]
        revolute = np.array([joint.kind == "revolute" for joint in self.robot.joints])
        reach = (self.carried * self._lengths(excursion)) @ self._carries_origin + self.offset[:, None]
        lever = np.where(revolute, reach, 1.0) * self.carried
        inner = self.carried * revolute * speed
        coupled_speed = 2.0 * (np.cumsum(inner, axis=1) - inner) + inner
        return lever @ speed, lever @ acceleration + np.sum(lever * speed * coupled_speed, axis=1)

    @cached_property
    def _carries_origin(self) -> NDArray[np.bool_]:
        """True where joint j carries the origin of link i without being located there, shape (n_links, n_links)."""
        return _joints_moving_links(self.robot)[:-1] & ~np.eye(self.robot.n_links, dtype=np.bool_)

    def _lengths(self, excursion: Array) -> Array:
        """Largest distance of each body's origin from its parent's [m], shape (n_links,)."""
        at_home = self.robot.all_positions(self.home[None])[0]
        lengths: list[float] = []
        for joint, position, largest_excursion in zip(
            self.robot.joints, at_home.tolist(), excursion.tolist(), strict=True
        ):
            rotation, origin = joint.placement
            slide = rotation @ joint.axis * (joint.kind == "prismatic")
            # The distance is a convex function of the position: largest at one end.
            lengths.append(
                max(
                    float(np.linalg.norm(origin + (position + side) * slide))
                    for side in (-largest_excursion, largest_excursion)
                )
            )
        return np.array(lengths)


def _joints_moving_links(robot: Robot) -> NDArray[np.bool_]:
    """True where joint j moves link i, shape (n_links + 1, n_links); the last row, False throughout, is the base."""
    moves = np.zeros((robot.n_links + 1, robot.n_links), dtype=np.bool_)
    for i, joint in enumerate(robot.joints):
        moves[i] = moves[joint.parent]
        moves[i, i] = True
    return moves


def last_common_link(robot: Robot, first: int, second: int) -> int:
    """Index of the outermost link that carries both links (or is one of them), -1 for the base."""
    common = np.flatnonzero(_joints_moving_links(robot)[first] & _joints_moving_links(robot)[second])
    return int(common[-1]) if len(common) else -1


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names, those that repeat an earlier one with " (2)", " (3)" and so on behind them.

    >>> unique_names(["base", "arm", "arm"])
    ('base', 'arm', 'arm (2)')
    """
    occurrences = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return tuple(
        name if occurrence == 1 else f"{name} ({occurrence})"
        for name, occurrence in zip(names, occurrences, strict=True)
    )


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

    usage = 1 - clearance / |clearance at home|, clearance = side * (at - position along the axis) - radius.

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
        return unique_names([face.name for face in self.faces])

    def usage(self, motion: Motion) -> Array:
        """Share of the way to each face, shape (n_samples, n_faces)."""
        return 1.0 - self._clearance(motion[0]) / self._home_clearance

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; only positions count."""
        from jointbench.excitation.limits.kernels import add_point_gradients

        joints, local = self._points
        by_position, zeros = np.zeros(motion[0].shape), np.zeros(motion[0].shape)
        direction = self._directions[scalars] / self._home_clearance[scalars, None]
        q = np.ascontiguousarray(motion[0])
        add_point_gradients(tree_of(self.robot), q, joints[scalars], local[scalars], direction, by_position)
        return by_position, zeros, zeros, zeros

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        """Bound by the largest acceleration of each point, or by its speed where that is tighter."""
        speed, acceleration = self._reach.bounds(bounds)
        return np.minimum(step / 2.0 * speed, step * step / 8.0 * acceleration) / self._home_clearance

    def distance(self, scalar: int, usage: float) -> float:
        """Clearance in front of a face [m], below 0 beyond it."""
        return float((1.0 - usage) * self._home_clearance[scalar])

    def describe(self, scalar: int, usage: float) -> str:
        """Describe it, such as "table under 'forearm': it reaches z = 0.0123 m, at least 0.02 m is allowed"."""
        face = self.faces[scalar]
        reached = face.at - face.side * self.distance(scalar, usage)
        return (
            f"{self.names[scalar]}: it reaches {'xyz'[face.axis]} = {reached:.6g} m, "
            f"at {'most' if face.side > 0 else 'least'} {face.at:.6g} m is allowed"
        )

    def _clearance(self, q: Array) -> Array:
        from jointbench.excitation.limits.kernels import place_points

        joints, local = self._points
        positions = np.empty((len(q), len(joints), 3))
        place_points(tree_of(self.robot), np.ascontiguousarray(q), joints, local, positions)
        return self._allowed - np.einsum("kia,ia->ki", positions, self._directions)

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
        """Largest coordinate of each point along its direction [m]."""
        return np.array([face.side * face.at - face.radius for face in self.faces])

    @cached_property
    def _home_clearance(self) -> Array:
        """Clearance from each face at home [m], at least the minimum that usage is a share of."""
        return np.maximum(np.abs(self._clearance(self.home[None])[0]), _MIN_HOME_CLEARANCE)

    @cached_property
    def _reach(self) -> Reach:
        joints, local = self._points
        offset = np.sqrt(np.sum(local * local, axis=1))
        return Reach.of(self.robot, self.home, joints.tolist(), offset, [-1] * len(joints))


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


def faces_of_box(box: PlacedBox) -> tuple[Face, ...]:
    """The faces that a box has."""
    return tuple(
        Face(f"{corner_name} {'xyz'[axis]} of point {box.point!r}", box.joint, box.local, 0.0, axis, side, corner[axis])
        for side, corner_name, corner in ((-1, "lowest", box.lowest), (1, "highest", box.highest))
        for axis in range(3)
        if math.isfinite(corner[axis])
    )


def faces_above_table(
    name: str, joint: int, ends: tuple[Vector3, ...], radius: float, height: float
) -> tuple[Face, ...]:
    """Both round ends of a capsule above a table: so is all that lies between them.

    Args:
        name: what stays above it.
        joint: index of the joint that moves it.
        ends: of its axis in the frame of that joint's link [m]; one for a ball or, with radius 0, for a point.
        radius: [m].
        height: of the table, in the base frame [m].
    """
    return tuple(Face(f"table under {name}", joint, end, radius, _UP, _BELOW, height) for end in dict.fromkeys(ends))


@dataclass(frozen=True, eq=False)
class CollisionLimit:
    """Distance of pairs of capsules: the distance D that their axes require, per distance d that they have.

    usage = D / d where d >= D, and (3 - (d / D)²) / 2 where they are nearer, which continues the former with the same
    slope and is smooth and finite where axes cross. D is the sum of the radii and the clearance.

    Attributes:
        robot: its capsules.
        home: [rad or m], shape (n_joints,).
        pairs: of indices of capsules, one pair for each scalar.
        clearance: that is to be left between capsules [m].
    """

    robot: Robot
    home: Array
    pairs: Sequence[tuple[int, int]]
    clearance: float

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pairs, such as "capsules 'forearm' and 'base'"."""
        labels = unique_names([repr(capsule.link) for capsule in self.robot.capsules])
        return tuple(f"capsules {labels[i]} and {labels[j]}" for i, j in self.pairs)

    def usage(self, motion: Motion) -> Array:
        """Needed per present distance of each pair's axes, shape (n_samples, n_pairs)."""
        from jointbench.excitation.limits.kernels import distances

        first, second = self._indices
        separation = np.empty((len(motion[0]), len(first)))
        distances(self._axis_ends(motion[0]), first, second, separation)
        return np.where(
            separation >= self._required_distance,
            self._required_distance / np.maximum(separation, self._required_distance),
            self._overlap_usage(separation),
        )

    def gradient(self, motion: Motion, scalars: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; only positions count.

        Of the distance, they are those with the nearest points held fast on their links: to move these along the axes
        does not change it (envelope theorem).
        """
        from jointbench.excitation.limits.kernels import add_point_gradients, nearest_points

        by_position, zeros = np.zeros(motion[0].shape), np.zeros(motion[0].shape)
        shares, separation = np.empty((len(scalars), 2)), np.empty((len(scalars), 3))
        first, second = (indices[scalars] for indices in self._indices)
        nearest_points(self._axis_ends(motion[0]), first, second, shares, separation)
        required_distance = self._required_distance[scalars]
        gradient_per_separation = (
            required_distance / np.maximum(np.linalg.norm(separation, axis=1), required_distance) ** 3
        )
        joints, local = self._axes
        for capsules, share, sign in ((first, shares[:, :1], 1.0), (second, shares[:, 1:], -1.0)):
            point = (1.0 - share) * local[2 * capsules] + share * local[2 * capsules + 1]
            direction = sign * gradient_per_separation[:, None] * separation
            q = np.ascontiguousarray(motion[0])
            add_point_gradients(tree_of(self.robot), q, joints[2 * capsules], point, direction, by_position)
        return by_position, zeros, zeros, zeros

    def intersample_bound(self, bounds: Array, step: float) -> Array:
        """Bound by the largest speed and acceleration of the axes' points relative to each other, V and A.

        Two points that are x apart have usage u(|x|), and |u'| <= V / D as it falls by at most 1 / D per length. Where
        |x| >= D its slope only rises: d²u/dt² >= -|x|'' / D >= -(V² / D + A) / D; nearer, it is -(x · x)'' / (2 D²),
        which is not below that either. The usage of two capsules is the largest of all their points': it exceeds the
        larger of two samples by no more than one of these can.
        """
        speed, acceleration = (
            bounds_of_points.reshape(2, -1).sum(axis=0) for bounds_of_points in self._reach.bounds(bounds)
        )
        required_distance = self._required_distance
        curvature = speed * speed / required_distance + acceleration
        return np.minimum(step / 2.0 * speed, step * step / 8.0 * curvature) / required_distance

    def distance(self, scalar: int, usage: float) -> float:
        """Distance of the capsules beyond their clearance [m], below 0 where they are nearer."""
        required_distance = float(self._required_distance[scalar])
        separation = (
            required_distance / usage if usage <= 1.0 else required_distance * max(3.0 - 2.0 * usage, 0.0) ** 0.5
        )
        return separation - required_distance

    def describe(self, scalar: int, usage: float) -> str:
        """Describe it, such as "capsules 'forearm' and 'base' come within 0.003 m of each other, 0.02 m must be …"."""
        gap = self.distance(scalar, usage) + self.clearance
        verb = f"come within {gap:.6g} m of each other" if gap >= 0.0 else f"overlap by {-gap:.6g} m"
        return f"{self.names[scalar]} {verb}, {self.clearance:.6g} m must be left between them"

    def _overlap_usage(self, separation: Array) -> Array:
        return 1.5 - 0.5 * np.square(np.minimum(separation / self._required_distance, 1.0))

    def _axis_ends(self, q: Array) -> Array:
        """Ends of all axes in the base frame [m], shape (n_samples, 2 * n_capsules, 3)."""
        from jointbench.excitation.limits.kernels import place_points

        joints, local = self._axes
        positions = np.empty((len(q), len(joints), 3))
        place_points(tree_of(self.robot), np.ascontiguousarray(q), joints, local, positions)
        return positions

    @cached_property
    def _axes(self) -> tuple[NDArray[np.int64], Array]:
        """Joint and place in its link's frame [m] of all ends."""
        capsules = self.robot.capsules
        joints = np.repeat(np.array([capsule.joint for capsule in capsules], dtype=np.int64), 2)
        return joints, np.array([end for capsule in capsules for end in (capsule.start, capsule.end)])

    @cached_property
    def _indices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, second = np.array(self.pairs, dtype=np.int64).T
        return np.ascontiguousarray(first), np.ascontiguousarray(second)

    @cached_property
    def _required_distance(self) -> Array:
        """Distance D that the axes need [m], shape (n_pairs,)."""
        radii = np.array([capsule.radius for capsule in self.robot.capsules])
        first, second = self._indices
        return radii[first] + radii[second] + self.clearance

    @cached_property
    def _reach(self) -> Reach:
        """Reach of the first of all pairs, then of the second, each relative to the link that carries both."""
        capsules = self.robot.capsules
        offsets = [max(math.hypot(*capsule.start), math.hypot(*capsule.end)) for capsule in capsules]
        common = [last_common_link(self.robot, capsules[i].joint, capsules[j].joint) for i, j in self.pairs]
        members = [i for i, _ in self.pairs] + [j for _, j in self.pairs]
        links = [capsules[i].joint for i in members]
        return Reach.of(self.robot, self.home, links, np.array([offsets[i] for i in members]), common + common)


def colliding_pairs(robot: Robot) -> tuple[tuple[int, int], ...]:
    """Pairs of capsules that could touch: not of one link, nor of two that a joint connects."""
    pairs: list[tuple[int, int]] = []
    for j, second in enumerate(robot.capsules):
        for i, first in enumerate(robot.capsules[:j]):
            first_joint, second_joint = first.joint, second.joint
            connected = (second_joint >= 0 and robot.joints[second_joint].parent == first_joint) or (
                first_joint >= 0 and robot.joints[first_joint].parent == second_joint
            )
            if first_joint != second_joint and not connected:
                pairs.append((i, j))
    return tuple(pairs)
