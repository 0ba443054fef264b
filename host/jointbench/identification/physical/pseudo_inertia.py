"""The pseudo-inertia of a body: the 4 × 4 matrix that is positive definite exactly when a body can have its parameters.

P = ∫ [r; 1] [r; 1]ᵀ dm = [[Σ, m c], [m cᵀ, m]] with Σ = ∫ r rᵀ dm = ½ tr(I) E - I: linear in the ten parameters.
A density that is nowhere negative gives a P without negative eigenvalues, and each such P belongs to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.model import Link, Robot

_ROWS = np.array([0, 0, 1, 0, 1, 2, 0, 1, 2, 3])
_COLUMNS = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
"""The upper triangle column by column: the order in which a symmetric matrix is written as a vector."""

_STRETCH = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))
"""Of each entry, so that the vector is as long as the matrix (Frobenius)."""


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """Pseudo-inertia of standard parameters about the same frame.

    Args:
        parameters: m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz [kg, kg·m, kg·m²], shape (…, 10).

    Returns:
        P, symmetric, shape (…, 4, 4).

    Source: Wensing, Kim & Slotine, IEEE RA-L 3(1), 2018.
    """
    mass, first, inertia = np.split(np.asarray(parameters, dtype=np.float64), [1, 4], axis=-1)
    xx, xy, xz, yy, yz, zz = np.moveaxis(inertia, -1, 0)
    matrix = np.empty((*mass.shape[:-1], 4, 4))
    matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 2, 2] = (yy + zz - xx) / 2, (xx + zz - yy) / 2, (xx + yy - zz) / 2
    matrix[..., 0, 1] = matrix[..., 1, 0] = -xy
    matrix[..., 0, 2] = matrix[..., 2, 0] = -xz
    matrix[..., 1, 2] = matrix[..., 2, 1] = -yz
    matrix[..., :3, 3] = matrix[..., 3, :3] = first
    matrix[..., 3, 3] = mass[..., 0]
    return matrix


def standard_parameters(matrix: Array) -> Array:
    """Standard parameters, shape (…, 10), of pseudo-inertias, shape (…, 4, 4)."""
    p = np.moveaxis(matrix, (-2, -1), (0, 1))
    first = (p[3, 3], p[0, 3], p[1, 3], p[2, 3])
    inertia = (p[1, 1] + p[2, 2], -p[0, 1], -p[0, 2], p[0, 0] + p[2, 2], -p[1, 2], p[0, 0] + p[1, 1])
    return np.stack([*first, *inertia], axis=-1)


def as_vector(matrix: Array) -> Array:
    """The ten entries of symmetric matrices, (…, 4, 4) to (…, 10), those beside the diagonal times √2."""
    return matrix[..., _ROWS, _COLUMNS] * _STRETCH


def as_matrix(vector: Array) -> Array:
    """Undo `as_vector`."""
    matrix = np.empty((*vector.shape[:-1], 4, 4))
    entries = vector / _STRETCH
    matrix[..., _ROWS, _COLUMNS] = entries
    matrix[..., _COLUMNS, _ROWS] = entries
    return matrix


def relative_to(reference: Array) -> Array:
    """The linear map from P relative to a reference body, as a vector, to the standard parameters.

    With L Lᵀ the reference, P = L P' Lᵀ; P' has no unit, does not depend on the frame but for a rotation, and is E for
    the reference itself.

    Args:
        reference: pseudo-inertia, positive definite, shape (4, 4).

    Returns:
        T of parameters = T @ as_vector(P'), shape (10, 10).
    """
    root = np.linalg.cholesky(reference)
    return standard_parameters(root @ as_matrix(np.eye(10)) @ root.T).T


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


PriorName = Literal["uniform", "observability", "log_det"]
PRIORS: tuple[PriorName, ...] = ("uniform", "observability", "log_det")

_LEAST = 1e-3
"""Least weight: many parameters are only seen together, and without one nothing would choose among them."""

UNIT = as_vector(np.eye(4))
"""A link that is its reference body."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Distance of parameters from a reference; convex, 0 where they are the same.

    Attributes:
        n_bodies: the first 10 * n_bodies parameters are links'.
        center: what was thought, shape (n,).
        weights: of the squares, shape (n,).
        log_det: whether links are measured by the log-det divergence instead.

    Source: Lee, Wensing & Park, IEEE T-RO 36(1), 2020, of both and their common second order.
    """

    n_bodies: int
    center: Array
    weights: Array
    log_det: bool

    @property
    def squares(self) -> Array:
        """Weights of the parameters that are measured by squares, 0 of the others, shape (n,)."""
        first = 10 * self.n_bodies if self.log_det else 0
        return np.concatenate([np.zeros(first), self.weights[first:]])

    def value(self, x: Array) -> float:
        """The distance, infinite where log det is not defined."""
        away = x - self.center
        total = 0.5 * float(self.squares @ away**2)
        if self.log_det:
            matrices = self._matrices(x)
            sign, logarithm = np.linalg.slogdet(matrices)
            if (sign <= 0.0).any():
                return float("inf")
            total += float(np.sum(np.trace(matrices, axis1=1, axis2=2) - logarithm - 4.0))
        return total

    def gradient(self, x: Array) -> Array:
        """Its derivatives, shape (n,)."""
        slope = self.squares * (x - self.center)
        if self.log_det:
            slope[: 10 * self.n_bodies] += as_vector(np.eye(4) - np.linalg.inv(self._matrices(x))).ravel()
        return slope

    def hessian(self, x: Array) -> Array:
        """Its second derivatives, shape (n, n)."""
        bent = np.diag(self.squares)
        if self.log_det:
            inverse = np.linalg.inv(self._matrices(x))
            directions = as_matrix(np.eye(10))
            blocks = as_vector(inverse[:, None] @ directions[None] @ inverse[:, None])
            for i, block in enumerate(blocks):
                bent[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] += block
        return bent

    def _matrices(self, x: Array) -> Array:
        return as_matrix(x[: 10 * self.n_bodies].reshape(-1, 10))


def make_prior(name: PriorName, n_bodies: int, center: Array, rows: Array) -> Prior:
    """The prior of this name.

    Args:
        name: "uniform": all parameters alike, relative to the reference; "observability": the less the more the data
            see of a parameter, w = 1 / (1 + information about it alone), at least a thousandth; "log_det".
        n_bodies: how many links there are.
        center: what was thought, shape (n,).
        rows: of the data, in σ per parameter, shape (n_rows, n).
    """
    weights = np.ones(len(center))
    if name == "observability":
        weights = np.maximum(1.0 / (1.0 + np.sum(rows**2, axis=0)), _LEAST)
    return Prior(n_bodies, center, weights, name == "log_det")
