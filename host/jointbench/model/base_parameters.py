"""Base parameters: the combinations of a robot's parameters that its joint torques depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.errors import NumericalError, ShapeError
from jointbench.model.base_words import Group, Regroup, group_table, groups_of
from jointbench.model.catalogue import as_robot
from jointbench.model.inverse_dynamics import regressor
from jointbench.model.joint import PARAMETER_NAMES
from jointbench.model.model_columns import (
    compensation_parameter_names,
    known_beside_links,
    model_columns,
    model_parameter_names,
)
from jointbench.model.robot import Robot

_PREFERENCE = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mcx", "mcy", "mcz", "Iyy", "m")
"""Order in which a link's parameters are offered as base parameters: the ones usually grouped away come last."""

_DEPENDENT = 1e-8
"""Sine of a column's angle to those before it under which it counts as dependent. Rounding leaves about 1e-15 and
true independence about 1e-2, so the exact value hardly matters; that the two stay apart is checked."""

_SPAN_TOLERANCE = 1e-9
"""Largest error, as a share of the largest element, of columns that others span."""

_CLEAR_GAP = 1e4
"""Least ratio between the smallest independent and the largest dependent sine for a rank to be believed."""

_TERMS_SHOWN = 3


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The independent parameters of a robot and how the full ones group into them.

    For every motion, columns @ pi == project(columns) @ group(pi).

    Attributes:
        robot: the robot.
        rank: their number.
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
        """Number of full parameters."""
        return len(self.full_names)

    @property
    def known_beside_links(self) -> Array:
        """Values of the full parameters behind the links' as far as the robot's drives give them, nan where not known.

        Returns:
            Values [SI], shape (n_full - 10 * n_links,), for base parameters with drives and whatever extends them.
        """
        known = known_beside_links(self.robot)
        beside = self.n_full - len(PARAMETER_NAMES) * self.robot.n_links
        return np.concatenate([known, np.full(beside - len(known), np.nan)])

    def extended(self, kept: NDArray[np.bool_], names: Sequence[str]) -> BaseParameters:
        """Some of these base parameters and further ones behind them, each of which is a full parameter itself.

        Args:
            kept: which of these, shape (rank,).
            names: of the further ones, such as those of friction laws.
        """
        more = np.eye(len(names))
        return replace(
            self,
            rank=int(np.count_nonzero(kept)) + len(names),
            names=(*(name for name, is_kept in zip(self.names, kept, strict=True) if is_kept), *names),
            columns=np.concatenate([self.columns[kept], self.n_full + np.arange(len(names))]),
            full_names=(*self.full_names, *names),
            grouping=linalg.block_diag(self.grouping[kept], more),
        )

    @property
    def leading_names(self) -> tuple[str, ...]:
        """Names of the parameters that lead the groups."""
        return tuple(self.full_names[column] for column in self.columns)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The base parameters in full: their terms, with the robot's lengths for coefficients, and in words."""
        return column_groups(self.robot, self.full_names, self.columns.tolist(), self.grouping)

    def table(self) -> str:
        """Text of several lines: rank and gap, every base parameter as formula and in words, the lengths used."""
        head = (
            f"{self.rank} base parameters of {self.n_full} parameters; the rank's gap is {self.gap:.1e} "
            f"(smallest independent to largest dependent sine)"
        )
        return f"{head}\n{group_table(self.robot, self.groups)}"

    def project(self, full_columns: Array) -> Array:
        """Select the columns of the base parameters, (…, rank), from a full regressor (…, n_full).

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

    def _check(self, array: Array, name: str) -> None:
        if array.shape[-1] != self.n_full:
            raise ShapeError(
                f"{name} has {array.shape[-1]} columns; these base parameters group {self.n_full}: "
                f"{self.full_names[0]} … {self.full_names[-1]}"
            )


def base_parameters(robot: Robot | str | Path, *, drives: bool = True, seed: int = 0) -> BaseParameters:
    """Find the base parameters of a robot from random motions.

    Columns of the regressor are offered one by one, link by link, then the drives and last the compensations, and kept
    when independent of those kept before. So friction and offsets stay themselves, and a rotor inertia does unless its
    link's Izz acts alike, which then leads the group.

    Args:
        robot: the robot, or what `load_robot` takes.
        drives: whether the model has all columns, as `model_columns`, or only the links', as `regressor`.
        seed: of the random motions; the result does not depend on it but for rounding.

    Returns:
        The base parameters.

    Raises:
        NumericalError: no clear gap separates independent from dependent columns, as with a geometry that is
            nearly but not exactly degenerate.

    Source: Gautier, J. Robotic Systems 8(4), 1991 (numerical grouping); the order of preference follows
    Khalil & Dombre, Modeling, Identification and Control of Robots, 2002, ch. 9.

    >>> base = base_parameters("cobot6", drives=False)
    >>> base.rank, base.names[0]
    (36, 'j1.Izz + j2.Iyy + j3.Iyy + j4.Iyy + …')
    """
    robot = as_robot(robot)
    names = model_parameter_names(robot, drives=drives)
    matrix = random_columns(robot, drives=drives, seed=seed)
    columns, gap = independent_columns(robot, matrix, names)
    grouping = grouping_matrix(matrix, columns)
    group_names = tuple(_group_name(names, column, row) for column, row in zip(columns, grouping, strict=True))
    return BaseParameters(robot, len(columns), gap, group_names, np.array(columns, dtype=np.intp), names, grouping)


def doubled_compensations(base: BaseParameters) -> tuple[str, ...]:
    """Return a sentence for each parameter of a compensation that no motion tells from others, or at all."""
    sentences: list[str] = []
    for name in compensation_parameter_names(base.robot):
        column = base.full_names.index(name)
        leaders = [base.leading_names[row] for row in np.flatnonzero(base.grouping[:, column])]
        if not leaders:
            sentences.append(f"{name} acts on no joint whose torque is modelled, so that it is unidentifiable")
        elif name not in leaders:
            sentences.append(
                f"{name} acts as {' and '.join(leaders)} in every motion, and is identifiable only in sum with that"
            )
    return tuple(sentences)


def _group_name(names: tuple[str, ...], leader: int, row: Array) -> str:
    """Short reading of one group: the leading parameter, then the others by the size of their share."""
    row = row.round(9)  # so that order and digits do not hang on the last bits
    share_order = np.argsort(-np.abs(row), kind="stable")
    other_columns = [k for k in share_order if row[k] != 0.0 and k != leader]
    terms = [names[leader]]
    for k in other_columns[:_TERMS_SHOWN]:
        share = abs(row[k])
        factor = "" if share == 1.0 else f"{share:.3g} "
        terms.append(f"{'+' if row[k] > 0 else '-'} {factor}{names[k]}")
    return " ".join(terms) + (" + …" if len(other_columns) > _TERMS_SHOWN else "")


def column_groups(robot: Robot, names: Sequence[str], columns: Sequence[int], grouping: Array) -> tuple[Group, ...]:
    """Groups of full parameters by their leading columns, with the robot's lengths for coefficients, and in words.

    Args:
        robot: the robot.
        names: of its full parameters, as of `model_parameter_names`, with drives or without.
        columns: index of each group's leading parameter.
        grouping: K of base = K @ pi, shape (len(columns), len(names)).
    """
    drives = any(name.rsplit(".", 1)[1] not in PARAMETER_NAMES for name in names)
    return groups_of(robot, names, columns, grouping, regrouping(columns, drives=drives))


def regrouping(columns: Sequence[int], *, drives: bool) -> Regroup:
    """Return the function that groups the parameters of a robot with other lengths by the same leading columns."""

    def regroup(robot: Robot) -> Array | None:
        matrix = random_columns(robot, drives=drives, seed=0, rows_per_column=2)
        grouping = grouping_matrix(matrix, columns)
        error = np.abs(matrix[:, columns] @ grouping - matrix).max()
        return grouping if error <= _SPAN_TOLERANCE * np.abs(matrix).max() else None

    return regroup


def random_columns(robot: Robot, *, drives: bool, seed: int, rows_per_column: int = 10) -> Array:
    """Return the model's columns on random motion, shape (n_rows, n_full).

    Ten rows per column make the chance of a near-dependent sample set vanish; two do where the rank is known.
    """
    names = model_parameter_names(robot, drives=drives)
    samples = rows_per_column * (len(names) // max(1, int(robot.modelled.sum())) + 1)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (samples, robot.n_joints))
    dq, ddq = 2.0 * rng.standard_normal((2, samples, robot.n_joints))
    return model_columns(robot, q, dq, ddq)[0] if drives else regressor(robot, q, dq, ddq)


def independent_columns(robot: Robot, matrix: Array, names: Sequence[str]) -> tuple[list[int], float]:
    """Return the first independent columns in the order of preference, and the gap of the decision.

    Columns are offered by their names: link by link from base to tip, each link's by `_PREFERENCE`, then the drives'.

    Raises:
        NumericalError: no clear gap separates independent from dependent columns.
    """
    lengths = np.linalg.norm(matrix, axis=0)
    scale = lengths.max()
    basis = np.empty((matrix.shape[0], 0))
    independent: list[int] = []
    sines: list[float] = []
    for column in _preferred_order(names):
        remainder = matrix[:, column] / max(lengths[column], _DEPENDENT * scale)
        for _ in range(2):  # the second pass removes what rounding of the first leaves (Kahan: twice is enough)
            remainder = remainder - basis @ (basis.T @ remainder)
        sine = float(np.linalg.norm(remainder))
        sines.append(sine)
        if sine > _DEPENDENT:
            independent.append(column)
            basis = np.column_stack([basis, remainder / sine])
    smallest_independent = min((sine for sine in sines if sine > _DEPENDENT), default=0.0)
    largest_dependent = max((sine for sine in sines if sine <= _DEPENDENT), default=0.0)
    gap = smallest_independent / max(largest_dependent, np.finfo(float).eps)
    if gap < _CLEAR_GAP:
        raise NumericalError(
            f"robot {robot.name!r}: no clear gap between independent and dependent parameters: the weakest of "
            f"{len(independent)} independent columns has sine {smallest_independent:.2g}, the strongest dependent one "
            f"{largest_dependent:.2g} (ratio {gap:.2g}, needed {_CLEAR_GAP:.0e}); look for angles or lengths that are "
            f"almost but not exactly 0 or 90 degrees"
        )
    return sorted(independent), gap


def grouping_matrix(matrix: Array, columns: Sequence[int]) -> Array:
    """Return K of matrix = matrix[:, columns] @ K, shape (n_columns, n_full); the columns are independent."""
    q, r = np.linalg.qr(matrix[:, columns])
    grouping: Array = np.linalg.solve(r, q.T @ matrix).astype(np.float64)
    # Rounding leaves about 1e-14 where a column takes no part in a group; geometry leaves much more where it does.
    grouping[np.abs(grouping) < 1e-10] = 0.0
    grouping[:, columns] = np.eye(len(columns))
    return grouping


def _preferred_order(names: Sequence[str]) -> list[int]:
    split = [name.rsplit(".", 1) for name in names]
    owner_order = {owner: i for i, owner in enumerate(dict.fromkeys(owner for owner, _ in split))}
    quantity_order = {quantity: i for i, quantity in enumerate(_PREFERENCE)}
    link_columns = [k for k, (_, quantity) in enumerate(split) if quantity in quantity_order]
    link_columns.sort(key=lambda k: (owner_order[split[k][0]], quantity_order[split[k][1]]))
    return link_columns + [k for k, (_, quantity) in enumerate(split) if quantity not in quantity_order]
