"""How the parameters of a family of robots differ from unit to unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.comparison.all_parameters import AllParameters
from jointbench.identification.comparison.multiple_tests import holm
from jointbench.identification.fleet.random_effects import Pooled, deleted_residuals, pool
from jointbench.identification.model import Model

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
        """Of the base parameters, and of those of friction laws."""
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
        told = np.where(np.isfinite(self.sigmas), self.sigmas, np.nan)
        sigma = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else float("nan") for row in told]
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
        found = [k for k in np.argsort(corrected).tolist() if corrected[k] <= LEVEL]
        n = len(self.units)
        return tuple(
            Outlier(
                unit=self.units[k % n],
                parameter=self.names[k // n],
                value=float(self.values.ravel()[k]),
                in_sigma=float(residuals.ravel()[k]),
                p_value=float(corrected[k]),
            )
            for k in found
        )
