"""System D as its paper prints it: a polynomial of time, its coefficients, and the data that they were fitted to.

T'_i(t) = Σ_{j=0..5} C_ij t^j (eq. 26) stands for the torque that Kane's model lacks on one mission. The printed gain
is the correction divided by Kane's torque, |T'| / |T_Kane|: a ratio of sizes, and no share of an error.

Source: Li et al., Hindawi, 2017, eq. 22 to 29, tables 4 and 5.
"""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.residual import Mission, Residual

PRINTED_GAIN = np.array([33.28, 32.87, 34.14, 33.15, 34.14, 34.15, 33.30])
"""Table 5, by joint [%]."""

PRINTED_AVERAGE = 33.57

_UNIT = 1e-6
"""[N·m] of the printed kg·mm²/s²."""

COEFFICIENTS = _UNIT * np.array(
    [
        [1.4e6, -2.4e7, 2.4e7, 1.0e8, -1.3e8, 3.7e7],
        [4.0e6, -5.7e7, 2.3e8, -3.2e8, 1.3e8, -1.1e7],
        [3.7e5, -1.1e8, 5.1e8, -6.0e8, 2.9e8, -4.9e7],
        [3.4e5, -1.2e7, 4.5e7, -8.2e7, 4.4e7, -7.4e6],
        [6.1e4, -1.1e7, 5.7e7, -7.4e7, 3.4e7, -5.4e6],
        [1.3e6, 2.2e7, -5.7e7, 5.8e7, -2.8e7, 5.3e6],
        [-3.8e4, 9.5e5, -3.9e6, 5.5e6, -3.1e6, 5.9e5],
    ]
)
"""C_ij of eq. 27 [N·m/s^j], two digits, by joint and power."""

TABLE_4 = _UNIT * np.array(
    [
        [-1.8e3, 1.8e4, 2.4e3, -1.8e3, 2.8e2, 3.1e1, 2.1e1],
        [-6.2e5, 2.5e6, -2.8e6, -5.9e5, 2.3e4, 3.8e6, 9.2e3],
        [-1.6e5, 4.2e5, 6.0e6, -1.5e6, 8.2e5, 3.9e6, 1.7e4],
        [2.6e6, -4.1e6, 2.2e7, -3.0e6, 1.6e6, 3.6e6, -5.6e3],
        [9.1e6, -9.1e6, 3.8e7, -6.0e6, 2.4e6, 2.8e6, -4.3e4],
        [1.6e7, -2.2e7, 4.4e7, -1.1e7, 1.7e6, 2.1e6, 7.2e3],
        [9.4e5, -8.1e7, 4.8e7, -2.1e7, -3.3e6, 4.2e5, 1.3e5],
        [-9.4e6, -9.9e7, 5.5e7, -2.4e7, -5.0e6, -3.7e5, 7.1e4],
        [-1.2e7, -1.0e8, 6.2e7, -2.4e7, -6.0e6, -6.4e5, 1.9e4],
        [-5.6e6, -9.1e7, 7.2e7, -2.2e7, -6.7e6, -5.9e5, 1.1e3],
    ]
)
"""Error of Kane's model along the paper's mission [N·m], by row and joint; at what times is not printed."""

ORDER = COEFFICIENTS.shape[1] - 1


def printed_duration() -> float:
    """The mission's duration [s] with which the printed coefficients are nearest to table 4, its rows evenly apart."""
    durations = np.arange(0.5, 10.0, 0.05)
    return float(min(durations, key=lambda duration: np.median(left_by(COEFFICIENTS, duration))))


def left_by(coefficients: Array, duration: float) -> Array:
    """Share of table 4 that a polynomial leaves, root mean square by joint, shape (7,).

    Args:
        coefficients: as COEFFICIENTS.
        duration: of the mission [s], over which the rows are even.
    """
    time = np.linspace(0.0, duration, len(TABLE_4))
    error = TABLE_4 - time[:, None] ** np.arange(ORDER + 1) @ coefficients.T
    return np.sqrt(np.mean(error**2, axis=0) / np.mean(TABLE_4**2, axis=0))


def refitted(duration: float) -> Array:
    """Coefficients of the printed order, fitted to table 4 by least squares, as COEFFICIENTS."""
    time = np.linspace(0.0, duration, len(TABLE_4))
    return np.linalg.lstsq(time[:, None] ** np.arange(ORDER + 1), TABLE_4)[0].T


def quotient(residual: Residual | None, mission: Mission) -> Array:
    """|T'| / |T_Kane| over all compared rows of a mission, root mean squares by joint, shape (n_joints,).

    Args:
        residual: whose T' is taken; None: the error itself, which T' stands for.
        mission: compared with Kane's model.
    """
    size = mission.error if residual is None else residual.along(mission)
    kane = mission.filtered(mission.model)
    rows = mission.compared
    squares = [np.sum(np.where(rows, values, 0.0) ** 2, axis=0) for values in (size, kane)]
    return np.sqrt(squares[0] / squares[1])
