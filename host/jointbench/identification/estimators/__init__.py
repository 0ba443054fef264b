"""Ways to estimate parameters from torque rows, chosen by name."""

from jointbench.identification.estimators.estimator import Estimator, Problem, estimator_help, make_estimator

__all__ = ["Estimator", "Problem", "estimator_help", "make_estimator"]
