"""Instrumental variables: right where measured positions are so noisy that least squares are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.closed_loop import check_can_be_simulated
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.estimators.output_error import (
    MADE_POSSIBLE,
    SETTLED,
    Follower,
    iterate,
    largest_change,
    planned_run,
    simulate_runs,
)
from jointbench.identification.estimators.paired_rows import (
    BlockPair,
    Chosen,
    OtherRegressor,
    PairedRows,
    Pairs,
    period_halves,
)
from jointbench.identification.least_squares import (
    LEAST_EXPECTED,
    ConsecutiveTerms,
    Estimate,
    LongRun,
    expected_share,
    least_squares,
    windowed_covariance,
)
from jointbench.identification.observations import observe
from jointbench.identification.rows import Rows
from jointbench.identification.triangles import Triangles, compress, solve
from jointbench.recording import Run

INSTRUMENTS = ("simulated", "planned", "periods")

_WEAK = 0.5
"""Canonical correlation under which instruments cost more than twice the error bars of a combination of parameters."""


@dataclass(frozen=True)
class InstrumentalVariables:
    """For noisy positions: an estimate that errors of the measured motion do not bias.

    Instruments are the regressor of another motion at the same times, which goes with the true one and knows nothing of
    what the encoders got wrong. Noise of positions, unlike that of torque, pulls least squares to one side, as it is in
    the regressor itself, squared by the second derivative; here it only widens the error bars.

    Attributes:
        instruments: "simulated": the motion of a robot with the parameters so far, under its servo, again and again
            until they settle (IDIM-IV); along the planned motion, or the measured one where no plan is known: then
            errors slower than the servo get through. "planned": the planned motion itself. "periods": that of the
            other half of the periods of a repeated motion.
        passes: of simulation at most.
        bandwidth_Hz: of the simulated servo; None: the boards' own, else 10 Hz along a plan, and 3 cut-offs along a
            measured motion.

    Raises:
        FitError: an option that is not one of these.

    Source: Janot, Vandanjon & Gautier, A generic instrumental variable approach for industrial robot identification,
    IEEE Trans. Control Systems Technology 22(1), 2014.
    """

    instruments: str = "simulated"
    passes: int = 20
    bandwidth_Hz: float | None = None
    name: ClassVar[str] = "iv"

    def __post_init__(self) -> None:
        """Refuse options that nobody can mean."""
        if self.instruments not in INSTRUMENTS:
            words = ", ".join(map(repr, INSTRUMENTS))
            raise FitError(f"iv: instruments = {self.instruments!r} must be one of {words}")
        if self.passes < 1:
            raise FitError(f"iv: passes = {self.passes} must be 1 or more")
        if self.bandwidth_Hz is not None and not 0.0 < self.bandwidth_Hz < np.inf:
            raise FitError(f"iv: bandwidth_Hz = {self.bandwidth_Hz:g} must be a number above 0, or None")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate a problem's parameters.

        Raises:
            FitError: a run cannot give these instruments; names it and what can.
        """
        plain = least_squares(problem.parts)
        if self.instruments == "simulated":
            fitted, passes, words = self._by_simulation(problem)
            source = f"{words}; {passes} passes until the parameters settled within {SETTLED:g} σ"
        elif self.instruments == "planned":
            runs = [planned_run(run) for run in problem.runs]
            fitted, passes, source = (
                instrumented_fit(_parts(problem, runs, [None] * len(runs))),
                1,
                "the planned motion",
            )
        else:
            pairs = period_halves(problem)
            fitted, passes, source = instrumented_fit(pairs), 1, "each half of the periods, for the other half's rows"
        moved, at = largest_change(fitted.estimate, plain.parameters)
        joints = problem.robot.n_joints  # halves have twice as many
        pooled = np.sqrt(np.mean(fitted.estimate.joint_sigma.reshape(-1, joints) ** 2, axis=0))
        notes = [
            f"instruments: {source}",
            f"smallest canonical correlation of instruments and regressor {fitted.correlation:.3f}",
            f"largest difference from wls {moved:.1f} σ, {problem.base.leading_names[at]}",
        ]
        if fitted.correlation < _WEAK:
            notes.append("the instruments are weak: they hardly know one combination of parameters; see its σ")
        figures = {
            "instruments": self.instruments, "passes": passes, "canonical_correlation": fitted.correlation,
            "largest_difference_from_wls_sigma": moved,
        }  # fmt: skip
        return replace(fitted.estimate, joint_sigma=pooled, notes=tuple(notes), figures=figures)

    def _by_simulation(self, problem: Problem) -> tuple[InstrumentedEstimate, int, str]:
        """Simulate with the last parameters and estimate with that motion, until it makes no difference."""
        check_can_be_simulated(problem.robot)
        followers = [
            Follower.of(run, observed.settings, self.bandwidth_Hz, plan_needs_servo=False)
            for run, observed in zip(problem.runs, problem.observations, strict=True)
        ]
        words = "; ".join(dict.fromkeys(follower.words for follower in followers))
        chosen = [Chosen() for _ in problem.runs]

        def one_pass(last: Estimate) -> _Pass:
            simulated = simulate_runs(problem, followers, last)
            fitted = instrumented_fit(_parts(problem, simulated.runs, chosen))
            return _Pass(fitted.estimate, fitted, simulated.made_possible)

        unsimulated = _parts(problem, [follower.unsimulated() for follower in followers], [None] * len(followers))
        start, names = instrumented_fit(unsimulated).estimate, problem.base.leading_names
        last, number = iterate(one_pass, start, self.passes, estimator=self.name, names=names)
        return last.found, number, words + (MADE_POSSIBLE if last.made_possible else "")


class _Pass(NamedTuple):
    """Rows of a simulation with the parameters of the previous pass."""

    estimate: Estimate
    found: InstrumentedEstimate
    made_possible: bool


def _parts(problem: Problem, moved: Sequence[Run], chosen: Sequence[Chosen | None]) -> list[PairedRows]:
    """The problem's parts with the rows of other motions beside them."""
    return [
        PairedRows(part, observe(run, problem.robot, problem.base, observed.settings), used)
        for part, run, observed, used in zip(problem.parts, moved, problem.observations, chosen, strict=True)
    ]


_SINGULAR = 1e-10
"""Singular value of the scaled columns, relative to the largest, under which a direction is not told at all."""

_UNTOLD = 1e-6
"""Share of a parameter in directions that are not told above which it is not told either."""

_PASSES = 3
"""The first pass has equal weights; each other takes the joints' weights from the residuals of the pass before."""


class InstrumentedEstimate(NamedTuple):
    """An estimate, and how well its instruments go with the regressor.

    Attributes:
        estimate: parameters and their covariance.
        correlation: smallest canonical correlation of instruments and regressor: 1 where they say the same of every
            combination of parameters, 0 where there is one that the instruments know nothing of.
    """

    estimate: Estimate
    correlation: float


def instrumented_fit(parts: Sequence[Pairs]) -> InstrumentedEstimate:
    """Solve Σ z (torque - x @ pi) / sigma² = 0, x being the measured regressor and z the other one, the instruments.

    pi = (ZᵀX)⁻¹ Zᵀ tau is right however noisy x is, as long as the noise of x and of the torque has nothing to do with
    z. Each joint of each part is weighted by its residual's deviation. The covariance is A⁻¹ S A⁻ᵀ with A = ZᵀX and S
    the long-run covariance of the scores Σ_j z_kj r_kj / sigma_j².

    Args:
        parts: rows with their instruments; each part and joint has a noise level of its own.

    Returns:
        The estimate.

    Raises:
        FitError: there are not more rows than parameters.

    Source: Söderström & Stoica, Instrumental Variable Methods for System Identification, 1983; for robots Janot,
    Vandanjon & Gautier, IEEE Trans. Control Systems Technology 22(1), 2014; S as in `weighted_least_squares`.
    """
    joints = parts[0].n_joints
    triangles, counts = _triangles(parts)
    if counts.sum() <= parts[0].n_parameters:
        raise FitError(
            f"{counts.sum()} rows have instruments, for {parts[0].n_parameters} parameters; record more motion, or "
            f"choose another instrument"
        )
    weights = np.where(counts > 0, 1.0, 0.0)
    solution = _solve(triangles, weights)
    for _ in range(_PASSES - 1):
        sigma = _deviations(triangles, counts, solution)
        weights = np.where(counts > 0, 1.0 / np.where(sigma > 0.0, sigma, 1.0), 0.0)
        solution = _solve(triangles, weights)
    sigma = _deviations(triangles, counts, solution)
    instruments = [OtherRegressor(part) for part in parts]
    long_run = covariance_of_terms(
        lambda: _influence(parts, solution, weights.reshape(len(parts), joints)), np.eye(len(solution.parameters)),
        instruments, compress(instruments), weights,
    )  # fmt: skip
    covariance = long_run.covariance
    covariance[solution.untold, :] = covariance[:, solution.untold] = 0.0
    covariance[solution.untold, solution.untold] = np.inf
    estimate = Estimate(
        parameters=solution.parameters,
        covariance=covariance,
        condition_number=_condition_number(triangles),
        joint_sigma=_pooled(sigma.reshape(len(parts), joints), counts.reshape(len(parts), joints)),
        lags=long_run.lags,
    )
    return InstrumentedEstimate(estimate, solution.correlation)


class _Solution(NamedTuple):
    """Parameters; T of influence = T @ z weight² residual, shape (p, p); which are not told; the correlation."""

    parameters: Array
    transfer: Array
    untold: NDArray[np.bool_]
    correlation: float


def _triangles(parts: Sequence[Pairs]) -> tuple[Array, NDArray[np.intp]]:
    """Triangle of [z | x | torque] of each part's joints, shape (groups, 2 p + 1, 2 p + 1), and its number of rows."""
    joints, width = parts[0].n_joints, 2 * parts[0].n_parameters + 1
    triangles = np.zeros((len(parts) * joints, width, width))
    counts = np.zeros(len(triangles), dtype=np.intp)
    for number, part in enumerate(parts):
        for pair in part.pairs():
            for joint in range(joints):
                used, group = pair.used[:, joint], number * joints + joint
                rows = np.hstack([pair.other[used, joint], pair.measured[used, joint], pair.torque[used, joint, None]])
                triangles[group] = _upper(np.vstack([triangles[group], rows]))
                counts[group] += len(rows)
    return triangles, counts


def _solve(triangles: Array, weights: Array) -> _Solution:
    """Regress the torque on what the instruments know of the regressor."""
    width = triangles.shape[1]
    p = width // 2
    stacked = _upper((triangles * weights[:, None, None]).reshape(-1, width))
    instruments, regressor, torque = stacked[:p, :p], stacked[:, p : 2 * p], stacked[:p, 2 * p]
    z_scale, x_scale = _lengths(instruments), _lengths(regressor)
    u, s, vt = np.linalg.svd(instruments / z_scale)
    known = s > _SINGULAR * s[0]
    basis = u[:, known]
    projected = basis.T @ regressor[:p] / x_scale
    left, size, right = np.linalg.svd(projected, full_matrices=False)
    kept = size > _SINGULAR * size[0]
    inverse = right[kept].T / size[kept] @ left[:, kept].T / x_scale[:, None]
    others = np.linalg.svd(projected)[2][int(kept.sum()) :]
    untold = (np.sum(others**2, axis=0) > _UNTOLD) | ~regressor.any(axis=0)
    parameters = np.where(untold, 0.0, inverse @ (basis.T @ torque))
    transfer = inverse @ (vt[known] / s[known, None]) / z_scale
    span = np.linalg.svd(regressor[:, ~untold] / x_scale[~untold], full_matrices=False)[0]
    correlation = np.linalg.svd(basis.T @ span[:p], compute_uv=False)
    return _Solution(parameters, transfer, untold, float(correlation[-1]) if len(correlation) else 0.0)


def _deviations(triangles: Array, counts: NDArray[np.intp], solution: _Solution) -> Array:
    """Deviation of each group's residual, each parameter taking an even share of the rows' freedom."""
    p = len(solution.parameters)
    residual = triangles[:, :, p:] @ np.append(solution.parameters, -1.0)
    freedom = counts * (1.0 - p / counts.sum())
    squares = np.sum(residual**2, axis=1)
    return np.sqrt(np.divide(squares, freedom, out=np.full(len(counts), np.nan), where=freedom > 0.0))


def _influence(parts: Sequence[Pairs], solution: _Solution, weights: Array) -> Iterator[ConsecutiveTerms]:
    """Yield the contribution of each time to the parameters' error, shape (p, n) each."""
    for part, of_part in zip(parts, weights, strict=True):
        stop = -1
        for pair in part.pairs():
            yield ConsecutiveTerms(pair.start != stop, _block_influence(pair, solution, of_part).T)
            stop = pair.start + len(pair.torque)


def _block_influence(pair: BlockPair, solution: _Solution, weights: Array) -> Array:
    residual = np.where(pair.used, pair.torque - pair.measured @ solution.parameters, 0.0)
    moved = pair.other @ solution.transfer.T  # what a unit of each row's torque does to the parameters, but for weights
    leverage = np.sum(pair.measured * moved, axis=2) * weights**2
    scores = residual * weights**2 / (1.0 - np.clip(leverage, 0.0, 0.999))
    return np.einsum("kj,kjp->kp", scores, moved)


def _pooled(sigma: Array, counts: NDArray[np.intp]) -> Array:
    """Deviation of each joint over all parts, nan without rows, shape (n_joints,)."""
    squares, rows = np.nansum(sigma**2 * counts, axis=0), counts.sum(axis=0)
    return np.sqrt(np.divide(squares, rows, out=np.full(len(rows), np.nan), where=rows > 0))


def _condition_number(triangles: Array) -> float:
    """Return the condition number of the measured regressor, neither scaled nor weighted."""
    p = triangles.shape[2] // 2
    singular = np.linalg.svd(triangles[:, :, p : 2 * p].reshape(-1, p), compute_uv=False)
    rounding = len(triangles) * triangles.shape[1] * np.finfo(np.float64).eps * singular[0]
    return float(singular[0] / singular[-1]) if singular[-1] > rounding else float("inf")


def _upper(rows: Array) -> Array:
    """R of the QR decomposition of rows, at least as many as columns."""
    return cast(Array, np.linalg.qr(rows, mode="r"))


def _lengths(columns: Array) -> Array:
    """Length of each column, 1 where it is zero."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.where(lengths > 0.0, lengths, 1.0)


def covariance_of_terms(
    stretches: Callable[[], Iterable[ConsecutiveTerms]], judged: Array, rows: Sequence[Rows], triangles: Triangles,
    weights: Array,
) -> LongRun:  # fmt: skip
    """Long-run covariance of terms, divided by what windows are expected to find of it in residuals.

    What the parameters have taken out of the residuals is counted as if they were those of least squares on `rows`,
    with a regressor that goes nearly the same way.

    Args:
        stretches: the terms; the same ones again each time it is called.
        judged: the window's length is that which suits judged @ terms, shape (q, p).
        rows, triangles: to count by.
        weights: of their groups, shape (n_groups,).

    Source: as `sandwich`.
    """
    long_run = windowed_covariance(stretches, judged)
    share = expected_share(rows, weights, solve(triangles, weights), long_run.lags + 1)
    return LongRun(long_run.covariance / max(share, LEAST_EXPECTED), long_run.lags)
