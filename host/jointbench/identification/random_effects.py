"""Random-effects means of a quantity over units, and the spread between units beyond the error of each estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from jointbench.arrays import Array
from jointbench.identification.model import Model
from jointbench.identification.torque_difference import AllParameters, holm

_STEPS = 100
"""Of Newton's method, which needs five."""

_CONVERGED = 1e-10


@dataclass(frozen=True, eq=False)
class Pooled:
    """Means and spreads over units; the last axis of what was pooled is gone.

    Attributes:
        count: of units with a finite σ.
        mean: over the units.
        mean_sigma: standard deviation of the mean.
        spread: standard deviation between units, the error of each estimate taken out; nan for less than two units.
        lowest, highest: between which the spread lies with 95 % probability.
        p_value: how likely equal units are at least that different; nan for less than two units.
        inconsistency: I², share of the values' variance that is between units.
    """

    count: Array
    mean: Array
    mean_sigma: Array
    spread: Array
    lowest: Array
    highest: Array
    p_value: Array
    inconsistency: Array


def pool(values: Array, sigmas: Array) -> Pooled:
    """Pool estimates of units that may truly differ: value_i = mean + unit_i + error_i.

    The variance t between units solves Q(t) = n - 1 with Q(t) = Σ w_i (value_i - mean)² and w_i = 1 / (σ_i² + t), and
    is 0 where Q(0) is less; its limits solve Q(t) = quantiles of χ² with n - 1 degrees of freedom.

    Args:
        values: estimates, units along the last axis, shape (…, n).
        sigmas: their standard deviations, infinite where a unit has no estimate, shape (…, n).

    Source: Paule & Mandel, J. Res. NBS 87(5), 1982; limits as Viechtbauer, Statistics in Medicine 26(1), 2007; Q and I²
    as Higgins & Thompson, Statistics in Medicine 21(11), 2002.
    """
    variances = sigmas**2
    count = np.isfinite(variances).sum(axis=-1).astype(np.float64)
    freedom = count - 1.0
    several = freedom > 0.0
    variance = variance_between(values, variances, freedom)
    mean, weight = _mean(values, variances, variance)
    heterogeneity = _q(values, variances, np.zeros(count.shape))
    known = np.where(several, freedom, 1.0)
    unknown = np.where(several, 0.0, np.nan)
    limits = (
        np.sqrt(variance_between(values, variances, np.where(several, special.chdtri(known, tail), np.nan)))
        for tail in (0.025, 0.975)
    )
    lowest, highest = (limit + unknown for limit in limits)
    share = np.divide(heterogeneity - freedom, heterogeneity, out=np.zeros(count.shape), where=heterogeneity > 0.0)
    return Pooled(
        count=count,
        mean=np.where(count > 0.0, mean, np.nan),
        mean_sigma=np.where(count > 0.0, 1.0 / np.sqrt(np.where(weight > 0.0, weight, 1.0)), np.nan),
        spread=np.sqrt(variance) + unknown,
        lowest=lowest,
        highest=highest,
        p_value=special.chdtrc(known, heterogeneity) + unknown,
        inconsistency=np.maximum(share, 0.0) + unknown,
    )


def variance_between(values: Array, variances: Array, target: Array) -> Array:
    """The t >= 0 at which Q(t) is `target`, 0 where Q(0) is not above it; shapes (…, n), (…, n), (…).

    Newton's method on 1 / Q, which is concave and nearly straight, comes from below and never passes the root.
    """
    between = np.zeros(target.shape)
    for _ in range(_STEPS):
        mean, _ = _mean(values, variances, between)
        weight = 1.0 / (variances + between[..., None])
        squares = weight * (np.where(weight > 0.0, values, 0.0) - mean[..., None]) ** 2
        q, slope = squares.sum(axis=-1), (weight * squares).sum(axis=-1)
        above = (q > target) & (target > 0.0)
        step = np.divide(q * (q / np.where(above, target, 1.0) - 1.0), slope, out=np.zeros_like(q), where=above)
        between += step
        if not np.any(step > _CONVERGED * between):
            break
    return between


def deleted_residuals(values: Array, sigmas: Array) -> tuple[Array, Array]:
    """Each unit's distance from what all others make expect, by its σ, and how likely that is for a unit like them.

    t_i = (value_i - mean of the others) / sqrt(σ_i² + variance between the others + variance of their mean), which is
    Student's t with as many degrees of freedom as there are others but one.

    Args:
        values, sigmas: as of `pool`, shape (n_parameters, n).

    Returns:
        t and probabilities, nan where there are less than three units, shape (n_parameters, n).

    Source: Viechtbauer & Cheung, Research Synthesis Methods 1(2), 2010.
    """
    n = values.shape[-1]
    residuals, p_values = np.full((2, *values.shape), np.nan)
    for parameter, (value, sigma) in enumerate(zip(values, sigmas, strict=True)):
        without = np.where(np.eye(n, dtype=np.bool_), np.inf, sigma[None, :])
        others = np.isfinite(without).sum(axis=1)
        variance = variance_between(np.broadcast_to(value, (n, n)), without**2, others - 1.0)
        mean, weight = _mean(np.broadcast_to(value, (n, n)), without**2, variance)
        judged = np.isfinite(sigma) & (others >= 2)
        expected = np.sqrt(sigma[judged] ** 2 + variance[judged] + 1.0 / weight[judged])
        residuals[parameter, judged] = (value[judged] - mean[judged]) / expected
        p_values[parameter, judged] = 2.0 * special.stdtr(others[judged] - 1.0, -np.abs(residuals[parameter, judged]))
    return residuals, p_values


def _mean(values: Array, variances: Array, between: Array) -> tuple[Array, Array]:
    """Weighted mean and the sum of the weights."""
    weight = 1.0 / (variances + between[..., None])
    total = weight.sum(axis=-1)
    weighted = np.where(weight > 0.0, weight * np.where(weight > 0.0, values, 0.0), 0.0).sum(axis=-1)
    return np.divide(weighted, total, out=np.zeros_like(weighted), where=total > 0.0), total


def _q(values: Array, variances: Array, between: Array) -> Array:
    mean, _ = _mean(values, variances, between)
    weight = 1.0 / (variances + between[..., None])
    return np.sum(weight * (np.where(weight > 0.0, values, 0.0) - mean[..., None]) ** 2, axis=-1)


LEVEL = 0.05
"""How often a fleet of like units has one called an outlier."""


@dataclass(frozen=True)
class Spread:
    """One parameter over all units that tell it.

    Attributes:
        name: of the parameter.
        count: how many units tell it.
        mean: over the units [SI].
        mean_sigma: standard deviation of the mean.
        spread: standard deviation from unit to unit, the error of each estimate taken out; nan for one unit.
        lowest, highest: between which the spread lies with 95 % probability.
        p_value: how likely equal units are at least that different.
        inconsistency: share of the variance of the values that is between units.
        sigma: standard deviation of one unit's estimate, the median.
    """

    name: str
    count: int
    mean: float
    mean_sigma: float
    spread: float
    lowest: float
    highest: float
    p_value: float
    inconsistency: float
    sigma: float


@dataclass(frozen=True)
class Outlier:
    """A unit whose parameter is not what the others make expect.

    Attributes:
        unit: its name.
        parameter: its name.
        value: of this unit [SI].
        in_sigma: distance from the others' mean, by what is expected of a unit like them.
        p_value: corrected for the number of units and parameters.
    """

    unit: str
    parameter: str
    value: float
    in_sigma: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.unit}: {self.parameter} = {self.value:.4g} is {self.in_sigma:+.1f} σ from the other units"


@dataclass(frozen=True, eq=False)
class Family:
    """Units whose parameters stand for the same.

    Attributes:
        units: their names.
        models: one per unit.
    """

    units: tuple[str, ...]
    models: tuple[Model, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters, and of those of friction laws."""
        return self._parameters[0].names

    @cached_property
    def values(self) -> Array:
        """Parameters of each unit [SI], shape (n, n_units)."""
        return np.array([parameters.values for parameters in self._parameters]).T

    @cached_property
    def sigmas(self) -> Array:
        """Their standard deviations, infinite where not told, shape (n, n_units)."""
        return np.array([parameters.sigma for parameters in self._parameters]).T

    @cached_property
    def _parameters(self) -> tuple[AllParameters, ...]:
        return tuple(map(AllParameters.of, self.models))

    @cached_property
    def pooled(self) -> Pooled:
        """Means and spreads of all parameters."""
        return pool(self.values, self.sigmas)

    @cached_property
    def spreads(self) -> tuple[Spread, ...]:
        """One per parameter, in their order."""
        p = self.pooled
        finite = np.where(np.isfinite(self.sigmas), self.sigmas, np.nan)
        sigma = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else float("nan") for row in finite]
        columns = (p.mean, p.mean_sigma, p.spread, p.lowest, p.highest, p.p_value, p.inconsistency, np.array(sigma))
        figures = np.array(columns).T.tolist()
        return tuple(
            Spread(name, int(count), *row) for name, count, row in zip(self.names, p.count, figures, strict=True)
        )

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """Units that are not like the others, the surest first; none among less than three."""
        residuals, p_values = deleted_residuals(self.values, self.sigmas)
        corrected = holm(p_values.ravel())
        unlike = [k for k in np.argsort(corrected).tolist() if corrected[k] <= LEVEL]
        n = len(self.units)
        return tuple(
            Outlier(
                unit=self.units[k % n],
                parameter=self.names[k // n],
                value=float(self.values.ravel()[k]),
                in_sigma=float(residuals.ravel()[k]),
                p_value=float(corrected[k]),
            )
            for k in unlike
        )
