"""What compensations add to the joint torque, linear in their parameters, and its derivatives by the motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.dynamics.shapes import motion_arrays
from jointbench.errors import BadCompensation
from jointbench.robot import Compensation, Robot

_STEP = 1e-5
"""Of central differences [rad, rad/s, …]: of smooth functions about one in size they are right to 1e-10, in which
truncation and rounding have like shares."""


def compensation_columns(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> tuple[Array, tuple[str, ...]]:
    """Regressor of a robot's compensations, to stand beside those of links and drives: E = C @ parameters.

    Args:
        robot: its compensations and joints; rows of passive joints are zero.
        q, dq, ddq: joint position [rad], velocity [rad/s], acceleration [rad/s²], shape (n_samples, n_joints).

    Returns:
        C, shape (n_samples * n_joints, n_compensation_parameters), rows as in `regressor`; and the names of its
        columns, such as "elbow_spring.stiffness".

    Raises:
        ShapeError: the arrays differ in shape or do not match the robot.
        BadCompensation: a function of one's own gives another shape, or values that are not finite.
    """
    motion = motion_arrays(robot, q=q, dq=dq, ddq=ddq)
    names, terms = compensation_parameter_names(robot), CompensationTerms.of(robot)
    columns = np.zeros((*motion[0].shape, len(names)))
    columns[:, terms.row, terms.column] = terms.values(*motion)
    return columns.reshape(motion[0].size, len(names)), names


def compensation_parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the columns of `compensation_columns`."""
    return tuple(name for compensation in robot.compensations for name in compensation.names)


class _Part(NamedTuple):
    """A compensation, its joints, and which of its elements are asked for, shape (n_joints, n_parameters)."""

    compensation: Compensation
    joints: list[int]
    kept: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CompensationTerms:
    """The elements of the compensations' columns that are not always zero: of a row (joint) and a column.

    Attributes:
        parts: of each compensation those that are asked for, one behind the other.
        row, column: of each element, shape (n_entries,).
    """

    parts: tuple[_Part, ...]
    row: NDArray[np.intp]
    column: NDArray[np.intp]

    @classmethod
    def of(cls, robot: Robot, columns: ArrayLike | None = None) -> CompensationTerms:
        """Those of a robot in these columns of `compensation_columns`; of all where none are given."""
        parts, rows, places, first = list[_Part](), list[int](), list[int](), 0
        wanted = np.arange(len(compensation_parameter_names(robot))) if columns is None else columns
        for each in robot.compensations:
            joints = [robot.joint_index(name) for name in each.joints]
            width = len(each.parameters)
            kept = np.outer(robot.modelled[joints], np.isin(np.arange(first, first + width), wanted))
            of_row, of_column = np.nonzero(kept)
            rows += [joints[j] for j in of_row]
            places += [first + int(k) for k in of_column]
            parts.append(_Part(each, joints, kept))
            first += width
        return cls(tuple(parts), np.array(rows, dtype=np.intp), np.array(places, dtype=np.intp))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        """All elements, shape (n_samples, n_entries), of a motion of arrays (n_samples, n_joints).

        Raises:
            BadCompensation: a function of one's own gives another shape, or values that are not finite.
        """
        found = [_columns(part, *(each[:, part.joints] for each in (q, dq, ddq))) for part in self.parts]
        return np.concatenate(found, axis=1) if found else np.zeros((len(q), 0))

    def pull_back(self, q: Array, dq: Array, ddq: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Derivatives of Σ weights * elements by q, dq and ddq, by central differences.

        Args:
            q, dq, ddq: shape (n_samples, n_joints) each.
            weights: of each element, shape (n_samples, n_entries).
        """
        slopes = np.zeros((3, *q.shape))
        first = 0
        for part in self.parts:
            own = weights[:, first : first + int(part.kept.sum())]
            first += own.shape[1]
            motion = np.stack([each[:, part.joints] for each in (q, dq, ddq)])
            for which, place, step in _steps(motion):
                change = _columns(part, *(motion + step)) - _columns(part, *(motion - step))
                slopes[which, :, part.joints[place]] += np.sum(own * change, axis=1) / (2.0 * _STEP)
        return slopes[0], slopes[1], slopes[2]


def _steps(motion: Array) -> Iterator[tuple[int, int, Array]]:
    """Which quantity of which joint, and a step of it alone."""
    for which in range(3):
        for place in range(motion.shape[2]):
            step = np.zeros((3, 1, motion.shape[2]))
            step[which, 0, place] = _STEP
            yield which, place, step


def _columns(part: _Part, q: Array, dq: Array, ddq: Array) -> Array:
    """What is asked for of a compensation, shape (n, n_kept)."""
    compensation = part.compensation
    values = np.asarray(compensation.columns(q, dq, ddq), dtype=np.float64)
    wanted = (*q.shape, len(compensation.parameters))
    if values.shape != wanted:
        raise BadCompensation(
            f"the columns of compensation {compensation.name!r} have shape {values.shape} for motion of shape "
            f"{q.shape}; needed is (samples, joints, parameters) = {wanted}"
        )
    if not np.isfinite(values).all():
        raise BadCompensation(
            f"the columns of compensation {compensation.name!r} are not finite everywhere; they must be for positions "
            f"from -π to π and whatever else is fitted"
        )
    return values[:, part.kept]
