"""Gaussian priors of the parameters, and the Bayes estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, known_beside_links
from jointbench.errors import FitError
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import TOLD_BY_PRIOR, Estimate, joint_weights, judged
from jointbench.identification.least_squares.triangles import Solution, Triangles, compress, solve
from jointbench.identification.physical.pseudo_inertia import reference_bodies
from jointbench.identification.rows import Rows
from jointbench.robot import PARAMETER_NAMES, Robot


@dataclass(frozen=True, eq=False)
class Posterior:
    """Data and prior weighed against each other.

    Attributes:
        estimate: of the parameters; its error bars hold the prior's error beside the noise's.
        solution: that it is of.
        weights: of the rows' groups as solved, shape (n_groups,).
        inflation: c, how many times the residuals' correlation raises the variances of least squares.
    """

    estimate: Estimate
    solution: Solution
    weights: Array
    inflation: float


def posterior(parts: Sequence[Rows], triangles: Triangles, known: Array) -> Posterior:
    """Solve min Σ (torque - regressor pi)² / (c sigma_j²) + |known (pi, -1)|².

    Args:
        parts: rows of one recording each.
        triangles: of them.
        known: rows of what is thought beside the data, (regressor | value) in its own σ, shape (n, p + 1).
    """
    weights = joint_weights(triangles, known)
    first = judged(parts, triangles, weights, solve(triangles, weights, known))
    weights = weights / max(1.0, first.inflation) ** 0.5
    solution = solve(triangles, weights, known)
    estimate = judged(parts, triangles, weights, solution, prior=known[:, :-1])
    return Posterior(estimate, solution, weights, first.inflation)


@dataclass(frozen=True)
class Bayes:
    """Posterior of a Gaussian prior: min Σ (torque - regressor pi)² / (c sigma_j²) + |(pi - thought) / sigma_prior|².

    The prior is of the full parameters, and so is that of base parameters the one of the sums they are. c is how many
    times the residuals' correlation raises the variances of least squares: rows count for what they tell. With prior σ
    so large that it says nothing this is "wls", error bars included; these hold the prior's error beside the noise's.
    The parameters need not be physically possible: `Model.physical` makes them so, and the estimator "physical" with a
    weight has a prior that keeps them so.

    Attributes:
        mass, first_moment, inertia, drive: prior σ of each kind, relative, as in `RelativeSigma`. 1: the file may be
            wrong by as much as itself, which leaves all but what the motion does not tell to the data.

    Source: Gelman et al., Bayesian Data Analysis, 3rd ed., 2013, ch. 14.8.
    """

    mass: float = 1.0
    first_moment: float = 1.0
    inertia: float = 1.0
    drive: float = 1.0

    name: ClassVar[str] = "bayes"

    def __post_init__(self) -> None:
        """Refuse what is no σ."""
        self._relative()

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        prior = parameter_prior(problem.base, self._relative(), triangles)
        found = posterior(problem.parts, triangles, prior.rows(problem.base))
        estimate = found.estimate
        note = (
            f"prior of the robot's file, relative σ of mass {self.mass:g}, first moments {self.first_moment:g}, "
            f"inertia {self.inertia:g}, drives {self.drive:g}"
        )
        if prior.guessed:
            note += f"; the file says nothing of {', '.join(prior.guessed)}, and balls of their size stand for them"
        told = list(prior.told(problem.base, estimate.covariance))
        return replace(estimate, notes=(note,), figures={"inflation": found.inflation, TOLD_BY_PRIOR: told})

    def _relative(self) -> RelativeSigma:
        return RelativeSigma(self.mass, self.first_moment, self.inertia, self.drive)


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
