"""The optimisation problem of a plan: motions of a family within limits, and their objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import InfeasibleExcitation
from jointbench.excitation.families.basis import Basis, phases
from jointbench.excitation.limits.certificate import certify, motion_at
from jointbench.excitation.limits.motion_limits import JointLimit, Limit, Motion
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.objectives.objective import Objective
from jointbench.excitation.search.sqp import ACTIVE_THRESHOLD, Function, solve_qp

PER_CYCLE = 40
"""Samples per fastest cycle: a peak between two of them is missed by at most 1 - cos(π/40) = 0.3 %."""

SECTIONS_PER_CYCLE = 4
"""Sections per fastest cycle in which each limit is watched by itself: no two peaks of a motion share one."""

_PERTURBATION = 0.8
"""Size of a disturbance over that of the motion, root mean square of the weights: it leaves the valley of a local
optimum, but not the neighbourhood of good ones. Smaller ones fall back too often, larger ones start afresh."""

_CORRECTABLE_EXCESS = 0.1
"""Share of a limit that can be moved inside again: further away, the slopes of the limits say little."""

_CORRECTION_MARGIN = 1e-4
"""Share of a limit that is left over, so that a second move is seldom needed."""

_MAX_CORRECTIONS = 5

_MAX_CONDITION_NUMBER = 1e8
"""Condition number, all columns of one length, from which on some parameters are unidentifiable: the noise,
or half the digits of a double, would have to be that much smaller than the torque."""

_MAX_NAMED = 3


@dataclass(frozen=True, eq=False)
class LimitConstraints:
    """Margin to every limit at the worst sample of each section, at least 0 where the limits are kept.

    The motion is cut into sections, equal in samples, and every scalar of every limit watched in each: a motion has
    several peaks, and a constraint that jumps from one to another misleads an optimiser. The gradient is that of
    the worst sample. Constraints are in the order of limits, then scalars, then sections; always the same number.

    Attributes:
        limits: to keep.
        home: [rad or m], shape (n_joints,).
        phi: the basis and its first three derivatives at the samples, shape (4, n_samples, size).
        sections: how many there are; they divide the samples.
        active_threshold: constraints with this value or more have a row of zeros in the Jacobian: most are that far
            from being active.
    """

    limits: tuple[Limit, ...]
    home: Array
    phi: Array
    sections: int
    active_threshold: float = np.inf

    @staticmethod
    def of(
        limits: Sequence[Limit],
        basis: Basis,
        home: Array,
        per_cycle: int = PER_CYCLE,
        sections_per_cycle: int = SECTIONS_PER_CYCLE,
        active_threshold: float = np.inf,
    ) -> LimitConstraints:
        """All limits over a whole motion.

        Args:
            limits: to keep.
            basis: of the motion.
            home: [rad or m], shape (n_joints,).
            per_cycle: samples per fastest cycle of each stretch of the basis; a few more make the sections equal.
            sections_per_cycle: in which each limit is watched.
            active_threshold: as the attribute.
        """
        samples = -(-per_cycle // sections_per_cycle)
        times: list[Array] = []
        sections = 0
        for start, stop, cycle in phases(basis):  # what is repeated is watched once
            phase_sections = max(1, round(sections_per_cycle * (stop - start) / cycle))
            sample_indices = np.arange(phase_sections * samples, dtype=np.float64) + 0.5
            times.append(start + sample_indices * ((stop - start) / len(sample_indices)))
            sections += phase_sections
        phi = np.stack(basis.evaluate(np.concatenate(times), 3))
        return LimitConstraints(tuple(limits), np.asarray(home), phi, sections, active_threshold)

    def values_and_jacobian(self, weights: Array) -> tuple[Array, Array]:
        """Constraint values, shape (n_constraints,), and their Jacobian by the flat weights, (n_constraints, size)."""
        motion = self._motion(weights)
        largest_usage = [self._largest_usage(limit, motion) for limit in self.limits]
        values = 1.0 - np.concatenate([np.empty(0), *(usage_peaks.ravel() for usage_peaks, _ in largest_usage)])
        jacobian = np.zeros((len(values), *weights.shape))
        first = 0
        for limit, (usage_peaks, sample) in zip(self.limits, largest_usage, strict=True):
            active = np.flatnonzero(values[first : first + usage_peaks.size] < self.active_threshold)
            if len(active):
                jacobian[first + active] = self._jacobian_rows(
                    limit, motion, sample.ravel()[active], active // self.sections
                )
            first += usage_peaks.size
        return values, jacobian.reshape(len(values), weights.size)

    def _motion(self, weights: Array) -> Motion:
        orders, samples, size = self.phi.shape
        displacement = (self.phi.reshape(-1, size) @ weights.T).reshape(orders, samples, len(weights))
        return self.home + displacement[0], displacement[1], displacement[2], displacement[3]

    def _largest_usage(self, limit: Limit, motion: Motion) -> tuple[Array, NDArray[np.int64]]:
        """Largest usage, and at which sample, shape (n_scalars, sections) each."""
        usage = np.ascontiguousarray(limit.usage(motion).T)
        by_section = usage.reshape(len(usage), self.sections, -1)
        worst_samples = by_section.argmax(axis=2)
        usage_peaks = np.take_along_axis(by_section, worst_samples[..., None], axis=2)[..., 0]
        return usage_peaks, worst_samples + by_section.shape[2] * np.arange(self.sections)

    def _jacobian_rows(
        self, limit: Limit, motion: Motion, samples: NDArray[np.int64], scalars: NDArray[np.int64]
    ) -> Array:
        """Minus the derivatives of the usage of scalars at samples by the weights, shape (n, n_joints, size)."""
        q, dq, ddq, dddq = (quantity[samples] for quantity in motion)
        rows = np.zeros((len(samples), q.shape[1], self.phi.shape[2]))
        for phi, derivative in zip(self.phi, limit.gradient((q, dq, ddq, dddq), scalars), strict=True):
            if derivative.any():  # most limits depend on few of the derivatives
                rows -= derivative[:, :, None] * phi[samples, None, :]
        return rows


@dataclass(frozen=True, eq=False)
class ExcitationProblem:
    """Motions q(t) = home + phi(t) @ w as points x = w / unit, all of a size, of the joints that are moved.

    Passive joints, which nothing drives, are held at home.

    Attributes:
        basis: the family of motions.
        home: where they begin and end [rad or m], shape (n_joints,).
        limits: that they keep.
        objective: what is minimised.
        samples: at how many times the regressor is taken.
    """

    basis: Basis
    home: Array
    limits: tuple[Limit, ...]
    objective: Objective
    samples: int

    @cached_property
    def weight_scale(self) -> Array:
        """Weight by which a joint's motion along one basis function reaches its first own limit, (n_joints, size)."""
        phi = self.basis.evaluate(self.basis.sample_times(self.samples), 3)
        usage = np.zeros((len(self.home), self.basis.size))
        for limit in self.limits:
            if isinstance(limit, JointLimit):
                nearest = np.minimum(limit.up, limit.down)
                usage = np.maximum(usage, np.abs(phi[limit.order]).max(axis=0) / nearest[:, None])
        return 1.0 / usage

    def random(self, rng: np.random.Generator) -> Array:
        """Random feasible weights, each joint up to its tightest limit unless others ask for less.

        Raises:
            InfeasibleExcitation: a limit is broken at home already, or next to nothing can move there.
        """
        weights = self.weights(rng.standard_normal(self._size))
        return scale_into_limits(self.limits, self.basis, self.home, weights, fill=1.0)

    def perturbed(self, weights: Array, rng: np.random.Generator) -> Array:
        """Random feasible weights in the neighbourhood of others."""
        x = self.point(weights)
        size = _PERTURBATION * float(np.sqrt(np.mean(x * x)))
        weights = self.weights(x + size * rng.standard_normal(x.shape))
        return scale_into_limits(self.limits, self.basis, self.home, weights)

    def feasible(self, weights: Array) -> Array:
        """Weights near the given ones whose motion is certain to keep the limits.

        A small violation, as between the samples of `constraints`, is corrected by the shortest step; where that does
        not do, the motion is scaled down. Scaling alone would at times take most of a motion away: the way home
        may lead through positions that need more torque.

        Raises:
            InfeasibleExcitation: next to nothing is left of the motion.
        """
        x, margin = self.point(weights), 0.0
        for _ in range(_MAX_CORRECTIONS):
            excess = float(certify(self.limits, self.basis, self.home, self.weights(x)).usage.max(initial=0.0)) - 1.0
            if excess <= 0.0:
                return self.weights(x)
            if not excess < _CORRECTABLE_EXCESS:
                break
            margin += excess + _CORRECTION_MARGIN
            c, jacobian = self.constraints(x)
            active = c < _CORRECTABLE_EXCESS
            solution = solve_qp(np.eye(len(x)), np.zeros(len(x)), -jacobian[active], c[active] - margin)
            if solution is None:
                break
            x = x + solution[0]
        return scale_into_limits(self.limits, self.basis, self.home, weights)

    def value(self, weights: Array) -> float:
        """The objective as it is reported."""
        phi, dphi, ddphi = self._sampled_basis
        return self.objective.value((self.home + phi @ weights.T, dphi @ weights.T, ddphi @ weights.T))

    def smooth_objective(self, sharpness: float) -> Function:
        """Smooth objective of flat points x that is minimised, with its gradient."""
        objective, (phi, dphi, ddphi) = self.objective.with_sharpness(sharpness), self._sampled_basis

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            weights = self.weights(x)
            motion = self.home + phi @ weights.T, dphi @ weights.T, ddphi @ weights.T
            value, (by_q, by_dq, by_ddq) = objective.value_and_gradient(motion)
            return value, self._gradient_by_point(by_q.T @ phi + by_dq.T @ dphi + by_ddq.T @ ddphi)

        return value_and_gradient

    def constraints(self, x: Array) -> tuple[Array, Array]:
        """Constraint values at the worst samples, and their Jacobian by the flat x; its rows are 0 far from a limit."""
        values, jacobian = self._constraints.values_and_jacobian(self.weights(x))
        return values, self._gradient_by_point(jacobian.reshape(len(values), *self.weight_scale.shape))

    def weights(self, x: Array) -> Array:
        """Weights of a flat point."""
        weights = np.zeros_like(self.weight_scale)
        weights[self._actuated] = x.reshape(-1, self.basis.size)
        return weights * self.weight_scale

    def point(self, weights: Array) -> Array:
        """Flat point of weights."""
        return (weights / self.weight_scale)[self._actuated].ravel()

    def _gradient_by_point(self, by_weights: Array) -> Array:
        """Derivatives by the flat point, of those by the weights, (…, n_joints, size)."""
        by_x = (by_weights * self.weight_scale)[..., self._actuated, :]
        return by_x.reshape(*by_x.shape[:-2], -1)

    @property
    def _actuated(self) -> NDArray[np.bool_]:
        return self.objective.information.robot.modelled

    @property
    def _size(self) -> int:
        return int(self._actuated.sum()) * self.basis.size

    @cached_property
    def _sampled_basis(self) -> tuple[Array, Array, Array]:
        phi, dphi, ddphi = self.basis.evaluate(self.basis.sample_times(self.samples), 2)
        return phi, dphi, ddphi

    @cached_property
    def _constraints(self) -> LimitConstraints:
        return LimitConstraints.of(self.limits, self.basis, self.home, active_threshold=ACTIVE_THRESHOLD)


def refuse_unidentifiable(problem: ExcitationProblem, weights: Array) -> None:
    """Refuse feasible weights whose motion leaves parameters unidentifiable.

    Raises:
        InfeasibleExcitation: naming the parameters, and the limits that leave too little motion.
    """
    information = problem.objective.information
    q, dq, ddq, _ = motion_at(problem.basis, problem.home, weights, problem.basis.sample_times(problem.samples))
    columns = information.columns((q, dq, ddq))
    lengths = np.linalg.norm(columns, axis=0)
    directions = np.linalg.svd(columns / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    unidentifiable = directions[1] * _MAX_CONDITION_NUMBER < directions[1][0]
    usage_peaks = np.sqrt((directions[2][unidentifiable] ** 2).sum(axis=0))
    if not unidentifiable.any():
        return
    names = information.base.leading_names
    leading = [names[i] for i in np.argsort(-usage_peaks, kind="stable")[:_MAX_NAMED] if usage_peaks[i] > 0.0]
    certificate = certify(problem.limits, problem.basis, problem.home, weights)
    tightest = certificate.names[int(np.argmax(certificate.usage))]
    passive_joints = [joint.name for joint in information.robot.independent_joints if joint.passive]
    passive = f". Passive joints are held at home: {', '.join(map(repr, passive_joints))}" if passive_joints else ""
    raise InfeasibleExcitation(
        f"robot {information.robot.name!r}: no motion was found from which {unidentifiable.sum()} of {len(names)} base "
        f"parameters can be identified, {', '.join(leading)} among them: too little can move, or in too few ways. The "
        f"limit that the best one comes nearest to is {tightest}, {100.0 * certificate.usage.max():.3g} % used; raise "
        f"it, take more harmonics or points, or another home{passive}"
    )
