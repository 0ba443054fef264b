"""Published estimates to compare with: by joint torques, and by the projected Newton method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.judgement import ErrorSums, Verdict, judge_joints, judge_whole
from jointbench.identification.least_squares import judged
from jointbench.identification.observations import Observations, fitted_rows, observe
from jointbench.identification.rows import Block, JointRows, Rows
from jointbench.identification.settings import FitSettings
from jointbench.identification.triangles import Triangles, compress
from jointbench.identification.triangles import solve as solve_rows
from jointbench.identification.zero_moment_point.bounded_least_squares import (
    BoundedSolution,
    MassPlane,
    ObjectiveValue,
    ZmpObjective,
    solve,
    start_of,
)
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, judge_reduced, judge_stance
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters, Theory
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.trust_region import error_bars, starting_rows
from jointbench.model import BaseParameters, Robot, base_parameters, drive_parameter_names
from jointbench.recording import Run

_PASSES = 4
"""Of the search; each weighs the joints by what the pass before leaves of their torques."""


@dataclass(frozen=True, eq=False)
class TorqueRows:
    """A run's joint torques as rows, filtered once however many estimates they go into.

    Attributes:
        path: of the run.
        base: base parameters of its robot on a base at rest, with drives.
        observations: the rows.
    """

    path: Path
    base: BaseParameters
    observations: Observations

    @classmethod
    def of(cls, run: Run, robot: Robot, settings: FitSettings | None = None) -> TorqueRows:
        """Filter a run; the arguments and errors are those of `observe`."""
        base = base_parameters(robot)
        rows = observe(run, robot, base, settings or FitSettings(), by_prediction=False)
        return cls(run.path, base, rows)


def joint_torque_estimate(
    runs: Run | Sequence[Run] | Sequence[TorqueRows],
    reduced: ReducedParameters,
    total_mass: float,
    *,
    settings: FitSettings | None = None,
) -> ZmpEstimate:
    """Estimate Phi from motor currents, the support foot taken for a base that stands still.

    min Σ_kj (tau_kj - W_kj pi(Phi) - Ia_j ddq_kj - fv_j dq_kj - fc_j sign dq_kj - o_j)² / sigma_j², c Phi = M, within
    bounds. The torque tau is ratio · torque constant · current, filtered as the columns are. What a good laboratory can
    do simply is done: each joint's rotor inertia, viscous and Coulomb friction and offset are fitted beside Phi, rows
    near rest, where friction has no model, are left out, and joints count by what is left of their torque.

    Args:
        runs: of motions on one foot, with motor currents; or the rows of such.
        reduced: what Phi is.
        total_mass: as weighed [kg].
        settings: how runs become rows; None: `FitSettings()`.

    Raises:
        FitError: a run lacks a signal, has too few rows, or does not belong to the robot.
        SignalError: the cut-off does not suit the sample rate.
        WrongTotalMass: no parameters within the bounds weigh that.

    Source: the comparison in Wu & Gao, J. Harbin Institute of Technology 53(7), 2021; friction, offset and weights by
    joint as in Gautier, IEEE CDC, 1997.
    """
    given = (runs,) if isinstance(runs, Run) else tuple(runs)
    if not given:
        raise FitError("no run is given to fit; give at least one")
    rows = [run if isinstance(run, TorqueRows) else TorqueRows.of(run, reduced.robot, settings) for run in given]
    base, recordings = rows[0].base, [row.observations for row in rows]
    count = sum(sum(observations.n_fitted) for observations in recordings)
    if count <= base.rank:
        raise FitError(
            f"{', '.join(str(row.path) for row in rows)} gives {count} rows of joints away from rest for links and "
            f"drives with {base.rank} parameters; record motion"
        )
    return estimate_of_torques(fitted_rows(recordings, base), base, reduced, total_mass)


def estimate_of_torques(
    parts: Sequence[Rows], base: BaseParameters, reduced: ReducedParameters, total_mass: float
) -> ZmpEstimate:
    """Estimate Phi, and drives that are the same in all recordings, from rows of joint torques.

    Args:
        parts: rows of one recording each, with the columns of `base`.
        base: base parameters of the robot on a base at rest, with drives.
        reduced, total_mass: as of `joint_torque_estimate`.

    Raises:
        WrongTotalMass: no parameters within the bounds weigh that.
    """
    torques = _Torques.of(parts, base, reduced)
    weights, trace = np.ones(torques.n_groups), list[tuple[float, float, float]]()
    solution = BoundedSolution(
        start_of(reduced, total_mass), np.zeros(torques.n_drives), MassPlane.of(reduced, total_mass), (), True
    )
    for _ in range(_PASSES):
        solution = solve(torques.weighted(weights), reduced, total_mass, solution.phi, solution.beside)
        trace += solution.trace
        weights = torques.weights(solution)
    around = torques.around(solution)
    covariance = _covariance(around, weights, solution.plane)
    return ZmpEstimate(
        robot=reduced.robot,
        method="torque",
        names=reduced.names,
        values=solution.phi,
        covariance=covariance,
        standard_parameters=reduced.standard(solution.phi),
        parameter_verdicts=judge_reduced(reduced, solution.phi, covariance),
        verdict=_verdict(reduced.robot, parts, around, converged=solution.converged),
        total_mass=total_mass,
        samples=sum(len(block.torque) for rows in parts for block in rows.blocks()),
        iterations=len(trace),
        converged=solution.converged,
        trace=tuple(trace),
        notes=(
            "by motor currents; rotor inertia, viscous and Coulomb friction and offset of each joint fitted beside",
        ),
    )


@dataclass(frozen=True, eq=False)
class _Torques:
    """Torque ≈ regressor @ (terms @ t(Phi) + drives @ d), with t as of `Coefficients`.

    Attributes:
        parts: rows with a regressor, of one recording each.
        reduced: what Phi is.
        terms, drives: what the base parameters have of t and of d, shapes (rank, n_terms) and (rank, n_drives).
        triangles: of the rows in terms of t and d.
    """

    parts: tuple[Rows, ...]
    reduced: ReducedParameters
    terms: Array
    drives: Array
    triangles: Triangles

    @classmethod
    def of(cls, parts: Sequence[Rows], base: BaseParameters, reduced: ReducedParameters) -> _Torques:
        links = reduced.terms[10:]  # the base's own link, at rest, loads no joint
        first, width = len(links), len(drive_parameter_names(base.robot))
        terms, drives = base.grouping[:, :first] @ links, base.grouping[:, first : first + width]
        triangles = compress([_Rows(rows, np.hstack([terms, drives])) for rows in parts])
        return cls(tuple(parts), reduced, terms, drives, triangles)

    @property
    def n_groups(self) -> int:
        """Joints of recordings, each with a noise of its own."""
        return len(self.triangles.counts)

    @property
    def n_drives(self) -> int:
        """Parameters of drives."""
        return self.drives.shape[1]

    def weighted(self, weights: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
        """Residuals and their derivatives by Phi and d, each group's in its own σ, as `solve` asks for them."""
        stacked = self.triangles.stacked(weights)
        by_terms, by_drives, values = np.split(stacked, [self.terms.shape[1], stacked.shape[1] - 1], axis=1)

        def rows(phi: Array, d: Array) -> tuple[Array, Array]:
            t = self.reduced.coefficients(phi)
            return by_terms @ t.value + by_drives @ d - values[:, 0], np.hstack([by_terms @ t.first, by_drives])

        return rows

    def weights(self, solution: BoundedSolution) -> Array:
        """Inverse deviation of what is left of each group's torque, 1 where nothing is, shape (n_groups,)."""
        both = np.append(self.reduced.coefficients(solution.phi).value, solution.beside)
        squares = self.triangles.squares(both) / np.maximum(self.triangles.counts, 1)
        return 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))

    def around(self, solution: BoundedSolution) -> tuple[Rows, ...]:
        """Return the residual of the torques, and its derivatives by Phi on its plane, then by d."""
        t = self.reduced.coefficients(solution.phi)
        spread = np.hstack([self.terms @ t.first @ solution.plane.basis, self.drives])
        there = self.terms @ t.value + self.drives @ solution.beside
        return tuple(_Rows(rows, spread, there) for rows in self.parts)


def _covariance(around: Sequence[Rows], weights: Array, plane: MassPlane) -> Array:
    """Return the covariance of Phi without bounds, drives as unknown as they are; infinite where untold, (p, p)."""
    triangles = compress(around)
    both = judged(around, triangles, weights, solve_rows(triangles, weights)).covariance
    told = np.isfinite(np.diag(both)[: plane.basis.shape[1]])
    known, lost = plane.basis[:, told], plane.basis[:, ~told].any(axis=1)
    covariance = known @ both[: len(told), : len(told)][np.ix_(told, told)] @ known.T
    covariance[lost, :] = covariance[:, lost] = 0.0
    covariance[lost, lost] = np.inf
    return covariance


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of other parameters: torque - regressor @ offset ≈ (regressor @ spread) @ others.

    Attributes:
        rows: with a regressor.
        spread: shape (rank, n_parameters).
        offset: shape (rank,), or None: zero.
    """

    rows: Rows
    spread: Array
    offset: Array | None = None

    @property
    def n_joints(self) -> int:
        """Torques a row of time."""
        return self.rows.n_joints

    @property
    def n_parameters(self) -> int:
        """Number of the other rows' parameters."""
        return self.spread.shape[1]

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        every = np.arange(self.n_parameters)
        for block in self.rows.blocks():
            joints = list[JointRows]()
            for which, columns in block.joints:
                acting = self.spread[which].any(axis=0)
                joints.append(JointRows(every[acting], self.spread[which][:, acting].T @ columns))
            torque = block.torque if self.offset is None else block.torque - block.predict(self.offset)
            yield replace(block, joints=tuple(joints), n_parameters=self.n_parameters, torque=torque)


def _verdict(robot: Robot, parts: Sequence[Rows], around: Sequence[Rows], *, converged: bool) -> Verdict:
    """Verdict on the joint whose torque, friction included, is explained worst."""
    sums, every = ErrorSums(robot.n_joints), ErrorSums(robot.n_joints)
    for rows, left in zip(parts, around, strict=True):
        for block, residual in zip(rows.blocks(), left.blocks(), strict=True):
            predicted = block.torque - residual.torque
            sums.add(block.torque, predicted, block.used, block.complete)
            every.add(block.torque, predicted, block.complete[:, None] & robot.modelled, block.complete)
    error, names = sums.result(), robot.joint_names
    joints = judge_joints(names, error.relative, error.share, robot.modelled, everywhere=every.result().relative)
    word = judge_whole(joints, error.relative)
    return word if converged else Verdict(word.name, "refused", f"the solver did not converge; {word.reason}")


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
    objective, rows = ZmpObjective(stance, reduced), stance.n_samples
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
    values = np.array([estimate.values for estimate in estimates])
    mean, covariance = values.mean(axis=0), np.diag(values.var(axis=0, ddof=1))
    verdicts = judge_reduced(reduced, mean, covariance)
    lost = [estimate for estimate in estimates if not estimate.converged]
    worst = max(estimates, key=lambda estimate: estimate.verdict.rank)
    return replace(
        first,
        values=mean,
        covariance=covariance,
        standard_parameters=reduced.standard(mean),
        parameter_verdicts=verdicts,
        verdict=worst.verdict,
        samples=sum(estimate.samples for estimate in estimates),
        iterations=max(estimate.iterations for estimate in estimates),
        converged=not lost,
        trace=max(estimates, key=lambda each: each.iterations).trace,
        notes=(
            f"mean and standard deviation of {len(estimates)} runs estimated one by one, {len(lost)} of which did not "
            "converge; of the sensors' own errors, which are alike in all runs, the deviation knows nothing",
        ),
    )


def _newton(value: ObjectiveValue) -> Array:
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
