"""The paper's fit of a biped's inertia to the zero-moment point, with the settings that it prints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jointbench.identification.zero_moment_point.bounded_least_squares import MassPlane, start_of
from jointbench.identification.zero_moment_point.error_bars import error_bars, starting_rows
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, judge_reduced, judge_stance
from jointbench.identification.zero_moment_point.objective import Objective, Value
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.theory import Theory
from jointbench.robot import Array

FIRST_ALPHA, LAST_ALPHA = 1.0, 0.02
"""Printed: the step length of steepest descent goes down from one to the other."""

EPSILON = 1e-4
"""Printed: a step of this norm, or less, ends the search [m and kg together]."""

PRINTED_ITERATIONS = 121
"""Printed: where the paper's search ended. Interpreted: alpha falls geometrically, and is at its last value then."""

_STEPS = 1000

_AT_BOUND = 1e-9
"""Of the file's value: what is so near to a bound is at it, but for rounding."""


def projected_newton(
    stance: Stance, reduced: ReducedParameters, total_mass: float, *, start: Array | None = None
) -> ZmpEstimate:
    """Estimate reduced parameters as Wu & Gao do: Newton's steps or steepest descent on the plane of one total mass.

    Phi <- Phi + [E - c (cᵀc)⁻¹ cᵀ] dPhi until |dPhi| <= 1e-4, with dPhi = -H⁻¹ G, or -alpha G where H is singular, and
    Phi within its bounds; G and H of `Objective`, of sensors as they were calibrated, all rows alike.

    The paper leaves open, and here it is so: H counts as singular where it is not positive definite, or where its step
    would raise e; that is nearly always, since masses that all grow alike leave the zero-moment point where it is. Phi
    is in shares of the robot's file, and G in units of the largest curvature, so that alpha = 1 is the longest step
    that cannot overshoot; alpha falls from 1 to 0.02 geometrically over 121 iterations, where the paper's search ended.
    Parameters at a bound that a step would leave take no part in it, and a step ends where another reaches its bound.

    Args:
        stance: rows of one or several runs.
        reduced: what to estimate; the paper neglects rotary inertia (`rotary="none"`).
        total_mass: of the robot as weighed [kg].
        start: Phi to begin with (None: the robot's file), shape (p,).

    Returns:
        The estimate, with the error bars that its residuals tell: of sensors' errors it knows nothing.

    Raises:
        WrongTotalMass: no parameters within the bounds weigh that.

    Source: Wu & Gao, J. Harbin Institute of Technology 53(7), 2021.
    """
    objective, scale = Objective(stance, reduced), reduced.nominal
    low, high = reduced.bounds.T / scale
    u, row = np.clip(start_of(reduced, total_mass, start) / scale, low, high), reduced.mass_row * scale
    here, trace, converged = _scaled(objective(u * scale), scale), list[tuple[float, float, float]](), False
    fall = (LAST_ALPHA / FIRST_ALPHA) ** (1.0 / (PRINTED_ITERATIONS - 1))
    while len(trace) < _STEPS and not converged:
        alpha = max(FIRST_ALPHA * fall ** len(trace), LAST_ALPHA)
        step, whole = _within(_newton(here), row, u, low, high)
        there = _scaled(objective((u + step) * scale), scale)
        if not np.any(step) or there.value > here.value:
            step, whole = _within(-alpha * here.gradient / np.linalg.norm(here.hessian, 2), row, u, low, high)
            there = _scaled(objective((u + step) * scale), scale)
        u, here = u + step, there
        size = float(np.linalg.norm(step * scale))
        trace.append((size, here.value, alpha))
        converged = whole and size <= EPSILON  # a step that a bound cuts short says nothing of a minimum
    return _estimate(stance, reduced, total_mass, u * scale, tuple(trace), converged)


def _scaled(value: Value, scale: Array) -> Value:
    """By parameters in shares of `scale`."""
    return Value(value.value, value.gradient * scale, value.hessian * np.outer(scale, scale))


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
