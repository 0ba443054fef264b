"""The trust-region fit to the zero-moment point, and its error bars under correlated residuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from jointbench.arrays import Array
from jointbench.identification.least_squares import LEAST_EXPECTED, ConsecutiveTerms, windowed_covariance
from jointbench.identification.zero_moment_point.bounded_least_squares import (
    CLOSE,
    HUBER,
    BoundedSolution,
    Rows,
    solve,
    start_of,
)
from jointbench.identification.zero_moment_point.estimate import (
    ZmpEstimate,
    judge_reduced,
    judge_stance,
    least_told,
)
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters, Theory
from jointbench.identification.zero_moment_point.stance import Calibration, Stance
from jointbench.model import CORNERS

_GAP = 1.5
"""Sample periods from row to row beyond which neighbours are none."""


_UNTOLD = 1e-12
"""Information on a direction, as a share of that on its parameters one by one, that rounding leaves; it then counts for
so much, which makes error bars a million times as long as those of each parameter alone."""


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """Error bars of parameters.

    Attributes:
        covariance: of the parameters, shape (q, q).
        inflation: how many times the variance of a score's sum is that of scores without correlation, on average.
        lags: how many rows are taken for correlated.
    """

    covariance: Array
    inflation: float
    lags: int


def error_bars(
    jacobian: Array,
    scores: Array,
    slope: float,
    prior: Array,
    starts: NDArray[np.bool_],
    directions: Array | None = None,
) -> ErrorBars:
    """Sandwich covariance B M B of parameters that minimise Σ rho(u) + Σ w (d · theta)².

    B = (slope Σ Jᵀ J + Dᵀ W D)⁻¹, M = long-run covariance of Σ_k J_kᵀ psi_k, plus Dᵀ W² D: the prior of a combination
    d · theta with σ = 1 pulls by w d · theta. The rows of a time are summed first, so that what they share counts.

    Args:
        jacobian: J of the residuals u in their σ, as many rows at a time as there are, shape (n, c, q).
        scores: psi = rho'/2 of them, shape (n, c).
        slope: mean of psi'.
        prior: w, 0 where there is none, shape (r,).
        starts: whether a row does not follow the one before it, shape (n,).
        directions: D, the combinations that priors are of, shape (r, q); the parameters one by one where not given.

    Source: Huber, Robust Statistics, 1981, sec. 7.6; Newey & West, Econometrica 55(3), 1987; what windows miss of a
    fit's residuals as in `least_squares.sandwich.expected_share`.
    """
    rows = jacobian.reshape(-1, jacobian.shape[2])
    d = np.eye(rows.shape[1]) if directions is None else directions
    pull = d.T @ (prior[:, None] * d)
    scale = np.sqrt(slope * np.sum(rows**2, axis=0) + np.diag(pull))
    scale[scale == 0.0] = 1.0
    information = slope * (rows.T @ rows) + pull
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    vectors = vectors / scale[:, None]
    kept = values > _UNTOLD
    bread = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    untold = vectors[:, ~kept] @ vectors[:, ~kept].T / _UNTOLD
    terms = np.einsum("kcq,kc->kq", jacobian, scores)
    long_run = windowed_covariance(lambda: _stretches(terms, starts), bread * scale[:, None])
    share = _share(jacobian, bread * slope, long_run.lags + 1)
    meat = long_run.covariance / max(share, LEAST_EXPECTED)
    alone = np.sum(scores**2) / scores.size * np.sum(rows**2, axis=0)
    seen = alone > 0.0
    inflation = float(np.mean(np.diag(meat)[seen] / alone[seen])) if seen.any() else 1.0
    return ErrorBars(
        bread @ (meat + d.T @ (prior[:, None] ** 2 * d)) @ bread + untold, max(inflation, 1.0), long_run.lags
    )


def starting_rows(time: Array, period: float) -> NDArray[np.bool_]:
    """True for rows that do not follow the one before them by a sample period, shape (n,)."""
    steps = np.diff(time, prepend=-np.inf)
    return (steps <= 0.0) | (steps > _GAP * period)


def _stretches(terms: Array, starts: NDArray[np.bool_]) -> Iterator[ConsecutiveTerms]:
    for part in np.split(terms, np.flatnonzero(starts[1:]) + 1):
        yield ConsecutiveTerms(True, part.T)


def _share(jacobian: Array, bread: Array, width: int) -> float:
    """Share of white noise's variance that windows find in residuals from which a fit has taken its part."""
    values, vectors = np.linalg.eigh(bread)
    reach = jacobian @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    whole = len(reach) // width * width
    windows = reach[:whole].reshape(-1, width * reach.shape[1], reach.shape[2])
    taken = np.sum((windows.transpose(0, 2, 1) @ windows) ** 2)
    total = np.sum(reach[:whole] ** 2)
    return float(1.0 - taken / total) if total > 0.0 else 1.0


ROTARY_SIGMA = 0.1
"""By which share CAD's moments of inertia about the centres of mass are taken to be wrong together: 5 to 15 % is usual.
What thighs and shanks weigh is told from m lc², so against these: their error bars are no better than this guess."""

DRAWING_SIGMA = 0.3
"""By which share of itself a drawing's mass may be wrong, and of its axis's length where that is: more than cables and
screws make. Where a motion tells little of feet that hardly move, the least of squares may lie where no robot does."""

_NORMAL = 0.6745
"""Median of a normal variable's magnitude [σ]."""

_FIRST_SIGMA = np.array([1e-3, 1e-3, 1.0])
"""Of x, y [m] and vertical force [N] in the first pass: about what sensors are off by."""

_LEAST_SIGMA = np.array([1e-7, 1e-7, 1e-4])
"""Of the same: less is rounding, of simulated forces without noise."""

_LEAST_SLOPE = 0.1
"""Of the score, on average: with less, nearly all rows are far off, and their σ is not told."""

_NEAR = 1.0
"""How close passes come before sigma is known [σ of all parameters together]."""

_PASSES = 8
_SETTLED = 0.05
"""Relative change of the residuals' σ at which passes end."""


def fit_stance(
    stance: Stance,
    reduced: ReducedParameters,
    total_mass: float,
    *,
    start: Array | None = None,
    rotary_sigma: float = ROTARY_SIGMA,
    drawing_sigma: float = DRAWING_SIGMA,
) -> ZmpEstimate:
    """Estimate reduced parameters, sensors' errors, cables' pulls and doubts about CAD's rotary inertias in one fit.

    min Σ rho((z(Phi, s) - m(nu)) / sigma) + kappa (|nu / data sheet|² + |D⁻¹ s|² + |(Phi - file) / sigma_f|²) over
    samples, x, y and the vertical force, with Huber's rho, mass_row @ Phi + held mass = total mass, and Phi within its
    bounds; m(nu) is what sensors with errors nu tell (`Calibration`), which the known weight calibrates as it wanders
    over the sole. Sigma follows from the residuals' median, kappa from their correlation in time: neighbours tell less
    than twice as much.

    Args:
        stance: rows of one or several runs on one bench.
        reduced: what to estimate.
        total_mass: of the robot as weighed [kg].
        start: Phi to begin with (None: the robot's file), shape (p,).
        rotary_sigma: share by which CAD's moments of inertia of a kind of links may be wrong, unless `reduced`
            neglects them; D Dᵀ is `reduced.rotary_covariance` of it. 0 takes CAD's for true.
        drawing_sigma: by which the file's Phi may be wrong: masses as a share of themselves, scaled to the whole's
            weight, centres as a share of their axes' lengths. Infinite: nothing is known of it.

    Returns:
        The estimate; its covariance is the sandwich of scores that are correlated in time, with the priors' own error.

    Raises:
        WrongTotalMass: no parameters within the bounds weigh that.

    Source: Huber, Robust Statistics, 1981, sec. 7.6; Newey & West, Econometrica 55(3), 1987.
    """
    file = _File.of(reduced, start_of(reduced, total_mass), drawing_sigma)
    problem = _Problem(stance, reduced, rotary_sigma, file)
    phi, beside = start_of(reduced, total_mass, start), np.zeros(problem.n_beside)
    # From far off all rows are, so the first pass takes them alike.
    solution = solve(problem.rows(_FIRST_SIGMA, 1.0), reduced, total_mass, phi, beside, close=_NEAR)
    sigma, trace, settled = problem.sigma(solution), solution.trace, False
    bars = problem.error_bars(solution, sigma, 1.0)
    for number in range(_PASSES):
        before, kappa = sigma, bars.inflation
        solution = solve(
            problem.rows(sigma, kappa), reduced, total_mass, solution.phi, solution.beside,
            robust_rows=problem.n_rows, close=CLOSE if number else _NEAR,
        )  # fmt: skip
        sigma, trace = problem.sigma(solution), (*trace, *solution.trace)
        bars = problem.error_bars(solution, sigma, kappa)
        settled = number > 0 and bool(np.abs(sigma / before - 1.0).max() < _SETTLED)
        if settled:
            break
    return problem.estimate(solution, bars, sigma, total_mass, trace, settled)


@dataclass(frozen=True, eq=False)
class _File:
    """Values of Phi in the robot's file.

    Attributes:
        phi: its values, weighing what the robot weighs, shape (p,).
        weight: one over the standard deviation of each, shape (p,).
    """

    phi: Array
    weight: Array

    @staticmethod
    def of(reduced: ReducedParameters, phi: Array, sigma: float) -> _File:
        lengths = [kind.length for kind in reduced.robot.link_kinds]
        return _File(phi, 1.0 / (sigma * np.concatenate([lengths, phi[reduced.n_kinds :]])))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Residuals z(Phi, s) - m(nu), with nu = data sheet * u and s = D u', of which u, u' ~ N(0, 1)."""

    stance: Stance
    reduced: ReducedParameters
    rotary_sigma: float
    file: _File

    @cached_property
    def _doubts(self) -> Array:
        """Root D of the covariance of moments of inertia, of which shares s = D u' are added to CAD's."""
        unit = np.asarray(np.linalg.cholesky(self.reduced.rotary_covariance(1.0)), dtype=np.float64)
        is_doubted = self.reduced.rotary == "cad" and self.rotary_sigma > 0.0
        return self.rotary_sigma * unit if is_doubted else unit[:, :0]

    @cached_property
    def _theory(self) -> Theory:
        return Theory(self.stance.columns @ np.hstack([self.reduced.terms, self.reduced.rotary_terms @ self._doubts]))

    @cached_property
    def _calibration(self) -> Calibration:
        return Calibration(self.stance)

    def nuisance(self, beside: Array) -> Array:
        """Parameters nu of the sensors and cables."""
        return self.stance.data_sheet * beside[: self.n_nuisance]

    @property
    def n_nuisance(self) -> int:
        return len(self.stance.data_sheet)

    @property
    def n_beside(self) -> int:
        return self.n_nuisance + self._doubts.shape[1]

    @property
    def n_rows(self) -> int:
        """Number of rows of the data; those of the priors follow."""
        return 3 * self.stance.n_samples

    def residual(self, phi: Array, beside: Array) -> tuple[Array, Array]:
        """Return the residual of x, y [m] and vertical force [N], (n, 3), and its derivatives, (n, 3, p + k)."""
        t = self.reduced.coefficients(phi)
        n, k = len(t.value), self.n_nuisance
        theory = self._theory(np.concatenate([t.value, beside[k:]]))
        point, slopes = self._calibration(self.nuisance(beside))
        residual = np.column_stack([theory.point, theory.force]) - point
        by_terms = np.concatenate([theory.slopes, theory.force_slopes[:, None]], axis=1)
        jacobian = np.concatenate(
            [by_terms[:, :, :n] @ t.first, -slopes * self.stance.data_sheet, by_terms[:, :, n:]], axis=2
        )
        # In forces as they are read, since larger gains would make the noise of those that pressed look smaller.
        gains = 1.0 + self.nuisance(beside)[: len(CORNERS)]
        read = np.mean(gains**-2.0) ** -0.5
        more = read**3 * gains**-3.0 / len(CORNERS) * self.stance.data_sheet[: len(CORNERS)]
        jacobian[:, 2] *= read
        jacobian[:, 2, len(phi) : len(phi) + len(CORNERS)] += residual[:, 2:] * more
        residual[:, 2] *= read
        return residual, jacobian

    def rows(self, sigma: Array, kappa: float) -> Rows:
        """Residuals in their σ, then what the priors say."""
        weight = np.concatenate([self.file.weight, np.ones(self.n_beside)])

        def found(phi: Array, beside: Array) -> tuple[Array, Array]:
            residual, jacobian = self.residual(phi, beside)
            scaled = (jacobian / sigma[:, None]).reshape(self.n_rows, -1)
            off = weight * np.concatenate([phi - self.file.phi, beside])
            rows = np.concatenate([(residual / sigma).ravel(), np.sqrt(kappa) * off])
            return rows, np.vstack([scaled, np.sqrt(kappa) * np.diag(weight)])

        return found

    def sigma(self, solution: BoundedSolution) -> Array:
        """Return the sigma of the residuals of x, y [m] and vertical force [N], by their median."""
        size = np.abs(self.residual(solution.phi, solution.beside)[0])
        return np.maximum(np.median(size, axis=0) / _NORMAL, _LEAST_SIGMA)

    def error_bars(self, solution: BoundedSolution, sigma: Array, kappa: float) -> ErrorBars:
        """Return error bars of what is free of Phi, then of what is beside it."""
        residual, jacobian = self.residual(solution.phi, solution.beside)
        u, p = residual / sigma, len(solution.phi)
        free = np.concatenate([jacobian[:, :, :p] @ solution.plane.basis, jacobian[:, :, p:]], axis=2) / sigma[:, None]
        directions = block_diag(self.file.weight[:, None] * solution.plane.basis, np.eye(self.n_beside))
        prior = np.full(len(directions), kappa)
        slope = max(float(np.mean(np.abs(u) < HUBER)), _LEAST_SLOPE)
        starts = starting_rows(self.stance.time, self.stance.sample_period)
        return error_bars(free, np.clip(u, -HUBER, HUBER), slope, prior, starts, directions)

    def estimate(
        self, solution: BoundedSolution, bars: ErrorBars, sigma: Array, total_mass: float,
        trace: tuple[tuple[float, float, float], ...], settled: bool,
    ) -> ZmpEstimate:  # fmt: skip
        """Return the estimate with its judgement."""
        m, k = solution.plane.basis.shape[1], self.n_nuisance
        covariance = solution.plane.basis @ bars.covariance[:m, :m] @ solution.plane.basis.T
        residual, _ = self.residual(solution.phi, solution.beside)
        doubts = self._doubts @ solution.beside[k:]
        of_doubts = np.diag(self._doubts @ bars.covariance[m + k :, m + k :] @ self._doubts.T)
        of_nuisance = self.stance.data_sheet**2 * np.diag(bars.covariance)[m : m + k]
        far = float(np.mean(np.abs(residual) > 2.0 * HUBER * sigma))
        converged = solution.converged and settled
        verdicts = judge_reduced(self.reduced, solution.phi, covariance)
        return ZmpEstimate(
            robot=self.stance.robot,
            method="ours",
            names=self.reduced.names,
            values=solution.phi,
            covariance=covariance,
            standard_parameters=self.reduced.standard(solution.phi) + self.reduced.rotary_terms @ doubts,
            parameter_verdicts=verdicts,
            verdict=judge_stance(self.stance, residual[:, :2], converged, verdicts),
            total_mass=total_mass,
            samples=len(residual),
            iterations=len(trace),
            converged=converged,
            trace=trace,
            nuisance_names=(*self.stance.nuisance_names, *self.reduced.rotary_names),
            nuisance_values=tuple(np.concatenate([self.nuisance(solution.beside), doubts]).tolist()),
            nuisance_sigma=tuple(np.sqrt(np.concatenate([of_nuisance, of_doubts])).tolist()),
            notes=(
                least_told(self.reduced.names, solution.phi, covariance),
                f"residuals are correlated over {bars.lags} rows, which makes variances {bars.inflation:.1f} times "
                f"those of independent ones; {far:.1%} of them count less than half",
            ),
        )
