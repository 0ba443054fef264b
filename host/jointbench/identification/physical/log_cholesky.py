"""Positive definite 4 × 4 matrices by ten numbers without any limits, and exact derivatives by them.

P = L Lᵀ with L lower triangular; the numbers θ are L's entries row by row, of the diagonal ones their logarithms.
Source: Rucker & Wensing, IEEE RA-L 7(2), 2022, with L in place of their upper triangle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import PhysicalSolverFailed
from jointbench.identification.physical.pseudo_inertia import UNIT, Prior, as_matrix, as_vector

_ROWS, _COLUMNS = np.tril_indices(4)
_DIAGONAL = np.flatnonzero(_ROWS == _COLUMNS)


def log_cholesky(matrix: Array) -> Array:
    """The numbers θ, shape (…, 10), of positive definite matrices, shape (…, 4, 4)."""
    theta: Array = np.linalg.cholesky(matrix).astype(np.float64)[..., _ROWS, _COLUMNS]
    theta[..., _DIAGONAL] = np.log(theta[..., _DIAGONAL])
    return theta


def triangle(theta: Array) -> Array:
    """L of P = L Lᵀ, shape (…, 4, 4), of numbers θ, shape (…, 10)."""
    lower = np.zeros((*theta.shape[:-1], 4, 4))
    entries = theta.copy()
    entries[..., _DIAGONAL] = np.exp(theta[..., _DIAGONAL])
    lower[..., _ROWS, _COLUMNS] = entries
    return lower


def slopes(lower: Array) -> Array:
    """Derivatives of `as_vector(P)` by θ, shape (…, 10, 10), at L, shape (…, 4, 4)."""
    moved = np.zeros((*lower.shape[:-2], 10, 4, 4))
    # Entry (r, c) of L changes row r of L Lᵀ by column c of L, and its column r alike.
    for k, (row, column) in enumerate(zip(_ROWS, _COLUMNS, strict=True)):
        moved[..., k, row, :] = lower[..., :, column]
    moved = (moved + np.swapaxes(moved, -1, -2)) * _chain(lower)[..., :, None, None]
    return np.swapaxes(as_vector(moved), -1, -2)


def curvature(lower: Array, weights: Array) -> Array:
    """Second derivatives of Σ weights * P by θ, shape (…, 10, 10).

    Args:
        lower: L, shape (…, 4, 4).
        weights: symmetric, shape (…, 4, 4).
    """
    same_column = (_COLUMNS[:, None] == _COLUMNS[None, :]).astype(np.float64)
    chain = _chain(lower)
    bent = 2.0 * weights[..., _ROWS[:, None], _ROWS[None, :]] * same_column
    bent *= chain[..., :, None] * chain[..., None, :]
    by_entry = 2.0 * (weights @ lower)[..., _ROWS, _COLUMNS]
    bent[..., _DIAGONAL, _DIAGONAL] += (by_entry * chain)[..., _DIAGONAL]
    return bent


def _chain(lower: Array) -> Array:
    """Derivative of each entry of L by its number."""
    chain = np.ones((*lower.shape[:-2], 10))
    chain[..., _DIAGONAL] = np.diagonal(lower, axis1=-2, axis2=-1)
    return chain


@dataclass(frozen=True, eq=False)
class Around:
    """The parameters that are looked at, origin + directions @ z, and what that costs: ½ Σ stiffness z² + slope · z.

    Attributes:
        origin: shape (n,).
        directions: shape (n, n_free).
        stiffness, slope: shape (n_free,).
    """

    origin: Array
    directions: Array
    stiffness: Array
    slope: Array


_STEPS = 1000

_SHRINK = 0.3
"""Of the barrier from one turn to the next."""

_LAST = 1e-10
"""Barrier at the end, relative to the prior's weight: what it moves is less than what rounding does …"""

_LEAST = 1e-12
"""… and at least [σ²]: below it, what is left of the room to the edge is rounding."""

_ROUNDING = 1e-9
"""Gain relative to what is minimised that is taken for rounding."""

_CLOSE = 0.1
"""Share of barrier or last accuracy that another step can gain [σ²] at which a turn ends."""

_TO_EDGE = 0.95
"""Share of the way to the edge of what is possible that one step goes at most."""

_SHORT = 0.3
"""A step that the edge cuts to less than this is taken as if on the central path, which leads along the edge."""


class _At(NamedTuple):
    """The parameters x of numbers θ and their derivatives."""

    x: Array
    lower: Array
    jacobian: Array


@dataclass(frozen=True, eq=False)
class FreeNumbers:
    """Physically possible x of numbers θ: P' = L Lᵀ + margin * E of each link, exp of what must not be negative.

    Attributes:
        n_bodies: the first 10 * n_bodies parameters are links'.
        signed: indices of the parameters that must not be negative.
        margin: P' ⪰ margin * E for each link.
    """

    n_bodies: int
    signed: NDArray[np.intp]
    margin: float

    def of(self, x: Array) -> Array:
        """Numbers of parameters that are possible, and not at the edge."""
        theta = x.copy()
        links = 10 * self.n_bodies
        theta[:links] = log_cholesky(as_matrix(x[:links].reshape(-1, 10) - self.margin * UNIT)).ravel()
        theta[self.signed] = np.log(x[self.signed])
        return theta

    def at(self, theta: Array) -> _At:
        """The parameters of numbers, and their exact derivatives by them, shape (n, n)."""
        x, jacobian, links = theta.copy(), np.eye(len(theta)), 10 * self.n_bodies
        lower = triangle(theta[:links].reshape(-1, 10))
        x[:links] = (as_vector(lower @ np.swapaxes(lower, 1, 2)) + self.margin * UNIT).ravel()
        for i, block in enumerate(slopes(lower)):
            jacobian[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = block
        x[self.signed] = jacobian[self.signed, self.signed] = np.exp(theta[self.signed])
        return _At(x, lower, jacobian)

    def away(self, at: _At) -> Array:
        """Derivatives of Σ log det (P' - margin E) + Σ log x by x."""
        slope, roots = np.zeros_like(at.x), np.linalg.inv(at.lower)
        slope[: 10 * self.n_bodies] = as_vector(np.swapaxes(roots, 1, 2) @ roots).ravel()
        slope[self.signed] = 1.0 / at.x[self.signed]
        return slope

    def room(self, x: Array, direction: Array) -> float:
        """How many times `direction` can be gone from x before the edge of what is possible."""
        links = 10 * self.n_bodies
        roots = np.linalg.inv(np.linalg.cholesky(as_matrix(x[:links].reshape(-1, 10) - self.margin * UNIT)))
        relative = roots @ as_matrix(direction[:links].reshape(-1, 10)) @ np.swapaxes(roots, 1, 2)
        worst = np.concatenate([[0.0], np.linalg.eigvalsh(relative).ravel(), direction[self.signed] / x[self.signed]])
        return float(-1.0 / worst.min()) if worst.min() < 0.0 else np.inf

    def bent(self, at: _At, slope: Array) -> Array:
        """Σ slope * second derivatives of x by the numbers, shape (n, n)."""
        bent, links = np.zeros_like(at.jacobian), 10 * self.n_bodies
        for i, block in enumerate(curvature(at.lower, as_matrix(slope[:links].reshape(-1, 10)))):
            bent[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = block
        bent[self.signed, self.signed] = slope[self.signed] * at.x[self.signed]
        return bent


def solve_newton(around: Around, prior: Prior, weight: float, numbers: FreeNumbers, start: Array) -> tuple[Array, int]:
    """Minimise ½ Σ stiffness z² + slope · z + weight * prior(x) over z
    where x = origin + directions @ z is physically possible.

    A barrier, linear in the numbers θ, keeps away from the edge and shrinks turn by turn:
    Σ over links tr (P' - margin E) - log det (P' - margin E), Σ over drives x / start - log x.
    The direction of each step is Newton's for θ, with exact derivatives; but since the data are linear in x and bent in
    θ, it is gone straight in x, as far as what is possible reaches.

    Args:
        around: which x to look at, and the price of z.
        prior: of x.
        weight: of the prior, positive.
        numbers: what is possible.
        start: x that is possible, and not at the edge, shape (n,).

    Returns:
        x, shape (n,), and how many steps it took.

    Raises:
        PhysicalSolverFailed: no minimum is found.

    Source: Rucker & Wensing, IEEE RA-L 7(2), 2022, of the numbers; damped and with absolute eigenvalues as in
    Nocedal & Wright, Numerical Optimization, 2nd ed. 2006, sec. 3.4.
    """
    search = _Search(around, prior, weight, numbers, start)
    z, steps = search.coordinates(start), 0
    barrier = max(weight, search.steepness(z))
    last = max(_LAST * weight, _LEAST)
    while True:
        z, steps = search.centered(z, barrier, steps)
        if barrier <= last:
            return around.origin + around.directions @ z, steps
        barrier = max(_SHRINK * barrier, last)


class _Search:
    """Newton's steps on data, prior and a barrier."""

    def __init__(self, around: Around, prior: Prior, weight: float, numbers: FreeNumbers, start: Array) -> None:
        self._around, self._prior, self._weight, self._numbers = around, prior, weight, numbers
        # The data know some directions a million times better than others.
        scale = np.linalg.norm(around.directions, axis=0)
        self._inverse = np.linalg.pinv(around.directions / scale) / scale[:, None]
        self._pull = np.zeros(len(start))
        self._pull[: 10 * numbers.n_bodies] = np.tile(UNIT, numbers.n_bodies)
        self._pull[numbers.signed] = 1.0 / start[numbers.signed]

    def coordinates(self, x: Array) -> Array:
        """The z of x."""
        return self._inverse @ (x - self._around.origin)

    def steepness(self, z: Array) -> float:
        """How much what is minimised changes with x, without the barrier."""
        return float(np.abs(self._inverse.T @ self._slope(z)).max())

    def centered(self, z: Array, barrier: float, steps: int) -> tuple[Array, int]:
        """The best z with this barrier, and how many steps have been taken.

        Raises:
            PhysicalSolverFailed: there is no way on, or it is too long.
        """
        current = self._value(z, barrier)
        while steps < _STEPS:
            direction, gain, reach = self._newton(z, barrier, central=False)
            if gain < _CLOSE * barrier:
                return z, steps
            if reach < _SHORT:
                direction, gain, reach = self._newton(z, barrier, central=True)
            length = min(1.0, _TO_EDGE * reach)
            while not (following := self._value(z + length * direction, barrier)) <= current - 1e-4 * length * gain:
                length *= 0.5
                if length < 1e-8:
                    if gain < _ROUNDING * (1.0 + abs(current)):
                        return z, steps
                    raise PhysicalSolverFailed(
                        f"Newton's method cannot go on after {steps} steps, where it could still gain {gain:.2g} σ²; "
                        f"take method='lmi'"
                    )
            z, current, steps = z + length * direction, following, steps + 1
        raise PhysicalSolverFailed(f"Newton's method found no minimum in {_STEPS} steps; take method='lmi'")

    def _value(self, z: Array, barrier: float) -> float:
        x = self._around.origin + self._around.directions @ z
        room = as_matrix(x[: 10 * self._numbers.n_bodies].reshape(-1, 10) - self._numbers.margin * UNIT)
        logs = float(np.linalg.slogdet(room)[1].sum() + np.log(x[self._numbers.signed]).sum())
        own = float(0.5 * self._around.stiffness @ z**2 + self._around.slope @ z) + self._weight * self._prior.value(x)
        return own + barrier * (float(self._pull @ x) - logs)

    def _slope(self, z: Array) -> Array:
        x = self._around.origin + self._around.directions @ z
        data = self._around.stiffness * z + self._around.slope
        return data + self._weight * self._around.directions.T @ self._prior.gradient(x)

    def _newton(self, z: Array, barrier: float, central: bool) -> tuple[Array, float, float]:
        """Direction of the step for θ as it is in z, what it would gain, and how many times it can be gone.

        Args:
            z: where.
            barrier: its weight.
            central: whether the numbers' bend is weighed as on the central path, where slope and barrier balance.
        """
        numbers, directions = self._numbers, self._around.directions
        x = self._around.origin + directions @ z
        at = numbers.at(numbers.of(x))
        slope = self._slope(z) + barrier * directions.T @ self._pull
        weights = barrier * numbers.away(at) if central else self._inverse.T @ slope
        back = np.linalg.solve(at.jacobian, directions)
        hessian = self._weight * directions.T @ self._prior.hessian(x) @ directions + np.diag(self._around.stiffness)
        bends, axes = np.linalg.eigh(hessian + back.T @ numbers.bent(at, weights) @ back)
        bends = np.maximum(np.abs(bends), np.finfo(np.float64).eps * np.abs(bends).max())
        slope -= barrier * directions.T @ numbers.away(at)
        direction = -axes @ ((axes.T @ slope) / bends)
        return direction, -float(slope @ direction), numbers.room(x, directions @ direction)
