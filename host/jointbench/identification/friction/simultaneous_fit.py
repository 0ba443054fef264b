"""Friction laws and the rest of a robot fitted together, by any estimator that is content with columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.estimator import Estimator, Problem
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.fit import FrictionFit
from jointbench.identification.friction.joint_laws import CHOOSE, JointLaws, LawPoint, LawRows, asked_laws
from jointbench.identification.friction.law_choice import Selection, grids_of, select_laws
from jointbench.identification.friction.law_search import Bounds, Descent, at_bound, descend, fit_beside, friction_left
from jointbench.identification.friction.law_tables import LawTables
from jointbench.identification.friction.model_friction import ModelFriction
from jointbench.identification.least_squares import Estimate
from jointbench.identification.rows import WithoutMotorSide

ESTIMATORS = ("map", "wls", "ols", "irls", "ridge", "physical", "physical_log_cholesky")
"""Those that look at rows alone, or at what extended base parameters stand for."""

_CHOICES = 20
"""Of choosing laws and looking how they fit; each leaves out laws that do not, and two mostly suffice."""

_MANY_PASSES = (8, 1e-3)
"""Of an estimator around its own last estimate, at most, and by how many σ the laws' parameters may then move."""

_PASSES = {"map": (2, 0.1), "physical": (2, 0.1), "physical_log_cholesky": (2, 0.1)}
"""The same of estimators that take longer: of the first the descent knows the prior already, and all are next to it."""

_ON_ITS_WAY = "the friction laws had not settled when the fit of all together was broken off: take simpler laws"

FrictionLaws = str | Mapping[str, str] | Mapping[str, FrictionFit]
"""A law for all joints with friction, or by joint; "choose" leaves it to the data. Or fits by joint, which are held."""


class LawFit(NamedTuple):
    """An estimate of the base parameters, and the friction laws beside them, where there are any.

    Attributes:
        estimate: of all base parameters, those that a law stands for zero.
        friction: the laws.
        around: with laws, the problem made linear around them and its estimate: of the base parameters that no law
            stands for, then of the laws' parameters.
    """

    estimate: Estimate
    friction: ModelFriction | None
    around: tuple[Problem, Estimate] | None = None

    def with_calibration(self, covariance: Array) -> LawFit:
        """Return the fit with calibration in the error bars of the laws.

        Args:
            covariance: of all parameters of `around` by calibration alone.
        """
        if self.friction is None:
            return self
        n = int(np.count_nonzero(self.friction.laws.kept))
        if len(covariance) == n:  # laws that are held
            return self
        with_base = self.friction.with_base.copy()
        with_base[self.friction.laws.kept] += covariance[:n, n:]
        friction = replace(self.friction, covariance=self.friction.covariance + covariance[n:, n:], with_base=with_base)
        return self._replace(friction=friction)


def fit_with_laws(
    estimator: Estimator, problem: Problem, friction: FrictionLaws, plain: Estimate | None = None
) -> LawFit:
    """Fit base parameters and friction laws together.

    First the base parameters with Coulomb and viscous friction. Then one set of sums of all columns, with the laws' on
    grids of their shapes (`LawTables`): in it laws are chosen by time left out, and their parameters are found but for
    what grids leave. Then all together by `descend`, once; and last the estimator itself, to the rows made linear
    there, with the laws' derivatives as columns beside the regressor's: so that its error bars know how laws and base
    parameters go together, and links stay possible where the estimator keeps them so. Coulomb and viscous friction of
    these joints give way to the law.

    Args:
        estimator: one of `ESTIMATORS`.
        problem: without laws.
        friction: a law's name such as "stribeck" or "makkar+load", or "choose"; or one by joint; or by joint what an
            experiment told, which is held.
        plain: the estimator's estimate of the problem without laws; None: made here.

    Raises:
        FitError: no such law or joint, an estimator that cannot do it, or too few rows of a joint.

    Source: Gauss–Newton's method as in Björck, Numerical Methods for Least Squares Problems, 1996, ch. 9.
    """
    named, known = _told_apart(friction)
    if known:
        _check_possible(estimator, problem)
        return LawFit(*fit_beside(estimator, problem, known, plain))
    asked = asked_laws(named, problem.base)
    if asked:
        _check_possible(estimator, problem)
    plain = estimator(problem) if plain is None else plain
    if not asked:
        return LawFit(plain, None)
    parameters = plain.parameters
    data = {name: friction_left(problem.parts, problem.base, parameters, name) for name in asked}
    tables = LawTables.of(problem, parameters, grids_of(data, asked), plain.prior)
    excluded: dict[str, dict[str, str]] = {name: {} for name in asked}
    selection = select_laws(tables, asked, parameters, excluded)
    search = _LawSearch(estimator, problem, selection, plain, data)
    for _ in range(_CHOICES):
        # What the end of the descent says against a law is said before the estimator has gone on from there.
        doubtful = _doubtful(search.first, asked) or _doubtful(search.settled.friction, asked)
        if not doubtful:
            break
        for name, why in doubtful.items():
            excluded[name][selection.picks[name].law] = why
        selection = select_laws(tables, asked, parameters, excluded, selection)
        search = replace(search, selection=selection)
    fitted = search.settled
    notes = [
        f"friction of {name}: {'; '.join([f'{pick.law} chosen, {pick.reason}', *pick.refused])}"
        for name, pick in selection.picks.items()
        if asked[name] == CHOOSE
    ]
    estimate = replace(fitted.estimate, notes=(*fitted.estimate.notes, *notes))
    return fitted._replace(estimate=estimate)


def _told_apart(friction: FrictionLaws) -> tuple[str | dict[str, str], dict[str, FrictionFit]]:
    """Names of laws, or the fits where it is fits that are given."""
    if isinstance(friction, str):
        return friction, {}
    named = {name: law for name, law in friction.items() if isinstance(law, str)}
    known = {name: law for name, law in friction.items() if isinstance(law, FrictionFit)}
    if named and known:
        raise FitError(
            f"friction is a fit for {', '.join(known)} and the name of a law for {', '.join(named)}; give fits for all "
            f"of these joints, or names for all"
        )
    return named, known


def _check_possible(estimator: Estimator, problem: Problem) -> None:
    """Refuse what cannot have laws beside it."""
    if estimator.name not in ESTIMATORS:
        raise FitError(
            f"estimator {estimator.name!r} fits no friction laws: it has to know all columns; take one of "
            f"{', '.join(ESTIMATORS)}, or leave friction out"
        )
    if any(isinstance(part, WithoutMotorSide) for part in problem.parts):
        raise FitError(
            "friction laws cannot be fitted to runs with torque sensors and runs with motor currents together: "
            "friction lies before the sensor; give runs of one kind"
        )


def _doubtful(friction: ModelFriction | None, asked: Mapping[str, str]) -> dict[str, str]:
    """Reasons against the laws that were chosen, after the fit of all together: part of it may be zero."""
    if friction is None:
        return {}
    reasons: dict[str, str] = {}
    for name, law in friction.laws.laws.items():
        verdicts = friction.of_joint(name)[: len(law.coefficients)]
        refused = [verdict.name for verdict in verdicts if verdict.is_refused]
        if refused and asked[name] == CHOOSE:
            reasons[name] = f"not {law.name}, as the motion does not tell {', '.join(refused)}"
    return reasons


@dataclass(frozen=True, eq=False)
class _LawSearch:
    """Search for the best parameters of given laws and all else together.

    Attributes:
        estimator: that has the last word.
        problem: without laws.
        selection: the laws, and where to begin.
        plain: estimate with Coulomb and viscous friction.
        data: friction of each joint.
    """

    estimator: Estimator
    problem: Problem
    selection: Selection
    plain: Estimate
    data: Mapping[str, FrictionData]

    @property
    def laws(self) -> JointLaws:
        """Laws of some joints."""
        return self.selection.laws

    @cached_property
    def down(self) -> Descent:
        """The least weighted squares beside what is known of the base parameters."""
        bounds = Bounds(self.selection.bounds, self.laws.is_shape)
        known = self.plain.prior
        prior = None if known is None else known[:, np.append(self.laws.kept, True)]
        return descend(self._rows_at, self.selection.start, bounds, prior)

    @cached_property
    def first(self) -> ModelFriction | None:
        """The laws at the end of the descent, with the error bars that the estimator gives them; None of no laws."""
        if not self.laws.laws:
            return None
        held = at_bound(self.down.point.laws, self.selection.bounds)
        return self._friction(self.down.point, held, _Covariance.of(self._first, self.laws))

    @cached_property
    def settled(self) -> LawFit:
        """The estimate, and the laws, around which rows are linear as the estimator goes on until it stays."""
        if not self.laws.laws:
            return LawFit(self.plain, None)
        point, n, stays = self.down.point, len(self.down.point.base), False
        low, high = self.selection.bounds.T
        held = at_bound(point.laws, self.selection.bounds)
        estimate = self._estimate(point, held) if held.any() else self._first
        passes, near = _PASSES.get(self.estimator.name, _MANY_PASSES)
        for number in range(1, passes + 1):
            sigma = np.sqrt(np.diag(estimate.covariance))[n:]
            free, finite = np.flatnonzero(~held), np.isfinite(sigma)
            laws = point.laws.copy()
            laws[free[finite]] = np.clip(estimate.parameters[n:][finite], low[free[finite]], high[free[finite]])
            stays = bool(np.all(np.abs(laws - point.laws)[free[finite]] <= near * sigma[finite]))
            point = LawPoint(estimate.parameters[:n], laws)
            if stays or number == passes:
                break
            held = at_bound(point.laws, self.selection.bounds)
            estimate = self._estimate(point, held)
        if held.any():
            # A bound is not knowledge: the error bars of all else are those with the held ones free.
            estimate = self._estimate(point, np.zeros_like(held))
        covariance = _Covariance.of(estimate, self.laws)
        whole = replace(
            estimate,
            parameters=self.laws.full(point.base),
            covariance=covariance.base,
            notes=(*estimate.notes, *(() if self.down.arrived and stays else (_ON_ITS_WAY,))),
            prior=None,
        )
        around = self._problem(point, np.zeros_like(held)), estimate
        return LawFit(whole, self._friction(point, held, covariance), around)

    @cached_property
    def _first(self) -> Estimate:
        """Estimate around the end of the descent, nothing held."""
        return self._estimate(self.down.point, np.zeros(self.laws.n_parameters, dtype=np.bool_))

    def _estimate(self, point: LawPoint, held: NDArray[np.bool_]) -> Estimate:
        """Estimate base parameters and laws' parameters that are not held from rows made linear around a point."""
        return self.estimator(self._problem(point, held))

    def _problem(self, point: LawPoint, held: NDArray[np.bool_]) -> Problem:
        """The problem made linear around a point."""
        return replace(self.problem, base=self.laws.extended_base(held), parts=self._rows_at(point, held))

    def _rows_at(self, point: LawPoint, held: NDArray[np.bool_]) -> tuple[LawRows, ...]:
        """The rows made linear around a point."""
        return tuple(
            LawRows(part, observations, self.laws, point, held)
            for part, observations in zip(self.problem.parts, self.problem.observations, strict=True)
        )

    def _friction(self, point: LawPoint, held: NDArray[np.bool_], covariance: _Covariance) -> ModelFriction:
        speeds = {name: np.abs(self.data[name].velocity) for name in self.laws.laws}
        return ModelFriction(
            laws=self.laws,
            parameters=point.laws,
            covariance=covariance.laws,
            with_base=covariance.with_base,
            at_bound=held,
            speeds={name: (float(speed.min()), float(speed.max())) for name, speed in speeds.items()},
            reasons={name: self.selection.picks[name].reason for name in self.laws.laws},
        )


class _Covariance(NamedTuple):
    """Covariance of the base parameters, of the laws', and of both, infinite where not told."""

    base: Array
    laws: Array
    with_base: Array

    @classmethod
    def of(cls, estimate: Estimate, laws: JointLaws) -> _Covariance:
        """Return that of an estimate of all of them, with the base parameters that laws stand for in their places."""
        both, kept = estimate.covariance, np.flatnonzero(laws.kept)
        n = len(kept)
        base = np.diag(np.where(laws.kept, 0.0, np.inf))
        base[np.ix_(kept, kept)] = both[:n, :n]
        with_base = np.zeros((laws.base.rank, laws.n_parameters))
        with_base[kept] = both[:n, n:]
        return cls(base, both[n:, n:], with_base)
