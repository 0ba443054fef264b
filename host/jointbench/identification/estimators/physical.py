"""Parameters that a robot can have: nearest to the data, or weighed against its file by a prior that keeps them so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.regularised import (
    ParameterPrior,
    RelativeSigma,
    Split,
    leave_one_out,
    parameter_prior,
    split_by_time,
)
from jointbench.identification.least_squares import TOLD_BY_PRIOR, Estimate, joint_weights, judged
from jointbench.identification.triangles import Triangles, compress, solve

if TYPE_CHECKING:
    from jointbench.identification.physical import PhysicalParameters
    from jointbench.identification.physical.pseudo_inertia import PriorName

_WEIGHTS = tuple(10.0**k for k in range(-2, 5))
"""Of the prior, tried where it is to be chosen: the file may be wrong by ten times itself … by a hundredth."""


@dataclass(frozen=True)
class Physical:
    """The nearest possible parameters to the data, by linear matrix inequalities: see `physical_parameters`.

    Each link is a body of positive density, no friction or rotor inertia is negative. Without a weight the data rule,
    and the error bars are those of "wls": that the parameters are possible makes them no larger. With one it is the
    maximum of the posterior, and the error bars hold the prior's error, to second order about the robot's file.

    Attributes:
        prior: "log_det", "uniform" or "observability": what is thought of links, relative to the robot's file.
        weight: of the prior [σ²], 1 for a file that may be wrong by as much as itself; None: it only chooses among what
            the data cannot tell apart; "held_out": chosen by predicting what is held out, one recording after the
            other, or three tenths of the time of a single one.

    Source: as of `physical_parameters`.
    """

    prior: PriorName = "log_det"
    weight: float | Literal["held_out"] | None = None

    name: ClassVar[str] = "physical"
    _method: ClassVar[Literal["lmi", "log_cholesky"]] = "lmi"

    def __post_init__(self) -> None:
        """Refuse what is no weight; the prior is looked at when it is used."""
        if isinstance(self.weight, str):
            if self.weight != "held_out":
                raise FitError(f"weight = {self.weight!r} must be a number above 0, 'held_out', or None")
        elif self.weight is not None and not (np.isfinite(self.weight) and self.weight > 0.0):
            raise FitError(f"weight = {self.weight!r} must be a number above 0, 'held_out', or None")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        notes, figures = list[str](), dict[str, Any]()
        weight = self.weight
        if isinstance(weight, str):
            weight, error = self._choose(problem, triangles)
            notes.append(f"weight {weight:g} of the prior, with the least error held out: {error:.3%} of the torque")
            figures |= {"weight": weight, "held_out_relative_error": error}
        prior = None if weight is None else _prior(problem, triangles, weight)
        known = None if prior is None else prior.rows(problem.base)
        weights = joint_weights(triangles, known)
        estimate = judged(problem.parts, triangles, weights, solve(triangles, weights, known))
        weights = weights / np.sqrt(max(1.0, estimate.inflation))
        if prior is not None and known is not None:
            solution = solve(triangles, weights, known)
            estimate = judged(problem.parts, triangles, weights, solution, prior=known[:, :-1])
            figures[TOLD_BY_PRIOR] = list(prior.told(problem.base, estimate.covariance))
        physical = self._search(problem, triangles, weights, weight)
        return replace(
            estimate,
            parameters=physical.base_parameters,
            notes=(*notes, f"before: {physical.verdict.reason}", *physical.notes),
            figures={**figures, "chi_square": physical.chi_square, "links_at_edge": list(physical.links_at_edge)},
            physical=physical,
        )

    def _search(
        self, problem: Problem, triangles: Triangles, weights: Array, weight: float | None
    ) -> PhysicalParameters:
        """Possible parameters of weighted rows."""
        from jointbench.identification.physical import BaseEstimate, physical_parameters

        stack = triangles.stacked(weights)
        estimate = BaseEstimate.of_qr(problem.base, stack[:, :-1], stack[:, -1])
        drives = None if weight is None else _drives(problem, triangles, weight)
        return physical_parameters(estimate, prior=self.prior, weight=weight, method=self._method, drives=drives)

    def _choose(self, problem: Problem, triangles: Triangles) -> tuple[float, float]:
        """The weight with the least error of what is held out, and that error relative to the torque."""
        splits = _splits(problem, triangles)
        torque = np.zeros(len(_WEIGHTS))
        squares = np.zeros(len(_WEIGHTS))
        for split in splits:
            for k, weight in enumerate(_WEIGHTS):
                known = _prior(problem, split.fitted, weight).rows(problem.base)
                weights = joint_weights(split.fitted, known)
                parameters = self._search(problem, split.fitted, weights, weight).base_parameters
                squares[k] += weights**2 @ split.held_out.squares(parameters)
                torque[k] += np.sum(split.held_out.stacked(weights)[:, -1] ** 2)
        errors = np.sqrt(squares / torque)
        best = int(np.argmin(errors))
        return _WEIGHTS[best], float(errors[best])


@dataclass(frozen=True)
class PhysicalLogCholesky(Physical):
    """The same by Newton's method on numbers without limits, which needs no conic solver: see `physical_parameters`.

    It agrees with "physical", less exactly where no weight is given.
    """

    name: ClassVar[str] = "physical_log_cholesky"
    _method: ClassVar[Literal["lmi", "log_cholesky"]] = "log_cholesky"


def _prior(problem: Problem, triangles: Triangles, weight: float) -> ParameterPrior:
    """The prior of a weight, to second order."""
    sigma = float(1.0 / np.sqrt(weight))
    return parameter_prior(problem.base, RelativeSigma(sigma, sigma, sigma, 1.0), triangles)


def _drives(problem: Problem, triangles: Triangles, weight: float) -> tuple[Array, Array]:
    """Return the prior of the drives, and units such that their σ does not depend on the weight."""
    prior, first = _prior(problem, triangles, weight), 10 * problem.robot.n_links
    sigma = prior.sigma[first:]
    return prior.values[first:], np.where(np.isfinite(sigma), sigma, 1.0) * np.sqrt(weight)


def _splits(problem: Problem, triangles: Triangles) -> list[Split]:
    """One split for each recording of the modelled kind of torque where there are several; else one by time."""
    kinds = [observed.settings.torque for observed in problem.observations]
    side = "joint" if "joint" in kinds else "motor"
    same = [number for number, kind in enumerate(kinds) if kind == side]
    if len(same) > 1:
        return [leave_one_out(triangles, number) for number in same]
    return [split_by_time(problem.parts)]
