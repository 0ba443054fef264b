"""What is thought of a robot's parameters before the data speak: its file's values, each with a σ by its kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, known_beside_links
from jointbench.errors import FitError
from jointbench.identification.least_squares.triangles import Triangles
from jointbench.identification.physical.reference_bodies import reference_bodies
from jointbench.robot import PARAMETER_NAMES, Robot

_WIDTH = len(PARAMETER_NAMES)
_SMALL = 1e-12

_TOLD_BY_PRIOR = 0.5
"""Share of its prior variance above which a parameter is what was thought of it rather than what was measured."""


@dataclass(frozen=True)
class RelativeSigma:
    """How far the parameters may be from what is thought of them, one σ, relative to the size of each.

    Attributes:
        mass: of a link, to its mass.
        first_moment: to its mass times its size, which is the root mean square distance of its mass from its frame.
        inertia: to its mass times its size squared.
        drive: to the drive's own value where the robot's file gives one; else, as of compensations, to what alone would
            make up the joint's torque, around zero.
    """

    mass: float
    first_moment: float
    inertia: float
    drive: float

    def __post_init__(self) -> None:
        """Refuse what is no σ; infinite is one."""
        for name, value in vars(self).items():
            if not value > 0.0:
                raise FitError(f"{name} = {value!r} must be above 0, as a share of the parameter's size (inf: unknown)")


@dataclass(frozen=True, eq=False)
class ParameterPrior:
    """Full parameters and their σ, independent of each other.

    Attributes:
        values: shape (n_full,).
        sigma: infinite where nothing is thought, shape (n_full,).
        guessed: names of the links that the robot's file says nothing of; a ball of the link's size stands for each.
    """

    values: Array
    sigma: Array
    guessed: tuple[str, ...]

    def rows(self, base: BaseParameters) -> Array:
        """The same of base parameters: rows [R | R b] of unit σ, so that |R (base - b)|² is their chi-square.

        K pi has the covariance K S Kᵀ. What an unknown parameter has a share in is unknown in that direction: R holds
        only the directions in which it has none.
        """
        known = np.isfinite(self.sigma)
        kept = _complement(base.grouping[:, ~known])
        spread = kept.T @ base.grouping[:, known] * self.sigma[known]
        size = np.linalg.norm(spread, axis=1)
        upper = np.asarray(np.linalg.qr((spread / size[:, None]).T, mode="r"))
        root = np.linalg.solve(upper.T, (kept / size).T)
        return np.column_stack([root, root @ (base.grouping[:, known] @ self.values[known])])

    def told(self, base: BaseParameters, covariance: Array) -> tuple[str, ...]:
        """Base parameters that the prior tells more than the data: less than half their variance is gone."""
        with np.errstate(invalid="ignore"):
            before = np.where(base.grouping != 0.0, base.grouping**2 * self.sigma**2, 0.0).sum(axis=1)
        after = np.diag(covariance)
        more = np.isfinite(before) & (after > _TOLD_BY_PRIOR * before)
        return tuple(name for name, which in zip(base.leading_names, more, strict=True) if which)


def _complement(columns: Array) -> Array:
    """Orthonormal directions in which none of the columns has a share, shape (rank, n)."""
    present = columns[:, np.any(columns != 0.0, axis=0)]
    if not present.shape[1]:
        return np.eye(len(columns))
    u, s, _ = np.linalg.svd(present)
    return np.asarray(u[:, int(np.sum(s > _SMALL * s[0])) :], dtype=np.float64)


def parameter_prior(base: BaseParameters, relative: RelativeSigma, triangles: Triangles) -> ParameterPrior:
    """The prior of a robot's links, drives and compensations.

    Args:
        base: of the robot.
        relative: σ by kind.
        triangles: of the rows, from which the size of friction is taken where the file does not give it.
    """
    robot = base.robot
    links = link_prior(robot, relative)
    values, sigma = np.zeros(base.n_full), np.full(base.n_full, np.inf)
    values[: len(links.values)], sigma[: len(links.sigma)] = links.values, links.sigma
    first = _WIDTH * robot.n_links
    known = known_beside_links(robot)
    values[first:] = np.nan_to_num(known)
    sizes = np.where(np.nan_to_num(known) != 0.0, np.abs(np.nan_to_num(known)), drive_sizes(base, triangles))
    sigma[first:] = relative.drive * np.where(np.isfinite(sizes), sizes, 1.0)
    sigma[first:][~np.isfinite(sizes)] = np.inf
    return ParameterPrior(values, sigma, links.guessed)


def link_prior(robot: Robot, relative: RelativeSigma) -> ParameterPrior:
    """The prior of the links alone, ten parameters each; infinite σ of neglected ones."""
    bodies = reference_bodies(robot)
    values, sigma = np.zeros(_WIDTH * robot.n_links), np.full(_WIDTH * robot.n_links, np.inf)
    for link, reference, matrix in zip(bodies.links, bodies.parameters, bodies.matrices, strict=True):
        part = slice(_WIDTH * link, _WIDTH * (link + 1))
        given = robot.joints[link].link.standard_parameters
        values[part] = reference if given is None else given
        mass, size = matrix[3, 3], np.sqrt(np.trace(matrix[:3, :3]) / matrix[3, 3])
        sigma[part] = mass * np.concatenate(
            [[relative.mass], [relative.first_moment * size] * 3, [relative.inertia * size**2] * 6]
        )
    guessed = tuple(
        robot.joints[link].link.name for link, nominal in zip(bodies.links, bodies.nominal, strict=True) if not nominal
    )
    return ParameterPrior(values, sigma, guessed)


def drive_sizes(base: BaseParameters, triangles: Triangles) -> Array:
    """Of each parameter behind the links' what alone would make up the torque where it acts, else infinite.

    Root mean square torque over root mean square column, shape (n_full - 10 * n_links,).
    """
    columns = np.linalg.norm(triangles.matrices[:, :, :-1], axis=1)
    torques = np.linalg.norm(triangles.matrices[:, :, -1], axis=1)
    sizes = np.full(base.n_full - _WIDTH * base.robot.n_links, np.inf)
    for k, shares in enumerate(base.grouping[:, _WIDTH * base.robot.n_links :].T):
        for row in np.flatnonzero(shares):
            acts = columns[:, row] > 0.0
            if acts.any():
                size = np.linalg.norm(torques[acts]) / np.linalg.norm(columns[acts, row]) / abs(shares[row])
                sizes[k] = min(sizes[k], float(size))
    return sizes
