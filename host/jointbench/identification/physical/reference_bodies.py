"""For each link a body that it is compared with: what its file says it is, else one of the size of its geometry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, standard_parameters
from jointbench.robot import Link, Robot

_THINNEST = 0.05
"""A reference body is at least so thick, relative to its own or its link's size: in some files links are lines, points,
or no body at all, and what a link is measured by must not be degenerate."""

_UNKNOWN_MASS = 1.0
"""Mass of links [kg] where no link of the robot has one."""


@dataclass(frozen=True, eq=False)
class ReferenceBodies:
    """Bodies that are physically possible, one for each link with parameters.

    Attributes:
        links: indices of the links with parameters, all but the neglected ones.
        matrices: pseudo-inertia of each, positive definite, shape (len(links), 4, 4).
        nominal: which are what the robot's file says, not a guess from its geometry, shape (len(links),).
        thickened: names of the links whose nominal body is flat, or impossible, and was made thicker.
    """

    links: tuple[int, ...]
    matrices: Array
    nominal: tuple[bool, ...]
    thickened: tuple[str, ...]

    @property
    def parameters(self) -> Array:
        """Standard parameters of each, shape (len(links), 10)."""
        return standard_parameters(self.matrices)


def reference_bodies(robot: Robot) -> ReferenceBodies:
    """The bodies that the robot's file gives its links, and balls of their size for those it gives none.

    A nominal body that no density can have, or that is flat, is thickened: the second moments about its centre of mass
    get at least a share of the largest one.
    """
    links = tuple(np.flatnonzero(robot.modelled_links).tolist())
    sizes = _sizes(robot)
    masses = [link.mass for link in (joint.link for joint in robot.joints) if link.mass is not None and link.mass > 0.0]
    usual = float(np.median(masses)) if masses else _UNKNOWN_MASS
    matrices, nominal, thickened = list[Array](), list[bool](), list[str]()
    for i in links:
        link = robot.joints[i].link
        given = link.standard_parameters
        known = given is not None and bool(given[0] > 0.0)
        matrix, changed = _ball(link, usual, sizes[i]), False
        if given is not None and known:
            matrix, changed = _thick(pseudo_inertia(given), sizes[i])
        matrices.append(matrix)
        nominal.append(known)
        if changed:
            thickened.append(link.name)
    return ReferenceBodies(links, np.array(matrices).reshape(-1, 4, 4), tuple(nominal), tuple(thickened))


def _sizes(robot: Robot) -> Array:
    """Size of each link [m]: how far the farthest joint on it is, at least a fifth of what is usual of the robot."""
    reach = np.zeros(robot.n_links)
    for joint in robot.joints:
        if joint.parent >= 0:
            reach[joint.parent] = max(reach[joint.parent], float(np.linalg.norm(joint.origin)))
    usual = float(np.median(reach[reach > 0.0])) if (reach > 0.0).any() else 0.2
    return np.maximum(reach, 0.2 * usual)


def _thick(matrix: Array, size: float) -> tuple[Array, bool]:
    """The body with at least the least thickness, and whether that changed it."""
    mass = matrix[3, 3]
    center = matrix[:3, 3] / mass
    moments, axes = np.linalg.eigh(matrix[:3, :3] - mass * np.outer(center, center))
    # A thickness is the root of a moment per mass; links of files are seldom smaller than a hundredth of their reach.
    floor = max(_THINNEST**2 * float(moments[-1]), mass * (0.2 * _THINNEST * size) ** 2)
    if moments[0] >= floor:
        return matrix, False
    changed = matrix.copy()
    changed[:3, :3] = (axes * np.maximum(moments, floor)) @ axes.T + mass * np.outer(center, center)
    return changed, True


def _ball(link: Link, usual_mass: float, size: float) -> Array:
    """A ball around the link frame's origin with the link's mass where that is known."""
    mass = link.mass if link.mass is not None and link.mass > 0.0 else usual_mass
    return np.diag([mass * size**2 / 5.0] * 3 + [mass])
