"""Least squares beside a prior of possible bodies, judged by blocks of time: the default for logs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

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
from jointbench.identification.judgement import HeldOutError
from jointbench.identification.least_squares import TOLD_BY_PRIOR, Estimate, joint_sigma
from jointbench.identification.physical import BaseEstimate, PhysicalParameters, physical_parameters
from jointbench.identification.triangles import condition_number, solve
from jointbench.model import PARAMETER_NAMES, BaseParameters

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
