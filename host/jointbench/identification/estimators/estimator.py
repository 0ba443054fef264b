"""An estimator's problem, the estimators by name, and those that weigh rows alone."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, cast

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.least_squares import Estimate, joint_weights, judged, least_squares
from jointbench.identification.observations import Observations
from jointbench.identification.rows import Block, Rows
from jointbench.identification.triangles import (
    GroupRows,
    Solution,
    Triangles,
    blocks_of,
    compress,
    group_rows,
    solve,
)
from jointbench.model import BaseParameters, Robot
from jointbench.recording import Run


@dataclass(frozen=True, eq=False)
class Problem:
    """Find base parameters of a robot from rows of one or more recordings.

    Attributes:
        robot: whose parameters.
        base: what the columns stand for.
        runs: the recordings.
        observations: of each run, with its settings decided.
        parts: the rows to fit, of each run; its joints have noise levels of their own.
    """

    robot: Robot
    base: BaseParameters
    runs: tuple[Run, ...]
    observations: tuple[Observations, ...]
    parts: tuple[Rows, ...]

    @cached_property
    def rows(self) -> Rows:
        """All parts as one, with gaps between them."""
        return self.parts[0] if len(self.parts) == 1 else JoinedRows(self.parts)


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """Rows of several recordings, one after the other and never adjoining.

    Attributes:
        parts: with the same joints and columns.
    """

    parts: tuple[Rows, ...]

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.parts[0].n_joints

    @property
    def n_parameters(self) -> int:
        """Columns of the regressor."""
        return self.parts[0].n_parameters

    def blocks(self) -> Iterator[Block]:
        """All rows in order of the recordings, each in order of time."""
        free = 0
        for part in self.parts:
            first, stop = free, free
            for block in part.blocks():
                yield replace(block, start=first + block.start)
                stop = first + block.stop
            free = stop + 1


DEFAULT = "wls"
"""Of runs whose noise is known, from repeats or the boards' filters."""

FOR_LOGS = "map"
"""Of logs of which nothing but their samples is known."""


class Estimator(Protocol):
    """A frozen record whose fields are its options; called with a problem, it estimates."""

    name: ClassVar[str]

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        ...


class _Entry(NamedTuple):
    module: str
    record: str
    sentence: str


_KINDS: dict[str, tuple[type, str]] = {
    "int": (numbers.Integral, "a whole number"),
    "float": (numbers.Real, "a number"),
    "str": (str, "a word"),
    "Literal": (str, "a word"),
    "PriorName": (str, "a word"),
    "None": (type(None), "None"),
}
"""What an option's annotation lets its value be."""

_ROOM = "jointbench.identification.estimators"

_KNOWN = {
    "wls": _Entry("estimator", "WeightedLeastSquares", "each joint weighted by its own noise; the default"),
    "map": _Entry("physical", "MaximumAPosteriori", "beside a prior of possible bodies, judged by time left out"),
    "ols": _Entry("estimator", "OrdinaryLeastSquares", "all torques weighted alike, for comparison"),
    "irls": _Entry("estimator", "RobustLeastSquares", "rows far off count less: for torques with gross errors"),
    "ridge": _Entry(
        "regularised", "Ridge", "parameters drawn to zero as held-out blocks of time advise: for poor motion"
    ),
    "bayes": _Entry("regularised", "Bayes", "weighed against the robot file's parameters, by how well these are known"),
    "physical": _Entry("physical", "Physical", "the nearest parameters that bodies can have, by matrix inequalities"),
    "physical_log_cholesky": _Entry(
        "physical", "PhysicalLogCholesky", "the same by Newton's method on log-Cholesky numbers"
    ),
    "iv": _Entry("instrumental", "InstrumentalVariables", "right where noise in positions biases least squares"),
    "output_error": _Entry(
        "output_error", "OutputError", "a closed-loop simulation's torque against the measured one (DIDIM)"
    ),
}

ESTIMATORS = tuple(_KNOWN)


def make_estimator(estimator: str | Estimator = DEFAULT, options: Mapping[str, Any] | None = None) -> Estimator:
    """The estimator of this name, with options by name; or the given one itself.

    Raises:
        FitError: there is no such estimator, it has no such option, or a value is not allowed.
    """
    if not isinstance(estimator, str):
        if options:
            raise FitError(f"options {', '.join(options)} are for an estimator by name; give them to the record itself")
        return estimator
    if estimator not in _KNOWN:
        raise FitError(f"estimator {estimator!r} is not known; the estimators are {', '.join(ESTIMATORS)}")
    record = _record(estimator)
    known = {field.name: str(field.type) for field in dataclasses.fields(cast(Any, record))}
    for option, value in (options or {}).items():
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise FitError(f"estimator {estimator!r} has no option {option!r}; {has}")
        _check_kind(estimator, option, value, known[option])
    return record(**(options or {}))


def estimator_options(estimator: Estimator) -> dict[str, Any]:
    """An estimator's options as plain values by name."""
    return dataclasses.asdict(cast(Any, estimator))


def estimator_help() -> str:
    """One line for each estimator."""
    return "\n".join(f"{name}: {entry.sentence}" for name, entry in _KNOWN.items())


def _check_kind(estimator: str, option: str, value: object, annotation: str) -> None:
    """Refuse a word for a number and the like; what numbers and words may be is for the record to say."""
    kinds = [_KINDS[word] for word in re.findall(r"\w+", annotation) if word in _KINDS]
    if isinstance(value, bool) or not isinstance(value, tuple(kind for kind, _ in kinds)):
        words = " or ".join(dict.fromkeys(word for _, word in kinds))
        raise FitError(f"option {option} = {value!r} of estimator {estimator!r} must be {words}")


def _record(name: str) -> type[Estimator]:
    entry = _KNOWN[name]
    return cast(type[Estimator], getattr(import_module(f"{_ROOM}.{entry.module}"), entry.record))


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Each joint of each recording weighted by the inverse deviation of its residual: see `least_squares`.

    The default, for it assumes least: no prior, no shape of the noise, and of all linear estimators that are unbiased
    it has the least variance as far as joints' noises differ but rows of one joint do not.
    """

    name: ClassVar[str] = "wls"

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        return least_squares(problem.parts)


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """argmin Σ (torque - regressor pi)² [N²·m²], which the joints with the largest torques rule.

    Its error bars are as honest as those of `least_squares`; the estimate is only less exact.
    """

    name: ClassVar[str] = "ols"

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        weights = np.ones(len(triangles.counts))
        return judged(problem.parts, triangles, weights, solve(triangles, weights))


_TUNING = {"huber": 1.345, "bisquare": 4.685}
"""Residuals [σ] from where rows count less, or not at all: of normal noise the estimate then keeps 95 % of its
efficiency (Holland & Welsch, 1977)."""

_NORMAL = 0.6745
"""Median of a normal variable's magnitude [σ]."""

_STEPS = 50
_CLOSE = 1e-3
"""Change of the parameters at which steps end [σ of all together]."""

_LEAST_SLOPE = 0.1
"""Of the score, on average over a joint's rows: with less, nearly all rows are far off, and σ is not told."""


@dataclass(frozen=True)
class RobustLeastSquares:
    """Iteratively reweighted least squares: min Σ rho((torque - regressor pi) / sigma) over the rows.

    "huber": squares near zero and linear beyond the tuning constant, so that no row pulls more than that; convex.
    "bisquare": starts from that and gives rows beyond its constant no pull at all; choose it for gross errors. The
    sigma of each joint is the median of its residuals' magnitudes, divided by that of normal noise. What friction the
    model lacks is far off too: look at the share of rows that count less than half before believing the rest.

    Attributes:
        loss: "huber" or "bisquare".
        tuning: its constant [σ]; None: 1.345, or 4.685.

    Source: Huber, Robust Statistics, 1981, and of the covariance its sec. 7.6, with scores correlated in time as in
    `least_squares`; Beaton & Tukey, Technometrics 16(2), 1974; Holland & Welsch, Comm. in Statistics 6(9), 1977.
    """

    loss: Literal["huber", "bisquare"] = "huber"
    tuning: float | None = None

    name: ClassVar[str] = "irls"

    def __post_init__(self) -> None:
        """Refuse what is no loss."""
        if self.loss not in _TUNING:
            raise FitError(f"loss {self.loss!r} is not known; the losses are {', '.join(_TUNING)}")
        if self.tuning is not None and not (np.isfinite(self.tuning) and self.tuning > 0.0):
            raise FitError(f"tuning = {self.tuning!r} must be above 0 σ, or None for {_TUNING[self.loss]} σ")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        parts = problem.parts
        plain = compress(parts)
        solution = solve(plain, joint_weights(plain))
        huber = _Huber(self.tuning if self.loss == "huber" and self.tuning else _TUNING["huber"])
        fitted = _iterate(parts, plain, solution, huber)
        if self.loss == "bisquare":
            bisquare = _Bisquare(self.tuning or _TUNING["bisquare"])
            fitted = _iterate(parts, plain, fitted.solution, bisquare)
        return fitted.judged(parts, plain, problem.robot.joint_names)


@dataclass(frozen=True)
class _Huber:
    constant: float

    def weight(self, u: Array) -> Array:
        return np.minimum(1.0, self.constant / np.maximum(np.abs(u), self.constant))

    def slope(self, u: Array) -> Array:
        return (np.abs(u) < self.constant).astype(np.float64)


@dataclass(frozen=True)
class _Bisquare:
    constant: float

    def weight(self, u: Array) -> Array:
        return np.maximum(1.0 - (u / self.constant) ** 2, 0.0) ** 2

    def slope(self, u: Array) -> Array:
        square = np.minimum((u / self.constant) ** 2, 1.0)
        return (1.0 - square) * (1.0 - 5.0 * square)


_Loss = _Huber | _Bisquare


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Parameters where the steps ended, each group's sigma, 0 where it has none, and how far the last step went [σ]."""

    solution: Solution
    sigma: Array
    loss: _Loss
    steps: int
    change: float

    def judged(self, parts: Sequence[Rows], plain: Triangles, names: tuple[str, ...]) -> Estimate:
        residuals = _residuals(parts, plain, self.solution.parameters)
        scaled = [each / (sigma or 1.0) for each, sigma in zip(residuals, self.sigma, strict=True)]
        slopes = np.array([np.mean(self.loss.slope(u)) if len(u) else 1.0 for u in scaled])
        slopes = np.sqrt(np.maximum(slopes, _LEAST_SLOPE))
        weights = slopes * _inverse(self.sigma)
        bread = replace(solve(plain, weights), parameters=self.solution.parameters)

        def score(group: int, residual: Array) -> Array:
            u = residual / slopes[group]
            return u * self.loss.weight(u) / slopes[group]

        estimate = judged(parts, plain, weights, bread, score=score)
        little = np.array([np.sum(self.loss.weight(u) < 0.5) for u in scaled]).reshape(-1, plain.n_joints).sum(axis=0)
        rows = plain.counts.reshape(-1, plain.n_joints).sum(axis=0)
        shares = little / np.maximum(rows, 1)
        listed = ", ".join(f"{name} {share:.1%}" for name, share in zip(names, shares, strict=True))
        return replace(
            estimate,
            joint_sigma=_pooled(self.sigma, plain),
            notes=(f"rows that count less than half, after {self.steps} steps: {listed}", *self._unsettled),
            figures={
                "iterations": self.steps,
                "last_change_sigma": self.change,
                "share_counting_less_than_half": shares.tolist(),
            },
        )

    @property
    def _unsettled(self) -> tuple[str, ...]:
        if self.change < _CLOSE:
            return ()
        return (f"the weights have not settled: the last step changed the parameters by {self.change:.2g} σ",)


def _iterate(parts: Sequence[Rows], plain: Triangles, solution: Solution, loss: _Loss) -> _Fitted:
    """Reweight, sigma and all, until the parameters stay."""
    sigma, steps, change = np.ones(len(plain.counts)), 0, np.inf
    while steps < _STEPS and not change < _CLOSE:
        before = solution.parameters
        sigma = _scales(_residuals(parts, plain, before), plain)
        triangles = compress(parts, _Weigh(before, _inverse(sigma), loss))
        solution, steps = solve(triangles, _inverse(sigma)), steps + 1
        moved = triangles.stacked(_inverse(sigma))[:, :-1] @ (solution.parameters - before)
        change = float(np.linalg.norm(moved))
    return _Fitted(solution, sigma, loss, steps, change)


@dataclass(frozen=True, eq=False)
class _Weigh:
    """Root of the weight of rows, by their residuals from parameters."""

    parameters: Array
    per_sigma: Array
    loss: _Loss

    def __call__(self, rows: GroupRows) -> Array:
        residual = rows.torque - self.parameters[rows.parameters] @ rows.columns
        return np.sqrt(self.loss.weight(self.per_sigma[rows.group] * residual))


def _residuals(parts: Sequence[Rows], plain: Triangles, parameters: Array) -> list[Array]:
    """Return the residuals of each group's rows."""
    found: list[list[Array]] = [[] for _ in plain.counts]
    for first, block in blocks_of(parts):
        for rows in group_rows(block, first):
            found[rows.group].append((rows.torque - parameters[rows.parameters] @ rows.columns)[rows.used])
    return [np.concatenate(each) if each else np.zeros(0) for each in found]


def _scales(residuals: list[Array], plain: Triangles) -> Array:
    """Sigma of each group by the median, for the freedom that its rows have left; 0 of one without rows."""
    medians = np.array([np.median(np.abs(residual)) if len(residual) else 0.0 for residual in residuals])
    _, freedom = solve(plain, _inverse(medians)).variances(plain, _inverse(medians))
    share = np.divide(freedom, plain.counts, out=np.ones_like(freedom), where=plain.counts > 0)
    return medians / _NORMAL / np.sqrt(share)


def _inverse(sigma: Array) -> Array:
    return 1.0 / np.where(sigma > 0.0, sigma, 1.0)


def _pooled(sigma: Array, plain: Triangles) -> Array:
    """Return the sigma of each joint over all recordings, nan where it has no rows."""
    counts = plain.counts.reshape(-1, plain.n_joints).astype(np.float64)
    squares = np.sum(counts * sigma.reshape(counts.shape) ** 2, axis=0)
    rows = counts.sum(axis=0)
    return np.sqrt(np.divide(squares, rows, out=np.full(len(rows), np.nan), where=rows > 0.0))
