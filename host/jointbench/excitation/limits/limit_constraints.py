"""Limits as inequality constraints of an optimiser, with exact gradients by the free weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.excitation.families.basis import Basis, stretches
from jointbench.excitation.limits.motion_limits import Limit, Motion

PER_CYCLE = 40
"""Samples per fastest cycle: a peak between two of them is missed by at most 1 - cos(π/40) = 0.3 %."""

SECTIONS_PER_CYCLE = 4
"""Sections per fastest cycle in which each limit is watched by itself: no two peaks of a motion share one."""


@dataclass(frozen=True, eq=False)
class LimitConstraints:
    """What is left of every limit at the worst sample of each section, at least 0 where the limits are kept.

    The motion is cut into sections, equal in samples, and every scalar of every limit watched in each: a motion has
    several peaks, and a constraint that jumps from one to another misleads an optimiser. The gradient is that of
    the worst sample. Constraints are in the order of limits, then scalars, then sections; always the same number.

    Attributes:
        limits: to keep.
        home: [rad or m], shape (n_joints,).
        phi: the basis and its first three derivatives at the samples, shape (4, n_samples, size).
        sections: how many there are; they divide the samples.
        heeded: constraints of which this share or more is left have a row of zeros in the Jacobian: they are far from
            deciding a step, and most of them are.
    """

    limits: tuple[Limit, ...]
    home: Array
    phi: Array
    sections: int
    heeded: float = np.inf

    @staticmethod
    def of(
        limits: Sequence[Limit],
        basis: Basis,
        home: Array,
        per_cycle: int = PER_CYCLE,
        sections_per_cycle: int = SECTIONS_PER_CYCLE,
        heeded: float = np.inf,
    ) -> LimitConstraints:
        """All limits over a whole motion.

        Args:
            limits: to keep.
            basis: of the motion.
            home: [rad or m], shape (n_joints,).
            per_cycle: samples per fastest cycle of each stretch of the basis; a few more make the sections equal.
            sections_per_cycle: in which each limit is watched.
            heeded: as the attribute.
        """
        samples = -(-per_cycle // sections_per_cycle)
        times: list[Array] = []
        sections = 0
        for start, stop, cycle in stretches(basis):  # what is repeated is watched once
            here = max(1, round(sections_per_cycle * (stop - start) / cycle))
            middles = np.arange(here * samples, dtype=np.float64) + 0.5
            times.append(start + middles * ((stop - start) / len(middles)))
            sections += here
        phi = np.stack(basis.evaluate(np.concatenate(times), 3))
        return LimitConstraints(tuple(limits), np.asarray(home), phi, sections, heeded)

    def values_and_jacobian(self, weights: Array) -> tuple[Array, Array]:
        """What is left, shape (n_constraints,), and its Jacobian by the weights flattened, (n_constraints, size)."""
        motion = self._motion(weights)
        peaks = [self._peaks(limit, motion) for limit in self.limits]
        values = 1.0 - np.concatenate([np.empty(0), *(share.ravel() for share, _ in peaks)])
        jacobian = np.zeros((len(values), *weights.shape))
        first = 0
        for limit, (share, sample) in zip(self.limits, peaks, strict=True):
            near = np.flatnonzero(values[first : first + share.size] < self.heeded)
            if len(near):
                jacobian[first + near] = self._rows(limit, motion, sample.ravel()[near], near // self.sections)
            first += share.size
        return values, jacobian.reshape(len(values), weights.size)

    def _motion(self, weights: Array) -> Motion:
        orders, samples, size = self.phi.shape
        moved = (self.phi.reshape(-1, size) @ weights.T).reshape(orders, samples, len(weights))
        return self.home + moved[0], moved[1], moved[2], moved[3]

    def _peaks(self, limit: Limit, motion: Motion) -> tuple[Array, NDArray[np.int64]]:
        """Largest usage, and at which sample, shape (n_scalars, sections) each."""
        usage = np.ascontiguousarray(limit.usage(motion).T)
        by_section = usage.reshape(len(usage), self.sections, -1)
        worst = by_section.argmax(axis=2)
        share = np.take_along_axis(by_section, worst[..., None], axis=2)[..., 0]
        return share, worst + by_section.shape[2] * np.arange(self.sections)

    def _rows(self, limit: Limit, motion: Motion, samples: NDArray[np.int64], scalars: NDArray[np.int64]) -> Array:
        """Minus the derivatives of the usage of scalars at samples by the weights, shape (n, n_joints, size)."""
        q, dq, ddq, dddq = (quantity[samples] for quantity in motion)
        rows = np.zeros((len(samples), q.shape[1], self.phi.shape[2]))
        for phi, slope in zip(self.phi, limit.gradient((q, dq, ddq, dddq), scalars), strict=True):
            if slope.any():  # most limits depend on few of the derivatives
                rows -= slope[:, :, None] * phi[samples, None, :]
        return rows
