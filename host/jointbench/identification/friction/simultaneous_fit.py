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
from jointbench.identification.friction.joint_laws import CHOOSE, PLAIN, JointLaws, LawPoint, LawRows, asked_laws
from jointbench.identification.friction.law_search import (
    Bounds,
    Choice,
    Descent,
    Starts,
    at_bound,
    choose_law,
    descend,
    fit_beside,
    friction_left,
    starts_of,
)
from jointbench.identification.friction.model_friction import ModelFriction
from jointbench.identification.friction.terms import friction_law
from jointbench.identification.least_squares import Estimate
from jointbench.identification.rows import WithoutMotorSide

ESTIMATORS = ("wls", "ols", "irls", "ridge")
"""Those that look at rows alone; others know what the columns of base parameters are."""

_ROUNDS = 8
"""Of fitting each law by itself and then all together: two or three suffice."""

_CHOICES = 100
"""Of choosing laws and looking how they fit; each round settles a law or leaves one out for good, most after four."""

_HELPS = 1e-2
"""By how much the deviance must fall for another round."""

_TRIAL = 10
"""Steps after which another valley must lead lower than the best."""

_PASSES = 8
_SETTLED = 1e-3
"""σ: laws' parameters that an estimator moves by less are where it would have them."""

_ON_ITS_WAY = "the friction laws had not settled when the fit of all together was broken off: take simpler laws"

FrictionLaws = str | Mapping[str, str] | Mapping[str, FrictionFit]
"""A law for all joints with friction, or by joint; "choose" leaves it to the data. Or fits by joint, which are held."""


class LawFit(NamedTuple):
    """An estimate of the base parameters, and the friction laws beside them, where there are any."""

    estimate: Estimate
    friction: ModelFriction | None


def fit_with_laws(estimator: Estimator, problem: Problem, friction: FrictionLaws) -> LawFit:
    """Fit base parameters and friction laws together.

    First the base parameters with Coulomb and viscous friction; then each joint's law to what those leave of its
    torque, by variable projection; then all together by `descend`; and last the estimator itself, to the rows made
    linear there, with the laws' derivatives as columns beside the regressor's: so that its error bars know how laws and
    base parameters go together. Coulomb and viscous friction of these joints give way to the law.

    Args:
        estimator: one of `ESTIMATORS`.
        problem: without laws.
        friction: a law's name such as "stribeck" or "makkar+load", or "choose"; or one by joint; or by joint what an
            experiment told, which is held.

    Raises:
        FitError: no such law or joint, an estimator that cannot do it, or too few rows of a joint.

    Source: Gauss–Newton's method as in Björck, Numerical Methods for Least Squares Problems, 1996, ch. 9.
    """
    named, known = _told_apart(friction)
    if known:
        _check_possible(estimator, problem)
        return LawFit(*fit_beside(estimator, problem, known))
    asked = asked_laws(named, problem.base)
    if asked:
        _check_possible(estimator, problem)
    plain = estimator(problem)
    fitted, values = LawFit(plain, None), plain.parameters
    doubt: dict[str, dict[str, str]] = {name: {} for name in asked}
    picks: dict[str, Choice] = {}
    seen: set[tuple[str, ...]] = set()
    for _ in range(_CHOICES):
        picks = _picks(problem, asked, doubt, values)
        laws = tuple(pick.law for pick in picks.values())
        search = _LawSearch(problem, {name: pick for name, pick in picks.items() if pick.law != PLAIN}, values)
        if CHOOSE in asked.values() and laws not in seen:
            seen.add(laws)
            values = search.quick()
            continue
        fitted = _fit(estimator, search, plain)
        doubtful = {name: why for name, why in _doubtful(fitted.friction).items() if asked[name] == CHOOSE}
        if not doubtful:
            break
        for name, why in doubtful.items():
            doubt[name][picks[name].law] = why
        values = fitted.estimate.parameters
    notes = [
        f"friction of {name}: {'; '.join([f'{pick.law} chosen, {pick.reason}', *doubt[name].values()])}"
        for name, pick in picks.items()
        if asked[name] == CHOOSE
    ]
    estimate = replace(fitted.estimate, notes=(*fitted.estimate.notes, *notes))
    return LawFit(estimate, fitted.friction)


def _picks(
    problem: Problem, asked: Mapping[str, str], doubt: Mapping[str, Mapping[str, str]], values: Array
) -> dict[str, Choice]:
    """The law of each joint, as asked for or as friction next to these base parameters advises."""
    picks: dict[str, Choice] = {}
    for name, law in asked.items():
        if law == CHOOSE:
            picks[name] = choose_law(friction_left(problem.parts, problem.base, values, name), doubt[name])
        else:
            picks[name] = Choice(law, "as asked for")
    return picks


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


def _doubtful(friction: ModelFriction | None) -> dict[str, str]:
    """Reasons against each joint's law after the fit of all together: part of it may be zero."""
    if friction is None:
        return {}
    reasons: dict[str, str] = {}
    for name, law in friction.laws.laws.items():
        verdicts = friction.of_joint(name)[: len(law.coefficients)]
        refused = [verdict.name for verdict in verdicts if verdict.is_refused]
        if refused:
            reasons[name] = f"not {law.name}, as the motion does not tell {', '.join(refused)}"
    return reasons


def _fit(estimator: Estimator, search: _LawSearch, plain: Estimate) -> LawFit:
    """All together, with these laws."""
    laws = search.laws
    if not laws.laws:
        return LawFit(plain, None)
    down, bounds = search.thorough()
    settled = _settle(estimator, search, down, bounds)
    covariance = _Covariance.of(settled, laws)
    friction = ModelFriction(
        laws=laws,
        parameters=settled.point.laws,
        covariance=covariance.laws,
        with_base=covariance.with_base,
        at_bound=settled.held,
        speeds=search.speeds,
        reasons={name: pick.reason for name, pick in search.picks.items()},
    )
    estimate = replace(
        settled.estimate,
        parameters=laws.full(settled.point.base),
        covariance=covariance.base,
        notes=(*settled.estimate.notes, *(() if settled.arrived else (_ON_ITS_WAY,))),
    )
    return LawFit(estimate, friction)


@dataclass(frozen=True, eq=False)
class _LawSearch:
    """Search for the laws' best parameters.

    Attributes:
        problem: without laws.
        picks: laws of some joints.
        values: of the base parameters, next to which laws are fitted one by one at first, shape (rank,).
    """

    problem: Problem
    picks: Mapping[str, Choice]
    values: Array

    @cached_property
    def laws(self) -> JointLaws:
        """Laws of these joints."""
        return JointLaws(self.problem.base, {name: friction_law(pick.law) for name, pick in self.picks.items()})

    @cached_property
    def speeds(self) -> dict[str, tuple[float, float]]:
        """Slowest and fastest row of each joint."""
        speeds = {name: np.abs(data.velocity) for name, data in self._left(self.values).items()}
        return {name: (float(speed.min()), float(speed.max())) for name, speed in speeds.items()}

    def rows_at(self, point: LawPoint, held: NDArray[np.bool_]) -> tuple[LawRows, ...]:
        """The rows made linear around a point."""
        return tuple(
            LawRows(part, observations, self.laws, point, held)
            for part, observations in zip(self.problem.parts, self.problem.observations, strict=True)
        )

    def quick(self) -> Array:
        """Base parameters beside the laws, as serves to choose these, shape (rank,)."""
        if not self.laws.laws:
            return self.values
        starts = starts_of(self.laws, self.values, self._left(self.values))
        return self.laws.full(descend(self.rows_at, starts.best, starts.bounds).point.base)

    def thorough(self) -> tuple[Descent, Bounds]:
        """Each law fitted by itself, then all together; again with what is left then, as long as that helps."""
        values, best = self.values, None
        for _ in range(_ROUNDS):
            starts = starts_of(self.laws, values, self._left(values))
            descent = descend(self.rows_at, starts.best, starts.bounds)
            if best is not None and descent.deviance > best[0].deviance - _HELPS:
                break
            best = _of_all_valleys(self, descent, starts), starts.bounds
            values = self.laws.full(best[0].point.base)
        assert best is not None
        return best

    def _left(self, values: Array) -> dict[str, FrictionData]:
        return {name: friction_left(self.problem.parts, self.problem.base, values, name) for name in self.picks}


def _of_all_valleys(search: _LawSearch, best: Descent, starts: Starts) -> Descent:
    """The best descent where each joint's law may also begin in its other valleys."""
    for name, valleys in starts.others.items():
        for valley in valleys:
            values = best.point.laws.copy()
            values[search.laws.parts[name]] = valley
            descent = descend(search.rows_at, LawPoint(best.point.base, values), starts.bounds, _TRIAL)
            if descent.deviance < best.deviance - _HELPS:
                best = descend(search.rows_at, descent.point, starts.bounds)
    return best


class _Settled(NamedTuple):
    """An estimate of rows made linear around itself, and its error bars were no parameter held at a bound."""

    point: LawPoint
    held: NDArray[np.bool_]
    estimate: Estimate
    arrived: bool


def _settle(estimator: Estimator, search: _LawSearch, down: Descent, bounds: Bounds) -> _Settled:
    """Let the estimator have its way with rows around its own last estimate, until that stays."""
    point, n, stays = down.point, len(down.point.base), False
    low, high = bounds.values.T
    held = at_bound(point.laws, bounds.values)
    estimate = estimator(replace(search.problem, parts=search.rows_at(point, held)))
    for _ in range(_PASSES):
        sigma = np.sqrt(np.diag(estimate.covariance))[n:]
        free, finite = np.flatnonzero(~held), np.isfinite(sigma)
        laws = point.laws.copy()
        laws[free[finite]] = np.clip(estimate.parameters[n:][finite], low[free[finite]], high[free[finite]])
        stays = bool(np.all(np.abs(laws - point.laws)[free[finite]] <= _SETTLED * sigma[finite]))
        point = LawPoint(estimate.parameters[:n], laws)
        if stays:
            break
        held = at_bound(point.laws, bounds.values)
        estimate = estimator(replace(search.problem, parts=search.rows_at(point, held)))
    if held.any():
        # A bound is not knowledge: the error bars of all else are those with the held ones free.
        estimate = estimator(replace(search.problem, parts=search.rows_at(point, np.zeros_like(held))))
    return _Settled(point, held, estimate, down.arrived and stays)


class _Covariance(NamedTuple):
    """Covariance of the base parameters, of the laws', and of both, infinite where not told."""

    base: Array
    laws: Array
    with_base: Array

    @classmethod
    def of(cls, settled: _Settled, laws: JointLaws) -> _Covariance:
        """Return it with the base parameters that laws stand for in their places."""
        both, n, kept = settled.estimate.covariance, len(settled.point.base), np.flatnonzero(laws.kept)
        base = np.diag(np.where(laws.kept, 0.0, np.inf))
        base[np.ix_(kept, kept)] = both[:n, :n]
        with_base = np.zeros((laws.base.rank, laws.n_parameters))
        with_base[kept] = both[:n, n:]
        return cls(base, both[n:, n:], with_base)
