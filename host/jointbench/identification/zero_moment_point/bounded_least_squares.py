"""Bounded least squares of the distance between theoretical and measured zero-moment point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import WrongTotalMass
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters, Theory
from jointbench.identification.zero_moment_point.stance import Stance


class ObjectiveValue(NamedTuple):
    """The objective [m²], its gradient G, shape (p,), and its Hessian H, shape (p, p)."""

    value: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True, eq=False)
class ZmpObjective:
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

    def __call__(self, phi: Array) -> ObjectiveValue:
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
        return ObjectiveValue(
            value=float(np.sum(residual**2)) / n,
            gradient=2.0 * pull.sum(axis=0) / n,
            hessian=2.0 * (rows.T @ rows - crossed - crossed.T + bent) / n,
        )


HUBER = 1.345
"""Residuals [σ] from where rows count less; of normal noise the estimate keeps 95 % of its efficiency."""

CLOSE = 0.1
"""Length of a step [σ of all parameters together] at which a search ends; what it leaves is much less."""

_LEAST_DAMPING = 1e-11
_FIRST_DAMPING = 1e-8
_MOST_DAMPING = 1e8
_GOOD = 0.75
_POOR = 0.25
"""Of the decrease that the linearised rows promise: with more the next step is trusted further, with less it is not."""

_LOOSER = 0.3
_TIGHTER = 30.0
"""How damping changes. Valleys of this problem are a million times as long as wide, so it starts, and stays, small."""

Rows = Callable[[Array, Array], tuple[Array, Array]]
"""Residuals, shape (m,), and their derivatives, shape (m, p + k), by Phi and by what is estimated beside it."""


@dataclass(frozen=True, eq=False)
class MassPlane:
    """Phi = offset + basis @ y: all that weighs total_mass; the heaviest kind's mass follows from the others.

    Attributes:
        offset: shape (p,).
        basis: shape (p, p - 1).
    """

    offset: Array
    basis: Array

    @staticmethod
    def of(reduced: ReducedParameters, total_mass: float) -> MassPlane:
        """The plane mass_row @ Phi + held_mass = total_mass."""
        row = reduced.mass_row
        follows = int(np.argmax(row * reduced.nominal))
        offset, basis = np.zeros(len(row)), np.eye(len(row))
        offset[follows] = (total_mass - reduced.held_mass) / row[follows]
        basis[follows] = -row / row[follows]
        return MassPlane(offset, np.delete(basis, follows, axis=1))

    def nearest(self, phi: Array) -> Array:
        """The y of a point of the plane."""
        return np.asarray(np.linalg.lstsq(self.basis, phi - self.offset, rcond=None)[0], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BoundedSolution:
    """End of a search.

    Attributes:
        phi: reduced parameters, shape (p,).
        beside: what was estimated beside them, shape (k,).
        plane: on which they lie.
        trace: of each iteration: norm of the step of Phi, objective, damping.
        converged: whether it ended by itself.
    """

    phi: Array
    beside: Array
    plane: MassPlane
    trace: tuple[tuple[float, float, float], ...]
    converged: bool


def check_mass(reduced: ReducedParameters, total_mass: float) -> None:
    """Refuse a mass that the links cannot have within their bounds.

    Raises:
        WrongTotalMass: it is too small or too large for the robot's file.
    """
    least, most = (float(reduced.mass_row @ bounds) + reduced.held_mass for bounds in reduced.bounds.T)
    if not least < total_mass < most:
        raise WrongTotalMass(
            f"a total mass of {total_mass:g} kg is not between {least:.3g} and {most:.3g} kg, as the file of "
            f"{reduced.robot.name!r} allows within the bounds of its links' masses; weigh it again, or correct the file"
        )


def start_of(reduced: ReducedParameters, total_mass: float, start: Array | None = None) -> Array:
    """Return the start of a search: the robot's file, all masses of kinds scaled to what the robot weighs.

    Raises:
        WrongTotalMass: no parameters within the bounds weigh that.
    """
    check_mass(reduced, total_mass)
    phi = np.array(reduced.nominal if start is None else start, dtype=np.float64)
    masses = slice(reduced.n_kinds, None)
    phi[masses] *= (total_mass - reduced.held_mass) / float(reduced.mass_row @ phi)
    return phi


def solve(
    rows: Rows,
    reduced: ReducedParameters,
    total_mass: float,
    start: Array,
    beside: Array | None = None,
    *,
    robust_rows: int = 0,
    close: float = CLOSE,
    steps: int = 50,
) -> BoundedSolution:
    """Minimise Σ rho(residual) over Phi, with mass_row @ Phi + held_mass = total_mass and Phi within its bounds.

    Each step minimises the linearised rows within the bounds, and within a trust region: it is damped by lambda times
    the squares of steps in each parameter's own scale, with lambda by how well the last step kept its promise. Steps
    are of m and m lc rather than of m and lc: wrenches are linear in them but for m lc², so that long steps keep it.

    Args:
        rows: residuals in their own σ.
        reduced: what Phi is.
        total_mass: [kg].
        start: Phi to begin with, of that mass, shape (p,).
        beside: what is estimated beside it and has no bounds, to begin with, shape (k,).
        robust_rows: so many rows, the first ones, have Huber's rho; the others rho(u) = u².
        close: length of a step at which the search ends [σ of all together].
        steps: iterations at most.

    Returns:
        The solution, within the bounds.

    Source: Moré, Numerical Analysis, Lecture Notes in Mathematics 630, 1978.
    """
    from jointbench.excitation import solve_qp  # the optimiser beside it loads slowly

    plane, beside = MassPlane.of(reduced, total_mass), np.zeros(0) if beside is None else beside
    n, faces, room = plane.basis.shape[1], *_faces(reduced.bounds)
    walls = np.pad(faces @ plane.basis, ((0, 0), (0, len(beside))))
    x = np.concatenate([plane.nearest(_moments(start)), beside])

    def phi_of(x: Array) -> Array:
        return _places(plane.offset + plane.basis @ x[:n])

    def at(x: Array) -> _Linear:
        phi = phi_of(x)
        residual, jacobian = rows(phi, x[n:])
        by_moments = jacobian[:, : len(phi)] @ _by_moments(phi)
        return _Linear.of(residual, np.hstack([by_moments @ plane.basis, jacobian[:, len(phi) :]]), robust_rows)

    here, damping, trace, converged = at(x), _FIRST_DAMPING, list[tuple[float, float, float]](), False
    while len(trace) < steps and damping < _MOST_DAMPING and not converged:
        margins = np.maximum(room - faces @ (plane.offset + plane.basis @ x[:n]), 0.0)
        damped, whole = (solve_qp(here.damped(each), here.slope, walls, margins) for each in (damping, _LEAST_DAMPING))
        if damped is None:
            damping *= _TIGHTER
            continue
        step = damped[0]
        there, promised = at(x + step), -2.0 * here.slope @ step - step @ here.hessian @ step
        kept = (here.value - there.value) / promised if promised > 0.0 else 1.0
        # A damped step may be short because it is damped, and a minimum still be far.
        left_over = step if whole is None else whole[0]
        converged = bool(left_over @ here.hessian @ left_over <= close**2)
        trace.append((float(np.linalg.norm(phi_of(x + step) - phi_of(x))), there.value, damping))
        damping = max(damping * (_LOOSER if kept > _GOOD else _TIGHTER if kept < _POOR else 1.0), _LEAST_DAMPING)
        if there.value <= here.value:
            x, here = x + step, there
    return BoundedSolution(phi_of(x), x[n:], plane, tuple(trace), converged)


def _moments(phi: Array) -> Array:
    """[m lc, m] of [lc, m]."""
    lc, m = np.split(phi, 2)
    return np.concatenate([m * lc, m])


def _places(moments: Array) -> Array:
    """[lc, m] of [m lc, m]."""
    first, m = np.split(moments, 2)
    return np.concatenate([first / m, m])


def _by_moments(phi: Array) -> Array:
    """Derivatives of [lc, m] by [m lc, m]."""
    lc, m = np.split(phi, 2)
    return np.block([[np.diag(1.0 / m), np.diag(-lc / m)], [np.zeros((len(m), len(m))), np.eye(len(m))]])


def _faces(bounds: Array) -> tuple[Array, Array]:
    """A and b of A @ [m lc, m] <= b: the bounds of lc and m."""
    n = len(bounds) // 2
    one, none, (low, high) = np.eye(n), np.zeros((n, n)), bounds[:n].T
    rows = [[one, -np.diag(high)], [-one, np.diag(low)], [none, one], [none, -one]]
    return np.block(rows), np.concatenate([np.zeros(2 * n), bounds[n:, 1], -bounds[n:, 0]])


class _Linear(NamedTuple):
    """Σ rho at a point, and of the rows weighted by rho'(u)/u: half the gradient of Σ u², and JᵀJ."""

    value: float
    slope: Array
    hessian: Array

    def damped(self, damping: float) -> Array:
        """The Hessian with its diagonal raised."""
        scale = np.diag(self.hessian)
        return self.hessian + damping * np.diag(np.where(scale > 0.0, scale, 1.0))

    @staticmethod
    def of(residual: Array, jacobian: Array, robust_rows: int) -> _Linear:
        size = np.abs(residual)
        far = size > HUBER
        far[robust_rows:] = False
        weight = np.divide(HUBER, size, out=np.ones_like(size), where=far)
        value = float(np.sum(np.where(far, 2.0 * HUBER * size - HUBER**2, residual**2)))
        return _Linear(value, jacobian.T @ (weight * residual), (jacobian.T * weight) @ jacobian)
