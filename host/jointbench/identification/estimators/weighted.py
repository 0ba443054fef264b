"""Weighted least squares: the estimator that is taken where nothing else is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import Estimate, least_squares


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Each joint of each recording weighted by the inverse deviation of its residual: see `least_squares`.

    The default, for it assumes least: no prior, no shape of the noise, and of all linear estimators that are unbiased
    it has the least variance as far as joints' noises differ but rows of one joint do not.
    """

    name: ClassVar[str] = "wls"

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        return least_squares(problem.parts)
