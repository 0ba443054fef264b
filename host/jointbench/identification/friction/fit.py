"""Fit one friction law to one joint's friction."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.foreign import foreign_code
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.friction_fit import FrictionFit
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.particle_swarm import particle_swarm
from jointbench.identification.friction.variable_projection import variable_projection
from jointbench.identification.least_squares.covariance import long_run_covariance

Method = Literal["variable_projection", "particle_swarm"]
METHODS: tuple[Method, ...] = ("variable_projection", "particle_swarm")

_SINGULAR = 1e-7
"""Singular value of the scaled Jacobian, relative to the largest, under which a direction changes nothing."""

_UNTOLD = 1e-3
"""Share of a parameter in such directions above which the data cannot tell it."""


@foreign_code(
    FitError,
    "the friction law has equations without a solution here",
    "look for velocities or torques far from all others, or take a law with fewer parameters",
    (LinAlgError,),
)
def fit_friction(data: FrictionData, law: Law, *, method: Method = "variable_projection", seed: int = 0) -> FrictionFit:
    """Fit a friction law, with error bars.

    parameters = argmin Σ (torque - law(velocity, load, temperature))². Covariance s² (JᵀJ)⁻¹ where each row is its own
    measurement; for rows in time the sandwich of J⁺ with the scores' long-run covariance, which knows that neighbours
    err alike.

    Args:
        data: rows away from rest.
        law: such as `friction_law("stribeck", data)`.
        method: "variable_projection", or "particle_swarm" as the nursing robot's paper did it.
        seed: of the swarm.

    Returns:
        The fit; look at its verdicts before using it.

    Raises:
        FitError: an unknown method, no more rows than parameters, rows at rest, or load or temperature is missing.
    """
    if method not in METHODS:
        raise FitError(f"method {method!r} is not known; the methods are {', '.join(METHODS)}")
    _check(data, law)
    if method == "variable_projection":
        parameters = variable_projection(data, law)
    else:
        parameters = particle_swarm(data, law, seed=seed)
    residual = data.torque - law.torque(data, parameters)
    at_bound = _at_bound(data, law, parameters)
    covariance, lags = _covariance(data, law.jacobian(data, parameters), residual, ~at_bound)
    power, about_mean = float(np.mean(data.torque**2)), float(np.var(data.torque))
    square = float(np.mean(residual**2))
    return FrictionFit(
        law=law,
        method=method,
        parameters=parameters,
        covariance=covariance,
        at_bound=at_bound,
        rms=square**0.5,
        r_squared=1.0 - square / about_mean if about_mean > 0.0 else float("nan"),
        relative=(square / power) ** 0.5 if power > 0.0 else float("nan"),
        n_rows=data.n_rows,
        lags=lags,
    )


def _check(data: FrictionData, law: Law) -> None:
    if data.n_rows <= len(law.names):
        raise FitError(
            f"friction law {law.name!r} has {len(law.names)} parameters, and there are {data.n_rows} rows; "
            f"record more speeds, or fit a simpler law"
        )
    still = int(np.sum(data.velocity == 0.0))
    if still:
        raise FitError(f"{still} of {data.n_rows} rows are at rest, where friction has no law; leave them out (moving)")


def _at_bound(data: FrictionData, law: Law, parameters: Array) -> NDArray[np.bool_]:
    bounds = np.concatenate([law.coefficient_bounds(data), law.shape_bounds(data)])
    # A swarm stops near a wall, and exp(log(bound)) is not the bound to the last bit.
    return np.any(np.isclose(parameters[:, None], bounds, rtol=1e-6, atol=0.0), axis=1)


def _covariance(data: FrictionData, jacobian: Array, residual: Array, free: NDArray[np.bool_]) -> tuple[Array, int]:
    """Covariance of the parameters away from their bounds, the others' infinite; and the window of Newey and West."""
    p = jacobian.shape[1]
    scale = np.linalg.norm(jacobian, axis=0)
    free = free & (scale > 0.0)
    covariance, lags = np.diag(np.where(free, 0.0, np.inf)), 0
    if not free.any():
        return covariance, lags
    u, s, vt = np.linalg.svd(jacobian[:, free] / scale[free], full_matrices=False)
    told = s > _SINGULAR * s[0]
    inverse = vt[told].T / s[told]
    if data.in_time:
        leverage = np.minimum(np.sum(u[:, told] ** 2, axis=1), 0.999)
        long_run = long_run_covariance((u[:, told] * (residual / (1.0 - leverage))[:, None]) @ inverse.T)
        within, lags = long_run.covariance, long_run.lags
    else:
        within = inverse @ inverse.T * float(residual @ residual) / (data.n_rows - int(told.sum()))
    within = within / np.outer(scale[free], scale[free])
    untold = np.sum(vt[~told] ** 2, axis=0) > _UNTOLD
    within[untold, :] = within[:, untold] = 0.0
    within[untold, untold] = np.inf
    places = np.arange(p)[free]
    covariance[np.ix_(places, places)] = within
    return covariance, lags
