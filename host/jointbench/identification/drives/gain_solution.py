"""Inverse torque constants and model parameters together: least squares of the currents' error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.drives.motor_rows import MotorRows
from jointbench.identification.least_squares import Estimate, weighted_least_squares

_STEPS = 50
_CONVERGED = 1e-9
"""Of the inverse constants, relative: far below what any error bar shows."""

_BELIEVABLE = 3.0
"""A start for a constant within this factor of the robot file's is taken; beyond it the file's is safer."""

_SINGULAR = 1e-10
"""Relative singular value under which a direction is open, as in `weighted_least_squares`."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Which inverse constant holds for which motor while it drives and while it brakes.

    Attributes:
        index: of it, first row driving and second row braking, shape (2, n_motors); the same where there is but one.
        count: how many there are.
    """

    index: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, by_direction: NDArray[np.bool_]) -> Factors:
        """Two for motors with `by_direction`, shape (n_motors,), one for the others."""
        first = np.arange(len(by_direction))
        second = np.where(by_direction, len(first) + np.cumsum(by_direction) - 1, first)
        return cls(np.stack([first, second]), len(first) + int(by_direction.sum()))

    def at(self, rows: MotorRows, torque: Array) -> NDArray[np.intp]:
        """Which one holds at each row, by the sign of the motor's power as the *model* has it, shape (n, n_motors).

        Were it the measured current's sign, its noise would choose the rows, and bias both.
        """
        return np.where(torque * rows.velocity >= 0.0, self.index[0], self.index[1])


def solve_factors(rows: MotorRows, factors: Factors, nominal: Array) -> tuple[Array, Array]:
    """Gauss-Newton over 1/k and pi of current = (columns @ pi + known) / k, motors weighted by what they leave.

    Args:
        rows: of all recordings.
        factors: which 1/k there are.
        nominal: torque constants to start from where the rows give no believable start [N·m/A], shape (n_motors,).

    Returns:
        1/k [A/(N·m)], shape (factors.count,), and pi, shape (rank,). Directions that the rows leave open stay where
        they started.
    """
    start = np.array([_start(rows, motor, constant) for motor, constant in enumerate(nominal)])
    first = factors.index[0]
    inverse = np.ones(factors.count)
    inverse[first], inverse[factors.index[1]] = start, start
    parameters = _step(start[:, None] * rows.columns, rows.current - start * rows.known, rows, np.ones(len(first)))
    for _ in range(_STEPS):
        torque = rows.torque(parameters)
        per_row = inverse[factors.at(rows, torque)]
        error = np.where(rows.used, rows.current - per_row * torque, 0.0)
        spread = np.sqrt(np.sum(error**2, axis=0) / np.maximum(rows.used.sum(axis=0), 1))
        step = _step(_slopes(rows, factors, inverse, torque), error, rows, 1.0 / np.where(spread > 0.0, spread, 1.0))
        reached = inverse + step[: factors.count]
        # An inverse constant is positive; a step that would leave that goes half way.
        reached = np.where(reached > 0.0, reached, 0.5 * inverse)
        moved = float(np.max(np.abs(reached / inverse - 1.0)))
        inverse, parameters = reached, parameters + step[factors.count :]
        if moved <= _CONVERGED:
            break
    return inverse, parameters


def factor_estimate(rows: MotorRows, factors: Factors, inverse: Array, parameters: Array) -> Estimate:
    """1/k and pi with the covariance of both, by the columns at the solution."""
    torque = rows.torque(parameters)
    slopes = _slopes(rows, factors, inverse, torque)
    here = np.concatenate([inverse, parameters])
    error = rows.current - inverse[factors.at(rows, torque)] * torque
    return weighted_least_squares(slopes, error + slopes @ here, rows.used)


def _start(rows: MotorRows, motor: int, nominal: float) -> float:
    """1/k of one motor by itself, where the problem is linear: current = columns @ (pi / k) + known (1/k)."""
    used = rows.used[:, motor]
    if nominal == 0.0 or not used.any():
        return 1.0 if nominal == 0.0 else 1.0 / nominal
    columns = np.column_stack([rows.columns[used, motor], rows.known[used, motor]])
    found = float(_scaled_least_squares(columns, rows.current[used, motor])[-1])
    return found if 1.0 / _BELIEVABLE < found * nominal < _BELIEVABLE else 1.0 / nominal


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
