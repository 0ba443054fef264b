"""How far predicted torque is from measured torque, where the joints move and over all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.robot import Array


@dataclass(frozen=True)
class TorqueError:
    """Errors of predicted torque over some rows; relative means rms error / rms measured torque.

    Attributes:
        rms: per joint [N·m or N], nan for a joint without rows, shape (n_joints,).
        relative: per joint, shape (n_joints,).
        total_relative: of all joints' torques together, ‖error‖ / ‖torque‖.
        share: of the joint's complete rows that are counted, shape (n_joints,).
    """

    rms: Array
    relative: Array
    total_relative: float
    share: Array


def torque_error(
    measured: Array, predicted: Array, counted: NDArray[np.bool_], complete: NDArray[np.bool_]
) -> TorqueError:
    """Compare torques over the counted rows.

    Args:
        measured, predicted: [N·m or N], shape (n, n_joints).
        counted: rows to compare, shape (n, n_joints).
        complete: rows that could be compared, shape (n,).
    """
    error = np.where(counted, predicted - measured, 0.0)
    torque = np.where(counted, measured, 0.0)
    rows = counted.sum(axis=0)
    squares, power = np.sum(error**2, axis=0), np.sum(torque**2, axis=0)
    unknown = np.full(len(rows), np.nan)
    return TorqueError(
        rms=np.sqrt(np.divide(squares, rows, out=unknown.copy(), where=rows > 0)),
        relative=np.sqrt(np.divide(squares, power, out=unknown.copy(), where=power > 0.0)),
        total_relative=float(np.sqrt(squares.sum() / power.sum())) if power.sum() > 0.0 else float("nan"),
        share=rows / max(1, int(complete.sum())),
    )
