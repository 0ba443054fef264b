"""How far predicted torque is from measured torque, where the joints move and over all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.judgement.running_variance import RunningVariance


@dataclass(frozen=True)
class TorqueError:
    """Errors of predicted torque over some rows; relative means rms error / rms measured torque.

    Attributes:
        rms: per joint [N·m or N], nan for a joint without rows, shape (n_joints,).
        relative: per joint, shape (n_joints,).
        total_relative: of all joints' torques together, ‖error‖ / ‖torque‖.
        share: of the joint's complete rows that are counted, shape (n_joints,).
        r_squared: per joint, what part of the torque's variance about its mean is predicted, negative where the mean
            alone would do better; nan where the torque does not vary, shape (n_joints,).
    """

    rms: Array
    relative: Array
    total_relative: float
    share: Array
    r_squared: Array

    def to_dict(self) -> dict[str, Any]:
        """Plain names and arrays, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TorqueError:
        """Read what `to_dict` wrote, None for nan; files of before there was R² have none."""
        total = values["total_relative"]
        rms = np.array(values["rms"], dtype=np.float64)
        return cls(
            rms=rms,
            relative=np.array(values["relative"], dtype=np.float64),
            total_relative=float("nan") if total is None else float(total),
            share=np.array(values["share"], dtype=np.float64),
            r_squared=np.array(values.get("r_squared", [None] * len(rms)), dtype=np.float64),
        )


class TwoErrors(NamedTuple):
    """Errors over all complete rows, those near rest included, and over those where the joints move."""

    all: TorqueError
    moving: TorqueError

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> TwoErrors:
        """Read both."""
        return TwoErrors(TorqueError.from_dict(values["all"]), TorqueError.from_dict(values["moving"]))


class ErrorSums:
    """Sums over blocks of rows, of which a `TorqueError` is made: no log is too long."""

    def __init__(self, n_joints: int) -> None:
        """Nothing counted yet."""
        self._squares, self._power = np.zeros((2, n_joints))
        self._torque = RunningVariance(n_joints)
        self._complete = 0

    def add(self, measured: Array, predicted: Array, counted: NDArray[np.bool_], complete: NDArray[np.bool_]) -> None:
        """Count a block.

        Args:
            measured, predicted: [N·m or N], shape (n, n_joints).
            counted: rows to compare, shape (n, n_joints).
            complete: rows that could be compared, shape (n,).
        """
        self._squares += np.sum(np.where(counted, predicted - measured, 0.0) ** 2, axis=0)
        self._power += np.sum(np.where(counted, measured, 0.0) ** 2, axis=0)
        self._torque.add(measured, counted)
        self._complete += int(complete.sum())

    def result(self) -> TorqueError:
        """The errors over all that was added."""
        rows, variation = self._torque.rows.astype(np.float64), self._torque.squares
        squares, power = self._squares.sum(), self._power.sum()
        return TorqueError(
            rms=np.sqrt(_ratio(self._squares, rows)),
            relative=np.sqrt(_ratio(self._squares, self._power)),
            total_relative=float(np.sqrt(squares / power)) if power > 0.0 else float("nan"),
            share=rows / max(1, self._complete),
            r_squared=1.0 - _ratio(self._squares, variation),
        )


def torque_error(
    measured: Array, predicted: Array, counted: NDArray[np.bool_], complete: NDArray[np.bool_]
) -> TorqueError:
    """Compare torques over the counted rows.

    Args:
        measured, predicted: [N·m or N], shape (n, n_joints).
        counted: rows to compare, shape (n, n_joints).
        complete: rows that could be compared, shape (n,).
    """
    sums = ErrorSums(measured.shape[1])
    sums.add(measured, predicted, counted, complete)
    return sums.result()


def _ratio(above: Array, below: Array) -> Array:
    """The quotient, nan where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0.0)
