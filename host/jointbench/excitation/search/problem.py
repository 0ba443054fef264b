"""What a plan searches: motions of a family within limits, and how good they are, as an optimiser asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.excitation.families.basis import Basis
from jointbench.excitation.limits.certificate import certify
from jointbench.excitation.limits.limit_constraints import LimitConstraints
from jointbench.excitation.limits.motion_limits import JointLimit, Limit
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.objectives.objective import Objective
from jointbench.excitation.search.descent import WATCHED, Function
from jointbench.excitation.search.quadratic_program import least_quadratic

_DISTURBANCE = 0.8
"""Size of a disturbance over that of the motion, root mean square of the weights: it leaves the valley of a local
optimum, but not the neighbourhood of good ones. Smaller ones fall back too often, larger ones start afresh."""

_LITTLE = 0.1
"""Share of a limit that can be moved inside again: further away, the slopes of the limits say little."""

_SPARE = 1e-4
"""Share of a limit that is left over, so that a second move is seldom needed."""

_NUDGES = 5


@dataclass(frozen=True, eq=False)
class Problem:
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
    def unit(self) -> Array:
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

    def disturbed(self, weights: Array, rng: np.random.Generator) -> Array:
        """Random feasible weights in the neighbourhood of others."""
        x = self.point(weights)
        size = _DISTURBANCE * float(np.sqrt(np.mean(x * x)))
        weights = self.weights(x + size * rng.standard_normal(x.shape))
        return scale_into_limits(self.limits, self.basis, self.home, weights)

    def feasible(self, weights: Array) -> Array:
        """Weights near the given ones whose motion is certain to keep the limits.

        What breaks them by a little, as between the samples of `room`, is moved the shortest way inside; where that
        does not do, the motion is scaled down. Scaling alone would at times take most of a motion away: the way home
        may lead through positions that need more torque.

        Raises:
            InfeasibleExcitation: next to nothing is left of the motion.
        """
        x, spare = self.point(weights), 0.0
        for _ in range(_NUDGES):
            beyond = float(certify(self.limits, self.basis, self.home, self.weights(x)).usage.max(initial=0.0)) - 1.0
            if beyond <= 0.0:
                return self.weights(x)
            if not beyond < _LITTLE:
                break
            spare += beyond + _SPARE
            left, slopes = self.room(x)
            near = left < _LITTLE
            found = least_quadratic(np.eye(len(x)), np.zeros(len(x)), -slopes[near], left[near] - spare)
            if found is None:
                break
            x = x + found[0]
        return scale_into_limits(self.limits, self.basis, self.home, weights)

    def value(self, weights: Array) -> float:
        """The objective as it is reported."""
        phi, dphi, ddphi = self._sampled
        return self.objective.value((self.home + phi @ weights.T, dphi @ weights.T, ddphi @ weights.T))

    def stand_in(self, sharpness: float) -> Function:
        """The objective as it is minimised, of flat points x, with its gradient."""
        objective, (phi, dphi, ddphi) = self.objective.with_sharpness(sharpness), self._sampled

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            weights = self.weights(x)
            motion = self.home + phi @ weights.T, dphi @ weights.T, ddphi @ weights.T
            value, (by_q, by_dq, by_ddq) = objective.value_and_gradient(motion)
            return value, self._slope(by_q.T @ phi + by_dq.T @ dphi + by_ddq.T @ ddphi)

        return value_and_gradient

    def room(self, x: Array) -> tuple[Array, Array]:
        """What is left of the limits at their worst samples, and its Jacobian by the flat x; 0 far from a limit."""
        values, jacobian = self._constraints.values_and_jacobian(self.weights(x))
        return values, self._slope(jacobian.reshape(len(values), *self.unit.shape))

    def weights(self, x: Array) -> Array:
        """Weights of a flat point."""
        weights = np.zeros_like(self.unit)
        weights[self._moved] = x.reshape(-1, self.basis.size)
        return weights * self.unit

    def point(self, weights: Array) -> Array:
        """Flat point of weights."""
        return (weights / self.unit)[self._moved].ravel()

    def _slope(self, by_weights: Array) -> Array:
        """Derivatives by the flat point, of those by the weights, (…, n_joints, size)."""
        by_x = (by_weights * self.unit)[..., self._moved, :]
        return by_x.reshape(*by_x.shape[:-2], -1)

    @property
    def _moved(self) -> NDArray[np.bool_]:
        return self.objective.information.robot.modelled

    @property
    def _size(self) -> int:
        return int(self._moved.sum()) * self.basis.size

    @cached_property
    def _sampled(self) -> tuple[Array, Array, Array]:
        phi, dphi, ddphi = self.basis.evaluate(self.basis.sample_times(self.samples), 2)
        return phi, dphi, ddphi

    @cached_property
    def _constraints(self) -> LimitConstraints:
        return LimitConstraints.of(self.limits, self.basis, self.home, heeded=WATCHED)
