"""Capsules of a robot that must not touch each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics.tree import tree_of
from jointbench.excitation.limits.limit import Motion
from jointbench.excitation.limits.numbered import numbered
from jointbench.excitation.limits.reach import Reach, nearest_common
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class CollisionLimit:
    """How near pairs of capsules are to each other: the distance D that their axes need, per distance d that they have.

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
        """Such as "capsules 'forearm' and 'base'"."""
        labels = numbered([repr(capsule.link) for capsule in self.robot.capsules])
        return tuple(f"capsules {labels[i]} and {labels[j]}" for i, j in self.pairs)

    def usage(self, motion: Motion) -> Array:
        """Needed per present distance of each pair's axes, shape (n_samples, n_pairs)."""
        from jointbench.excitation.limits.kernels import distances

        first, second = self._indices
        apart = np.empty((len(motion[0]), len(first)))
        distances(self._ends(motion[0]), first, second, apart)
        return np.where(apart >= self._needed, self._needed / np.maximum(apart, self._needed), self._deep(apart))

    def gradient(self, motion: Motion, which: NDArray[np.int64]) -> Motion:
        """Derivatives of the usage; only positions count.

        Of the distance, they are those with the nearest points held fast on their links: to move these along the axes
        does not change it (envelope theorem).
        """
        from jointbench.excitation.limits.kernels import add_slopes, nearest_points

        by_position, still = np.zeros(motion[0].shape), np.zeros(motion[0].shape)
        shares, apart = np.empty((len(which), 2)), np.empty((len(which), 3))
        first, second = (each[which] for each in self._indices)
        nearest_points(self._ends(motion[0]), first, second, shares, apart)
        needed = self._needed[which]
        steepness = needed / np.maximum(np.linalg.norm(apart, axis=1), needed) ** 3
        joints, local = self._axes
        for capsules, share, sign in ((first, shares[:, :1], 1.0), (second, shares[:, 1:], -1.0)):
            point = (1.0 - share) * local[2 * capsules] + share * local[2 * capsules + 1]
            direction = sign * steepness[:, None] * apart
            q = np.ascontiguousarray(motion[0])
            add_slopes(tree_of(self.robot), q, joints[2 * capsules], point, direction, by_position)
        return by_position, still, still, still

    def between(self, bounds: Array, step: float) -> Array:
        """From the largest speed and acceleration of the axes' points relative to each other, V and A.

        Two points that are x apart have usage u(|x|), and |u'| <= V / D as it falls by at most 1 / D per length. Where
        |x| >= D its slope only rises: d²u/dt² >= -|x|'' / D >= -(V² / D + A) / D; nearer, it is -(x · x)'' / (2 D²),
        which is not below that either. The usage of two capsules is the largest of all their points': it exceeds the
        larger of two samples by no more than one of these can.
        """
        speed, acceleration = (each.reshape(2, -1).sum(axis=0) for each in self._reach.bounds(bounds))
        needed = self._needed
        curvature = speed * speed / needed + acceleration
        return np.minimum(step / 2.0 * speed, step * step / 8.0 * curvature) / needed

    def distance(self, scalar: int, usage: float) -> float:
        """What the capsules are farther apart than their clearance asks for [m], below 0 where they are nearer."""
        needed = float(self._needed[scalar])
        apart = needed / usage if usage <= 1.0 else needed * max(3.0 - 2.0 * usage, 0.0) ** 0.5
        return apart - needed

    def say(self, scalar: int, usage: float) -> str:
        """Such as "capsules 'forearm' and 'base' come within 0.003 m of each other, 0.02 m must be left"."""
        gap = self.distance(scalar, usage) + self.clearance
        how = f"come within {gap:.6g} m of each other" if gap >= 0.0 else f"overlap by {-gap:.6g} m"
        return f"{self.names[scalar]} {how}, {self.clearance:.6g} m must be left between them"

    def _deep(self, apart: Array) -> Array:
        return 1.5 - 0.5 * np.square(np.minimum(apart / self._needed, 1.0))

    def _ends(self, q: Array) -> Array:
        """Ends of all axes in the base frame [m], shape (n_samples, 2 * n_capsules, 3)."""
        from jointbench.excitation.limits.kernels import place_points

        joints, local = self._axes
        placed = np.empty((len(q), len(joints), 3))
        place_points(tree_of(self.robot), np.ascontiguousarray(q), joints, local, placed)
        return placed

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
    def _needed(self) -> Array:
        """Distance D that the axes need [m], shape (n_pairs,)."""
        radii = np.array([capsule.radius for capsule in self.robot.capsules])
        first, second = self._indices
        return radii[first] + radii[second] + self.clearance

    @cached_property
    def _reach(self) -> Reach:
        """Of the firsts of all pairs, then of the seconds, each as seen from the link that carries both."""
        capsules = self.robot.capsules
        offsets = [max(math.hypot(*capsule.start), math.hypot(*capsule.end)) for capsule in capsules]
        common = [nearest_common(self.robot, capsules[i].joint, capsules[j].joint) for i, j in self.pairs]
        each = [i for i, _ in self.pairs] + [j for _, j in self.pairs]
        links = [capsules[i].joint for i in each]
        return Reach.of(self.robot, self.home, links, np.array([offsets[i] for i in each]), common + common)


def colliding_pairs(robot: Robot) -> tuple[tuple[int, int], ...]:
    """Pairs of capsules that could touch: not of one link, nor of two that a joint connects."""
    pairs: list[tuple[int, int]] = []
    for j, second in enumerate(robot.capsules):
        for i, first in enumerate(robot.capsules[:j]):
            one, other = first.joint, second.joint
            connected = (other >= 0 and robot.joints[other].parent == one) or (
                one >= 0 and robot.joints[one].parent == other
            )
            if one != other and not connected:
                pairs.append((i, j))
    return tuple(pairs)
