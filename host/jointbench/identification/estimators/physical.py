"""Estimators whose parameters a robot can have: nearest to the data, or weighed against a prior of possible bodies.

`MaximumAPosteriori`, whose prior is judged by blocks of time, is the default for logs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError, NumericalError
from jointbench.identification.blocked_least_squares import (
    BLOCKS,
    QUARTERS,
    BlockedFit,
    block_sums,
    blocked_fit,
    body_prior,
    squares,
)
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.regularised import (
    ParameterPrior,
    RelativeSigma,
    Split,
    leave_one_out,
    parameter_prior,
    split_by_time,
)
from jointbench.identification.judgement import HeldOutError
from jointbench.identification.least_squares import TOLD_BY_PRIOR, Estimate, joint_sigma, joint_weights, judged
from jointbench.identification.physical import BaseEstimate, PhysicalParameters, physical_parameters
from jointbench.identification.triangles import Triangles, compress, condition_number, solve
from jointbench.model import PARAMETER_NAMES, BaseParameters

if TYPE_CHECKING:
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
    """As `Physical`, by Newton's method on unconstrained numbers, without a conic solver: see `physical_parameters`.

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


_BY_PRIOR = 0.5
"""Share of its prior variance above which a parameter is what was thought of it rather than what was measured."""

_WORSE = 1.1
"""Error on time left out of parameters that bodies can have, as a multiple of that of the others: beyond, the model
lacks something at that joint."""


@dataclass(frozen=True)
class MaximumAPosteriori:
    """argmin Σ (torque - regressor pi)² / sigma_j² + λ D(pi, file), over parameters that bodies can have.

    Where these predict time left out a tenth worse at a joint than free ones, the free ones are taken, and a note names
    the joint.

    The prior D, a log-det divergence, holds links to those of the robot's file, which may be wrong by as much as
    themselves. Where the file describes none it is one of bodies of the links' size about zero, and the parameters are
    free. Its strength λ follows from the data: how correlated residuals are, or how well quarters of the time are
    predicted. Error bars are those of leaving one tenth of the time out after the other.

    Attributes:
        strength: λ; None: chosen.

    Source: prior of Lee, Wensing & Park, IEEE T-RO 36(1), 2020; jackknife of Künsch, Annals of Statistics 17(3), 1989.
    """

    strength: float | None = None

    name: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        """Refuse strengths that are none."""
        if self.strength is not None and not (np.isfinite(self.strength) and self.strength > 0.0):
            raise FitError(f"strength = {self.strength!r} must be a number above 0, or None to have it chosen")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        base = problem.base
        sums, triangles = block_sums(problem.parts)
        grams, counts = sums.of_groups
        rows = np.maximum(counts.sum(axis=0), 1.0)
        power = np.sqrt(np.einsum("pjkk->jk", grams) / rows[:, None])
        prior = body_prior(base, power[:, -1], power[:, :-1])
        fit = blocked_fit(sums, prior, self.strength)
        weights = np.sqrt(fit.weights).ravel()
        solution = solve(triangles, weights)
        untold = solution.untold
        covariance = fit.covariance()
        by_prior = (np.diag(covariance) > _BY_PRIOR * np.sum(prior.root**2, axis=1)) & ~untold
        covariance[untold, :] = covariance[:, untold] = 0.0
        covariance[untold, untold] = np.inf
        held_out = _held_out(fit, fit.parameters, fit.quarters)
        parameters, physical, notes = fit.parameters, None, list[str]()
        if prior.is_nominal:
            try:
                possible = _possible(base, fit)
            except (FitError, NumericalError) as error:
                notes.append(f"the parameters may be none that bodies can have: {error}")
            else:
                physical = possible.whole
                errors = _held_out(fit, physical.base_parameters, possible.quarters)
                worse = np.flatnonzero(errors.left_out > _WORSE * held_out.left_out)
                if len(worse):
                    notes.append(_lacks(base, worse))
                else:
                    parameters, held_out = physical.base_parameters, errors
                notes += physical.notes
        return Estimate(
            parameters=np.where(untold, 0.0, parameters),
            covariance=covariance,
            condition_number=condition_number(triangles),
            joint_sigma=joint_sigma(triangles, weights, replace(solution, parameters=parameters)),
            lags=max(1, sums.rows_of_time // BLOCKS),
            inflation=fit.inflation,
            notes=(_note(fit, base), *notes),
            figures={
                "strength": fit.strength,
                "inflation": fit.inflation,
                "effective_rank": fit.effective_rank,
                "rows_per_parameter": float(counts.sum() / base.rank),
                TOLD_BY_PRIOR: [name for name, which in zip(base.leading_names, by_prior, strict=True) if which],
            },
            physical=physical,
            prior=prior.rows(fit.strength),
            held_out=held_out,
        )


class _Possible(NamedTuple):
    """Parameters that bodies can have, fitted to all rows and without each quarter of the time, (QUARTERS, p)."""

    whole: PhysicalParameters
    quarters: Array


def _possible(base: BaseParameters, fit: BlockedFit) -> _Possible:
    """Fit parameters that bodies can have, by the weights and the strength of a fit of free ones."""
    first = len(PARAMETER_NAMES) * base.robot.n_links
    drives = fit.prior.mean_of_all[first:], fit.prior.sigma_of_all[first:]
    # As many rows as tell something: so the estimate's own σ, by which distances are told, is honest.
    weights, strength = fit.weights / fit.inflation, fit.strength / fit.inflation

    def fitted(without: int | None) -> PhysicalParameters:
        stack = fit.sums.stacked(weights, without)
        estimate = BaseEstimate.of_qr(base, stack[:, :-1], stack[:, -1])
        return physical_parameters(estimate, prior="log_det", weight=strength, method="lmi", drives=drives)

    return _Possible(fitted(None), np.array([fitted(quarter).base_parameters for quarter in range(QUARTERS)]))


def _lacks(base: BaseParameters, joints: NDArray[np.intp]) -> str:
    """A sentence on joints that parameters of bodies predict worse."""
    names = ", ".join(base.robot.joint_names[joint] for joint in joints)
    return (
        f"parameters that bodies can have predict {names} more than {_WORSE - 1.0:.0%} worse on time left out, so that "
        f"the model lacks something there; these here are free, and exports take those that bodies can have"
    )


def _held_out(fit: BlockedFit, whole: Array, quarters: Array) -> HeldOutError:
    """Errors of the fitted rows by parameters that have seen them, and by those fitted without their quarter."""
    sums = fit.sums
    grams, counts = sums.of_groups
    power = np.einsum("pj->j", grams[..., -1, -1])
    own = quarters[sums.block * QUARTERS // BLOCKS]
    errors = np.array([squares(grams, whole).sum(axis=0), squares(sums.grams, own[:, None, :]).sum(axis=0)])
    present = (counts.sum(axis=0) > 0.0) & (power > 0.0)
    relative = np.sqrt(np.divide(errors, power, out=np.full_like(errors, np.nan), where=present))
    return HeldOutError(relative[0], relative[1])


def _note(fit: BlockedFit, base: BaseParameters) -> str:
    """A sentence on the prior and how much the data say beside it."""
    if fit.prior.is_nominal:
        prior = f"prior of the robot file's links, strength {fit.strength:.3g}: as residuals are correlated"
    else:
        prior = f"prior of bodies of the links' size, strength {fit.strength:.3g}: by predicting quarters left out"
    rows = float(fit.sums.counts.sum()) / base.rank
    return (
        f"{prior}; {rows:.3g} rows a parameter, {fit.inflation:.3g} of which count as one for their correlation; the "
        f"data tell {fit.effective_rank:.3g} of {base.rank} parameters"
    )
