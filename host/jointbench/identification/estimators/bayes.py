"""The data weighed against what the robot's file says, by how well that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from jointbench.arrays import Array
from jointbench.identification.estimators.parameter_prior import RelativeSigma, parameter_prior
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import TOLD_BY_PRIOR, Estimate, joint_weights, judged
from jointbench.identification.least_squares.solution import Solution, solve
from jointbench.identification.least_squares.triangles import Triangles, compress
from jointbench.identification.rows import Rows


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
