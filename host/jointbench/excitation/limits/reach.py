"""How fast points of a robot can be, and how fast that can change, from how fast its joints can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class Reach:
    """What moves points of links as seen from other links that carry these, or from the base.

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
        moves = _moves(robot)
        carried = np.array([moves[link] & ~moves[above] for link, above in zip(links, seen_from, strict=True)])
        return Reach(robot, home, carried.reshape(len(links), robot.n_links), offset)

    def bounds(self, bounds: Array) -> tuple[Array, Array]:
        """Largest speed [m/s] and acceleration [m/s²] of the points, shape (n_points,) each.

        Args:
            bounds: largest magnitude of the derivatives 0, 1, 2 (and more) of position - home, shape (3…, n_joints).
        """
        index, factor, _ = self.robot.coordinates
        excursion, speed, acceleration = np.abs(factor) * bounds[:3, index]
        turns = np.array([joint.kind == "revolute" for joint in self.robot.joints])
        way = (self.carried * self._lengths(excursion)) @ self._beyond + self.offset[:, None]
        lever = np.where(turns, way, 1.0) * self.carried
        inner = self.carried * turns * speed
        together = 2.0 * (np.cumsum(inner, axis=1) - inner) + inner
        return lever @ speed, lever @ acceleration + np.sum(lever * speed * together, axis=1)

    @cached_property
    def _beyond(self) -> NDArray[np.bool_]:
        """Whether joint j carries the origin of link i, and does not sit there, shape (n_links, n_links)."""
        return _moves(self.robot)[:-1] & ~np.eye(self.robot.n_links, dtype=np.bool_)

    def _lengths(self, excursion: Array) -> Array:
        """Largest distance of each body's origin from its parent's [m], shape (n_links,)."""
        at_home = self.robot.all_positions(self.home[None])[0]
        lengths: list[float] = []
        for joint, position, moved in zip(self.robot.joints, at_home.tolist(), excursion.tolist(), strict=True):
            rotation, origin = joint.placement
            slide = rotation @ joint.axis * (joint.kind == "prismatic")
            # The distance is a convex function of the position: largest at one end.
            lengths.append(max(float(np.linalg.norm(origin + (position + side) * slide)) for side in (-moved, moved)))
        return np.array(lengths)


def _moves(robot: Robot) -> NDArray[np.bool_]:
    """Whether joint j moves link i, shape (n_links + 1, n_links); nothing moves the base, the last row."""
    moves = np.zeros((robot.n_links + 1, robot.n_links), dtype=np.bool_)
    for i, joint in enumerate(robot.joints):
        moves[i] = moves[joint.parent]
        moves[i, i] = True
    return moves


def nearest_common(robot: Robot, first: int, second: int) -> int:
    """Index of the outermost link that carries both links (or is one of them), -1 for the base."""
    common = np.flatnonzero(_moves(robot)[first] & _moves(robot)[second])
    return int(common[-1]) if len(common) else -1
