"""Base parameters that a motion would determine poorly, judged before anything has moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.objectives.information import Information, parameter_scales
from jointbench.excitation.objectives.objective import spectral
from jointbench.model import BaseParameters, Robot
from jointbench.model.chosen_columns import Motion

WEAK_RELATIVE_SIGMA = 0.3
"""A parameter whose σ is beyond this share of it is poorly excited: its sign is not even sure at three of them."""

WEAK_INFLATION = 10.0
"""Nor is it known well if its deviation is more than this many times what it were if all others were known."""

_CONFUSION_CORRELATION = 0.5
"""Correlation of two estimates from which on they are said to be confused."""

_MAX_NAMED = 2

_UNIDENTIFIABLE_INFLATION = 1e6
"""Inflation from which on no noise is small enough; rounding alone leaves some 1e13."""


@dataclass(frozen=True)
class WeakParameter:
    """A base parameter that a motion determines poorly.

    Attributes:
        name: of the parameter that leads it.
        inflation: its standard deviation over that which it had if all others were known, at least 1.
        relative_sigma: its standard deviation over its size; None where the noise is not given.
        confused_with: those whose estimates err along with it, the most first.
    """

    name: str
    inflation: float
    relative_sigma: float | None
    confused_with: tuple[str, ...]

    @property
    def words(self) -> str:
        """Description as a sentence."""
        sentence = f"σ is {self.inflation:.3g} times what it were if the others were known"
        if self.inflation > _UNIDENTIFIABLE_INFLATION:
            sentence = "the motion tells nothing of it"
        elif self.relative_sigma is not None:
            sentence = f"σ is {100.0 * self.relative_sigma:.3g} % of it"
        confused = f"; hard to tell from {' and '.join(self.confused_with)}" if self.confused_with else ""
        return f"{self.name}: {sentence}{confused}"


@dataclass(frozen=True)
class WeakParameters:
    """The base parameters that a motion excites poorly, the worst first.

    Attributes:
        found: all of them.
        judged_by: "relative_sigma", or "inflation" where the noise is not given.
        limit: beyond which a parameter is poorly excited.
        n_parameters: how many there are in all.
        assumptions: on parameters that are not taken relative to their own values.
    """

    found: tuple[WeakParameter, ...]
    judged_by: Literal["relative_sigma", "inflation"]
    limit: float
    n_parameters: int
    assumptions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(parameter.name for parameter in self.found)

    @property
    def words(self) -> tuple[str, ...]:
        """A summary, then a sentence on parameter."""
        share = f"σ within {100.0 * self.limit:g} % of it"
        inflation = f"σ at most {self.limit:g} times what it were if the others were known"
        criterion = share if self.judged_by == "relative_sigma" else inflation
        if not self.found:
            return (f"all {self.n_parameters} base parameters are told ({criterion})",)
        first = (
            f"{len(self.found)} of {self.n_parameters} base parameters are poorly excited ({criterion} is not reached)"
        )
        return (first, *(parameter.words for parameter in self.found))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found = [
            {
                "name": parameter.name,
                "inflation": parameter.inflation,
                "relative_sigma": parameter.relative_sigma,
                "confused_with": list(parameter.confused_with),
            }
            for parameter in self.found
        ]
        return {
            "judged_by": self.judged_by,
            "limit": self.limit,
            "n_parameters": self.n_parameters,
            "poorly_excited": found,
            "assumptions": list(self.assumptions),
        }


def weak_parameters(
    robot: Robot,
    base: BaseParameters,
    motion: Motion,
    *,
    noise: ArrayLike | None = None,
    prior: Mapping[str, float] | None = None,
    limit: float | None = None,
    repeats: int = 1,
) -> WeakParameters:
    """Find the base parameters that a motion determines poorly.

    With the noise, those with σ_i / |θ_i| beyond the limit, σ by weighted least squares from these samples, if their
    noise is independent, and |θ| as of `parameter_scales`. Without, those with σ_i beyond `limit` times what it were if
    all others were known: 1 / sin of the angle between a column and what the others' make up.

    Args:
        robot: the robot.
        base: its base parameters, with drives or without.
        motion: q, dq, ddq at samples, shape (n_samples, n_joints) each, SI.
        noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,).
        prior: values of full parameters that the robot's file does not know, as in `parameter_scales`.
        limit: WEAK_RELATIVE_SIGMA or WEAK_INFLATION where not given.
        repeats: how often the motion is recorded, for σ.

    Raises:
        ExcitationError: the motion is not finite or has too few samples; noise, prior or repeats are none.
        ShapeError: arrays differ in shape or do not match the robot.

    Source: Belsley, Kuh & Welsch, Regression Diagnostics, 1980 (variance inflation).
    """
    if repeats < 1:
        raise ExcitationError(f"repeats = {repeats}: the motion is recorded once or more often")
    columns = Information.of(robot, base, noise).columns(motion)
    lengths = np.linalg.norm(columns, axis=0)
    covariance = _covariance_of_unit_columns(columns, lengths)
    inflation = np.sqrt(np.diag(covariance))
    names = base.leading_names
    relative: Array | None = None
    assumptions: tuple[str, ...] = ()
    if noise is not None:
        scales = parameter_scales(robot, base, prior)
        relative = inflation / (np.maximum(lengths, _rounding_floor(lengths)) * scales.values * np.sqrt(repeats))
        assumptions = scales.words
    judged = inflation if relative is None else relative
    if limit is None:
        limit = WEAK_INFLATION if relative is None else WEAK_RELATIVE_SIGMA
    found = [
        WeakParameter(
            names[i],
            float(inflation[i]),
            None if relative is None else float(relative[i]),
            _confused_with(names, covariance, int(i)),
        )
        for i in np.argsort(-judged, kind="stable")
        if judged[i] > limit
    ]
    by = "inflation" if relative is None else "relative_sigma"
    return WeakParameters(tuple(found), by, limit, len(names), assumptions)


def _covariance_of_unit_columns(columns: Array, lengths: Array) -> Array:
    """(UᵀU)⁻¹ with U the columns made one long; directions that rounding alone tells are as weak as it can tell."""
    # A column of zeros stays one, orthogonal to all others.
    unit = columns / np.maximum(lengths, _rounding_floor(lengths))
    _, values, rows = np.linalg.svd(unit, full_matrices=False)
    return spectral(rows.T, np.maximum(values, _rounding_floor(values)) ** -2.0)


def _rounding_floor(values: Array) -> float:
    """Rounding error of zero beside the largest of these values; never zero."""
    return max(len(values) * np.finfo(np.float64).eps * float(values.max()), np.finfo(np.float64).tiny ** 0.5)


def _confused_with(names: tuple[str, ...], covariance: Array, i: int) -> tuple[str, ...]:
    """The parameters with the estimate that correlates most with that of parameter i."""
    deviations = np.sqrt(np.diag(covariance))
    correlation = np.abs(covariance[i]) / (deviations[i] * deviations)
    confused = [
        int(j) for j in np.argsort(-correlation, kind="stable") if j != i and correlation[j] > _CONFUSION_CORRELATION
    ]
    return tuple(names[j] for j in confused[:_MAX_NAMED])
