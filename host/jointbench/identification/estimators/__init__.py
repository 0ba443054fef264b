"""Ways to estimate parameters from torque rows, chosen by name."""

from jointbench.identification.estimators.problem import Problem
from jointbench.identification.estimators.registry import Estimator, estimator_help, make_estimator

__all__ = ["Estimator", "Problem", "estimator_help", "make_estimator"]
