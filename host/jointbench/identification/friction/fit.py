"""Fits of a friction law and its choice: parameters with error bars, what they explain, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.files import foreign_code
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.terms import laws_for
from jointbench.identification.friction.variable_projection import particle_swarm, variable_projection
from jointbench.identification.judgement import (
    FOLDS,
    Verdict,
    judge_joint,
    judge_parameter,
    simplest_within_one_standard_error,
)
from jointbench.identification.least_squares import long_run_covariance

_UNTOLD = "these rows do not tell it: friction is the same for other values"


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """A law's parameters for one joint.

    Attributes:
        law: what was fitted.
        method: "variable_projection" or "particle_swarm".
        parameters: in the order of `law.names`, SI, shape (p,).
        covariance: of the parameters, shape (p, p); an infinite variance where the data cannot tell one.
        at_bound: which parameters are at a bound of theirs, shape (p,).
        rms: error of the torque, root mean square [N·m or N].
        r_squared: 1 - Σ error² / Σ (torque - its mean)².
        relative: rms error over rms torque.
        n_rows: rows fitted.
        lags: for how many rows errors count as correlated; 0 where each row is its own measurement.
    """

    law: Law
    method: str
    parameters: Array
    covariance: Array
    at_bound: NDArray[np.bool_]
    rms: float
    r_squared: float
    relative: float
    n_rows: int
    lags: int

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, infinite where not told, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def bic(self) -> float:
        """Bayesian information criterion n ln(rms²) + p ln n: the least explains best.

        It supposes that rows err independently of each other. Source: Schwarz, Annals of Statistics 6(2), 1978.
        """
        least = max(self.rms, np.finfo(np.float64).tiny)
        return 2.0 * self.n_rows * math.log(least) + len(self.parameters) * math.log(self.n_rows)

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter."""
        rows = zip(self.law.names, self.parameters.tolist(), self.sigma.tolist(), self.at_bound.tolist(), strict=True)
        return tuple(_judge(*row) for row in rows)

    @property
    def verdict(self) -> Verdict:
        """The word on the law as a whole, from its error on the rows it was fitted to."""
        word = judge_joint(self.law.name, self.relative, 1.0).word
        figures = f"torque error {self.relative:.1%} of the torque, R² {self.r_squared:.4f}, {self.n_rows} rows"
        return Verdict(self.law.name, word, figures)

    def value(self, name: str) -> float:
        """Value of the parameter of this name [SI].

        Raises:
            FitError: the law has no such parameter.
        """
        if name not in self.law.names:
            raise FitError(f"friction law {self.law.name!r} has no {name!r}; it has {', '.join(self.law.names)}")
        return float(self.parameters[self.law.names.index(name)])

    def torque(self, data: FrictionData) -> Array:
        """Friction at the data's velocities, loads and temperatures [N·m or N], shape (n,)."""
        return self.law.torque(data, self.parameters)


def _judge(name: str, value: float, sigma: float, at_bound: bool) -> Verdict:
    if at_bound:
        return Verdict(name, "refused", f"at its bound {value:.4g}: the least error lies beyond it")
    if not math.isfinite(sigma):
        return Verdict(name, "not observable", _UNTOLD)
    return judge_parameter(name, value, sigma)


@dataclass(frozen=True)
class LawComparison:
    """Several laws fitted to the same friction.

    Attributes:
        fits: one per law, the simplest first.
        held_out_rms: error on rows that a fit did not see, root mean square over all rows [N·m or N], shape (n_laws,).
        by: "bic" where each row is its own measurement; else "held_out", as rows in time err alike and BIC would
            count every one of them as evidence.
        best: which of the fits explains best.
    """

    fits: tuple[FrictionFit, ...]
    held_out_rms: Array
    by: Literal["bic", "held_out"]
    best: int

    @property
    def best_fit(self) -> FrictionFit:
        """The fit of the law that explains best."""
        return self.fits[self.best]

    @property
    def sentence(self) -> str:
        """Sentence on the law that was chosen, and why."""
        chosen = self.best_fit.law.name
        if len(self.fits) == 1:
            return f"{chosen} is the only law that was fitted"
        if self.by == "bic":
            runner_up = min((fit for fit in self.fits if fit is not self.best_fit), key=lambda fit: fit.bic)
            margin = runner_up.bic - self.best_fit.bic
            return f"{chosen} explains best: its BIC is {margin:.3g} below that of {runner_up.law.name}"
        least = int(np.argmin(self.held_out_rms))
        if least == self.best:
            return f"{chosen} explains best: no other law errs less on rows it has not seen"
        return (
            f"{chosen} explains best: it is the simplest law whose error on unseen rows is within one standard error "
            f"of that of {self.fits[least].law.name}, which errs least"
        )


def compare_laws(
    data: FrictionData, laws: Sequence[Law] | None = None, *, method: Method = "variable_projection", seed: int = 0
) -> LawComparison:
    """Fit several laws and choose one.

    Rows that are their own measurements: the least BIC. Rows in time: five stretches are held out in turn, and the
    simplest law whose error on them is within one standard error of the least is chosen.

    Args:
        data: rows away from rest.
        laws: None: all that the data can be asked about.
        method, seed: as for `fit_friction`.

    Returns:
        All fits, and the best of them.

    Raises:
        FitError: too few rows.

    Source: the one-standard-error rule of Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984.
    """
    laws = laws_for(data) if laws is None else tuple(sorted(laws, key=lambda law: len(law.names)))
    seen = data.n_rows - -(-data.n_rows // FOLDS)
    laws = tuple(law for law in laws if len(law.names) < seen)
    if data.n_rows < FOLDS or not laws:
        raise FitError(f"{data.n_rows} rows are too few to compare friction laws; record more speeds")
    fits = tuple(fit_friction(data, law, method=method, seed=seed) for law in laws)
    held_out = np.array([_held_out_squares(data, law, method, seed) for law in laws])
    rms = np.sqrt(held_out.mean(axis=1))
    if not data.in_time:
        return LawComparison(fits, rms, "bic", int(np.argmin([fit.bic for fit in fits])))
    return LawComparison(fits, rms, "held_out", simplest_within_one_standard_error(held_out))


def _held_out_squares(data: FrictionData, law: Law, method: Method, seed: int) -> Array:
    """Mean square error on each fold when it was not fitted, shape (FOLDS,)."""
    fold = _folds(data)
    errors = np.empty(FOLDS)
    for k in range(FOLDS):
        unseen = data.part(fold == k)
        fit = fit_friction(data.part(fold != k), law, method=method, seed=seed)
        errors[k] = np.mean((fit.torque(unseen) - unseen.torque) ** 2)
    return errors


def _folds(data: FrictionData) -> NDArray[np.intp]:
    """Stretches of time, or every fifth row in the order of speeds, so that no fold lacks a range of them."""
    n = data.n_rows
    if data.in_time:
        return np.arange(n) * FOLDS // n
    fold = np.empty(n, dtype=np.intp)
    fold[np.argsort(data.velocity, kind="stable")] = np.arange(n) % FOLDS
    return fold


Method = Literal["variable_projection", "particle_swarm"]
METHODS: tuple[Method, ...] = ("variable_projection", "particle_swarm")

_SINGULAR = 1e-7
"""Singular value of the scaled Jacobian, relative to the largest, under which a direction changes nothing."""

_UNTOLD_SHARE = 1e-3
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
    kept = s > _SINGULAR * s[0]
    inverse = vt[kept].T / s[kept]
    if data.in_time:
        leverage = np.minimum(np.sum(u[:, kept] ** 2, axis=1), 0.999)
        long_run = long_run_covariance((u[:, kept] * (residual / (1.0 - leverage))[:, None]) @ inverse.T)
        within, lags = long_run.covariance, long_run.lags
    else:
        within = inverse @ inverse.T * float(residual @ residual) / (data.n_rows - int(kept.sum()))
    within = within / np.outer(scale[free], scale[free])
    untold = np.sum(vt[~kept] ** 2, axis=0) > _UNTOLD_SHARE
    within[untold, :] = within[:, untold] = 0.0
    within[untold, untold] = np.inf
    places = np.arange(p)[free]
    covariance[np.ix_(places, places)] = within
    return covariance, lags
