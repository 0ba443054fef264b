"""The paper's fit of a biped's inertia to the zero-moment point, with the settings that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point.bounded_least_squares import MassPlane, Objective, Value, start_of
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, judge_reduced, judge_stance
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters, Theory
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.trust_region import error_bars, starting_rows

PRINTED_ALPHA = 0.02
"""Printed: the constant step length of steepest descent with which the paper's search converged."""

FIRST_ALPHA = 1.0
"""Printed: the step length that the paper tried first, "all of the gradient"."""

EPSILON = 1e-4
"""Printed: a step of this norm, or less, ends the search [m and kg together]."""

_STEPS = 4000

_AT_BOUND = 1e-9
"""Of the file's value: what is so near to a bound is at it, but for rounding."""


def projected_newton(
    stance: Stance,
    reduced: ReducedParameters,
    total_mass: float,
    *,
    alpha: float = PRINTED_ALPHA,
    start: Array | None = None,
) -> ZmpEstimate:
    """Estimate reduced parameters as Wu & Gao do: Newton's steps or steepest descent on the plane of one total mass.

    Phi <- Phi + [E - c (cᵀc)⁻¹ cᵀ] dPhi until |dPhi| <= 1e-4, with dPhi = -H⁻¹ G, or -alpha G where H is singular, and
    Phi within its bounds; G and H of e = Σ (x' - x)² + (y' - y)² in m and kg, a sum over the rows as in eq. 9, of
    sensors as they were calibrated. Alpha is one constant of the whole search.

    The paper leaves open, and here it is so: H counts as singular where it is not positive definite, for Newton's step
    then goes to a saddle; that is nearly always, since masses that all grow alike leave the zero-moment point where it
    is. Parameters at a bound that a step would leave take no part in it, and a step ends where another reaches its
    bound. A search that has not ended after 4000 steps did not converge.

    Args:
        stance: rows of one run, as in the paper, or of several.
        reduced: what to estimate; the paper neglects rotary inertia (`rotary="none"`).
        total_mass: of the robot as weighed [kg].
        alpha: step length of steepest descent [m and kg by the units of G].
        start: Phi to begin with (None: the robot's file), shape (p,).

    Returns:
        The estimate, with the error bars that its residuals tell: of sensors' errors it knows nothing.

    Raises:
        WrongTotalMass: no parameters within the bounds weigh that.

    Source: Wu & Gao, J. Harbin Institute of Technology 53(7), 2021.
    """
    objective, rows = Objective(stance, reduced), stance.n_samples
    low, high = reduced.bounds.T
    phi, row = np.clip(start_of(reduced, total_mass, start), low, high), reduced.mass_row
    trace, converged = list[tuple[float, float, float]](), False
    while len(trace) < _STEPS and not converged:
        here = objective(phi)
        wanted = _newton(here)
        if not np.any(wanted):
            wanted = -alpha * rows * here.gradient
        step, whole = _within(wanted, row, phi, low, high)
        phi = phi + step
        size = float(np.linalg.norm(step))
        trace.append((size, rows * here.value, alpha))
        converged = whole and size <= EPSILON  # a step that a bound cuts short says nothing of a minimum
    return _estimate(stance, reduced, total_mass, phi, tuple(trace), converged)


def averaged(estimates: Sequence[ZmpEstimate], reduced: ReducedParameters) -> ZmpEstimate:
    """Average the estimates of single runs, as Wu & Gao report theirs: means, and standard deviations of the runs.

    Args:
        estimates: of `projected_newton`, one for each run; of a single one nothing is averaged.
        reduced: what they are of.

    Returns:
        The mean. Its σ is that of one run, sqrt(Σ (Phi_i - mean)² / (n - 1)), the printed one.
    """
    first = estimates[0]
    if len(estimates) == 1:
        return first
    values = np.array([each.values for each in estimates])
    mean, covariance = values.mean(axis=0), np.diag(values.var(axis=0, ddof=1))
    verdicts = judge_reduced(reduced, mean, covariance)
    lost = [each for each in estimates if not each.converged]
    worst = max(estimates, key=lambda each: _WORDS.index(each.verdict.word))
    return replace(
        first,
        values=mean,
        covariance=covariance,
        standard_parameters=reduced.standard(mean),
        parameter_verdicts=verdicts,
        verdict=worst.verdict,
        samples=sum(each.samples for each in estimates),
        iterations=max(each.iterations for each in estimates),
        converged=not lost,
        trace=max(estimates, key=lambda each: each.iterations).trace,
        notes=(
            f"mean and standard deviation of {len(estimates)} runs estimated one by one, {len(lost)} of which did not "
            "converge; of the sensors' own errors, which are alike in all runs, the deviation knows nothing",
        ),
    )


_WORDS = ("identified", "weak", "refused")


def _newton(value: Value) -> Array:
    """-H⁻¹ G, or no step where H is not positive definite."""
    try:
        return -cho_solve(cho_factor(value.hessian), value.gradient)
    except LinAlgError:
        return np.zeros_like(value.gradient)


def _within(step: Array, row: Array, u: Array, low: Array, high: Array) -> tuple[Array, bool]:
    """The step on the plane row @ u = constant, no further than to the first bound, and whether it is a whole one."""
    free = np.ones(len(u), dtype=np.bool_)
    projected = _projected(step, row, free)
    while True:
        outward = free & (((u <= low + _AT_BOUND) & (projected < 0.0)) | ((u >= high - _AT_BOUND) & (projected > 0.0)))
        if not outward.any():
            break
        free &= ~outward
        projected = _projected(step, row, free)
    room = np.where(projected > 0.0, high - u, u - low)
    shares = np.divide(room, np.abs(projected), out=np.full(len(u), np.inf), where=projected != 0.0)
    share = float(shares.min())
    return projected * min(1.0, share), share >= 1.0


def _projected(step: Array, row: Array, free: NDArray[np.bool_]) -> Array:
    """[E - c (cᵀc)⁻¹ cᵀ] of the parameters that are free."""
    c = np.where(free, row, 0.0)
    square = float(c @ c)
    moved = np.where(free, step, 0.0)
    return moved - c * (c @ moved) / square if square > 0.0 else moved


def _estimate(
    stance: Stance, reduced: ReducedParameters, total_mass: float, phi: Array,
    trace: tuple[tuple[float, float, float], ...], converged: bool,
) -> ZmpEstimate:  # fmt: skip
    t, plane = reduced.coefficients(phi), MassPlane.of(reduced, total_mass)
    z = Theory.of(stance, reduced)(t.value)
    residual = z.point - stance.measured
    jacobian = z.slopes @ (t.first @ plane.basis)
    starts = starting_rows(stance.time, stance.sample_period)
    bars = error_bars(jacobian, residual, 1.0, np.zeros(jacobian.shape[2]), starts)
    covariance = plane.basis @ bars.covariance @ plane.basis.T
    verdicts = judge_reduced(reduced, phi, covariance)
    return ZmpEstimate(
        robot=stance.robot,
        method="paper",
        names=reduced.names,
        values=phi,
        covariance=covariance,
        standard_parameters=reduced.standard(phi),
        parameter_verdicts=verdicts,
        verdict=judge_stance(stance, residual, converged, verdicts),
        total_mass=total_mass,
        samples=len(residual),
        iterations=len(trace),
        converged=converged,
        trace=trace,
        notes=(
            "error bars know nothing of the sensors' own errors, which this method takes for inertia, and nothing of "
            "how far from the minimum its last step of 0.1 mm or g leaves it",
        ),
    )
