"""Many rows solved without their matrix, and with it by NumPy."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.least_squares import Estimate, joint_weights, least_squares
from jointbench.identification.rows import MotionRows
from jointbench.identification.triangles import compress

ROUNDS = 7


@dataclass(frozen=True)
class Race:
    """What both ways took and how far they are apart.

    Attributes:
        rows, columns: of the matrix.
        seconds: of each round of ours, parameters with their covariance, after a first call.
        fill_s: to make the peer's matrix.
        lstsq_s: of `numpy.linalg.lstsq` on it, once: parameters alone, of weights that are given to it.
        qr_s: of `numpy.linalg.qr` on it, R alone.
        apart: largest difference of a parameter, in its standard deviations.
        condition_apart: of the condition numbers, relative.
        off: root mean square of (estimate - truth) / σ.
    """

    rows: int
    columns: int
    seconds: list[float]
    fill_s: float
    lstsq_s: float
    qr_s: float
    apart: float
    condition_apart: float
    off: float


def race(rows: MotionRows, truth: Array, rounds: int = ROUNDS) -> Race:
    """Solve the rows in both ways; the peer is given our weights of the joints."""
    estimate = least_squares([rows])
    seconds: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        estimate = least_squares([rows])
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    matrix = np.concatenate([block.regressor for block in rows.blocks()])
    fill_s = time.perf_counter() - begin
    begin = time.perf_counter()
    triangle = np.linalg.qr(matrix.reshape(-1, rows.n_parameters), mode="r")
    qr_s = time.perf_counter() - begin
    condition = float(np.linalg.cond(triangle))
    weights = joint_weights(compress([rows]))
    matrix *= weights[:, None]
    matrix = matrix.reshape(-1, rows.n_parameters)
    right = (rows.torque * weights).ravel()
    solution, lstsq_s = _lstsq(matrix, right)
    sigma = np.sqrt(np.diag(estimate.covariance))
    return Race(
        rows=len(matrix),
        columns=rows.n_parameters,
        seconds=seconds,
        fill_s=fill_s,
        lstsq_s=lstsq_s,
        qr_s=qr_s,
        apart=float(np.abs((estimate.parameters - solution) / sigma).max()),
        condition_apart=abs(estimate.condition_number / condition - 1.0),
        off=_off(estimate, truth),
    )


def _lstsq(matrix: Array, right: Array) -> tuple[Array, float]:
    scale = np.linalg.norm(matrix, axis=0)
    matrix /= scale
    begin = time.perf_counter()
    solution = np.linalg.lstsq(matrix, right)[0]
    return solution / scale, time.perf_counter() - begin


def _off(estimate: Estimate, truth: Array) -> float:
    return float(np.sqrt(np.mean((estimate.parameters - truth) ** 2 / np.diag(estimate.covariance))))
