"""Base parameters beside friction laws that an experiment told: the laws are held, all else is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.estimators.registry import Estimator
from jointbench.identification.friction.fit import FrictionFit
from jointbench.identification.friction_in_model.joint_laws import JointLaws
from jointbench.identification.friction_in_model.law_rows import LawRows, Point
from jointbench.identification.friction_in_model.model_friction import ModelFriction
from jointbench.identification.friction_in_model.start import friction_left
from jointbench.identification.least_squares import Estimate, joint_weights
from jointbench.identification.least_squares.triangles import compress

_PASSES = 4
_SETTLED = 1e-3
"""σ: base parameters that a pass moves by less stay. Only load makes more than one pass differ."""

REASON = "held as an experiment told it"


def fit_beside(
    estimator: Estimator, problem: Problem, friction: Mapping[str, FrictionFit]
) -> tuple[Estimate, ModelFriction]:
    """Fit base parameters to torque - law(velocity, load), the laws' parameters being known.

    The error bars are those of the noise, and of what the experiment left open of the laws:
    Σ = Σ_noise + G Σ_laws Gᵀ, with G the change of the base parameters by those of the laws.

    Args:
        estimator: one that looks at rows alone.
        problem: without laws.
        friction: by joint, such as fits to a sweep of speeds; joints without one keep Coulomb and viscous friction.

    Returns:
        The estimate of all base parameters, those that a law stands for zero; and the laws.

    Raises:
        FitError: a joint has no friction of its own, or a model cannot hold its law.
    """
    robot = problem.base.robot
    if unknown := [name for name in friction if name not in robot.joint_names]:
        raise FitError(
            f"friction is given for {unknown[0]!r}, but the joints of {robot.name!r} are {', '.join(robot.joint_names)}"
        )
    fits = {name: friction[name] for name in robot.joint_names if name in friction}
    laws = JointLaws(problem.base, {name: fit.law for name, fit in fits.items()})
    values = np.concatenate([fit.parameters for fit in fits.values()])
    plain = estimator(problem)
    point, held = Point(plain.parameters[laws.kept], values), np.ones(len(values), dtype=np.bool_)
    estimate = plain
    for _ in range(_PASSES):
        estimate = estimator(replace(problem, parts=_rows(problem, laws, point, held)))
        moved = np.abs(estimate.parameters - point.base)
        point = Point(estimate.parameters, values)
        sigma = np.sqrt(np.diag(estimate.covariance))
        if np.all(moved[np.isfinite(sigma)] <= _SETTLED * sigma[np.isfinite(sigma)]):
            break
    known = linalg.block_diag(*(np.where(np.isfinite(fit.covariance), fit.covariance, 0.0) for fit in fits.values()))
    slope = _slope(problem, laws, point)
    kept = np.flatnonzero(laws.kept)
    covariance = np.diag(np.where(laws.kept, 0.0, np.inf))
    covariance[np.ix_(kept, kept)] = estimate.covariance + slope @ known @ slope.T
    with_base = np.zeros((laws.base.rank, len(values)))
    with_base[kept] = slope @ known
    told = np.concatenate([np.isfinite(fit.sigma) for fit in fits.values()])
    known[~told, ~told] = np.inf
    model_friction = ModelFriction(
        laws=laws,
        parameters=values,
        covariance=known,
        with_base=with_base,
        at_bound=np.concatenate([fit.at_bound for fit in fits.values()]),
        speeds=_speeds(problem, fits, plain.parameters),
        reasons=dict.fromkeys(fits, REASON),
    )
    return replace(estimate, parameters=laws.full(point.base), covariance=covariance), model_friction


def _rows(problem: Problem, laws: JointLaws, point: Point, held: NDArray[np.bool_]) -> tuple[LawRows, ...]:
    return tuple(
        LawRows(part, observations, laws, point, held)
        for part, observations in zip(problem.parts, problem.observations, strict=True)
    )


def _slope(problem: Problem, laws: JointLaws, point: Point) -> Array:
    """By how much each base parameter changes per change of each of the laws' parameters, shape (n_kept, n)."""
    free = np.zeros(len(point.laws), dtype=np.bool_)
    triangles = compress(_rows(problem, laws, point, free))
    columns = triangles.stacked(joint_weights(triangles))[:, :-1]
    n = len(point.base)
    scale = triangles.scale[:n]
    found, *_ = np.linalg.lstsq(columns[:, :n] / scale, columns[:, n:], rcond=None)
    return -np.asarray(found, dtype=np.float64) / scale[:, None]


def _speeds(problem: Problem, fits: Mapping[str, FrictionFit], values: Array) -> dict[str, tuple[float, float]]:
    """Slowest and fastest row of each joint with a law."""
    speeds = {name: np.abs(friction_left(problem.parts, problem.base, values, name).velocity) for name in fits}
    return {name: (float(speed.min()), float(speed.max())) for name, speed in speeds.items()}
