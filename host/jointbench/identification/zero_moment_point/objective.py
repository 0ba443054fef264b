"""What the paper minimises: squares of the distance between theoretical and measured zero-moment point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.theory import Theory


class Value(NamedTuple):
    """The objective [m²], its gradient G, shape (p,), and its Hessian H, shape (p, p)."""

    value: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True, eq=False)
class Objective:
    """e(Phi) = mean over samples of |z(Phi) - measured|², with analytic derivatives.

    With r the residuals, J their derivatives, D of `Point`, t of `Coefficients`, and s the derivatives of log F:
    G = 2 mean Jᵀ r, H = 2 mean [Jᵀ J - Σ r (J sᵀ + s Jᵀ) + Σ r D t''].

    Attributes:
        stance: the measured rows.
        reduced: what Phi is.

    Source: Wu & Gao, J. Harbin Institute of Technology 53(7), 2021, who sum where this is a mean.
    """

    stance: Stance
    reduced: ReducedParameters

    @cached_property
    def _theory(self) -> Theory:
        return Theory.of(self.stance, self.reduced)

    def __call__(self, phi: Array) -> Value:
        """Value, gradient and Hessian at Phi, shape (p,)."""
        t = self.reduced.coefficients(phi)
        z = self._theory(t.value)
        residual = z.point - self.stance.measured
        jacobian, share = z.slopes @ t.first, z.force_slopes @ t.first / z.force[:, None]
        pull = np.einsum("kc,kcp->kp", residual, jacobian)
        crossed = pull.T @ share
        bent = np.tensordot(np.einsum("kc,kct->t", residual, z.slopes), t.second, 1)
        rows = jacobian.reshape(-1, jacobian.shape[2])
        n = len(residual)
        return Value(
            value=float(np.sum(residual**2)) / n,
            gradient=2.0 * pull.sum(axis=0) / n,
            hessian=2.0 * (rows.T @ rows - crossed - crossed.T + bent) / n,
        )
