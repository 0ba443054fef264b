"""Weighted least squares over blocks of rows: triangles, solution, and a covariance that knows of correlation."""

from jointbench.identification.least_squares.estimate import (
    TOLD_BY_PRIOR,
    Estimate,
    joint_weights,
    judged,
    least_squares,
    weighted_least_squares,
)

__all__ = ["TOLD_BY_PRIOR", "Estimate", "joint_weights", "judged", "least_squares", "weighted_least_squares"]
