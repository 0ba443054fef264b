"""Inverse torque constants of motors together with model parameters, by Gauss-Newton on the currents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.drives.harmonic_joint import MotorRows
from jointbench.identification.judgement import IDENTIFIED_RELATIVE_SIGMA, POORLY_EXCITED_RELATIVE_SIGMA
from jointbench.identification.least_squares import Estimate, weighted_least_squares

_STEPS = 50
_CONVERGED = 1e-9
"""Of the inverse constants, relative: far below what any error bar shows."""

BELIEVABLE = 3.0
"""A constant that its motor alone does not tell is sought within this factor of the robot file's. Without that, noise
may drive 1/k towards 0 while the parameters grow, which leaves the currents as they are and looks exact."""

_SINGULAR = 1e-10
"""Relative singular value under which a direction is open, as in `weighted_least_squares`."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Index of each motor's inverse torque constant while it drives and while it brakes.

    Attributes:
        index: of it, first row driving and second row braking, shape (2, n_motors); the same where there is but one.
        count: how many there are.
    """

    index: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, by_direction: NDArray[np.bool_]) -> Factors:
        """Give motors with `by_direction`, shape (n_motors,), two constants and the others one."""
        first = np.arange(len(by_direction))
        second = np.where(by_direction, len(first) + np.cumsum(by_direction) - 1, first)
        return cls(np.stack([first, second]), len(first) + int(by_direction.sum()))

    def of_motors(self, values: Array) -> Array:
        """Values of 1/k, shape (count,), of those of motors, shape (n_motors,)."""
        spread = np.ones(self.count)
        spread[self.index] = values
        return spread

    def at(self, rows: MotorRows, torque: Array) -> NDArray[np.intp]:
        """Return the index at each row, by the sign of the motor's power in the *model*, shape (n, n_motors).

        Were it the measured current's sign, its noise would choose the rows, and bias both.
        """
        return np.where(torque * rows.velocity >= 0.0, self.index[0], self.index[1])


class _Starts(NamedTuple):
    """Where the search for each motor's 1/k [A/(N·m)] begins, and the range that it stays in, shape (n_motors,)."""

    value: Array
    least: Array
    most: Array


def _starts(rows: MotorRows, nominal: Array) -> _Starts:
    """Return 1/k of each motor by itself, where the problem is linear: current = columns @ (pi / k) + known (1/k).

    A motor that tells its constant so is free; the others stay within `BELIEVABLE` of the robot file's.

    Args:
        rows: of all recordings.
        nominal: torque constants of the robot's file [N·m/A], 0 where there is no motor, shape (n_motors,).
    """
    file = np.divide(1.0, nominal, out=np.ones_like(nominal), where=nominal != 0.0)
    value, least, most = file.copy(), file / BELIEVABLE, file * BELIEVABLE
    for motor in np.flatnonzero(nominal):
        reciprocal, sigma = _alone(rows, int(motor))
        if sigma <= IDENTIFIED_RELATIVE_SIGMA * reciprocal:
            value[motor], least[motor], most[motor] = reciprocal, 0.0, np.inf
        elif least[motor] < reciprocal < most[motor]:
            value[motor] = reciprocal
    return _Starts(value, least, most)


def _solve(rows: MotorRows, factors: Factors, start: _Starts) -> tuple[Array, Array]:
    """Gauss-Newton over 1/k and pi of current = (columns @ pi + known) / k, motors weighted by what they leave.

    Args:
        rows: of all recordings.
        factors: which 1/k there are.
        start: of each motor's 1/k, and the range that it stays in.

    Returns:
        1/k [A/(N·m)], shape (factors.count,), and pi, shape (rank,). Directions that the rows leave open stay where
        they started.
    """
    inverse, least, most = (factors.of_motors(values) for values in start)
    spread = np.ones(rows.current.shape[1])
    parameters = _parameters(rows, start.value * np.ones_like(rows.current), spread)
    for _ in range(_STEPS):
        torque = rows.torque(parameters)
        error = np.where(rows.used, rows.current - inverse[factors.at(rows, torque)] * torque, 0.0)
        spread = np.sqrt(np.sum(error**2, axis=0) / np.maximum(rows.used.sum(axis=0), 1))
        spread = np.where(spread > 0.0, spread, 1.0)
        step = _step(_slopes(rows, factors, inverse, torque), error, rows, 1.0 / spread)
        free = inverse + step[: factors.count]
        # An inverse constant is positive; a step that would leave that goes half way.
        reached = np.clip(np.where(free > 0.0, free, 0.5 * inverse), least, most)
        moved = float(np.max(np.abs(reached / inverse - 1.0)))
        inverse, parameters = reached, parameters + step[factors.count :]
        if not np.array_equal(reached, free):  # the parameters went with a step that was not taken
            parameters = _parameters(rows, inverse[factors.at(rows, torque)], spread)
        if moved <= _CONVERGED:
            break
    return inverse, parameters


def _parameters(rows: MotorRows, inverse: Array, spread: Array) -> Array:
    """Pi for given 1/k of each row, shape (n, n_motors), which is linear; motors weighted by what they leave."""
    return _step(inverse[:, :, None] * rows.columns, rows.current - inverse * rows.known, rows, 1.0 / spread)


def _covariance(rows: MotorRows, factors: Factors, inverse: Array, parameters: Array) -> Estimate:
    """1/k and pi with the covariance of both, by the columns at the solution."""
    torque = rows.torque(parameters)
    slopes = _slopes(rows, factors, inverse, torque)
    here = np.concatenate([inverse, parameters])
    error = rows.current - inverse[factors.at(rows, torque)] * torque
    return weighted_least_squares(slopes, error + slopes @ here, rows.used)


def _alone(rows: MotorRows, motor: int) -> tuple[float, float]:
    """1/k of one motor by itself, and its σ as of white noise; infinite where the motor alone does not tell it."""
    used = rows.used[:, motor]
    columns = np.column_stack([rows.columns[used, motor], rows.known[used, motor]])
    scale = np.linalg.norm(columns, axis=0)
    columns = columns[:, scale > 0.0] / scale[scale > 0.0]
    if scale[-1] == 0.0 or len(columns) <= columns.shape[1]:
        return 0.0, np.inf
    u, s, vt = np.linalg.svd(columns, full_matrices=False)
    kept = s > _SINGULAR * s[0]
    if np.sum(vt[~kept, -1] ** 2) > _SINGULAR:
        return 0.0, np.inf
    along = u[:, kept].T @ rows.current[used, motor]
    left = float(np.sum(rows.current[used, motor] ** 2) - np.sum(along**2))
    variance = max(left, 0.0) / (len(columns) - columns.shape[1])
    shares = vt[kept, -1] / s[kept] / scale[-1]
    return float(shares @ along), float(np.sqrt(variance) * np.linalg.norm(shares))


def _slopes(rows: MotorRows, factors: Factors, inverse: Array, torque: Array) -> Array:
    """Derivative of the currents by 1/k and by pi, shape (n, n_motors, factors.count + rank)."""
    which = factors.at(rows, torque)
    by_inverse = np.where(which[:, :, None] == np.arange(factors.count), torque[:, :, None], 0.0)
    return np.concatenate([by_inverse, inverse[which][:, :, None] * rows.columns], axis=2)


def _step(slopes: Array, error: Array, rows: MotorRows, weight: Array) -> Array:
    """Weighted least squares over the used rows, motors weighted by `weight`."""
    weights = np.broadcast_to(weight, rows.used.shape)[rows.used]
    return _scaled_least_squares(slopes[rows.used] * weights[:, None], error[rows.used] * weights)


def _scaled_least_squares(columns: Array, values: Array) -> Array:
    """Least squares with columns of one length; the shortest solution where they leave a direction open."""
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq(columns / scale, values, rcond=_SINGULAR)[0] / scale)


@dataclass(frozen=True, eq=False)
class GainEstimate:
    """Inverse constants and parameters with their joint covariance.

    Attributes:
        factors: which inverse constants there are.
        values: inverse constants, then parameters.
        covariance: of the values.
        current_sigma: what is left of each motor's current [A], shape (n_motors,).
        relative_sigma: of each motor's constant, the larger one of driving and braking, shape (n_motors,).
        at_limit: motors whose constant ended at the end of its range, shape (n_motors,).
    """

    factors: Factors
    values: Array
    covariance: Array
    current_sigma: Array
    relative_sigma: Array
    at_limit: NDArray[np.bool_]

    @property
    def told(self) -> NDArray[np.bool_]:
        """Motors whose constant the recordings tell, shape (n_motors,)."""
        return (self.relative_sigma <= POORLY_EXCITED_RELATIVE_SIGMA) & ~self.at_limit

    @property
    def parameters(self) -> Array:
        """Parameters beside the constants: base parameters, the payload's unknown ones, changes of friction."""
        return self.values[self.factors.count :]

    @property
    def parameter_covariance(self) -> Array:
        """Covariance of `parameters`."""
        return self.covariance[self.factors.count :, self.factors.count :]

    def logarithms(self, motor: int) -> tuple[Array, Array]:
        """Logarithms of a motor's 1/k, driving and braking, and their covariance."""
        own = self.factors.index[:, motor]
        values = self.values[own]
        return np.log(values), self.covariance[np.ix_(own, own)] / np.outer(values, values)


def estimate_gains(rows: MotorRows, nominal: Array, by_direction: NDArray[np.bool_]) -> GainEstimate:
    """Estimate all that the rows tell.

    A motor that hardly ever brakes has one constant and not two. One whose constant has no information takes no part:
    its current tells nothing of torque, and a guessed constant would pull on the parameters that it shares with others.
    """
    start, by_direction = _starts(rows, nominal), by_direction.copy()
    left_out = nominal == 0.0
    sigma, relative, at_limit = np.full(len(nominal), np.nan), np.full(len(nominal), np.inf), np.zeros_like(left_out)
    while True:
        one = _estimate_once(rows._replace(used=rows.used & ~left_out), Factors.of(by_direction), start, nominal)
        untold = ~left_out & ~one.told
        sigma = np.where(left_out, sigma, one.current_sigma)
        relative = np.where(left_out, relative, one.relative_sigma)
        at_limit = np.where(left_out, at_limit, one.at_limit)
        if not untold.any():
            return replace(one, current_sigma=sigma, relative_sigma=relative, at_limit=at_limit)
        if (untold & by_direction).any():
            by_direction &= ~untold
        else:
            left_out = left_out | untold
        if left_out.all():
            return replace(one, current_sigma=sigma, relative_sigma=relative, at_limit=at_limit)


def _estimate_once(rows: MotorRows, factors: Factors, start: _Starts, nominal: Array) -> GainEstimate:
    """Estimate the constants of all motors that have rows."""
    inverse, parameters = _solve(rows, factors, start)
    solution = _covariance(rows, factors, inverse, parameters)
    sigma, own = np.sqrt(np.diag(solution.covariance))[factors.index], inverse[factors.index]
    least, most = (factors.of_motors(values)[factors.index] for values in (start.least, start.most))
    # σ of 1/k hardly depends on k; beside a 1/k that noise has made large it would look small.
    beside = np.where(np.isfinite(most), np.minimum(own, 1.0 / np.where(nominal != 0.0, nominal, 1.0)), own)
    return GainEstimate(
        factors=factors,
        values=np.concatenate([inverse, parameters]),
        covariance=solution.covariance,
        current_sigma=solution.joint_sigma,
        relative_sigma=np.max(sigma / beside, axis=0),
        at_limit=np.any((own <= least) | (own >= most), axis=0),
    )
