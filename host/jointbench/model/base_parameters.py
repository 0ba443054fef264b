"""Base parameters: what of a robot's parameters its joint torques can tell at all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model.base_words import Group, group_table, groups_of
from jointbench.model.grouping import grouping_matrix, independent_columns, random_columns
from jointbench.model.model_columns import compensation_parameter_names, model_parameter_names
from jointbench.model.robot import Robot

_TERMS_SHOWN = 3


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The independent parameters of a robot and how the full ones group into them.

    For every motion, columns @ pi == project(columns) @ group(pi).

    Attributes:
        robot: whose they are.
        rank: how many there are.
        gap: ratio of the smallest independent to the largest dependent sine at the rank decision.
        names: one per base parameter, led by the parameter it is named for: "j2.Izz - 0.0729 j3.m + …".
        columns: index of each base parameter's leading column among the full ones, shape (rank,).
        full_names: names of the full parameters, as of `model_columns` (or `regressor`, without drives).
        grouping: K of base = K @ pi, shape (rank, n_full).
    """

    robot: Robot
    rank: int
    gap: float
    names: tuple[str, ...]
    columns: np.ndarray[tuple[int], np.dtype[np.intp]]
    full_names: tuple[str, ...]
    grouping: Array

    @property
    def n_full(self) -> int:
        """How many full parameters there are."""
        return len(self.full_names)

    @property
    def leading_names(self) -> tuple[str, ...]:
        """Name of the parameter that leads each group."""
        return tuple(self.full_names[column] for column in self.columns)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Each base parameter in full: its terms, with the robot's lengths for coefficients, and in words."""
        return groups_of(self.robot, self.full_names, self.columns.tolist(), self.grouping)

    def table(self) -> str:
        """Lines for a person: rank and gap, every base parameter as formula and in words, the lengths used."""
        head = (
            f"{self.rank} base parameters of {self.n_full} parameters; the rank's gap is {self.gap:.1e} "
            f"(smallest independent to largest dependent sine)"
        )
        return f"{head}\n{group_table(self.robot, self.groups)}"

    def project(self, full_columns: Array) -> Array:
        """Keep of a full regressor (…, n_full) the columns of the base parameters, (…, rank).

        Raises:
            ShapeError: the last axis is not n_full long.
        """
        self._check(full_columns, "the regressor")
        return full_columns[..., self.columns]

    def group(self, full_parameters: ArrayLike) -> Array:
        """Base parameters, shape (rank,), of full parameters, shape (n_full,).

        Raises:
            ShapeError: the vector is not n_full long.
        """
        values = np.asarray(full_parameters, dtype=np.float64)
        self._check(values, "the parameter vector")
        return self.grouping @ values

    def _check(self, array: Array, what: str) -> None:
        if array.shape[-1] != self.n_full:
            raise ShapeError(
                f"{what} has {array.shape[-1]} columns; these base parameters group {self.n_full}: "
                f"{self.full_names[0]} … {self.full_names[-1]}"
            )


def base_parameters(robot: Robot, *, drives: bool = True, seed: int = 0) -> BaseParameters:
    """Find the base parameters of a robot from random motions.

    Columns of the regressor are offered one by one, link by link, then the drives and last the compensations, and kept
    when independent of those kept before. So friction and offsets stay themselves, and a rotor inertia does unless its
    link's Izz acts alike, which then leads the group.

    Args:
        robot: the robot.
        drives: whether the model has all columns, as `model_columns`, or only the links', as `regressor`.
        seed: of the random motions; the result does not depend on it but for rounding.

    Returns:
        The base parameters.

    Raises:
        NumericalError: no clear gap separates independent from dependent columns, as with a geometry that is
            nearly but not exactly degenerate.

    Source: Gautier, J. Robotic Systems 8(4), 1991 (numerical grouping); the order of preference follows
    Khalil & Dombre, Modeling, Identification and Control of Robots, 2002, ch. 9.

    >>> from jointbench.model import load_robot
    >>> base = base_parameters(load_robot("cobot6"), drives=False)
    >>> base.rank, base.names[0]
    (36, 'j1.Izz + j2.Iyy + j3.Iyy + j4.Iyy + …')
    """
    names = model_parameter_names(robot, drives=drives)
    matrix = random_columns(robot, drives=drives, seed=seed)
    columns, gap = independent_columns(robot, matrix, names)
    grouping = grouping_matrix(matrix, columns)
    shown = tuple(_group_name(names, column, row) for column, row in zip(columns, grouping, strict=True))
    return BaseParameters(robot, len(columns), gap, shown, np.array(columns, dtype=np.intp), names, grouping)


def doubled_compensations(base: BaseParameters) -> tuple[str, ...]:
    """A sentence on each parameter of a compensation that no motion of the robot tells from others, or at all."""
    said: list[str] = []
    for name in compensation_parameter_names(base.robot):
        column = base.full_names.index(name)
        leaders = [base.leading_names[row] for row in np.flatnonzero(base.grouping[:, column])]
        if not leaders:
            said.append(f"{name} acts on no joint whose torque is modelled, and is not told")
        elif name not in leaders:
            said.append(f"{name} acts as {' and '.join(leaders)} in every motion, and is told only in sum with that")
    return tuple(said)


def _group_name(names: tuple[str, ...], leader: int, row: Array) -> str:
    """Short reading of one group: the leading parameter, then the others by the size of their share."""
    row = row.round(9)  # so that order and digits do not hang on the last bits
    by_share = np.argsort(-np.abs(row), kind="stable")
    others = [k for k in by_share if row[k] != 0.0 and k != leader]
    terms = [names[leader]]
    for k in others[:_TERMS_SHOWN]:
        share = abs(row[k])
        factor = "" if share == 1.0 else f"{share:.3g} "
        terms.append(f"{'+' if row[k] > 0 else '-'} {factor}{names[k]}")
    return " ".join(terms) + (" + …" if len(others) > _TERMS_SHOWN else "")
