"""Weighted least squares with error bars that know that residuals are neither equal nor independent."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.identification.newey_west import long_run_covariance
from jointbench.robot import Array

_SINGULAR = 1e-10
"""Singular value of the scaled regressor, relative to the largest, under which a direction is not excited at all."""

_UNTOLD = 1e-6
"""Share of a parameter in unexcited directions above which the data cannot tell it."""

_PASSES = 3
"""The first pass has equal weights; each other takes the joints' weights from the residuals of the pass before."""


@dataclass(frozen=True)
class Estimate:
    """A least-squares estimate and what is known about its error.

    Attributes:
        parameters: shape (p,); 0 where not told.
        covariance: of the parameters, shape (p, p); an infinite variance where the data cannot tell a parameter.
        condition_number: of the regressor as it is, neither scaled nor weighted, over the rows used.
        joint_sigma: standard deviation of the residual per joint, nan for a joint without rows, shape (n_joints,).
        lags: length of the window of Newey and West: for how many rows residuals count as correlated.
    """

    parameters: Array
    covariance: Array
    condition_number: float
    joint_sigma: Array
    lags: int


def weighted_least_squares(regressor: Array, torque: Array, used: NDArray[np.bool_]) -> Estimate:
    """Estimate parameters from torque rows, each joint weighted by the inverse of its residual's deviation.

    pi = argmin Σ_kj (torque_kj - regressor_kj @ pi)² / sigma_j² over the rows used. The covariance is the sandwich
    B S B with B = (Σ x xᵀ / sigma²)⁻¹ and S the long-run covariance of the scores Σ_j x_kj r_kj / sigma_j², so that
    it stays right when residuals are coloured, shared between joints, or grow with the motion.

    Args:
        regressor: shape (n, n_joints, p), rows evenly spaced in time.
        torque: shape (n, n_joints).
        used: rows to use, shape (n, n_joints); more than p of them.

    Returns:
        The estimate.

    Source: White, Econometrica 48(4), 1980, with the leverages of MacKinnon & White, J. Econometrics 29(3), 1985;
    Newey & West, Econometrica 55(3), 1987; weights by joint as in Gautier, IEEE CDC, 1997.
    """
    n, n_joints, p = regressor.shape
    rows, values = regressor[used], torque[used]
    time, joint = np.nonzero(used)
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0.0] = 1.0
    solution = _solve(rows / scale, values)
    weight = np.ones(len(values))
    sigma = _joint_sigma(solution, weight, joint, n_joints)
    for _ in range(_PASSES - 1):
        # A joint without rows, or one fitted to the last bit, has no deviation to weigh by.
        weight = 1.0 / np.where(sigma > 0.0, sigma, 1.0)[joint]
        solution = _solve(rows / scale * weight[:, None], values * weight)
        sigma = _joint_sigma(solution, weight, joint, n_joints)

    influence = np.zeros((n, p))
    np.add.at(influence, time, solution.influence)
    long_run = long_run_covariance(influence)
    covariance = long_run.covariance / np.outer(scale, scale)
    untold = solution.untold
    covariance[untold, :] = covariance[:, untold] = 0.0
    covariance[untold, untold] = np.inf
    parameters = np.where(untold, 0.0, solution.parameters / scale)
    return Estimate(parameters, covariance, _condition_number(rows), sigma, long_run.lags)


class _Solution(NamedTuple):
    """Least squares of the (scaled, weighted) rows, by singular values."""

    parameters: Array
    residual: Array
    leverage: Array
    influence: Array
    untold: NDArray[np.bool_]


def _solve(rows: Array, values: Array) -> _Solution:
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    told = s > _SINGULAR * s[0]
    inverse = vt[told].T / s[told]
    u = u[:, told]
    parameters = inverse @ (u.T @ values)
    residual = values - u @ (u.T @ values)
    leverage = np.minimum(np.sum(u**2, axis=1), 0.999)
    influence = (u * (residual / (1.0 - leverage))[:, None]) @ inverse.T
    untold = (np.sum(vt[~told] ** 2, axis=0) > _UNTOLD) | ~rows.any(axis=0)
    return _Solution(parameters, residual, leverage, influence, untold)


def _joint_sigma(solution: _Solution, weight: Array, joint: NDArray[np.intp], n_joints: int) -> Array:
    """Deviation of each joint's residual with the freedom its rows have left, nan for a joint without rows."""
    squares = np.bincount(joint, (solution.residual / weight) ** 2, n_joints)
    freedom = np.bincount(joint, 1.0 - solution.leverage, n_joints)
    return np.sqrt(np.divide(squares, freedom, out=np.full(n_joints, np.nan), where=freedom > 0.0))


def _condition_number(rows: Array) -> float:
    singular = np.linalg.svd(rows, compute_uv=False)
    rounding = len(rows) * np.finfo(np.float64).eps * singular[0]
    return float(singular[0] / singular[-1]) if singular[-1] > rounding else float("inf")
