"""Solvers for the physically consistent parameters nearest to an estimate: Newton's method, and a conic program.

Newton's is free of limits: P = L Lᵀ is positive definite with L lower triangular, and the numbers θ are L's entries row
by row, of the diagonal ones their logarithms.
Source: Rucker & Wensing, IEEE RA-L 7(2), 2022, with L in place of their upper triangle.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules load on first use; each takes up to a second
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import NumericalError
from jointbench.files import foreign_code
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
        """Return how many times `direction` can be gone from x before the edge of what is possible."""
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
        NumericalError: no minimum is found.

    Source: Rucker & Wensing, IEEE RA-L 7(2), 2022, of the numbers; damped and with absolute eigenvalues as in
    Nocedal & Wright, Numerical Optimization, 2nd ed. 2006, sec. 3.4.
    """
    search = _NewtonSearch(around, prior, weight, numbers, start)
    (z, barrier), steps = search.begin(start), 0
    last = max(_LAST * weight, _LEAST)
    while True:
        z, steps = search.centered(z, barrier, steps)
        if barrier <= last:
            return around.origin + around.directions @ z, steps
        barrier = max(_SHRINK * barrier, last)


class _NewtonSearch:
    """Newton's steps on data, prior and a barrier."""

    def __init__(self, around: Around, prior: Prior, weight: float, numbers: FreeNumbers, start: Array) -> None:
        self._around, self._prior, self._weight, self._numbers = around, prior, weight, numbers
        # The data know some directions a million times better than others.
        scale = np.linalg.norm(around.directions, axis=0)
        self._inverse = np.linalg.pinv(around.directions / scale) / scale[:, None]
        self._pull = np.zeros(len(start))
        self._pull[: 10 * numbers.n_bodies] = np.tile(UNIT, numbers.n_bodies)
        self._pull[numbers.signed] = 1.0 / start[numbers.signed]

    def begin(self, x: Array) -> tuple[Array, float]:
        """Return the z of x, and a barrier as large as the change of the data and the prior with x."""
        z = self._inverse @ (x - self._around.origin)
        return z, max(self._weight, float(np.abs(self._inverse.T @ self._slope(z)).max()))

    def centered(self, z: Array, barrier: float, steps: int) -> tuple[Array, int]:
        """The best z with this barrier, and how many steps have been taken.

        Raises:
            NumericalError: there is no way on, or it is too long.
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
                    raise NumericalError(
                        f"Newton's method cannot go on after {steps} steps, where it could still gain {gain:.2g} σ²; "
                        f"take method='lmi'"
                    )
            z, current, steps = z + length * direction, following, steps + 1
        raise NumericalError(f"Newton's method found no minimum in {_STEPS} steps; take method='lmi'")

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


_TOLERANCE = 1e-9
"""Of gap and feasibility, relative; the solver's own is 1e-8, and margins are down to 1e-6."""

_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """Solution of the conic program.

    Attributes:
        x: parameters, shape (n,); meaningless where `possible` is False.
        possible: False where it proved that none of the parameters that are looked at are possible.
        status: in words.
        iterations: of the interior-point method.
    """

    x: Array
    possible: bool
    status: str
    iterations: int


def solve_conic(around: Around, prior: Prior, weight: float, signed: NDArray[np.intp], margin: float) -> ConicSolution:
    """Minimise ½ Σ stiffness z² + slope · z + weight * prior(x) over z
    where x = origin + directions @ z is physically possible.

    The solver is given x and z as shares of the largest |origin|, where that is above 1: numbers beyond 1e20 it takes
    for infinite, and does not survive them in a matrix.

    Args:
        around, prior, weight: as of `solve_newton`.
        signed: indices of the parameters x that must not be negative.
        margin: P' ⪰ margin * E for each link.

    Raises:
        NumericalError: the solver ends without an answer either way, or breaks down.

    Source: Wensing, Kim & Slotine, IEEE RA-L 3(1), 2018; solver: Goulart & Chen, Clarabel, arXiv 2405.12762, 2024.
    """
    clarabel: Any = importlib.import_module("clarabel")  # deferred: only this needs it
    size = max(1.0, float(np.abs(around.origin).max()))
    shares = replace(around, origin=around.origin / size, slope=around.slope / size)
    program = _Program(shares, prior.n_bodies if prior.log_det else 0)
    program.squares(weight * prior.squares, prior.center / size)
    program.not_negative(signed)
    for body in range(prior.n_bodies):
        program.at_least(body, margin / size)
        if prior.log_det:
            program.log_det(body, weight / size, weight / size / size)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = _ITERATIONS
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, _TOLERANCE)
    data = program.assembled(clarabel)
    with foreign_code(
        NumericalError,
        f"the conic solver breaks down on an estimate up to {size:.3g} times the reference bodies",
        "look for spikes in the recorded torques, or take method='log_cholesky'",
    ):
        solution = clarabel.DefaultSolver(*data, settings).solve()
    status = str(solution.status)
    z = size * np.array(solution.x[: len(around.stiffness)], dtype=np.float64)
    x = around.origin + around.directions @ z
    if status in ("PrimalInfeasible", "AlmostPrimalInfeasible"):
        return ConicSolution(x, False, "no such parameters are possible", solution.iterations)
    if status not in ("Solved", "AlmostSolved") or not np.isfinite(x).all():
        raise NumericalError(
            f"the conic solver ended with {status} after {solution.iterations} iterations; "
            f"try another prior or a larger margin, or method='log_cholesky'"
        )
    word = "solved" if status == "Solved" else "solved to reduced accuracy"
    return ConicSolution(x, True, f"{word} in {solution.iterations} iterations", solution.iterations)


class _Program:
    """Minimise ½ yᵀ Q y + c y with G y + s = h and s in cones; y is z, and for log-det 14 numbers more per body."""

    def __init__(self, around: Around, n_log_det: int) -> None:
        self._around = around
        self._free = len(around.stiffness)
        self._size = self._free + 14 * n_log_det
        self._linear = np.zeros(self._size)
        self._linear[: self._free] = around.slope
        self._square = np.zeros((self._size, self._size))
        self._square[: self._free, : self._free] = np.diag(around.stiffness)
        self._blocks: list[Array] = []
        self._right: list[Array] = []
        self._cones: list[tuple[str, int]] = []

    def squares(self, weights: Array, center: Array) -> None:
        """Add ½ Σ weights (x - center)²."""
        origin, directions = self._around.origin, self._around.directions
        self._square[: self._free, : self._free] += directions.T @ (weights[:, None] * directions)
        self._linear[: self._free] += directions.T @ (weights * (origin - center))

    def not_negative(self, indices: NDArray[np.intp]) -> None:
        """Parameters that are zero or more."""
        if len(indices):
            self._add("NonnegativeConeT", len(indices), self._minus(indices), self._around.origin[indices])

    def at_least(self, body: int, margin: float) -> None:
        """P' ⪰ margin * E."""
        place = np.arange(10 * body, 10 * body + 10)
        self._add("PSDTriangleConeT", 4, self._minus(place), self._around.origin[place] - margin * UNIT)

    def log_det(self, body: int, trace: float, weight: float) -> None:
        """Add trace * tr P' - weight * log det P': with Z lower triangular, [[P', Z], [Zᵀ, diag Z]] ⪰ 0, t ≤ log Z_ii.

        Then log det P' ≥ log det(Z diag(Z)⁻¹ Zᵀ) = Σ log Z_ii, and equal for the best Z.
        """
        place = np.arange(10 * body, 10 * body + 10)
        self._linear[: self._free] += trace * (UNIT @ self._around.directions[place])
        first = self._free + 14 * body
        rows, columns = np.triu_indices(8)
        order = np.lexsort((rows, columns))
        rows, columns = rows[order], columns[order]
        stretch = np.where(rows == columns, 1.0, np.sqrt(2.0))

        def written(matrix: Array) -> Array:
            return matrix[rows, columns] * stretch

        block = np.zeros((36, self._size))
        origin = np.zeros((8, 8))
        origin[:4, :4] = as_matrix(self._around.origin[place])
        whole = np.zeros((10, 8, 8))
        whole[:, :4, :4] = as_matrix(np.eye(10))
        of_body = np.array([written(each) for each in whole]).T
        block[:, : self._free] = -of_body @ self._around.directions[place]
        for k, (row, column) in enumerate(zip(_ROWS, _COLUMNS, strict=True)):
            unit = np.zeros((8, 8))
            unit[row, 4 + column] = unit[4 + column, row] = 1.0
            if row == column:
                unit[4 + row, 4 + row] = 1.0
            block[:, first + k] = -written(unit)
        self._add("PSDTriangleConeT", 8, block, written(origin))
        for i, k in enumerate(_DIAGONAL):
            logarithm = np.zeros((3, self._size))
            logarithm[0, first + 10 + i] = -1.0  # (t, 1, Z_ii): exp(t) ≤ Z_ii
            logarithm[2, first + k] = -1.0
            self._add("ExponentialConeT", 0, logarithm, np.array([0.0, 1.0, 0.0]))
            self._linear[first + 10 + i] = -weight

    def assembled(self, clarabel: Any) -> tuple[Any, ...]:
        """Return the arguments of the solver."""
        cones = [getattr(clarabel, kind)(*([size] if size else [])) for kind, size in self._cones]
        square = scipy.sparse.csc_matrix(np.triu(self._square))
        left = scipy.sparse.csc_matrix(np.vstack(self._blocks))
        return square, self._linear, left, np.concatenate(self._right), cones

    def _minus(self, indices: NDArray[np.intp]) -> Array:
        block = np.zeros((len(indices), self._size))
        block[:, : self._free] = -self._around.directions[indices]
        return block

    def _add(self, cone: str, size: int, block: Array, right: Array) -> None:
        self._cones.append((cone, size))
        self._blocks.append(block)
        self._right.append(right)
