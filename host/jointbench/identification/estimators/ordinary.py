"""Ordinary least squares: all torques weighted alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jointbench.identification.estimators.problem import Problem
from jointbench.identification.least_squares import Estimate, judged
from jointbench.identification.least_squares.solution import solve
from jointbench.identification.least_squares.triangles import compress


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """argmin Σ (torque - regressor pi)² [N²·m²], which the joints with the largest torques rule.

    Its error bars are as honest as those of `least_squares`; the estimate is only less exact.
    """

    name: ClassVar[str] = "ols"

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        weights = np.ones(len(triangles.counts))
        return judged(problem.parts, triangles, weights, solve(triangles, weights))
